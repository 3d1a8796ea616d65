#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154 # libraries and variables of the guest
#
# The blktrace export against a blktrace recorded at the same time: the same issues and completions, and the same
# latencies between them.
#
# timeout: 240
# vm: --disk data=128M --module mq-deadline --built iotraced --built iotracectl
# vm: --built tests/tools/block-workload --tool jq --tool blktrace --tool blkparse

. /tests/lib/guest-lib.sh
. /tests/lib/guest-block.sh

disk=$(vm_disk data) || bail disk "not found"
vm_scheduler "$disk" mq-deadline || bail scheduler "no mq-deadline"
theirs=/tmp/blktrace
ours=/tmp/export
mkdir -p $theirs

block_trace=no
block_expect=no # two at once: a flush may serve both
block_begin "blktrace" "$disk"
blktrace -d "/dev/$disk" -D $theirs -o bt >/tmp/blktrace.log 2>&1 &
tracer=$!
wait_for 10 test -e "/sys/kernel/debug/block/$disk/trace0" || bail blktrace "$(tail -n 2 /tmp/blktrace.log)"
sleep 1
block_comm=first
block_run "$disk" write-deep:0:4K:100 read-deep:0:4K:100 write:32M:64K:40 read:32M:64K:40 discard:64M:1M:1 &
first=$!
sleep 0.3
(
	block_comm=second
	block_run "$disk" read:8M:4K:100 write-batch:16M:4K:64 read-batch:16M:4K:64 write:100M:1M dsync:110M:4K:5
)
wait $first
sleep 1
kill -INT $tracer
wait $tracer
assert_grep "blktrace: it recorded" 'dropped 0' /tmp/blktrace.log
assert_eq "blktrace: it recorded without loss" 0 "$(grep -c 'dropped [1-9]' /tmp/blktrace.log)"
block_end

assert_status "export" 0 "$IOTRACECTL" export --format=blktrace --output $ours "$iot_state"
note "export: $(ls $ours)"

# "ACTION LETTERS SECTOR SECTORS SECONDS" of the requests with data; blkparse makes the letters from the action's bits.
events() {
	blkparse -q -D "$1" -i "$2" -f '%a %d %S %n %T.%9t\n' 2>"$3.log" |
		awk '($1 == "D" || $1 == "C") && $4 > 0' >"$3"
}
base=$(find $ours -name "*$disk*.blktrace.*" | sed 's/.*\///; s/\.blktrace\.[0-9]*$//' | sort -u | head -n 1)
[ -n "$base" ] || bail export "no files for $disk"
events $theirs bt /tmp/theirs
events $ours "$base" /tmp/ours
assert_eq "blkparse reads the export without complaint" "" "$(cat /tmp/ours.log)"
assert_num "blktrace: something was recorded" "$(wc -l </tmp/theirs)" -gt 700

for action in D C; do
	for who in theirs ours; do
		awk -v a=$action '$1 == a { print $2, $3, $4 }' /tmp/$who | sort >/tmp/$who.$action
	done
	assert_eq "blktrace: as many $action" "$(wc -l </tmp/theirs.$action)" "$(wc -l </tmp/ours.$action)"
	if cmp -s /tmp/theirs.$action /tmp/ours.$action; then
		ok "blktrace: the same $action"
	else
		not_ok "blktrace: the same $action" "$(diff /tmp/theirs.$action /tmp/ours.$action | sed 1,3d | head -n 6 | tr '\n' ';')"
	fi
done

# Latency of the n-th request of each place, in both.
latencies() {
	awk '
		{ k = substr($2, 1, 1) " " $3 " " $4; split($5, t, "."); us = t[1] * 1000000 + t[2] / 1000 }
		$1 == "D" { issued[k, ++d[k]] = us }
		$1 == "C" { c[k]++; print k, c[k], us - issued[k, c[k]] }' "$1" | sort
}
latencies /tmp/theirs >/tmp/theirs.lat
latencies /tmp/ours >/tmp/ours.lat
awk 'NR == FNR { t[$1, $2, $3, $4] = $5; next }
	{ x = $5 - t[$1, $2, $3, $4]; print x < 0 ? -x : x }' /tmp/theirs.lat /tmp/ours.lat | sort -n >/tmp/apart
n=$(wc -l </tmp/apart)
median=$(sed -n "$((n / 2 + 1))p" /tmp/apart | cut -d. -f1)
p95=$(sed -n "$((n * 95 / 100))p" /tmp/apart | cut -d. -f1)
their_median=$(awk '{ print $5 }' /tmp/theirs.lat | sort -n | sed -n "$((n / 2 + 1))p" | cut -d. -f1)
our_median=$(awk '{ print $5 }' /tmp/ours.lat | sort -n | sed -n "$((n / 2 + 1))p" | cut -d. -f1)
note "issue to completion: median $their_median us by blktrace, $our_median us by iotraced; apart $median us in the median, $p95 us at 95 of 100"
# Both hooks run one after the other on an emulated processor that the host may take away in between.
assert_num "blktrace: latencies agree in the median" "$median" -le 100
assert_num "blktrace: latencies agree for 95 of 100" "$p95" -le 2000

tap_end
