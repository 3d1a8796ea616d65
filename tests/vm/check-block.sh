#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The host's half of the block tests: judges what a guest has handed back (guest-block.sh). For each daemon the
# segments are verified and read once; for each phase the records of its time are held against the workload, the
# kernel's counters, its trace and the test's claims.
#
# usage: check-block.sh RESULTS-DIRECTORY	run by run.sh for scripts with "# vm: --check check-block.sh"

set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib/tap.sh
. "$here/../lib/tap.sh"
# shellcheck source=tests/lib/diskstats.sh
. "$here/../lib/diskstats.sh"
ctl=${IOTRACECTL:-${B:-build}/iotracectl}
results=$1

# tap_take FILE		takes over the check lines that a jq program made
tap_take() {
	local line
	while read -r line; do
		case $line in
		"ok "*) ok "${line#ok }" ;;
		"not ok "*": "*) not_ok "$(sed 's/^not ok //; s/: .*//' <<<"$line")" "${line#*: }" ;;
		*) not_ok "$2" "$line" ;;
		esac
	done <"$1"
}

# kernel_ge MAJOR MINOR		of the guest
# shellcheck disable=SC2317 # called by way of truth
kernel_ge() {
	local major minor
	IFS=.- read -r major minor _ <<<"$release"
	[ "$major" -gt "$1" ] || { [ "$major" -eq "$1" ] && [ "${minor%%[!0-9]*}" -ge "$2" ]; }
}

# The guest's trace of one disk as JSON lines
trace_json() {
	awk -v dev="$(awk -v d="$disk" '$1 == d { sub(":", ",", $2); print $2 }' "$1/devices")" '
		{
			for (i = 1; i <= NF && $i !~ /^\[[0-9]+\]$/; i++);
			if ($(i + 4) != dev)
				next
			cpu = substr($i, 2, length($i) - 2) + 0
			split($(i + 2), t, "[.:]")
			ns = t[1] t[2] "000"
			if ($(i + 3) == "block_rq_issue:")
				printf "{\"event\":\"issue\",\"cpu\":%d,\"t_ns\":%s,\"rwbs\":\"%s\",\"bytes\":%s,\"sector\":%s}\n",
					cpu, ns, $(i + 5), $(i + 6), $(i + 8)
			else if ($(i + 3) == "block_rq_requeue:")
				printf "{\"event\":\"requeue\",\"cpu\":%d,\"t_ns\":%s,\"rwbs\":\"%s\"}\n", cpu, ns, $(i + 5)
		}' "$1/trace"
}

# books RECORDS PARTITION-OR-EMPTY	sets rec_*
books() {
	eval "$(jq -rn --slurpfile r "$1" --arg disk "$disk" --arg part "$2" -f "$here/books.jq")"
}

# equal_books NAME BEFORE AFTER FIELD...	the records' sums (rec_*) against the counters
equal_books() {
	local name=$1 from=$2 to=$3 field want got
	shift 3
	for field; do
		want=$(diskstats_delta "$from" "$to" "$field")
		got=rec_$field
		if [ "$want" = none ]; then
			note "this kernel's diskstats have no $field"
		else
			assert_eq "$name diskstats $field" "$want" "${!got}"
		fi
	done
}

# 0 or 1 as JSON
truth() { "$@" && echo true || echo false; }

check_expect() {
	local dir=$1 devices
	devices=$(jq -Rnc '[inputs | split(" ") | {name: .[0], dev: .[1], start: (.[2] | tonumber), size: (.[3] | tonumber)}]' \
		"$dir/devices")
	# 6.0: direct reads wait with REQ_SYNC. 6.5 (5a80bd075f3b): a start hook that passthrough goes by too. 5.12
	# (309dca309fc3): bios carry the partition; before, it was looked up by sector, also for the whole disk.
	jq -rn --slurpfile r "$dir/records.json" --slurpfile e "$dir/expect.json" -f "$here/expect.jq" \
		--argjson devices "$devices" --argjson o "$(jq -nc --arg phase "$phase" --arg disk "$disk" --arg cgroup "$cgroup" \
			--arg zeroout "$zeroout" --argjson sync_reads "$(truth kernel_ge 6 0)" \
			--argjson start_exact "$(truth kernel_ge 6 5)" --argjson part_of_bio "$(truth kernel_ge 5 12)" '$ARGS.named')" \
		>"$dir/expect.tap" 2>&1
	tap_take "$dir/expect.tap" "$phase expectations"
	assert_eq "$phase all operations checked" "$(wc -l <"$dir/expect.json")" "$(grep -Ec '^(not )?ok ' "$dir/expect.tap")"
}

check_trace() {
	local dir=$1
	trace_json "$dir" >"$dir/trace.json"
	# shellcheck disable=SC2154 # rec_* come from books.jq
	assert_eq "$phase requeues as traced" "$(grep -c '"event":"requeue"' "$dir/trace.json")" "$rec_requeues"
	[ "$rec_requeues" = 0 ] || return 0
	jq -rn --slurpfile r "$dir/records.json" --slurpfile w "$dir/trace.json" --arg disk "$disk" --arg phase "$phase" \
		-f "$here/witness.jq" >"$dir/witness.tap" 2>&1
	tap_take "$dir/witness.tap" "$phase trace"
}

check_claims() {
	local dir=$1 file name value filter
	while IFS=$'\t' read -r file name value filter; do
		if [ "$file" = records ]; then
			assert_eq "$name" "$value" "$(jq -cs "[.[] | select(.disk == \"$disk\")] | $filter" "$dir/records.json" 2>&1)"
		else
			assert_eq "$name" "$value" "$(jq -cs "$filter" "$dir/$file" 2>&1)"
		fi
	done <"$dir/claims"
}

check_phase() {
	local dir=$1 phase disk part t0 t1 release before after part_before part_after cgroup zeroout expect trace
	# shellcheck source=/dev/null
	. "$dir/meta"
	jq -c --argjson t0 "$t0" --argjson t1 "$t1" \
		'select((.start_ns // .issue_ns // .complete_ns | tonumber) >= $t0 and (.complete_ns | tonumber) <= $t1)' \
		"$dir/../records.json" >"$dir/records.json"
	books "$dir/records.json" ""
	equal_books "$phase" "$before" "$after" reads read_sectors read_merges writes write_sectors write_merges \
		discards discard_sectors discard_merges flushes
	if [ -n "$part" ]; then
		# The partition's own line; the flush itself is counted on the disk only.
		books "$dir/records.json" "$part"
		equal_books "$phase $part" "$part_before" "$part_after" reads read_sectors read_merges writes write_sectors \
			write_merges discards discard_sectors
		books "$dir/records.json" ""
	fi
	[ "$expect" = no ] || check_expect "$dir"
	[ "$trace" = no ] || check_trace "$dir"
	check_claims "$dir"
}

[ -d "$results" ] || bail "results" "no directory $results"
n_phases=0
for session in "$results"/*/; do
	session=${session%/}
	[ -d "$session/state" ] || continue
	name=${session##*/}
	if ! compgen -G "$session/state/*.iot" >/dev/null; then
		not_ok "$name segments" "none; the daemon said: $(tail -n 3 "$session/daemon.log" | tr '\n' ' ')"
		continue
	fi
	want=0
	[ ! -e "$session/verify" ] || want=$(cat "$session/verify")
	assert_status "$name verify" "$want" "$ctl" verify "$session/state"
	assert_status "$name lz4 -t" 0 lz4 -tqm "$session"/state/*.iot
	"$ctl" --json cat "$session/state" >"$session/records.json" 2>"$session/cat.log" ||
		not_ok "$name cat" "$(tail -n 3 "$session/cat.log")"
	assert_eq "$name ids differ" 0 "$(jq -r .id "$session/records.json" | sort | uniq -d | wc -l)"
	assert_eq "$name in time order" 0 "$(jq -rn '
		reduce (inputs | .complete_ns | tonumber) as $t ([0, 0]; if $t < .[0] then [$t, .[1] + 1] else [$t, .[1]] end) | .[1]' \
		"$session/records.json")"
	for dir in "$session"/phase.*/; do
		[ -e "$dir/meta" ] || continue
		n_phases=$((n_phases + 1))
		check_phase "${dir%/}"
	done
done
[ "$n_phases" -gt 0 ] || not_ok "phases" "the guest handed back none"
tap_end
