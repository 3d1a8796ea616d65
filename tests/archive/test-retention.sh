#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Retention beside an archiver that stops: no segment is gone that was neither archived nor said to be deleted. A real daemon,
# which records this machine's own I/O in small segments under a small limit.
#
# timeout: 120
cd "$(dirname "$0")/../.." || exit 2
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
# shellcheck source=tests/lib/daemon.sh
. tests/lib/daemon.sh
B=${B:-build}
IOTRACED=$(realpath "$B/iotraced") IOTRACECTL=$(realpath "$B/iotracectl")
[ "$(id -u)" = 0 ] || { skip retention "needs root"; tap_end; }

work=$(mktemp -d /var/tmp/iotraced-retention.XXXXXX)
writer=''
# shellcheck disable=SC2317 # by the trap
cleanup() {
	[ -z "$writer" ] || kill "$writer" 2>/dev/null
	iot_stop KILL
	rm -rf "$work"
}
trap cleanup EXIT
iot_setup "$work"
cat >"$work/config.yaml" <<-END
	streams: {block: {segment_size: 16KiB, segment_age: 300ms, block_age: 50ms}}
	retention: {max_size: 512KiB, min_free: 0, shipped: $work/note}
END
mkdir "$work/archive"
archive() { "$IOTRACECTL" archive --once --state "$work/note" "$work/archive" "$iot_state" >/dev/null; }
archive || bail "archive" "it cannot be made"
iot_start || bail "daemon" "see above"
(while :; do dd if=/dev/zero of="$work/here" bs=4k count=256 oflag=direct conv=notrunc 2>/dev/null; done) &
writer=$!

highest() { find "$iot_state" "$work/archive" -name 'block-*.iot' -printf '%f\n' | sed 's/.*-0*\([0-9]*\)\.iot/\1/' | sort -n | tail -n 1; }
# shellcheck disable=SC2317 # called by name, as others here
has_made() { [ "$(highest)" -ge "$1" ]; }
gone() { [ "$(find "$iot_state" -name '*.iot' | wc -l)" -lt $(($(highest) - $1)) ]; }
said() { sed -n 's/.*retention deleted \([0-9]*\) segments that are in no archive.*/\1/p' "$iot_log" | awk '{ n += $1 } END { print n + 0 }'; }

# While all is archived as it comes, nothing is said.
until gone 20 || [ "$SECONDS" -gt 60 ]; do
	archive
	sleep 0.3
done
archive
assert_status "retention deletes" 0 gone 20
kept_up=$(highest)
note "$kept_up segments with an archiver: $(said) said"
# From here on it archives nothing. What is deleted after it was said once waits for the message's next turn, or the end.
# shellcheck disable=SC2317
has_said() { [ "$(said)" -gt 0 ]; }
assert_status "without an archiver it is said" 0 wait_for 60 has_said
assert_status "it records on" 0 wait_for 60 has_made $(($(highest) + 60))
kill "$writer" && wait "$writer" 2>/dev/null
writer=''
iot_stop
assert_eq "the daemon ends well" 0 $?

# Every number up to the last one is in the archive, in the state directory, or was said.
find "$iot_state" "$work/archive" -name 'block-*.iot' -printf '%f\n' | sed 's/.*-0*\([0-9]*\)\.iot/\1/' | sort -nu >"$work/there"
nowhere=$(($(tail -n 1 "$work/there") - $(wc -l <"$work/there")))
assert_num "some are nowhere" "$nowhere" -gt 10
assert_eq "as many as were said to be deleted unarchived" "$nowhere" "$(said)"
assert_eq "segments --chain knows of as many" "$nowhere" \
	"$("$IOTRACECTL" --json segments --chain "$iot_state" "$work/archive" | jq '[.[].n_missing] | add')"
tap_end
