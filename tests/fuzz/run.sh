#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# `make fuzz`: libFuzzer over each target, from its seeds and from what earlier runs found.
#
# Environment: T=PART only targets whose name contains PART · TIME=60 seconds of each · B=build/fuzz.
# New inputs are kept in $B/corpus/NAME, those that fail in $B/failed/NAME-*: a failure becomes a seed below
# tests/fuzz/seeds/NAME (`make fuzz-smoke` replays those), and the fault a unit test.
#
# Prints a line per target: runs, branches ("cov": edges) and features covered, inputs kept; exits 1 if one failed.
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build/fuzz}
time=${TIME:-60}
pick=${T:-}
status=0 n=0

mkdir -p "$B/failed"
for program in "$B"/tests/fuzz/fuzz-*; do
	[[ -f $program && -x $program ]] || continue
	name=${program##*/fuzz-}
	[[ -z $pick || $name == *"$pick"* ]] || continue
	n=$((n + 1))
	mkdir -p "$B/corpus/$name"
	dict=tests/fuzz/$name.dict
	log=$B/$name.log
	args=(-max_total_time="$time" -timeout=25 -rss_limit_mb=2048 -malloc_limit_mb=512 -print_final_stats=1
		-artifact_prefix="$B/failed/$name-")
	[ -f "$dict" ] && args+=(-dict="$dict")
	# Standard error of the target itself is of no use (usage errors by the million).
	if "$program" "${args[@]}" "$B/corpus/$name" "tests/fuzz/seeds/$name" >"$log" 2>&1; then
		verdict=ok
	else
		verdict=FAIL status=1
	fi
	awk -v name="$name" -v verdict="$verdict" '
		/^#[0-9]+/ { for (i = 1; i < NF; i++) { if ($i == "cov:") cov = $(i + 1); if ($i == "ft:") ft = $(i + 1)
			if ($i == "corp:") corp = $(i + 1) } }
		/^stat::number_of_executed_units:/ { runs = $2 }
		/^stat::average_exec_per_sec:/ { rate = $2 }
		END { printf "%-4s %-8s %10d runs (%d/s), %d edges, %d features, %s inputs\n", verdict, name, runs, rate, cov,
			ft, corp }' "$log"
	[ "$verdict" = ok ] || tail -n 40 "$log"
done
if [ "$n" = 0 ]; then
	echo "no target matches '$pick'" >&2
	exit 2
fi
exit $status
