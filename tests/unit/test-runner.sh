#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The check runner itself: a test that fails, hangs, prints nothing or dies must never count as passed.

set -u
here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$here/lib/tap.sh"
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/tests/live" "$tree/tests/vm" "$tree/build/tests/unit"
cp "$here/run-all.sh" "$tree/tests/"
cp "$here/vm/kernels.sh" "$tree/tests/vm/"

# expect NAME EXIT LAST-LINE SCRIPT-TEXT [ENVIRONMENT...]
expect() {
	local name=$1 status=$2 line=$3 text=$4
	shift 4
	printf '%s\n' "$text" >"$tree/tests/live/test-it.sh"
	env -u CI -u T -u WRAP -u LOGS -u KERNELS B="$tree/build" KIND=live "$@" "$tree/tests/run-all.sh" >"$tree/out" 2>/dev/null
	assert_eq "runner: $name: exit" "$status" $?
	assert_eq "runner: $name: last line" "$line" "$(tail -n 1 "$tree/out")"
	assert_eq "runner: $name: one such line" 1 "$(grep -Ec '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$tree/out")"
}

expect "all well" 0 "2 passed, 0 failed, 0 skipped" 'echo ok a; echo ok b'
expect "a fact that does not hold" 1 "1 passed, 1 failed, 0 skipped" 'echo ok a; echo not ok b: why; exit 1'
assert_eq "runner: what failed is named at the end" "FAILED live/test-it: not ok b: why" "$(tail -n 2 "$tree/out" | head -n 1)"
expect "a failed fact and exit 0" 1 "1 passed, 1 failed, 0 skipped" 'echo ok a; echo not ok b: why'
expect "exit status without a fact" 1 "1 passed, 1 failed, 0 skipped" 'echo ok a; exit 3'
expect "no output" 1 "0 passed, 1 failed, 0 skipped" 'true'
expect "killed" 1 "1 passed, 1 failed, 0 skipped" 'echo ok a; kill -KILL $$'
expect "a hang" 1 "1 passed, 1 failed, 0 skipped" '# timeout: 1
echo ok a; sleep 20'
expect "a skip" 0 "1 passed, 0 failed, 1 skipped" 'echo ok a; echo skip b: why'
expect "a skip where CI=true" 1 "1 passed, 0 failed, 1 skipped" 'echo ok a; echo skip b: why' CI=true
expect "exit 77" 0 "0 passed, 0 failed, 1 skipped" 'echo no device; exit 77'
expect "nothing selected" 1 "0 passed, 0 failed, 0 skipped" 'echo ok a' T=other
expect "selected by part of the name" 0 "1 passed, 0 failed, 0 skipped" 'echo ok a' T=live/test-i

# cmocka's own lines, a skipped case included
cat >"$tree/build/tests/unit/test-cases" <<-'END'
	#!/bin/sh
	printf '1..3\nok 1 - a\nnot ok 2 - b\n# why\nnot ok 3 # SKIP c\n# not ok - group\n'
	exit 1
END
chmod +x "$tree/build/tests/unit/test-cases"
expect "cmocka" 1 "1 passed, 1 failed, 1 skipped" 'echo ok a' KIND=unit

tap_end
