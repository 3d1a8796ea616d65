#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154 # libraries and variables of the guest
#
# Forced loss: a daemon that does not get to run, and a ring for a fraction of what comes meanwhile. What was recorded
# and what the ledger files add up to the kernel's counters, in requests and in sectors; the verdict says lost, by
# owner. With a ledger too small as well it says unknown, and still nothing is missing from the sum (check-loss.sh).
#
# The oldest and the newest: how a ring refuses a record has not changed between them.
# vm-kernels: 5.10 7
# timeout: 240
# vm: --disk data=128M --built iotraced --built iotracectl --built tests/tools/block-workload --check check-loss.sh

. /tests/lib/guest-lib.sh
. /tests/lib/guest-block.sh

disk=$(vm_disk data) || bail disk "not found"
vm_scheduler "$disk" none
block_expect=no
block_trace=no

# loss SESSION LEDGER-ENTRIES
loss() {
	block_start "$1" "streams:" "  block:" "    ring_size: 16KiB" "    ledger_entries: $2"
	mkdir -p "$block_session/work"
	block_phase=$1
	block_dir=$block_session/work
	wait_for 10 diskstats_idle "$disk"
	before=$(diskstats_snapshot "$disk")
	block_run "$disk" read:0:4K:10
	kill -STOP "$iot_pid"
	block_run "$disk" read:0:4K:300 write:1M:8K:150 discard:32M:1M:20
	kill -CONT "$iot_pid"
	block_run "$disk" read:2M:4K:10
	wait_for 10 diskstats_idle "$disk"
	sleep 0.2
	after=$(diskstats_snapshot "$disk")
	printf "disk='%s'\nbefore='%s'\nafter='%s'\n" "$disk" "$before" "$after" >"$block_session/counters"
	block_stop
}
loss filed 65536
loss unfiled 64

tap_end
