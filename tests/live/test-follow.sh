#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2154 # the libraries and their variables
#
# iotracectl follow beside a running daemon: what it printed by the time the daemon has stopped is what cat prints of
# the sealed segments afterwards, of both streams, over rotations, also for a reader that stalls. It ends by
# itself with the daemon, by a signal, and when nobody reads; and it says which segment was sealed with losses.
#
# timeout: 120

cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/daemon.sh
. tests/lib/diskstats.sh
. tests/lib/loop.sh
command -v jq >/dev/null || { skip follow "needs jq"; tap_end; }

dir=$(mktemp -d /dev/shm/iot-follow.XXXXXX) || exit 1
follower=
# shellcheck disable=SC2317 # called by the trap
cleanup() {
	[ -n "$follower" ] && kill -KILL "$follower" 2>/dev/null
	[ -n "${iot_pid:-}" ] && iot_stop KILL
	loop_done
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'trap "" INT TERM HUP; exit 143' INT TERM HUP # a second one must not stop the cleanup
loop_setup "$dir" 16M || bail "loop device" "none to be had"
port=$((20000 + RANDOM % 10000))

# send COUNT [PORT]	datagrams that the kernel drops, each of a socket of its own
send() {
	local i
	for ((i = 0; i < $1; i++)); do
		echo hello >"/dev/udp/127.0.0.1/${2:-$port}" || return 1
	done
}

start() {
	iot_setup "$dir/$1"
	printf 'devices:\n  include: [%s]\nstreams:\n  block: {block_age: 50ms}\n  packet: {enabled: true, block_age: 50ms%s}\n' \
		"$loop_name" "${2:-}" >"$iot_dir/config.yaml"
	iot_start || bail "$1: daemon" "it did not start"
}

# follow [OPTION...]	in the background, into out.txt and err.txt
follow() {
	"$IOTRACECTL" follow "$@" "$iot_state" >"$iot_dir/out.txt" 2>"$iot_dir/err.txt" &
	follower=$!
}

# ended NAME EXIT-CODE	the follower is gone within seconds
ended() {
	wait_for 10 bash -c "! kill -0 $follower" || { not_ok "$1: it ends" "it does not"; kill -KILL "$follower"; }
	wait "$follower"
	assert_eq "$1: exit code" "$2" $?
	follower=
}

# Names that only a footer has are not compared: they come with the seal.
same() { jq -cS 'del(.location, .iface, .disk, .part, .file, .cgroup)' "$1" | sort; }

# ---- everything, over rotations, until the daemon stops

start all
follow --json --since -1h
for n in 1 2 3; do
	send 40
	dd if=/dev/zero of="$loop" bs=4k count=200 oflag=direct status=none
	[ $n = 3 ] || ctl rotate >/dev/null || not_ok "rotation $n" "refused"
done
iot_stop
assert_eq "daemon ends" 0 $?
ended "until the daemon stops" 0
"$IOTRACECTL" cat --json "$iot_state" >"$iot_dir/cat.txt" 2>/dev/null
assert_num "blocks of the device" "$(grep -c '"op":' "$iot_dir/out.txt")" -ge 600
assert_num "observations of our datagrams" "$(grep -c "\"dport\":$port" "$iot_dir/out.txt")" -ge 480
same "$iot_dir/cat.txt" >"$iot_dir/cat.sorted"
same "$iot_dir/out.txt" >"$iot_dir/out.sorted"
assert_eq "every line that cat prints, once" "" "$(diff "$iot_dir/cat.sorted" "$iot_dir/out.sorted" | head -n 5)"
assert_grep "says that the daemon has stopped" '^iotracectl: the daemon has stopped$' "$iot_dir/err.txt"
assert_eq "and nothing of sealed segments that lost nothing" 0 "$(grep -c 'packet segment' "$iot_dir/err.txt")"

# ---- from now on, filtered, until a signal

start now
send 5
ctl flush >/dev/null
follow --stream packet --probe kfree_skb --flow "udp :$((port + 1))"
sleep 1
send 7 $((port + 1))
wait_for 10 bash -c "[ \$(wc -l <$iot_dir/out.txt) -ge 7 ]"
kill -INT "$follower"
ended "until SIGINT" 0
assert_eq "lines of the flow at the probe, from then on" "7 7" \
	"$(wc -l <"$iot_dir/out.txt") $(grep -c "kfree_skb .*:$((port + 1)) " "$iot_dir/out.txt")"
assert_grep "what is not known yet" '^iotracectl: packet segment 1 is still being recorded: ' "$iot_dir/err.txt"
send 5
"$IOTRACECTL" follow --since -1h --stream packet "$iot_state" 2>/dev/null | head -n 3 >"$iot_dir/head.txt"
assert_eq "a reader that has enough" "0 3" "${PIPESTATUS[0]} $(wc -l <"$iot_dir/head.txt")"
"$IOTRACECTL" --socket "$iot_sock" follow --since -1h --stream packet 2>/dev/null | head -n 3 >"$iot_dir/named.txt"
assert_eq "the daemon of a socket" "$(cat "$iot_dir/head.txt")" "$(cat "$iot_dir/named.txt")"
# shellcheck disable=SC2317 # called by the shell below
follow_none() { "$IOTRACECTL" follow --stream block --dev nosuch "$iot_state" 2>/dev/null | true; }
export -f follow_none
export IOTRACECTL iot_state
assert_status "a reader that is gone before there is a line" 0 timeout 10 bash -c 'set -o pipefail; follow_none'
assert_status "--until has no place in it" 2 "$IOTRACECTL" follow --until now "$iot_state"
assert_status "a stream that is none" 2 "$IOTRACECTL" follow --stream net "$iot_state"

# ---- a reader that stalls holds up nobody, and gets all of it

mkfifo "$iot_dir/fifo"
"$IOTRACECTL" follow --json --since -1h --stream packet "$iot_state" >"$iot_dir/fifo" 2>"$iot_dir/err.txt" &
follower=$!
exec 5<"$iot_dir/fifo"
for n in 1 2 3; do
	send 150
	ctl rotate packet >/dev/null || not_ok "rotation $n" "refused"
done
iot_stop
assert_eq "daemon ends beside a reader that stalls" 0 $?
kill -0 "$follower" 2>/dev/null
assert_eq "which is not at the end" 0 $?
cat <&5 >"$iot_dir/out.txt"
exec 5<&-
ended "stalled" 0
"$IOTRACECTL" cat --json "$iot_state"/packet-* >"$iot_dir/cat.txt" 2>/dev/null
same "$iot_dir/cat.txt" >"$iot_dir/cat.sorted"
same "$iot_dir/out.txt" >"$iot_dir/out.sorted"
assert_eq "stalled: every line that cat prints, once" "" "$(diff "$iot_dir/cat.sorted" "$iot_dir/out.sorted" | head -n 5)"
assert_status "stalled: the record lost nothing for it" 0 "$IOTRACECTL" verify "$iot_state"/packet-*
assert_status "no daemon" 3 "$IOTRACECTL" follow "$iot_state"

# ---- losses, and a daemon that is killed

start lossy ', ring_size: 4KiB'
follow --stream packet
sleep 0.5
send 300
ctl rotate packet >/dev/null
wait_for 10 grep -q 'is sealed' "$iot_dir/err.txt"
assert_grep "a segment with losses" '^iotracectl: packet segment 1 is sealed: (lost|unknown)$' "$iot_dir/err.txt"
assert_grep "and which" '^iotracectl: packet segment 1: .*(lost|reserve)' "$iot_dir/err.txt"
iot_stop KILL
ended "until the daemon is killed" 0
assert_grep "a segment that is left open" '^iotracectl: packet segment 2 is not sealed: ' "$iot_dir/err.txt"
tap_end
