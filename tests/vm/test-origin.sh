#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154 # libraries and variables of the guest
#
# Where requests came from. On ext4, xfs and btrfs, three processes in two cgroups do I/O of every kind on files whose
# inodes and bytes are known: every byte stands under the inode that stat shows and under the cgroup whose pages they are,
# whoever wrote them back; nothing else has an inode. Only direct I/O on btrfs has none: its bios are btrfs's own.
#
# vm-kernels: 6.12
# timeout: 240
# vm: --memory 512 --disk data=420M --module xfs --module btrfs --module crc32c_generic
# vm: --module crc32c_intel --module xxhash_generic --module blake2b_generic --module sha256_generic
# vm: --tool mkfs.ext4 --tool mkfs.xfs --tool mkfs.btrfs --built iotraced --built iotracectl
# vm: --built tests/tools/file-workload --check check-block.sh

. /tests/lib/guest-lib.sh
. /tests/lib/guest-block.sh

disk=$(vm_disk data) || bail disk "not found"
block_expect=no block_trace=no
mkdir -p /mnt
echo +memory >/sys/fs/cgroup/cgroup.subtree_control

# cgroup NAME	makes it; $(id_of NAME) is its id
cgroup() { mkdir -p "/sys/fs/cgroup/$1"; }
id_of() { stat -c %i "/sys/fs/cgroup/$1"; }
ino_of() { stat -c %i "/mnt/$1"; }

# work CGROUP COMM FILE OPERATION...
work() {
	_cgroup=$1 _comm=$2
	shift 2
	sh -c 'echo $$ >/sys/fs/cgroup/'"$_cgroup"'/cgroup.procs; exec file-workload -c '"$_comm"' "$@"' sh "$@" ||
		bail "$block_phase workload" "it failed: $*"
}

# Writes all back, and leaves nothing in memory.
cold() {
	umount /mnt
	mount -t "$fs" "/dev/$disk" /mnt || bail "$fs" "it does not mount again"
}

# bytes NAME FILE-OR-INODE OPERATION BYTES	all that carries the inode
bytes() {
	block_claim "$1" "$4" "map(select(.ino == \"$2\" and .op == \"$3\") | .bytes_done) | add // 0"
}

# paid NAME FILE OPERATION CGROUP	whose pages they were
paid() {
	block_claim "$1" "[[\"$(id_of "$4")\",\"page\"]]" \
		"map(select(.ino == \"$(ino_of "$2")\" and .op == \"$3\") | [.cgroup, .cgroup_by]) | unique"
}

origin_phase() {
	note "$fs at $(cut -d" " -f1 /proc/uptime) s"
	block_begin "origin $fs" "$disk"
	work a pa /mnt/w1 write:0:4M fsync
	work b pb /mnt/w2 write:0:2M
	work a pc /mnt/m3 mmap-write:0:1M
	cold # w2 is written back here, when its writer has gone
	work b pb /mnt/w1 read:0:4M
	work a pc /mnt/w2 mmap-read:0:2M
	# Bios of 64 KiB, each cut in two by the disk's limit.
	_limit=/sys/block/$disk/queue/max_sectors_kb
	_kept=$(cat "$_limit")
	echo 32 >"$_limit"
	work b pb /mnt/d4 direct-write:0:1M direct-read:0:1M
	echo "$_kept" >"$_limit"
	work a pa /mnt/t5 direct-write-from:0:512K:/mnt/w1
	mkdir /mnt/dir
	cold

	bytes "$fs: written and synced" "$(ino_of w1)" write 4194304
	bytes "$fs: written, left behind" "$(ino_of w2)" write 2097152
	bytes "$fs: written by a mapping" "$(ino_of m3)" write 1048576
	bytes "$fs: read ahead" "$(ino_of w1)" read 4194304
	bytes "$fs: read by a mapping" "$(ino_of w2)" read 2097152
	paid "$fs: w1 belongs to a, as written" w1 write a
	paid "$fs: w2 belongs to b, though it has gone" w2 write b
	paid "$fs: m3 belongs to a" m3 write a
	block_claim "$fs: w2 was not written back by its writer" 0 \
		"map(select(.ino == \"$(ino_of w2)\" and .op == \"write\" and .comm == \"pb\")) | length"
	block_claim "$fs: w1 was read for b" "[\"$(id_of b)\"]" \
		"map(select(.ino == \"$(ino_of w1)\" and .op == \"read\") | .cgroup) | unique"
	block_claim "$fs: no other inode" '[]' \
		"(map(.ino | values) | unique) - [\"$(ino_of w1)\", \"$(ino_of w2)\", \"$(ino_of m3)\", \"$(ino_of d4)\", \"$(ino_of t5)\"]"
	block_claim "$fs: the file system's device" "[\"$(awk '$5 == "/mnt" { print $3 }' /proc/self/mountinfo)\"]" \
		'map(select(.ino != null) | .fsdev) | unique'
	block_claim "$fs: direct reads" 1048576 'map(select(.op == "read" and .origin == "direct") | .bytes_done) | add'
	block_claim "$fs: direct reads are their submitter's" "[\"$(id_of b)\"]" \
		'map(select(.op == "read" and .origin == "direct") | .cgroup) | unique'
	block_claim "$fs: direct I/O was cut" true 'any(.origin == "direct" and .bytes == 32768)'
	if [ "$fs" = btrfs ]; then
		block_claim "$fs: an inode is a file's page's" '[["file","page"]]' \
			'map(select(.ino != null) | [.origin, .file_by]) | unique'
		# Where data is checksummed btrfs (6.15 and stable) writes through the page cache, whatever was asked for.
		block_claim "$fs: direct writes" 1572864 "map(select(.op == \"write\" and .bytes > 0 and (.origin == \"direct\" or .origin == null or \
			.ino == \"$(ino_of d4)\" or .ino == \"$(ino_of t5)\")) | .bytes_done) | add"
	else
		bytes "$fs: written directly" "$(ino_of d4)" write 1048576
		bytes "$fs: read directly" "$(ino_of d4)" read 1048576
		bytes "$fs: written directly out of a file's pages" "$(ino_of t5)" write 524288
		block_claim "$fs: an inode is a file's page's or direct I/O's" '[["direct","submitter"],["file","page"]]' \
			'map(select(.ino != null) | [.origin, .file_by]) | unique'
		block_claim "$fs: direct I/O is of these files" "[\"$(ino_of d4)\",\"$(ino_of t5)\"]" \
			'map(select(.origin == "direct") | .ino) | unique_by(tonumber)'
	fi
	# A page of btrfs that is neither read nor written back may be on its way through btrfs, unless the bio says that it
	# is pinned (6.3): of direct I/O out of one nothing is told then.
	_untold=0
	if [ "$fs" = btrfs ] && ! vm_kernel_ge 6 3; then _untold=524288; fi
	block_claim "$fs: all data has its file" $((15 * 1048576 + 524288)) \
		'map(select(.origin == "file" or .origin == "direct" or (.bytes > 0 and .origin == null)) | .bytes_done) | add'
	block_claim "$fs: metadata was written" true 'any(.op == "write" and .origin == "metadata")'
	block_claim "$fs: metadata was read" true 'any(.op == "read" and .origin == "metadata")'
	block_claim "$fs: what has no origin" "$_untold" \
		'map(select(.bytes > 0 and .op != "discard" and .origin == null) | .bytes_done) | add // 0'
	block_claim "$fs: nothing is swap or reclaim" '[["none",null]]' 'map([.swap, .reclaim]) | unique'
	block_end
	umount /mnt
}

# on FILE-SYSTEM MKFS-OPTION...
on() {
	fs=$1
	shift
	grep -qw "$fs" /proc/filesystems || vm_modprobe "$fs" || { not_ok "$fs" "no module"; return; }
	if "mkfs.$fs" "$@" "/dev/$disk" >/tmp/mkfs.log 2>&1 && mount -t "$fs" "/dev/$disk" /mnt; then
		origin_phase
	else
		not_ok "$fs" "$(tail -n 2 /tmp/mkfs.log)"
	fi
}

cgroup a
cgroup b
block_start origin
on ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0
on xfs -q -f
on btrfs -q -f
block_stop
tap_end
