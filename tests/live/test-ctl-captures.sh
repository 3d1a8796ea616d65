#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 120
#
# Several captures read together: those whose beginning is not here, those that ran beside each other, machines with
# one id, a stream that was switched off, swap that was left out. Each of these was once called complete, or counted
# twice.

set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
B=$(realpath "${B:-build}")
ctl=${IOTRACECTL:-$B/iotracectl}
dir=$(mktemp -d /tmp/iot-captures.XXXXXX) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
make_segment() { "$B/tests/tools/make-segment" "$@" requests=200 plain >/dev/null || bail make-segment "$*"; }
# A capture is 20 s long and begins at 01:23:20 and so much later.
at() { date -u -d "2026-11-29 01:23:20 UTC + $1 seconds" +%FT%TZ; }
# verdict DIR... [OPTION...]	code, and the reasons that are not about sealed ends
verdict() { "$ctl" report --json "$@" 2>/dev/null | jq -r '.record | "\(.verdict) \(.reasons | join("; "))"'; }

# ---- a beginning that is not here

make_segment two segments=2 ends
make_segment two segments=3 capture=1 later=1000 ends
assert_eq "two whole captures" "complete " "$(verdict two)"
assert_eq "and the time between them" "980000000000" "$("$ctl" report --json two | jq -r .between_captures_ns)"
rm two/block-b*-0000000[1].iot
assert_eq "without the later one's first" \
	"unknown segment 2 of two/block-b0b0b0b0-00000002.iot: what its capture recorded before it is not here, and an older capture is" "$(verdict two)"
assert_status "verify" 11 "$ctl" verify two
assert_status "--strict" 1 "$ctl" export --format=csv --strict -o strict.csv two
assert_eq "its beginning is not called time between" null "$("$ctl" report --json two | jq -r .between_captures_ns)"
rm two/block-a*
assert_eq "as retention deletes: the oldest are gone" "complete " "$(verdict two)"

# ---- beside each other

make_segment beside segments=2 ends
make_segment beside segments=2 capture=1 later=15 ends
assert_eq "of one boot" "unknown host0: two block captures ran beside each other for 5s: what both recorded is counted twice" \
	"$(verdict beside)"
assert_eq "not in the time that is asked for" "complete " "$(verdict beside --until "$(at 14)")"
assert_eq "in a part of it" 2 "$(verdict beside --until "$(at 17)" | grep -oE 'for [0-9]+s' | tr -dc 0-9)"
make_segment boots segments=2 ends
make_segment boots segments=2 capture=1 boot=1 later=18 ends
assert_eq "of two boots" "unknown host0: block captures of two boots overlap by 2s: two machines have one id, or the clock was set back" \
	"$(verdict boots)"

# ---- clones: one id, two names

make_segment clones segments=2 ends
make_segment clones segments=2 capture=1 boot=1 host=clone later=20 ends
assert_eq "each is a machine of its own" "2 host0:nvme0n1 clone:nvme0n1" \
	"$("$ctl" report --json clones | jq -r '"\(.hosts) " + ([.devices[] | "\(.host):\(.disk)"] | sort | reverse | join(" "))')"
assert_eq "and its time is its own" "20 20" \
	"$("$ctl" report --json clones | jq -r '[.devices[].recorded_seconds] | join(" ")')"
assert_grep "one's capture does not cover the other's time" '^unknown .*clone: no block capture covers the 20.000000 s before .*host0: no block capture covers the time after ' \
	<(verdict clones --since "$(at 0)" --until "$(at 40)")

# ---- a stream that was switched off

make_segment off segments=2 later=1000 ends
cp -r off both
"$B/tests/tools/make-packets" both clean >/dev/null || bail make-packets
n=0
for what in "" "--dev nvme0n1" "--op read"; do
	n=$((n + 1))
	# shellcheck disable=SC2086 # two words
	assert_eq "packets of another time are no doubt about requests: ${what:-all}" "complete  0" \
		"$(verdict both --since "$(at 1001)" --until "$(at 1005)" $what) $("$ctl" export --strict --format=fio --since "$(at 1001)" \
			--until "$(at 1005)" $what -o "fio$n" both >/dev/null 2>err; echo $?)"
done

# ---- swap that was left out

make_segment ns segments=2 unselected=50 "selection=without swap" ends
assert_grep "a question about a disk" '^unknown .*swap was left out by the configuration' <(verdict ns --dev nvme0n1)
"$ctl" cat --dev nvme0n1 ns >/dev/null 2>cat.err
assert_grep "cat" 'swap was left out' cat.err
assert_status "--strict" 1 "$ctl" export --format=csv --strict --dev nvme0n1 -o ns.csv ns
assert_eq "not about its other requests" "complete " "$(verdict ns --dev nvme0n1 --swap without)"

# ---- recovered by hand

make_segment rc segments=5 ends
rm rc/*4.iot rc/*5.iot
truncate -s -3000 rc/*3.iot
"$ctl" recover rc/*3.iot >/dev/null 2>&1
find rc -name '*3.iot' -delete
assert_eq "whether a recovered one was the last is not known" "11 recovered" \
	"$("$ctl" segments --json --chain rc >chain.json; echo $?) $(jq -r '.[].end' chain.json)"

tap_end
