#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 150
#
# What `make run` shows: real I/O of a loop device and the disk, reported and verified, and nothing left behind,
# also when it is interrupted, and interrupted again.
cd "$(dirname "$0")/../.." || exit 2
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh

[ "$(id -u)" = 0 ] || { skip run "needs root"; tap_end; }
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# leaves_nothing NAME	of what this run made; another may be going on
leaves_nothing() {
	local scratch
	scratch=$(sed -n 's|.*--socket \(/[^ ]*\)/sock .*|\1|p' "$out" | head -n 1)
	assert_ne "$1: its scratch is known" "" "$scratch"
	assert_eq "$1: loop devices left behind" 0 "$(losetup -a | grep -cF "$scratch/")"
	assert_status "$1: scratch left behind" 1 test -e "$scratch"
}

assert_status "make run's demonstration" 0 sh -c "tests/lib/run-demo.sh >'$out' 2>&1 || { tail -n 20 '$out'; false; }"
assert_grep "status while it records" 'block: (complete|lost)' "$out"
assert_grep "reads of the loop device" '^loop[0-9]+ +read +[0-9,]+ ' "$out"
assert_grep "writes of the loop device" '^loop[0-9]+ +write +[0-9,]+ ' "$out"
assert_grep "a verdict" '^\(exit status (0: complete|10: |11: )' "$out"
leaves_nothing "the demonstration"

# Ctrl-C pressed again and again while it cleans up. In a group of its own; a job in the background ignores SIGINT
# and hands that on, hence env.
setsid env --default-signal=INT tests/lib/run-demo.sh >"$out" 2>&1 </dev/null &
demo=$!
wait_for 60 grep -q '^== Meanwhile' "$out" || bail "an interrupted one" "records nothing within 60 s"
tries=1200
while [ "$tries" -gt 0 ] && kill -INT -- "-$demo" 2>/dev/null; do
	tries=$((tries - 1))
	sleep 0.05
done
wait "$demo"
assert_eq "an interrupted one ends with" 130 $?
assert_grep "it seals on the way out" 'sealed block-' "$out"
leaves_nothing "an interrupted one"
tap_end
