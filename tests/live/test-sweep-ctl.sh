#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091 # the library
#
# Every call of iotracectl that can fail, failing: memory, opening, reading, writing, syncing, renaming, listing and
# looking at files. Whatever fails, no verb crashes, hangs or says more than it knows; what it prints with the exit
# code of success is what it prints without the failure; files appear whole or not at all. tests/tools/fail-sweep.c
# has the rules. Interrupted calls, and reads and writes that move half, change nothing at all.
#
# No root needed. SWEEP_STRIDE=1 tries each call of each verb (some 12,000 runs, minutes); the default takes so many that
# each verb has about SWEEP_RUNS=40, other ones each day.
#
# timeout: 300

cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
B=${B:-build}
case $B in /*) ;; *) B=$PWD/$B ;; esac
ctl=${IOTRACECTL:-$B/iotracectl}
tools=$B/tests/tools
export FAIL_NTH_SO=$B/tests/preload/fail-nth.so TZ=UTC LC_ALL=C
unset COLUMNS
work=$(mktemp -d /dev/shm/iot-sweep.XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir "$work/b" "$work/p" "$work/torn" "$work/out"
"$tools/make-segment" "$work/b" segments=2 requests=60 lost=3 >/dev/null || bail "archive" "make-segment failed"
"$tools/make-packets" "$work/p" lost || bail "archive" "make-packets failed"
"$ctl" export --format=blktrace --output "$work/bt" "$work/b" || bail "archive" "export failed"
tail -c +2 tests/fuzz/seeds/import/perf >"$work/perf.txt"
first=$(find "$work/b" -name '*1.iot')
head -c 2300 "$first" >"$work/torn/t.open"

# sweep NAME OPTIONS -- VERB...	prints the line and the complaints of one sweep
sweep() {
	local name=$1 options=()
	shift
	while [ "$1" != -- ]; do options+=("$1") && shift; done
	shift
	if [ -n "${SWEEP_STRIDE:-}" ]; then
		options+=("stride=$SWEEP_STRIDE")
	else
		options+=("runs=${SWEEP_RUNS:-40}" "from=$(($(date +%s) / 86400))")
	fi
	"$tools/fail-sweep" run name="$name" "${options[@]}" -- "$ctl" "$@" >"$work/log" 2>&1
	case $(tail -n 1 "$work/log") in
	"ok "* | "not ok "*) ;;
	*) echo "not ok $name: fail-sweep ended early" >>"$work/log" ;;
	esac
	grep '^#' "$work/log"
	if grep '^not ok' "$work/log"; then
		tap_n_not_ok=$((tap_n_not_ok + 1))
	else
		grep '^ok' "$work/log" && tap_n_ok=$((tap_n_ok + 1))
	fi
}

sweep "cat" -- cat "$work/b"
sweep "cat, packets as JSON" -- --json cat "$work/p"
sweep "verify" -- verify "$work/b"
sweep "verify as JSON" -- --json --verbose verify "$work/b" "$work/p"
sweep "segments" -- segments "$work/b"
sweep "segments as JSON" -- --json segments "$work/p"
sweep "report" -- report "$work/b"
sweep "report by process as JSON" -- --json report --by process "$work/b"
sweep "replay" -- replay "$work/p"
sweep "replay as JSON" -- --json replay "$work/p"
sweep "drops" -- drops "$work/p"
sweep "drops as JSON" -- --json drops "$work/p"
sweep "explain a packet" -- explain 2003 "$work/p"
sweep "explain a flow" -- explain --flow "udp :53" "$work/p"
sweep "explain a probe" -- explain --probe kfree_skb "$work/p"
sweep "explain an absence" -- --json explain --flow "udp :54" --probe kfree_skb "$work/p"
out=$work/out
sweep "export csv" scratch="$out" -- export --format=csv --output "$out/x.csv" "$work/b"
sweep "export jsonl" scratch="$out" -- export --format=jsonl --output "$out/x.jsonl" "$work/p"
sweep "export pcapng" scratch="$out" -- export --format=pcapng --output "$out/x.pcapng" "$work/p"
sweep "import blktrace" scratch="$out" -- import --output "$out/x" "$work/bt"
sweep "import perf" scratch="$out" -- import --output "$out/x" "$work/perf.txt"
sweep "recover" scratch="$out" -- recover --output "$out/r.iot" "$work/torn/t.open"


sweep "interrupted: export csv" calls=read,write error=EINTR same scratch="$out" -- export --format=csv --output "$out/x.csv" "$work/b"
sweep "interrupted: report" calls=read,write error=EINTR same -- report "$work/b"
sweep "half: cat" calls=read,write error=short same -- cat "$work/b"
sweep "half: export pcapng" calls=read,write error=short same scratch="$out" -- export --format=pcapng --output "$out/x.pcapng" "$work/p"
sweep "half: recover" calls=read,write error=short same scratch="$out" -- recover --output "$out/r.iot" "$work/torn/t.open"
tap_end
