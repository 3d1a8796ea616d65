#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154 # libraries and variables of the guest
#
# Eight CPUs give two rings by default: all of them busy at once, and the records of both rings come out merged in
# time order (check-block.sh looks at that), none lost or twice.
#
# Which CPU writes to which ring does not depend on the kernel.
# vm-kernels: 6.12
# timeout: 300
# vm: --cpus 8 --memory 1536 --disk data=128M --built iotraced --built iotracectl
# vm: --built tests/tools/block-workload --check check-block.sh

. /tests/lib/guest-lib.sh
. /tests/lib/guest-block.sh

disk=$(vm_disk data) || bail disk "not found"
vm_scheduler "$disk" none
cpus="0 1 2 3 4 5 6 7"
assert_eq "rings: CPUs" 8 "$(grep -c '^processor' /proc/cpuinfo)"

block_trace=no
block_expect=no
block_start rings
block_begin "rings" "$disk"
ctl --json status >"$block_dir/status.json"
block_claim_file status.json "rings: two of them" 2 \
	'first.streams[] | select(.name == "block") | .ring.count'
runners=
for cpu in $cpus; do
	block_comm=cpu$cpu
	block_run_on "$cpu" "$disk" "read:${cpu}M:4K:250" "write:$((cpu + 64))M:4K:250" &
	runners="$runners $!"
	block_claim "rings: those of CPU $cpu" '[500,500,[true]]' \
		"map(select(.comm == \"cpu$cpu\")) | [length, (map([.op, .sector]) | unique | length), (map(.pid == .tgid) | unique)]"
done
for runner in $runners; do wait "$runner"; done
block_claim "rings: every request is there" 4000 length
block_claim "rings: both were written to" '[true,true]' '[any(.cpu < 4), any(.cpu >= 4)]'
block_end
block_stop

tap_end
