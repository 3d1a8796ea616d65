#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2154 # the libraries and their variables
#
# The report on a real recording: known files of an ext4 on a loop device are ranked with their bytes and
# found by their names again, as of now: a file that was deleted is not found, and one that got a used
# number is not taken for the file that was recorded. What was written is held against what was written.
#
# Kernels that show some completions to no program (see test-exact.sh) file them as losses, which are in no
# row: a phase with one is done again, five times at most.
#
# timeout: 200

cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/daemon.sh
. tests/lib/diskstats.sh
. tests/lib/loop.sh

dir=$(mktemp -d /dev/shm/iot-report.XXXXXX) || exit 1
mnt=$dir/mnt
cleanup() {
	[ -n "${iot_pid:-}" ] && iot_stop KILL
	umount "$mnt" 2>/dev/null
	loop_done
	rm -rf "$dir"
}
trap cleanup EXIT
loop_setup "$dir" 128M || bail "loop device" "none to be had"
mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "$loop" || bail "ext4" "mkfs.ext4 failed"
{ mkdir "$mnt" && mount -t ext4 "$loop" "$mnt"; } || bail "ext4" "it cannot be mounted"
mkdir -p "$mnt/deep/er"

# Writes the files and records it. Sets $lost.
record() {
	rm -f "$mnt"/deep/er/* "$mnt/small" && sync -f "$mnt" && loop_settle
	iot_setup "$dir/$1"
	printf 'devices:\n  include: [%s]\n' "$loop_name" >"$iot_dir/config.yaml"
	iot_start || bail "daemon" "it did not start"
	dd if=/dev/zero of="$mnt/deep/er/large file" bs=64K count=64 conv=fsync 2>/dev/null
	dd if=/dev/zero of="$mnt/small" bs=4K count=25 conv=fsync 2>/dev/null
	dd if=/dev/zero of="$mnt/deep/er/gone" bs=64K count=32 oflag=direct 2>/dev/null
	large=$(stat -c %i "$mnt/deep/er/large file") small=$(stat -c %i "$mnt/small") gone=$(stat -c %i "$mnt/deep/er/gone")
	loop_settle
	iot_stop || bail "daemon" "it did not end well"
	lost=$("$IOTRACECTL" --json report "$iot_state" | jq .lost)
}
for try in 1 2 3 4 5; do
	record "record$try"
	[ "$lost" = 0 ] && break
done
assert_eq "nothing was lost" 0 "$lost"

# row INODE JQ	of the last by.json
row() { jq -r ".by.rows[] | select(.ino == \"$1\") | $2" by.json; }
cd "$dir" || exit 1
report() { "$IOTRACECTL" --json report --by file --op write "$@" "$iot_state" >by.json; }
report --resolve "$mnt"
assert_eq "by file: exit code" 0 $?
assert_eq "large file: bytes, name" "4194304 $mnt/deep/er/large file found" \
	"$(row "$large" '"\(.bytes_done) \(.path) \(.path_state)"')"
assert_eq "small file: bytes, name" "102400 $mnt/small found" "$(row "$small" '"\(.bytes_done) \(.path) \(.path_state)"')"
assert_eq "its file system by name" "$loop_name" "$(row "$large" .disk)"
assert_eq "every write is in a row" true "$(jq '([.by.rows[].bytes_done] | add) == .by.bytes_done and .by.bytes_done == .written.bytes' by.json)"
now=$(date +%s)
assert_num "the names' time is now" "$((now - $(jq -r '.by.resolved.at_ns | .[0:10]' by.json)))" -le 30
assert_eq "a directory of the mount will do" "$mnt/deep/er/large file null" \
	"$(report --resolve "$mnt/deep"; echo "$(row "$large" .path) $(row "$small" .path)")"
assert_eq "another mount has no such file" "null null" \
	"$(report --resolve /dev/shm; row "$large" '"\(.path) \(.path_state)"')"
"$IOTRACECTL" report --by file --op write --resolve "$mnt" "$iot_state" >by.txt
assert_grep "text: the name" "^$mnt/deep/er/large file|$mnt/deep/er/large file\$" by.txt
assert_grep "text: as of when" '^Paths as of now: [0-9]{4}-' by.txt
# Direct I/O has the file that it was asked of, where the kernel's symbols can be seen; where not, it is said.
if grep -q '[1-9a-f]0* T iomap_dio_bio_end_io$' /proc/kallsyms; then
	assert_eq "direct I/O: by its file" 2097152 "$(row "$gone" .bytes_done)"
	assert_eq "direct I/O: the file's name" "$mnt/deep/er/gone" "$(report --resolve "$mnt"; row "$gone" .path)"
else
	assert_eq "direct I/O: without a file" 2097152 "$(jq '.by.rows[] | select(.origin == "direct") | .bytes_done' by.json)"
fi

# Deleted, and its number given to another file.
rm "$mnt/small" "$mnt/deep/er/gone"
for i in 1 2 3 4 5 6 7 8; do echo x >"$mnt/new$i"; done
reused=$(stat -c %i "$mnt"/new* | grep -cx "$small")
report --resolve "$mnt"
if [ "$reused" = 1 ]; then
	assert_eq "a younger file is not the file of the record" "null reused" "$(row "$small" '"\(.path) \(.path_state)"')"
else
	assert_eq "a deleted file is not found" "null not_found" "$(row "$small" '"\(.path) \(.path_state)"')"
fi
mv "$mnt/deep/er/large file" "$mnt/renamed"
report --resolve "$mnt"
assert_eq "a renamed file has its name of now" "$mnt/renamed" "$(row "$large" .path)"

# What the application wrote, by its own count, and what reached the disk: journal and metadata beside it.
logical=$((4194304 + 102400 + 2097152))
"$IOTRACECTL" --json report --logical-bytes $logical "$iot_state" >wa.json
assert_eq "write amplification: by the bytes" true \
	"$(jq ".write_amplification.without_swap as \$wa | .written.without_swap_bytes as \$b | (\$wa * $logical - \$b) | fabs < 1" wa.json)"
assert_eq "write amplification: more than 1, less than 2" true "$(jq '.write_amplification.without_swap | . > 1 and . < 2' wa.json)"
assert_eq "no swap: the same with it" true "$(jq '.write_amplification | .with_swap == .without_swap' wa.json)"
assert_eq "processes: dd wrote it" true \
	"$("$IOTRACECTL" --json report --by process --op write "$iot_state" | jq '[.by.rows[] | select(.comm == "dd") | .bytes_done] | add > 2000000')"
tap_end
