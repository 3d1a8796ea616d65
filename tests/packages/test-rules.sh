#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The alert rules, by promtool: they are rules, each fires for what it is there for, and none without a reason. Their
# metrics are those that `status` has.
#
# timeout: 120
cd "$(dirname "$0")/../.." || exit 2
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
command -v promtool >/dev/null || { echo "skip rules: no promtool; run: tests/lib/install-deps.sh deb-check"; exit 77; }

# As they are named in the table that `status` writes from: whole, or without iotraced_ as the argument of a macro.
unknown=''
while read -r metric; do
	grep -qF -e "\"$metric\"" -e "(\"${metric#iotraced_}\"" daemon/ctl/status-metrics.c || unknown+=" $metric"
done < <(grep -oE '\biotraced_[a-z_]+' packaging/prometheus/iotraced.rules.yaml | sed 's/_total$//' | sort -u)
assert_eq "rules are about metrics that status has" "" "$unknown"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp packaging/prometheus/iotraced.rules.yaml tests/packages/rules-test.yaml "$work" || bail "rules" "not there"
promtool check rules "$work/iotraced.rules.yaml" >"$work/said" 2>&1
assert_eq "promtool takes the rules" 0 $?
assert_eq "all of them" "$(grep -c -- '- alert:' "$work/iotraced.rules.yaml")" "$(sed -nE 's/^ *SUCCESS: ([0-9]+) rules found/\1/p' "$work/said")"
(cd "$work" && promtool test rules rules-test.yaml) >"$work/said" 2>&1
assert_eq "they fire when they should, and only then" "0 " "$? $(grep -v -e '^Unit Testing' -e SUCCESS "$work/said" | head -n 20)"
# A rule that nothing fires in the tests above is not tested.
assert_eq "each of them fires there" "$(sed -n 's/.*- alert: //p' "$work/iotraced.rules.yaml" | sort)" \
	"$(grep -oE 'alertname="[A-Za-z]+"' "$work/rules-test.yaml" | cut -d'"' -f2 | sort -u)"
tap_end
