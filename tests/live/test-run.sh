#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 90
#
# What `make run` shows: real I/O of a loop device and the disk, reported and verified, and nothing left behind.
cd "$(dirname "$0")/../.." || exit 2
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh

[ "$(id -u)" = 0 ] || { skip run "needs root"; tap_end; }
out=$(mktemp) loops_before=$(losetup -a | wc -l)
trap 'rm -f "$out"' EXIT

assert_status "make run's demonstration" 0 sh -c "tests/lib/run-demo.sh >'$out' 2>&1 || { tail -n 20 '$out'; false; }"
assert_grep "status while it records" 'block: (complete|lost)' "$out"
assert_grep "reads of the loop device" '^loop[0-9]+ +read +[0-9,]+ ' "$out"
assert_grep "writes of the loop device" '^loop[0-9]+ +write +[0-9,]+ ' "$out"
assert_grep "a verdict" '^\(exit status (0: complete|10: |11: )' "$out"
assert_eq "loop devices left behind" 0 $(($(losetup -a | wc -l) - loops_before))
assert_eq "sockets left behind" "" "$(find /dev/shm -maxdepth 1 -name 'iotraced-run.*')"
assert_status "an interrupted one" 0 sh -c "timeout -s INT 5 tests/lib/run-demo.sh >'$out' 2>&1; [ \$? = 124 ]"
assert_grep "seals on the way out" 'sealed block-' "$out"
tap_end
