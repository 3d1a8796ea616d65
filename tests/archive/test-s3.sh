#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The archive to an S3-compatible server (Swift's s3api), with a remote that fails more than half of the time, copies
# that are corrupted on the way, and a connection that is cut.
#
# timeout: 900
cd "$(dirname "$0")/../.." || exit 2
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
# shellcheck source=tests/archive/lib.sh
. tests/archive/lib.sh
IOTRACECTL=$(realpath "${IOTRACECTL:-${B:-build}/iotracectl}")
for tool in rclone swift-proxy-server swift-ring-builder jq; do
	command -v "$tool" >/dev/null || { echo "skip archive: no $tool"; exit 77; }
done

work=$(mktemp -d)
server=''
cleanup() {
	[ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null
	rm -rf "$work"
}
trap cleanup EXIT
port=$((20000 + RANDOM % 20000))
tests/archive/swift.sh "$work/swift" "$port" &
server=$!
export RCLONE_CONFIG=$work/rclone.conf
cat >"$RCLONE_CONFIG" <<-END
	[s3]
	type = s3
	provider = Other
	access_key_id = test:tester
	secret_access_key = testing
	endpoint = http://127.0.0.1:$port
	region = us-east-1
	force_path_style = true
END
for _ in $(seq 60); do
	rclone --retries=1 --low-level-retries=1 mkdir s3:traces >"$work/said" 2>&1 && break
	sleep 1
done
rclone --retries=1 lsd s3: 2>/dev/null | grep -q traces || bail "server" "$(tail -n 3 "$work/said" "$work/swift"/*.log | xargs)"

make_segments "$work/state"
n=$(find "$work/state" -name '*.iot' | wc -l)
destination=s3:traces/iotraced
archive() { timeout 600 "$IOTRACECTL" archive --state "$work/note" "$@" "$destination" "$work/state"; }
make_flaky
PATH=$work/bin:$PATH archive >"$work/said" 2>"$work/errors" &
archiver=$!
# Cut off twice while it is at work.
for _ in 1 2; do
	fates=$(wc -l <"$FLAKY_LOG")
	for _ in $(seq 600); do
		[ "$(wc -l <"$FLAKY_LOG")" -lt $((fates + 12)) ] || break
		sleep 0.1
	done
	kill -KILL "$(cat "$work/swift/proxy.pid")"
done
wait "$archiver"
assert_eq "it ends when all has arrived" "0 $destination: $n segments" "$? $(sed 's/ (.*//' "$work/said")"
check_fates
assert_num "a copy that differs was seen" "$(grep -c 'read back differs' "$work/errors")" -ge 1
rclone copy "s3:traces/iotraced" "$work/back" || bail "download" "it failed"
check_arrived "$work/state" "$work/back" "$work/note"
assert_eq "and once more there is nothing to do" "0 0" "$(archive --json | jq -r '"\(.shipped) \(.failed)"')"
tap_end
