# shellcheck shell=sh
# SPDX-License-Identifier: BSD-2-Clause
#
# What every test script prints, one line per checked fact, read by tests/run-all.sh:
#
#	ok NAME
#	not ok NAME: reason
#	skip NAME: reason
#
# and how a script ends: tap_end, which exits 1 if any fact did not hold and also if nothing was checked
# (a test that checks nothing must not pass). POSIX shell, since busybox runs it inside the virtual machines.

tap_n_ok=0
tap_n_not_ok=0
tap_n_skip=0

ok() {
	tap_n_ok=$((tap_n_ok + 1))
	echo "ok $1"
}

not_ok() {
	tap_n_not_ok=$((tap_n_not_ok + 1))
	echo "not ok $1: ${2:-no reason given}"
}

skip() {
	tap_n_skip=$((tap_n_skip + 1))
	echo "skip $1: ${2:-no reason given}"
}

# Something that is not itself a checked fact; the runner shows it when the test fails.
note() { echo "# $*"; }

# The script cannot go on.
bail() {
	not_ok "$1" "${2:-cannot go on}"
	exit 1
}

# assert_eq NAME EXPECTED GOT
assert_eq() {
	if [ "$2" = "$3" ]; then
		ok "$1"
	else
		not_ok "$1" "expected '$2', got '$3'"
	fi
}

# assert_ne NAME UNWANTED GOT
assert_ne() {
	if [ "$2" != "$3" ]; then
		ok "$1"
	else
		not_ok "$1" "got '$3', which must not be"
	fi
}

# assert_num NAME A OP B	OP: -eq -ne -lt -le -gt -ge; anything but integers fails
assert_num() {
	if test "$2" "$3" "$4" 2>/dev/null; then
		ok "$1"
	else
		not_ok "$1" "not so: '$2' $3 '$4'"
	fi
}

# assert_status NAME EXPECTED COMMAND...	the command's output becomes notes when the status differs
assert_status() {
	_tap_name=$1
	_tap_want=$2
	shift 2
	_tap_out=$("$@" 2>&1)
	_tap_got=$?
	if [ "$_tap_got" = "$_tap_want" ]; then
		ok "$_tap_name"
	else
		not_ok "$_tap_name" "'$*' exited with $_tap_got instead of $_tap_want"
		printf '%s\n' "$_tap_out" | head -n 20 | sed 's/^/# /'
	fi
}

# assert_grep NAME PATTERN FILE
assert_grep() {
	if grep -Eq -- "$2" "$3" 2>/dev/null; then
		ok "$1"
	else
		not_ok "$1" "no line of $3 matches '$2'"
		head -n 20 "$3" 2>/dev/null | sed 's/^/# /'
	fi
}

# wait_for SECONDS COMMAND...	until the command succeeds; its output is dropped
wait_for() {
	_wait_tries=$(($1 * 10))
	shift
	while ! "$@" >/dev/null 2>&1; do
		_wait_tries=$((_wait_tries - 1))
		[ "$_wait_tries" -gt 0 ] || return 1
		sleep 0.1
	done
}

tap_end() {
	if [ $((tap_n_ok + tap_n_not_ok + tap_n_skip)) -eq 0 ]; then
		not_ok "checks" "the script checked nothing"
	fi
	[ "$tap_n_not_ok" -eq 0 ]
	exit $?
}
