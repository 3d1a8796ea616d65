#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The check runner: `make check`. Runs the kinds of test in order (unit, golden, fuzz-smoke, lint, live, vm; archive,
# packages, browser and systemd if asked for), adds up what they printed and ends with one line:
# "N passed, N failed, N skipped".
#
# What is a test (no list to keep; put a file in its place):
#	unit		$B/tests/unit/test-*			cmocka programs; each of their cases counts
#			tests/unit/test-*.sh			the tests' own tools; no root, no kernel
#	golden		tests/golden/test-*.sh
#	fuzz-smoke	$B/tests/fuzz-replay/fuzz-*, tests/fuzz/test-*.sh
#	lint		tests/lint/test-*.sh			make lint, one result a part
#	live		tests/live/test-*.sh			on this host, as root, one at a time
#	archive		tests/archive/test-*.sh			servers on this host: sshd, S3, ClickHouse
#	packages	tests/packages/test-*.sh		builds packages and installs them into directories
#	systemd		tests/systemd/test-*.sh			in a machine with this Debian's systemd, one at a time
#	browser		tests/browser/test-*.sh			in headless Chromium
#	vm		tests/vm/test-*.sh			in a machine with each kernel, $VM_JOBS at a time
# Every test prints "ok NAME", "not ok NAME: reason" and "skip NAME: reason" lines (tests/lib/tap.sh; cmocka's own TAP for
# unit programs). What failed is named once more before the last line. A test that exits non-zero without such a line,
# runs into its time limit or prints no result at all has failed; one that exits 77 is skipped. Scripts may carry
# "# timeout: SEC" and, for vm, "# vm-kernels: LABEL..." and run.sh's "# vm: OPTIONS".
#
# Environment: KIND="unit live" only these kinds · T=PART only tests whose name (kind/name, vm/LABEL/name)
# contains PART · VM_JOBS=2 · KERNELS="5.10 6.1" · ALL_KERNELS=1 whatever "vm-kernels" says · WRAP="valgrind ..." in
# front of unit programs · B=build.
# LOGS=$B/test-logs, made anew by each run: output, and for vm the console and what the guest handed back.
#
# Exit: 0, or 1 if anything failed, nothing was run, or (CI=true) anything was skipped.

set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1

B=${B:-build}
case $B in /*) ;; *) B=$PWD/$B ;; esac
logs=${LOGS:-$B/test-logs}
kinds=${KIND:-unit golden fuzz-smoke lint live vm}
pick=${T:-}
vm_jobs=${VM_JOBS:-2}
kernels=${KERNELS:-$(tests/vm/kernels.sh --list)}
wrap=${WRAP:-}
export B IOTRACED="$B/iotraced" IOTRACECTL="$B/iotracectl"
export CMOCKA_MESSAGE_OUTPUT=TAP

n_passed=0 n_failed=0 n_skipped=0

wanted() { [[ -z $pick || $1 == *"$pick"* ]]; }

# Dependency files lie beside the programs.
is_program() { [[ -f $1 && -x $1 ]]; }

# time_limit SCRIPT DEFAULT
time_limit() {
	local limit
	limit=$(sed -n '1,40s/^# timeout: //p' "$1" 2>/dev/null | head -n 1)
	echo "${limit:-$2}"
}

# Runs one test under its limit; leaves NAME.log and NAME.result ("status seconds").
run_test() {
	local name=$1 limit=$2 begin=$SECONDS log=$logs/$1.log
	shift 2
	mkdir -p "${log%/*}"
	# A process group of its own, so that the limit ends children too.
	timeout -k 20 "$limit" "$@" >"$log" 2>&1 </dev/null 9>&-
	echo "$? $((SECONDS - begin))" >"${log%.log}.result"
}

# Counts one finished test.
judge() {
	local name=$1 log=$logs/$1.log status seconds ok failed skipped extra=''
	read -r status seconds <"${log%.log}.result"
	# cmocka prints a skipped case as "ok N # SKIP" or, in some versions, "not ok N # SKIP".
	read -r ok failed skipped < <(awk '
		/^(not )?ok [0-9]+ # [Ss][Kk][Ii][Pp]/ || /^skip / { skipped++; next }
		/^ok / { ok++ }
		/^not ok / { failed++ }
		END { print ok + 0, failed + 0, skipped + 0 }' "$log")
	if [ "$status" = 124 ]; then
		extra="ran into its time limit" failed=$((failed + 1))
	elif [ "$status" = 137 ]; then
		extra="killed" failed=$((failed + 1))
	elif [ "$status" = 77 ] && [ "$failed" = 0 ]; then
		[ "$skipped" -gt 0 ] || skipped=1
		extra="skipped: $(tail -n 1 "$log")"
	elif [ "$status" != 0 ] && [ "$failed" = 0 ]; then
		extra="exit status $status" failed=1
	elif [ $((ok + failed + skipped)) = 0 ]; then
		extra="printed no result" failed=1
	fi
	n_passed=$((n_passed + ok)) n_failed=$((n_failed + failed)) n_skipped=$((n_skipped + skipped))
	printf '%-4s %-44s %4d passed %3d failed %3d skipped %4d s%s\n' \
		"$([ "$failed" = 0 ] && echo ok || echo FAIL)" "$name" "$ok" "$failed" "$skipped" "$seconds" \
		"${extra:+  ($extra)}"
	if [ "$failed" != 0 ]; then
		{
			grep -a '^not ok ' "$log" | grep -v '# SKIP' | cut -c 1-300
			[ -z "$extra" ] || echo "$extra"
		} | sed "s|^|FAILED $name: |" >>"$logs/failed"
		printf -- '---- %s: %s\n' "$name" "$log"
		tail -n 200 "$log"
		printf -- '----\n'
	elif [ "$skipped" != 0 ]; then
		grep -E '^skip |# SKIP' "$log"
	fi
}

one() {
	wanted "$1" || return 0
	run_test "$@"
	judge "$1"
}

run_unit() {
	local program
	for program in "$B"/tests/unit/test-*; do
		is_program "$program" || continue
		# shellcheck disable=SC2086 # the wrapper is a command line
		one "unit/${program##*/}" 300 $wrap "$program"
	done
	run_scripts unit unit 120
}

run_fuzz() {
	local program
	for program in "$B"/tests/fuzz-replay/fuzz-*; do
		is_program "$program" || continue
		one "fuzz-smoke/${program##*/}" 300 "$program"
	done
	run_scripts fuzz fuzz-smoke 300
}

# run_scripts FOLDER KIND DEFAULT-LIMIT
run_scripts() {
	local script
	for script in tests/"$1"/test-*.sh; do
		[ -f "$script" ] || continue
		one "$2/$(basename "$script" .sh)" "$(time_limit "$script" "$3")" bash "$script"
	done
}

vm_kernel_missing() {
	mkdir -p "$logs/${1%/*}"
	echo "skip $1: no kernel $2 (see kernels.log)" >"$logs/$1.log"
	echo "77 0" >"$logs/$1.result"
}

run_vm() {
	local script label name limit labels names=() n_running=0 have=''
	for label in $kernels; do
		for script in tests/vm/test-*.sh; do
			[ -f "$script" ] || continue
			labels=$(sed -n 's/^# vm-kernels: //p' "$script")
			[[ -z $labels || -n ${ALL_KERNELS:-} || " $labels " == *" $label "* ]] || continue
			name=vm/$label/$(basename "$script" .sh)
			wanted "$name" || continue
			if [[ " $have " != *" $label:"* ]]; then
				if tests/vm/kernels.sh "$label" >"$logs/kernel-$label" 2>>"$logs/kernels.log"; then
					have="$have $label:yes"
				else
					have="$have $label:no"
				fi
			fi
			names+=("$name")
			if [[ " $have " == *" $label:no "* ]]; then
				vm_kernel_missing "$name" "$label"
				continue
			fi
			if [ "$n_running" -ge "$vm_jobs" ]; then
				wait -n
				n_running=$((n_running - 1))
			fi
			# The machine has a limit of its own; this one is for the harness.
			limit=$(time_limit "$script" 300)
			run_test "$name" $((limit + 400)) \
				tests/vm/run.sh --timeout "$limit" --log "$logs/$name.console" --results "$logs/$name.results" \
				"$label" "$script" &
			n_running=$((n_running + 1))
		done
	done
	wait
	for name in ${names[@]+"${names[@]}"}; do judge "$name"; done
}

# Only a directory that is ours is removed.
if [ -n "${LOGS:-}" ] && [ -e "$logs" ] && [ -n "$(ls -A "$logs")" ] && [ ! -e "$logs/.iotraced-test-logs" ]; then
	echo "$logs is no directory of test logs" >&2
	exit 1
fi
# Two runs would remove each other's logs in the middle. (What a test leaves running does not hold the lock.)
mkdir -p "${logs%/*}" && exec 9>"$logs.lock" || exit 1
flock -n 9 || {
	echo "run-all.sh: another run writes to $logs; for one beside it: LOGS=DIRECTORY tests/run-all.sh" >&2
	exit 1
}
rm -rf "$logs"
mkdir -p "$logs" && : >"$logs/.iotraced-test-logs" || exit 1
for kind in $kinds; do
	case $kind in
	unit) run_unit ;;
	golden) run_scripts golden golden 120 ;;
	fuzz | fuzz-smoke) run_fuzz ;;
	lint) run_scripts lint lint 900 ;;
	live) run_scripts live live 300 ;;
	archive) run_scripts archive archive 300 ;;
	systemd) run_scripts systemd systemd 300 ;;
	packages) run_scripts packages packages 900 ;;
	browser) run_scripts browser browser 600 ;;
	vm) run_vm ;;
	*)
		echo "unknown kind '$kind' (unit golden fuzz-smoke lint live archive packages systemd browser vm)" >&2
		exit 2
		;;
	esac
done

status=0
if [ "$n_failed" -gt 0 ]; then
	status=1
elif [ $((n_passed + n_skipped)) -eq 0 ]; then
	echo "no test was run" >&2
	status=1
elif [ "${CI:-}" = true ] && [ "$n_skipped" -gt 0 ]; then
	echo "skipped tests count as failures where CI=true" >&2
	status=1
fi
# Once more where they are seen first: at the end.
[ ! -s "$logs/failed" ] || cat "$logs/failed"
echo "$n_passed passed, $n_failed failed, $n_skipped skipped"
exit "$status"
