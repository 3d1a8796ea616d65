#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The host's half of test-block-loss.sh.
#
# usage: check-loss.sh RESULTS-DIRECTORY

set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib/tap.sh
. "$here/../lib/tap.sh"
# shellcheck source=tests/lib/diskstats.sh
. "$here/../lib/diskstats.sh"
ctl=${IOTRACECTL:-${B:-build}/iotracectl}
results=$1

# delta FIELD
# shellcheck disable=SC2154 # before and after come from the guest
delta() { diskstats_delta "$before" "$after" "$1"; }
# of OP FIELD	from the report
# shellcheck disable=SC2154 # disk comes from the guest
of() { jq -r --arg disk "$disk" "[.devices[] | select(.disk == \$disk) | .ops[] | select(.op == \"$1\") | .$2] | add // 0" "$report"; }

# open SESSION EXPECTED-VERDICT
open() {
	# shellcheck source=/dev/null
	. "$results/$1/counters" || bail "$1" "no counters from the guest"
	report=$results/$1/report.json
	"$ctl" --json report "$results/$1/state" >"$report" || not_ok "loss $1: report" "it exited with $?"
	assert_status "loss $1: verify" "$2" "$ctl" verify "$results/$1/state"
	"$ctl" --json verify "$results/$1/state" >"$results/$1/verify.json"
}

open filed 10
assert_num "loss filed: much was lost" "$(of read lost)" -gt 100
assert_eq "loss filed: reads" "$(delta reads)" "$(of read total)"
assert_eq "loss filed: writes" "$(delta writes)" "$(of write total)"
assert_eq "loss filed: discards" "$(delta discards)" "$(of discard total)"
for op in read write discard; do
	assert_eq "loss filed: $op sectors" "$(delta ${op}_sectors)" "$((($(of $op bytes_done) + $(of $op lost_bytes)) / 512))"
done
assert_eq "loss filed: all have an owner" 0 "$(jq '.whole | .unattributed // .n_unattributed // 0 | tonumber' "$results/filed/verify.json")"

open unfiled 11
unattributed=$(jq '.whole | .unattributed // .n_unattributed // 0 | tonumber' "$results/unfiled/verify.json")
assert_num "loss unfiled: much has no owner" "$unattributed" -gt 100
assert_eq "loss unfiled: recorded, filed and unattributed make all requests" \
	"$(($(delta reads) + $(delta writes) + $(delta discards)))" \
	"$(($(of read total) + $(of write total) + $(of discard total) + unattributed))"

tap_end
