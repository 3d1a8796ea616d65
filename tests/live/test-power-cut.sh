#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2154 # the libraries and their variables
#
# The power fails, again and again, under a machine that records on ext4 (tests/vm/power-cut.sh): its disk is a
# virtio one (qemu 7.2's NVMe takes a write with FUA for any other) whose write cache is lost, but for what chance spares (tests/tools/power-disk.c). The last cut is the machine killed
# by SIGKILL. Of each disk as the power left it:
#	- it mounts, its journal being replayed;
#	- each segment that was said to be sealed before is there, byte for byte;
#	- each sealed segment is whole, and the chain of them is proved;
#	- what was being written is recovered, and is not called whole.
# The last one is also recovered by a daemon that starts on it.
#
# POWER_CUTS (default 8), POWER_KERNEL (default 6.1), POWER_SEED. A longer count: make power-cut TIMES=100. That it
# sees something: POWER_SYNC=never, where nobody promises anything, has to fail.
#
# timeout: 600

cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/daemon.sh
cuts=${POWER_CUTS:-8} kernel=${POWER_KERNEL:-6.1} seed=${POWER_SEED:-$RANDOM}
tools=${B:-build}/tests/tools

tests/vm/kernels.sh "$kernel" >/dev/null 2>&1 || {
	skip "power cut" "no kernel $kernel"
	exit 77
}
dir=$(mktemp -d /dev/shm/iot-power.XXXXXX) || exit 1
disk_pid='' vm_pid='' loop_dev=''
# shellcheck disable=SC2317 # by the trap
cleanup() {
	[ -z "${iot_pid:-}" ] || iot_stop KILL
	mountpoint -q "$dir/mnt" && umount "$dir/mnt"
	[ -z "$loop_dev" ] || losetup -d "$loop_dev"
	[ -z "$vm_pid" ] || { kill "$vm_pid" && wait "$vm_pid"; } 2>/dev/null
	[ -z "$disk_pid" ] || kill "$disk_pid" 2>/dev/null
	rm -rf "$dir"
}
trap cleanup EXIT
mkdir "$dir/mnt" "$dir/cuts"
note "seed $seed"
truncate -s 128M "$dir/disk.img"
mkfs.ext4 -q -b 4096 -J size=4 -E lazy_itable_init=0,lazy_journal_init=0 "$dir/disk.img" || bail "mkfs" "it failed"
: >"$dir/names"

"$tools/power-disk" "$dir/socket" "$dir/disk.img" "$dir/cuts" "$dir/names" "$cuts" 200 1500 "$seed" >"$dir/disk.log" 2>&1 &
disk_pid=$!
wait_for 10 test -S "$dir/socket" || bail "disk" "it does not start"
tests/vm/run.sh --timeout 590 --qemu -serial --qemu "file:$dir/names" \
	--qemu -drive --qemu "if=none,id=power,file=nbd+unix:///?socket=$dir/socket,format=raw,cache=writeback" \
	--qemu -device --qemu virtio-blk-pci,drive=power --log "$dir/console" "$kernel" tests/vm/power-cut.sh \
	"${POWER_SYNC:-seal}" >"$dir/vm.log" 2>&1 &
vm_pid=$!
gone() { ! kill -0 "$1" 2>/dev/null; }
announced() { [ -s "$dir/names" ] || gone "$vm_pid"; }

n_bad=0 n_promised=0 n_sealed=0 n_whole=0 n_recovered=0 n_empty=0
bad() {
	n_bad=$((n_bad + 1))
	[ "$n_bad" -gt 10 ] || note "cut $cut: $*"
}

# What had been said to be sealed. A line that is not whole was not said.
check_promised() {
	local digest name
	while read -r digest name && [[ $name == block-*.iot ]]; do
		n_promised=$((n_promised + 1))
		if [ ! -e "$dir/mnt/$name" ]; then
			bad "$name was sealed and is not there"
		elif [ "$(sha256sum <"$dir/mnt/$name" | cut -d' ' -f1)" != "$digest" ]; then
			bad "$name is not what it was"
		fi
	done < <(tr -d '\r' <"$1")
}

check_sealed() {
	local n
	n=$(find "$dir/mnt" -name '*.iot' | wc -l)
	[ "$n" -gt 0 ] || return 0
	n_sealed=$((n_sealed + n))
	"$IOTRACECTL" verify "$dir/mnt"/*.iot >"$dir/verify.txt" 2>&1 ||
		bad "the sealed segments are not proved: $(tail -n 3 "$dir/verify.txt" | xargs)"
}

# Open ones: sealed without its name yet, torn, or nothing of it had reached the disk.
check_open() {
	local file
	for file in "$dir/mnt"/*.open; do
		[ -e "$file" ] || continue
		"$IOTRACECTL" verify "$file" >"$dir/verify.txt" 2>&1
		case $? in
		0 | 10 | 11) n_whole=$((n_whole + 1)) && continue ;;
		esac
		rm -f "$dir/found.iot"
		if "$IOTRACECTL" recover --output "$dir/found.iot" "$file" >"$dir/recover.txt" 2>&1; then
			n_recovered=$((n_recovered + 1))
			"$IOTRACECTL" verify "$dir/found.iot" >"$dir/verify.txt" 2>&1
			[ $? = 11 ] || bad "$(basename "$file"): what was recovered is not called unknown"
		elif [ "$(head -c 4096 "$file" | tr -d '\0' | wc -c)" = 0 ]; then
			n_empty=$((n_empty + 1))
		else
			bad "$(basename "$file"): not recovered: $(tail -n 1 "$dir/recover.txt")"
		fi
	done
}

# A daemon starts on it: it recovers what is open, and nothing sealed changes.
check_start() {
	local before
	before=$(cd "$dir/mnt" && sha256sum -- *.iot)
	iot_setup "$dir/run"
	# shellcheck disable=SC2034 # for iot_start
	iot_state=$dir/mnt
	printf 'devices:\n  include: [no-such-disk]\nretention:\n  min_free: 0\n' >"$iot_dir/config.yaml"
	iot_start || bail "start after the cut" "it failed: $(tail -n 2 "$iot_log")"
	iot_stop
	assert_eq "the daemon that starts after it ends" 0 $?
	assert_eq "the start leaves nothing open" "" "$(find "$dir/mnt" -name '*.open' -o -name '*.recovering')"
	assert_status "the start changes no sealed segment" 0 sh -c "cd '$dir/mnt' && echo '$before' | sha256sum -c --quiet"
}

look() {
	loop_dev=$(losetup -f --show "$dir/cuts/cut-$cut.img") || bail "loop" "none to be had"
	if mount -t ext4 "$loop_dev" "$dir/mnt" 2>"$dir/mount.txt"; then
		check_promised "$dir/cuts/cut-$cut.names"
		check_sealed
		check_open
		[ "$cut" != "$cuts" ] || check_start
		umount "$dir/mnt"
	else
		bad "it does not mount: $(cat "$dir/mount.txt")"
	fi
	losetup -d "$loop_dev"
	loop_dev=
	rm "$dir/cuts/cut-$cut".*
}

wait_for 150 announced
gone "$vm_pid" && bail "machine" "it has ended: $(tail -n 3 "$dir/vm.log" | xargs)"
for ((cut = 1; cut <= cuts; cut++)); do
	# The last one is the end of the machine itself.
	if [ "$cut" = "$cuts" ]; then
		kill "$vm_pid"
		wait "$vm_pid"
		vm_pid=
	fi
	there() { [ -e "$dir/cuts/cut-$cut.img" ]; }
	wait_for 60 there || bail "cut $cut" "it did not happen: $(tail -n 3 "$dir/vm.log" | xargs)"
	look
done
note "$(tail -n 1 "$dir/disk.log")"
note "$n_promised segments promised, $n_sealed sealed, $n_whole sealed without their name, $n_recovered recovered, $n_empty without anything"
note "writes lost or half lost: $(sed -n 's/^cut [0-9]*: \([0-9]*\) writes not flushed.*/\1/p' "$dir/disk.log" | xargs)"
assert_eq "$cuts power cuts: every disk is as it has to be" 0 "$n_bad"
assert_num "segments had been sealed" "$n_promised" -gt 0
assert_num "segments were being written" $((n_whole + n_recovered + n_empty)) -gt 0
tap_end
