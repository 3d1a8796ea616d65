#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154 # libraries and variables of the guest
#
# Eight CPUs give two rings by default: all of them busy at once, and the records of both rings come out merged in
# time order, none lost or twice.
#
# timeout: 300
# vm: --cpus 8 --memory 1536 --disk data=128M --built iotraced --built iotracectl
# vm: --built tests/tools/block-workload --tool jq

. /tests/lib/guest-lib.sh
. /tests/lib/guest-block.sh

disk=$(vm_disk data) || bail disk "not found"
vm_scheduler "$disk" none
cpus="0 1 2 3 4 5 6 7"
assert_eq "rings: CPUs" 8 "$(grep -c '^processor' /proc/cpuinfo)"

block_trace=no
block_expect=no
block_begin "rings" "$disk"
ctl --json status >/tmp/status.json
assert_eq "rings: two of them" 2 "$(jq '[.. | objects | .rings? // empty | if type == "array" then length else . end] | first' /tmp/status.json)"
runners=
for cpu in $cpus; do
	block_comm=cpu$cpu
	block_run_on "$cpu" "$disk" "read:${cpu}M:4K:250" "write:$((cpu + 64))M:4K:250" &
	runners="$runners $!"
done
for runner in $runners; do wait "$runner"; done
block_end

assert_eq "rings: every request is there" 4000 "$(block_field length)"
for cpu in $cpus; do
	assert_eq "rings: those of CPU $cpu" '[500,500,[true]]' "$(block_field \
		"map(select(.comm == \"cpu$cpu\")) | [length, (map([.op, .sector]) | unique | length), (map(.pid == .tgid) | unique)]")"
done
assert_eq "rings: both were written to" '[true,true]' "$(block_field '[any(.cpu < 4), any(.cpu >= 4)]')"
# In the file's own order, across all devices.
assert_eq "rings: in time order" 0 "$(jq -rn 'reduce (inputs | .complete_ns | tonumber) as $t ([0, 0]; if $t < .[0] then [$t, .[1] + 1] else [$t, .[1]] end) | .[1]' "$iot_dir/records.json")"

tap_end
