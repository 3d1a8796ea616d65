#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154 # libraries and variables of the guest
#
# Forced loss: a daemon that does not get to run, and a ring for a fraction of what comes meanwhile. What was
# recorded and what the ledger files add up to the kernel's counters, in requests and in sectors; the verdict says
# lost, by owner. With a ledger too small as well, it says unknown, and still nothing is missing from the sum.
#
# timeout: 240
# vm: --disk data=128M --built iotraced --built iotracectl --built tests/tools/block-workload --tool jq

. /tests/lib/guest-lib.sh
. /tests/lib/guest-block.sh

disk=$(vm_disk data) || bail disk "not found"
vm_scheduler "$disk" none
block_expect=no
block_trace=no

# of OP FIELD	from the report
of() { jq -r "[.devices[] | select(.disk == \"$disk\") | .ops[] | select(.op == \"$1\") | .$2] | add // 0" "$iot_dir/report.json"; }

# loss PHASE LEDGER-ENTRIES EXPECTED-EXIT
loss() {
	block_phase=$1
	block_disk=$disk
	block_cgroup
	iot_setup "/tmp/phase.$(echo "$1" | tr ' ' _)"
	cat >"$iot_dir/config.yaml" <<-END
		streams:
		  block:
		    ring_size: 16KiB
		    ledger_entries: $2
	END
	: >"$iot_dir/expect.json"
	iot_start || bail "$1 daemon" "it did not start"
	block_run "$disk" read:0:4K:10
	block_before=$(diskstats_snapshot "$disk")
	# Counted from here on: what went before is subtracted below.
	kill -STOP "$iot_pid"
	block_run "$disk" read:0:4K:300 write:1M:8K:150 discard:32M:1M:20
	wait_for 10 diskstats_idle "$disk"
	kill -CONT "$iot_pid"
	block_run "$disk" read:2M:4K:10
	wait_for 10 diskstats_idle "$disk"
	sleep 0.2
	block_after=$(diskstats_snapshot "$disk")
	iot_stop
	assert_eq "$1 daemon ends" 0 $?
	assert_status "$1 verify" "$3" "$IOTRACECTL" verify "$iot_state"
	"$IOTRACECTL" --json verify "$iot_state" >"$iot_dir/verify.json"
	note "verify: $(head -c 600 "$iot_dir/verify.json")"
	"$IOTRACECTL" --json report "$iot_state" >"$iot_dir/report.json" || not_ok "$1 report" "failed"
}

# The ten reads before the snapshot are in the record too.
loss "loss filed" 65536 10
assert_num "loss filed: something was lost" "$(of read lost)" -gt 100
assert_eq "loss filed: reads" "$(($(diskstats_delta "$block_before" "$block_after" reads) + 10))" "$(of read total)"
assert_eq "loss filed: writes" "$(diskstats_delta "$block_before" "$block_after" writes)" "$(of write total)"
assert_eq "loss filed: discards" "$(diskstats_delta "$block_before" "$block_after" discards)" "$(of discard total)"
for pair in read:read_sectors:80 write:write_sectors:0 discard:discard_sectors:0; do
	op=${pair%%:*}
	rest=${pair#*:}
	assert_eq "loss filed: $op sectors" \
		"$(($(diskstats_delta "$block_before" "$block_after" "${rest%%:*}") + ${rest#*:}))" \
		"$((($(of "$op" bytes_done) + $(of "$op" lost_bytes)) / 512))"
done

loss "loss unfiled" 64 11
assert_num "loss unfiled: something has no owner" \
	"$(jq '[.whole.unattributed, .whole.n_unattributed] | map(. // 0 | tonumber) | add' "$iot_dir/verify.json")" -gt 100
sum=$(jq '[.whole | .records, .lost, .unattributed | . // 0 | tonumber] | add' "$iot_dir/verify.json")
assert_eq "loss unfiled: records + filed + unattributed = all requests" \
	"$(($(diskstats_delta "$block_before" "$block_after" reads) + $(diskstats_delta "$block_before" "$block_after" writes) + \
		$(diskstats_delta "$block_before" "$block_after" discards) + 10))" "$sum"

tap_end
