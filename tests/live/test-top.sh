#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2154 # the libraries and their variables
#
# iotracectl top beside a running daemon: its windows add up to what is recorded, in a terminal (tmux) it follows the
# size and the keys, the loss line is always there, and a reader that is stopped costs the daemon nothing.
#
# timeout: 120

cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/daemon.sh
. tests/lib/diskstats.sh
. tests/lib/loop.sh
command -v jq >/dev/null || { skip top "needs jq"; tap_end; }
command -v tmux >/dev/null || { skip top "needs tmux"; tap_end; }

dir=$(mktemp -d /dev/shm/iot-top.XXXXXX) || exit 1
follower='' other=''
# A server of our own: nobody else's sessions, no configuration.
mux() { tmux -f /dev/null -S "$dir/tmux" "$@"; }
# shellcheck disable=SC2317 # called by the trap
cleanup() {
	[ -n "$follower" ] && kill -KILL "$follower" 2>/dev/null
	[ -n "$other" ] && kill -KILL "$other" 2>/dev/null
	mux kill-server 2>/dev/null
	[ -n "${iot_pid:-}" ] && iot_stop KILL
	loop_done
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'trap "" INT TERM HUP; exit 143' INT TERM HUP # a second one must not stop the cleanup
loop_setup "$dir" 16M || bail "loop device" "none to be had"
port=$((20000 + RANDOM % 10000))
export LC_ALL=C.UTF-8

iot_setup "$dir/rec"
printf 'devices:\n  include: [%s]\nstreams:\n  block: {block_age: 50ms}\n  packet: {enabled: true, block_age: 50ms}\n' \
	"$loop_name" >"$iot_dir/config.yaml"
iot_start || bail daemon "it did not start"

# ---- as JSON: nothing is counted twice or not at all

"$IOTRACECTL" --socket "$iot_sock" --json top --interval 500ms >"$dir/top.json" 2>"$dir/top.err" &
follower=$!
"$IOTRACECTL" --socket "$iot_sock" --json top --interval 500ms --flow "udp 127.0.0.1 > 127.0.0.1:$port" >"$dir/flow.json" 2>&1 &
other=$!
wait_for 10 test -s "$dir/flow.json"
wait_for 10 test -s "$dir/top.json" || bail "top: the first window" "$(cat "$dir/top.err")"
dd if=/dev/zero of="$loop" bs=4k count=300 oflag=direct status=none
dd if="$loop" of=/dev/null bs=4k count=200 iflag=direct status=none
for _ in 1 2 3 4 5 6 7; do echo hello >"/dev/udp/127.0.0.1/$port"; done
ctl flush >/dev/null
# Until a window that began after all of it.
now=$(date +%s%N)
after() { jq -es "any(.[]; (.from_ns | tonumber) > $now)" "$dir/top.json" && jq -es "any(.[]; (.from_ns | tonumber) > $now)" "$dir/flow.json"; }
wait_for 20 after || not_ok "top: later windows" "none"
# Those that this kernel shows to no program are in the loss line, see test-exact.sh.
recorded=$("$IOTRACECTL" --json cat "$iot_state" 2>/dev/null | jq -s 'map(select(.op == "read" or .op == "write")) | length')
assert_eq "windows add up to what is recorded" "$recorded" \
	"$(jq -s '[.[].devices[] | select(.disk == "'"$loop_name"'") | .requests] | add' "$dir/top.json")"
assert_eq "processes and cgroups, too" "$recorded $recorded" \
	"$(jq -s '[[.[].processes[].requests], [.[].cgroups[].requests]] | map(add) | join(" ")' -r "$dir/top.json")"
assert_num "dd is one of them" "$(jq -s '[.[].processes[] | select(.name | startswith("dd (")) | .requests] | add' "$dir/top.json")" -ge 400
assert_eq "drops by reason, and a filter" "NO_SOCKET 7" \
	"$(jq -sr '[.[].drops[]] | "\(.[0].reason) \(map(.n) | add)"' "$dir/flow.json")"
assert_eq "the loss line is in each" true "$(jq -s 'all(.[]; [.streams[].lost.filed] | length == 2 and all(. != null))' "$dir/top.json")"
kill -TERM "$follower" "$other"
wait "$follower"
assert_eq "ends by a signal" 0 $?
wait "$other"
follower=

# ---- piped: plain, and so many windows as were asked for

"$IOTRACECTL" --socket "$iot_sock" top --interval 500ms --count 2 >"$dir/plain" 2>&1
assert_eq "piped: exit code, windows, no codes" "0 2 0" "$? $(grep -c '^Record  block ' "$dir/plain") $(grep -c "$(printf '\033')" "$dir/plain")"
assert_grep "piped: the loss line" '^Record  block [a-z]+, packet [a-z]+; lost: [0-9,]+ with owner, ([0-9,]+|\?) without owner, ([0-9,]+|\?) runs missed' \
	"$dir/plain"

assert_grep "what is selected" "^ +of what is selected: include $loop_name$" "$dir/plain"
assert_eq "a disk that is left out is no idle one" "true" \
	"$(ctl --json top --interval 500ms --count 1 --dev nosuch0 | jq ".left_out == \"nosuch0 may be left out: what is recorded is \\\"include $loop_name\\\"\"")"
assert_grep "said to people, too" '^ +nosuch0 may be left out: what is recorded is ' \
	<(ctl top --interval 500ms --count 1 --dev nosuch0)
for dev in "$loop_name" lo; do
	assert_eq "not said of one that is recorded: $dev" null \
		"$(ctl --json top --interval 500ms --count 1 --dev "$dev" | jq .left_out)"
done

# ---- in a terminal

screen() { mux capture-pane -p; }
sees() { screen | grep -Eq -- "$1"; }
mux new-session -d -x 100 -y 30 "'$IOTRACECTL' --socket '$iot_sock' top --interval 1s; echo ended with \$?; sleep 60" ||
	bail tmux "no session"
(while sleep 0.05; do dd if=/dev/zero of="$loop" bs=4k count=20 oflag=direct status=none || exit; done) &
follower=$!
wait_for 15 sees "^$loop_name +[0-9.]+ " || not_ok "terminal: the device" "$(screen)"
ok_screen=$(screen)
assert_eq "terminal: record, devices, processes, keys" "1 1 1 1" \
	"$(for what in '^Record  block' '^DEVICE ' ' PROCESS$' 'q ends, space holds'; do grep -Ec -- "$what" <<<"$ok_screen"; done | xargs)"
mux resize-window -x 40 -y 9
wait_for 5 sees '^q ends' || not_ok "terminal: smaller" "$(screen)"
assert_num "terminal: no line goes on in the next" "$(screen | grep -c .)" -le 9
assert_eq "terminal: the loss line is still there" 1 "$(screen | grep -c '^Record  block')"
mux resize-window -x 100 -y 30
wait_for 5 sees ' PROCESS$' || not_ok "terminal: larger" "$(screen)"
mux send-keys ' '
wait_for 5 sees '^Held; space goes on' || not_ok "terminal: held" "$(screen)"
held=$(screen)
sleep 2.5
assert_eq "terminal: held is held" "$held" "$(screen)"
mux send-keys ' '
wait_for 10 sees '^q ends, space holds' || not_ok "terminal: goes on" "$(screen)"
mux send-keys q
wait_for 5 sees '^ended with 0' || not_ok "terminal: q" "$(screen)"
assert_eq "terminal: the screen before is back" 0 "$(screen | grep -c '^DEVICE')"
kill "$follower" 2>/dev/null
wait "$follower" 2>/dev/null
follower=

# ---- a reader that is stopped

"$IOTRACECTL" --socket "$iot_sock" top --interval 500ms >"$dir/stopped" 2>&1 &
follower=$!
wait_for 10 test -s "$dir/stopped"
kill -STOP "$follower"
recorded() {
	ctl flush >/dev/null || not_ok "stopped: flush" "exit code $?"
	ctl --json status | jq '[.streams[].records] | add'
}
before=$(recorded)
dd if=/dev/zero of="$loop" bs=4k count=500 oflag=direct status=none || not_ok "stopped: dd" "exit code $?"
after=$(recorded)
assert_num "stopped: the daemon goes on (from $before records to $after)" $((after - before)) -ge 400
kill -CONT "$follower"
iot_stop
wait "$follower"
assert_eq "the daemon has stopped: exit code" 3 $?
follower=
assert_grep "and it says so" 'the daemon has stopped|no daemon answers|closed without a reply' "$dir/stopped"
assert_status "no daemon" 3 "$IOTRACECTL" --socket "$iot_sock" top --count 1
assert_status "not in the past" 2 "$IOTRACECTL" --socket "$iot_sock" top --since -5m
assert_status "a strange interval" 2 "$IOTRACECTL" top --interval 5ms
tap_end
