#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The host's half of the swap tests (guest-swap.sh): for each session, what was recorded and what the ledger files,
# tagged as swap, equals the kernel's pswpout and pswpin; what is not tagged equals the rest of the disks' counters,
# and on the raw partition what its workload says; and each request is tagged as its place on the disk demands.
#
# usage: check-swap.sh RESULTS-DIRECTORY	run by run.sh for scripts with "# vm: --check check-swap.sh"

set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib/tap.sh
. "$here/../lib/tap.sh"
# shellcheck source=tests/lib/diskstats.sh
. "$here/../lib/diskstats.sh"
# shellcheck source=tests/lib/verdict.sh
. "$here/../lib/verdict.sh"
ctl=${IOTRACECTL:-${B:-build}/iotracectl}
results=$1

# vmstat_delta COUNTER
vmstat_delta() {
	awk -v c="$1" '$1 == c { v[FILENAME] = $2; n++ } END { if (n == 2) print v[ARGV[2]] - v[ARGV[1]]; else print "none" }' \
		"$session/begin/vmstat" "$session/end/vmstat"
}

# disk_bytes DISK read|write
disk_bytes() {
	local line=(
		"$(awk -v d="$1" '$3 == d { $1 = $2 = $3 = ""; print }' "$session/begin/diskstats")"
		"$(awk -v d="$1" '$3 == d { $1 = $2 = $3 = ""; print }' "$session/end/diskstats")"
	)
	echo $((512 * $(diskstats_delta "${line[0]}" "${line[1]}" "$2_sectors")))
}

# reported KIND DISK-OR-ALL OP		bytes by `iotracectl report --swap=KIND`, lost ones included
reported() {
	"$ctl" --json report --swap="$1" ${4:+--dev="$4"} "$session/state" |
		jq --arg disk "$2" --arg op "$3" '[.devices[] | select($disk == "all" or .disk == $disk) | .ops[]
			| select(.op == $op) | .bytes_done + (.lost_bytes // 0)] | add // 0'
}

# sectors READING read|write	of the disk that only serves as swap
sectors() {
	awk -v d="$(cat "$dir/edge")" -v f="$([ "$2" = read ] && echo 6 || echo 10)" '$3 == d { print $f }' "$dir/$1/diskstats"
}

# Recording began and ended amid of requests: the kernel's counters bound the sums, and no request lacks its tag, those
# included that were under way when it began.
check_edge() {
	local name=$1 op got
	for op in read write; do
		got=$(($(jq ".$([ $op = read ] && echo in || echo out)" <<<"$sums") / 512))
		assert_num "$name: $op sectors, at least" "$got" -ge $(($(sectors b0 $op) - $(sectors a1 $op)))
		assert_num "$name: $op sectors, at most" "$got" -le $(($(sectors b1 $op) - $(sectors a0 $op)))
	done
	note "$name: $(jq -c '{n_out, n_in, no_start}' <<<"$sums")"
	n_no_start=$((n_no_start + $(jq .no_start <<<"$sums")))
	n_edges=$((n_edges + 1))
}

check_session() {
	local name=$1 disks want=0 out in raw areas sums lost dir disk op of claim value filter coverage ability rule
	dir=$session
	if ! compgen -G "$session/state/*.iot" >/dev/null; then
		not_ok "$name segments" "none; the daemon said: $(tail -n 3 "$dir/daemon.log" | tr '\n' ' ')"
		return
	fi
	[ ! -e "$dir/verify" ] || want=$(cat "$dir/verify")
	if [ "$want" = 0 ]; then
		iot_complete_or_missed "$ctl" "$session/state"
		assert_eq "$name: verify" 0 $?
	else
		assert_status "$name: verify" "$want" "$ctl" verify "$session/state"
	fi
	raw=$(cat "$dir/raw" 2>/dev/null || true)
	areas=$(jq -Rnc '[inputs | split(" ") | {disk: .[0], first: (.[1] | tonumber), end: (.[2] | tonumber)}]' "$dir/areas")
	"$ctl" --json cat "$session/state" >"$dir/records.json" || not_ok "$name: cat" "it exited with $?"
	"$ctl" export --format=csv --output "$dir/records.csv" "$session/state" >/dev/null || not_ok "$name: export" "it exited with $?"
	jq -c '.losses[]' "$dir/records.csv.loss.json" >"$dir/losses.json"
	rule=$(cat "$dir/rule" 2>/dev/null)
	sums=$(jq -c -n --argjson areas "$areas" --arg rule "$rule" -f "$here/swap.jq" "$dir/records.json")
	lost=$(jq -c -n --argjson areas "$areas" --arg rule "$rule" -f "$here/swap.jq" "$dir/losses.json")
	# Ordinary reads of the area itself have no place of their own.
	assert_eq "$name: no wrong tag" "" "$(jq -r '.wrong[]' <<<"$sums$lost" | tr '\n' ';')"
	if [ -e "$dir/edge" ]; then
		check_edge "$name"
		return
	fi
	out=$(vmstat_delta pswpout)
	in=$(vmstat_delta pswpin)
	note "$name: pswpout $((out * 4)) kB, pswpin $((in * 4)) kB; tagged requests: $(jq -c '[.n_out, .n_in]' <<<"$sums"), lost" \
		"$(jq -c '[.n_out, .n_in]' <<<"$lost"); thp_swpout $(vmstat_delta thp_swpout), other requests" \
		"$(jq '.n - .n_out - .n_in' <<<"$sums")"
	assert_num "$name: much was swapped" $((out + in)) -gt 1000
	# Bio-based swap makes no requests.
	[ ! -e "$dir/coverage" ] || out=0 in=0
	assert_eq "$name: tagged writes are pswpout" "$((out * 4096))" "$(jq -n "$sums.out + $lost.out")"
	assert_eq "$name: tagged reads are pswpin" "$((in * 4096))" "$(jq -n "$sums.in + $lost.in")"
	assert_eq "$name: report --swap=out" "$((out * 4096))" "$(reported out all write)"
	assert_eq "$name: report --swap=in" "$((in * 4096))" "$(reported in all read)"
	read -ra disks <"$dir/disks"
	for disk in "${disks[@]}"; do
		for op in read write; do
			assert_eq "$name: $disk $op bytes as counted" "$(disk_bytes "$disk" "$op")" \
				"$(($(reported without "$disk" "$op") + $(reported only "$disk" "$op")))"
		done
	done
	coverage=exact ability='["exact","page"]'
	[ ! -e "$dir/coverage" ] || coverage=$(cat "$dir/coverage")
	[ -z "$rule" ] || ability="[\"$rule\",\"$rule\"]"
	assert_eq "$name: status says what is told" "$ability" \
		"$(jq -c '.streams[] | select(.name == "block") | [.swap.out, .swap.in]' "$dir/status.json")"
	assert_eq "$name: status names the areas" "[\"$coverage\"]" "$(jq -c '[.swap_areas[].coverage] | unique' "$dir/status.json")"
	assert_grep "$name: probes names the areas" "used: $coverage" "$dir/probes.txt"
	while IFS=$'\t' read -r of claim value filter; do
		assert_eq "$claim" "$value" "$(jq -c --argjson pswpin "$in" "$filter" <<<"${!of}")"
	done <"$dir/claims"
	[ -z "$raw" ] || for op in read write; do
		assert_eq "$name: report --swap=without of the raw partition, $op" \
			"$(jq -s "map(select(.op == \"$op\") | .bytes) | add // 0" "$dir/expect.json")" "$(reported without all "$op" "$raw")"
	done
}

[ -d "$results" ] || bail "results" "no directory $results"
n_sessions=0 n_edges=0 n_no_start=0
for session in "$results"/*/; do
	session=${session%/}
	[ -d "$session/state" ] || continue
	n_sessions=$((n_sessions + 1))
	check_session "${session##*/}"
done
[ "$n_edges" = 0 ] || assert_num "edges: swap requests were under way at a start" "$n_no_start" -gt 0
[ "$n_sessions" -gt 0 ] || not_ok "sessions" "the guest handed back none"
tap_end
