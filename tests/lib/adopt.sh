# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2154,SC2034 # of the test and daemon.sh; for the test
#
# A daemon with somebody who keeps its descriptors (tests/tools/fd-supervisor.c, as systemd does), killed at random
# instants and at those that have a name. After daemon.sh; $tools and $dir are the test's.
#
#	$phase	what is tried, as begin was told; $sup the supervisor's log, $sup_pid its process

# adopt_begin PHASE	configuration on standard input; returns once it collects
adopt_begin() {
	phase=$1
	iot_setup "$dir/${phase//[ ,]/-}"
	cat >"$iot_dir/config.yaml"
	sup=$iot_dir/supervisor.log
	"$tools/fd-supervisor" "$iot_dir" "$IOTRACED" --config "$iot_dir/config.yaml" --state-dir "$iot_state" \
		--socket "$iot_sock" >"$sup" 2>>"$iot_log" </dev/null &
	sup_pid=$!
	wait_for 60 ready 1 || bail "$phase: daemon" "it did not start: $(tail -n 3 "$iot_log")"
}

ready() { [ "$(grep -c '^ready' "$sup")" -ge "$1" ]; }
count() { grep -c "^$1" "$sup"; }

# pause MSEC
pause() { sleep "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"; }

# kill_random N	at any time after a start, and every third while it starts and adopts
kill_random() {
	local i
	for ((i = 0; i < $1; i++)); do
		[ $((i % 3)) = 0 ] || wait_for 30 collecting || not_ok "$phase: start" "no READY within 30 s"
		pause $((RANDOM % 400))
		kill -KILL "$(cat "$iot_dir/pid")" 2>/dev/null
	done
}
# The last start has come to its end.
collecting() { [ "$(grep -v '^fd\|^remove\|^forgot' "$sup" | tail -n 1)" = ready ]; }

# Dies at each POINT:COUNT in turn, each start being armed with the next: nobody has to be quick.
kill_at() {
	local point n i=0
	wait_for 30 collecting
	n=$(count exit)
	for point; do
		i=$((i + 1))
		echo "IOTRACED_CRASH_AT=$point" >"$iot_dir/env.$i"
	done
	kill -KILL "$(cat "$iot_dir/pid")"
	for ((i = 1; i <= $#; i++)); do
		wait_for 30 died $((n + 1 + i)) && continue
		unpassed="$unpassed ${!i}"
		kill -KILL "$(cat "$iot_dir/pid")"
		wait_for 30 died $((n + 1 + i))
	done
}
died() { [ "$(count exit)" -ge "$1" ]; }

# restart [PROGRAM]	as a service manager does for `restart`: told to leave, then to end; the next one is PROGRAM
restart() {
	local n pid
	wait_for 30 collecting
	n=$(count ready)
	pid=$(cat "$iot_dir/pid")
	[ -z "${1:-}" ] || echo "$1" >"$iot_dir/argv0"
	: >"$iot_dir/again"
	kill -USR1 "$pid"
	kill -TERM "$pid" 2>/dev/null
	wait_for 60 ready $((n + 1)) || not_ok "$phase: restart" "no READY within 60 s"
	rm "$iot_dir/again"
}

# Every point of one ring's rotation and write path.
# shellcheck disable=SC2034 # for the tests
adopt_points=(next-open:1 next-noted:1 flipped:1 resume-flipped:1 flipped:2 resumed:1 block:1 block:7 block-written:1 block-written:8
	footer:1 rewritten:1 sealed:1 rewritten-renamed:1 synced:1 renamed:1 before-clear:1 clearing:1 resumed:1 cleared:1)

# Deaths of successors follow deaths that leave them something to do. $rounds times through all of them.
named() {
	local i
	unpassed=
	for ((i = 0; i < rounds; i++)); do
		kill_at "$@"
	done
	assert_eq "$phase: every named point is passed" "" "$unpassed"
}

# Ended and sealed; $killed is how often it died before. $verified is verify's status.
adopt_end() {
	wait_for 30 ctl status || not_ok "$phase: daemon" "it does not answer"
	killed=$(count exit)
	kill -TERM "$sup_pid"
	wait "$sup_pid"
	assert_eq "$phase: daemon ends" 0 $?
	sup_pid=
	"$IOTRACECTL" --json verify "$iot_state" >"$iot_dir/verify.json" 2>"$iot_dir/verify.err"
	verified=$?
	"$IOTRACECTL" --json segments "$iot_state" >"$iot_dir/segments.json"
}

captures() { jq -r '.[].name' "$iot_dir/segments.json" | cut -d- -f2 | sort -u | wc -l; }
whole() { jq "$1" "$iot_dir/verify.json"; }

# What is so whatever was recorded.
adopt_whole() {
	assert_eq "$phase: one capture" 1 "$(captures)"
	assert_eq "$phase: nothing open, recovered or set aside" "0 0" \
		"$(find "$iot_state" -name '*.open' -o -name '*.bad' | wc -l) $(jq '[.[] | select(.reason == "recovered")] | length' "$iot_dir/segments.json")"
	assert_eq "$phase: the books balance" 0 "$(whole .whole.books_unbalanced)"
	assert_eq "$phase: nothing without an owner" 0 "$(whole .whole.unattributed)"
}

# verdict CAPTURE	1: the first that began, 2: the second
verdict() {
	local id
	id=$(sed -n 's/.*recording to .* capture \([0-9a-f]*\)$/\1/p' "$iot_log" | awk '!seen[$0]++' | sed -n "$1p")
	"$IOTRACECTL" verify "$iot_state"/*-"$id"-*.iot >"$iot_dir/verify-$1.txt" 2>&1
	echo $?
}
