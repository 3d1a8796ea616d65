#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154 # libraries and variables of the guest
#
# Swap told apart from all else, to the byte: over a swap disk, a swap partition, a swap file on ext4 and two areas of
# different priority, tagged writes equal the kernel's pswpout and tagged reads its pswpin (check-swap.sh).
#
# Here each area, scheduler, kind of pressure and size of page occurs, not each with each: LONG=1 does that.
#
# On 7.x tracing programs can be preempted, and then the recursion guard skips runs that come in between: there a session
# may be unknown for missed runs, and for nothing else (check-swap.sh).
#
# timeout: 1500
# vm: --memory 256 --disk swap=256M --disk mixed=512M --module mq-deadline --built iotraced --built iotracectl
# vm: --built tests/tools/block-workload --built tests/tools/swap-hog --built tests/tools/quiet-counters
# vm: --tool mkfs.ext4 --tool filefrag --tool stress-ng --check check-swap.sh

. /tests/lib/guest-lib.sh
. /tests/lib/guest-swap.sh

swap_disks
only=$*

# swap_case SESSION SCHEDULER HUGE HOG PRESSURE AREA...
swap_case() {
	_session=$1 _scheduler=$2 _huge=$3 _hog=$4 _pressure=$5
	shift 5
	case " ${only:-$_session} " in *" $_session "*) ;; *) return 0 ;; esac
	for _disk in "$swap_disk" "$swap_mixed"; do
		vm_scheduler "$_disk" "$_scheduler" || bail "$_session" "no scheduler $_scheduler"
	done
	swap_begin "$_session"
	swap_area "$@"
	swap_huge "$_huge"
	"swap_$_hog" "$_pressure"
	swap_end
}

if [ -n "$vm_long" ]; then
	for scheduler in none mq-deadline; do
		for huge in off on; do
			for hog in hog stress; do
				for pressure in global max high; do
					swap_case "disk-$scheduler-$huge-$hog-$pressure" $scheduler $huge $hog $pressure disk
					swap_case "partition-$scheduler-$huge-$hog-$pressure" $scheduler $huge $hog $pressure partition
					swap_case "file-$scheduler-$huge-$hog-$pressure" $scheduler $huge $hog $pressure file
					swap_case "two-$scheduler-$huge-$hog-$pressure" $scheduler $huge $hog $pressure small disk
				done
			done
		done
	done
	tap_end
fi

swap_case disk none off hog global disk
swap_case partition mq-deadline on hog max partition
swap_case file none on hog high file
swap_case two mq-deadline off hog global small partition
swap_case stress none on stress max small disk

tap_end
