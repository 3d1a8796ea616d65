# shellcheck shell=sh
# SPDX-License-Identifier: BSD-2-Clause
#
# A loop device of the test's own over a file in memory, for tests on this host.
#
#	loop_setup DIRECTORY SIZE	sets $loop (/dev/loopN) and $loop_name (loopN)
#	loop_done			detaches it and removes its file
#	loop_settle			waits until nothing is in flight on it

loop=
loop_file=

loop_setup() {
	loop_file=$1/disk.img
	truncate -s "$2" "$loop_file" || return 1
	# Whole blocks now, so that no request waits for the memory file system later.
	fallocate -l "$2" "$loop_file" 2>/dev/null || true
	loop=$(losetup -f --show "$loop_file") || return 1
	loop_name=${loop#/dev/}
	loop_settle
}

loop_settle() {
	# udev looks at a new or written device; let it finish where there is one.
	command -v udevadm >/dev/null 2>&1 && udevadm settle --timeout=5 >/dev/null 2>&1
	wait_for 10 diskstats_idle "$loop_name"
}

loop_done() {
	[ -n "$loop" ] && losetup -d "$loop" 2>/dev/null
	[ -n "$loop_file" ] && rm -f "$loop_file"
	loop=
	loop_file=
}

# unseen_in CSV-EXPORT	ids given at a request's start that no record carries. Some kernels run no
# BPF program while init is the current task (see tests/live/test-exact.sh).
unseen_in() {
	tail -n +2 "$1" | awk -F, '
		{ cpu = $1 % 8192; n[cpu]++; if (!(cpu in min) || $1 < min[cpu]) min[cpu] = $1; if ($1 > max[cpu]) max[cpu] = $1 }
		END { for (cpu in n) sum += (max[cpu] - min[cpu]) / 8192 + 1 - n[cpu]; print sum + 0 }'
}
