#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The archive to an S3-compatible server (Swift's s3api), with a remote that fails more than half of the time, copies
# that are corrupted on the way, and a connection that is cut.
#
# timeout: 900
cd "$(dirname "$0")/../.." || exit 2
# shellcheck source=tests/archive/lib.sh
. tests/archive/lib.sh
need rclone swift-proxy-server swift-ring-builder jq

port=$((20000 + RANDOM % 20000))
tests/archive/swift.sh "$work/swift" "$port" &
server=$!
cleanup_more() { { kill "$server" && wait "$server"; } 2>/dev/null; }
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

make_segments
destination=s3:traces/iotraced
cut_off() { kill -KILL "$(cat "$work/swift/proxy.pid")"; }
archive_while_cut cut_off
rclone copy "$destination" "$work/back" || bail "download" "it failed"
check_arrived "$work/back"
assert_eq "and once more there is nothing to do" "0 0" "$(archive --json | jq -r '"\(.shipped) \(.failed)"')"
tap_end
