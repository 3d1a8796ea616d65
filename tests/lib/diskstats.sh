# shellcheck shell=sh
# SPDX-License-Identifier: BSD-2-Clause
#
# /proc/diskstats as the independent witness of block tests: snapshots, and deltas by field name.
# The flush columns exist from 5.5 on; a kernel without them has the delta "none", never 0.

# diskstats_snapshot DEVICE		one line: the device's counters
diskstats_snapshot() {
	awk -v dev="$1" '$3 == dev { for (i = 4; i <= NF; i++) printf "%s%s", $i, i < NF ? " " : "\n" }' \
		/proc/diskstats
}

# diskstats_delta BEFORE AFTER FIELD	FIELD: reads read_merges read_sectors writes write_merges
#	write_sectors discards discard_merges discard_sectors flushes in_flight
diskstats_delta() {
	case $3 in
	reads) _ds=1 ;;
	read_merges) _ds=2 ;;
	read_sectors) _ds=3 ;;
	writes) _ds=5 ;;
	write_merges) _ds=6 ;;
	write_sectors) _ds=7 ;;
	in_flight) _ds=9 ;;
	discards) _ds=12 ;;
	discard_merges) _ds=13 ;;
	discard_sectors) _ds=14 ;;
	flushes) _ds=16 ;;
	*)
		echo "diskstats_delta: no field $3" >&2
		return 1
		;;
	esac
	printf '%s\n%s\n' "$1" "$2" | awk -v f="$_ds" '
		{ n[NR] = NF; v[NR] = $f }
		END { if (NR != 2 || n[1] < f || n[2] < f) print "none"; else printf "%d\n", v[2] - v[1] }'
}

# A device's line stops moving only once its requests have ended: wait until nothing is in flight.
diskstats_idle() {
	[ "$(diskstats_snapshot "$1" | awk '{ print $9 }')" = 0 ]
}
