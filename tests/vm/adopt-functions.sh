#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154 # libraries and variables of the guest
#
# A daemon that records packets with functions hooked, killed again and again: what can be hooked only here and not on
# the build host. Programs with a second copy, functions, and what the try of identity has shown are gone on with; an
# id stays one packet, so each packet of the record is complete, and at each of the probes each number is there once.
#
# Not a part of make check: an emulated machine takes minutes for it.
#
# usage: tests/vm/run.sh --timeout 390 6.12 tests/vm/adopt-functions.sh
#
# vm: --module veth --tool jq
# vm: --built iotraced --built iotracectl --built tests/tools/fd-supervisor --built tests/tools/packet-workload

. /tests/lib/guest-lib.sh
. /tests/lib/daemon.sh
vm_modprobe veth || bail veth "no module"
ifconfig lo up
mkdir -p /run /var
iot_setup /tmp/adopt
kills=3
cat >"$iot_dir/config.yaml" <<-END
	streams:
	  block: {enabled: false}
	  packet:
	    enabled: true
	    functions: fentry
	    filter: "udp and dst host 127.0.0.1 and dst portrange 24000-31000"
	    ring_cpus: 1
	    block_records: 64
	    block_age: 20ms
	    segment_age: 1s
	    ring_size: 4MiB
END
sup=$iot_dir/supervisor.log
fd-supervisor "$iot_dir" /usr/local/bin/iotraced --config "$iot_dir/config.yaml" --state-dir "$iot_state" --socket "$iot_sock" \
	>"$sup" 2>>"$iot_log" </dev/null &
sup_pid=$!
ready() { [ "$(grep -c '^ready' "$sup")" -ge "$1" ]; }
collecting() { [ "$(grep -v '^fd\|^remove\|^forgot' "$sup" | tail -n 1)" = ready ]; }
began=$(date +%s)
wait_for 240 ready 1 || bail daemon "it did not start: $(tail -n 3 "$iot_log")"
note "a start took $(($(date +%s) - began)) s, $(uptime | sed 's/.*load/load/'); $(grep -c '^fd' "$sup") descriptors are kept"
exact=$(ctl --json status | jq -r '[.. | .identity? // empty] | first')
assert_eq "ids are exact" exact "$exact"
# 5.10 skips no program that interrupts another, and needs none.
! vm_kernel_ge 5 12 || assert_num "programs have second copies" "$(grep -c '^fd packet.*prog2' "$sup")" -gt 5
packet-workload udp-numbered 127.0.0.1 24000 4000 >"$iot_dir/sent" &
sender=$!
i=0
while [ "$i" -lt "$kills" ]; do
	i=$((i + 1))
	# Every third while it starts and adopts.
	[ $((i % 3)) = 0 ] || wait_for 60 collecting || not_ok "start $i" "no READY within 60 s"
	# shellcheck disable=SC3028 # busybox has it
	sleep "0.$((RANDOM % 9))"
	kill -KILL "$(cat "$iot_dir/pid")"
done
for point in flipped:1 block-written:2; do
	echo "IOTRACED_CRASH_AT=$point" >"$iot_dir/env.$i"
	i=$((i + 1))
done
wait_for 60 collecting
n=$(($(grep -c '^exit' "$sup") + 3))
kill -KILL "$(cat "$iot_dir/pid")"
died() { [ "$(grep -c '^exit' "$sup")" -ge "$n" ]; }
wait_for 200 died || not_ok "named points" "not all are passed"
wait_for 60 collecting || not_ok "the last start" "no READY"
note "$(grep -c '^exit' "$sup") deaths in $(($(date +%s) - began)) s"
kill -INT "$sender"
wait "$sender"
sent=$(sed -n 's/^sent=//p' "$iot_dir/sent")
assert_eq "what was found out of ids is known still" "$exact" "$(ctl --json status | jq -r '[.. | .identity? // empty] | first')"
kill -TERM "$sup_pid"
wait "$sup_pid"
assert_eq "the daemon ends" 0 $?
note "$(grep -c '^exit' "$sup") deaths, $sent datagrams, $(find "$iot_state" -name '*.iot' | wc -l) segments"

iotracectl verify "$iot_state" >"$iot_dir/verify.txt" 2>&1
assert_eq "the record is complete" 0 $?
sed 's/^/# /' "$iot_dir/verify.txt" | tail -n 5
assert_eq "one capture" 1 "$(find "$iot_state" -name 'packet-*' | sed 's/.*packet-\([0-9a-f]*\)-.*/\1/' | sort -u | wc -l)"
for probe in net_dev_queue ip_rcv udp_rcv netif_receive_skb; do
	header=42
	[ "$probe" = net_dev_queue ] || header=28
	[ "$probe" != udp_rcv ] || header=8
	iotracectl --json cat --probe "$probe" "$iot_state" 2>/dev/null |
		sed -n 's/.*"len":\([0-9]*\),.*"proto":"udp",.*"dport":\([0-9]*\),.*/\1 \2/p' |
		awk -v h="$header" '{ print ($2 - 24000) * 1024 + $1 - h - 8 }' | sort -n >"$iot_dir/numbers"
	assert_eq "at $probe each datagram, once" "$sent $sent 0 $((sent - 1))" \
		"$(wc -l <"$iot_dir/numbers") $(uniq "$iot_dir/numbers" | wc -l) $(head -n 1 "$iot_dir/numbers") $(tail -n 1 "$iot_dir/numbers")"
done
iotracectl --json replay "$iot_state" >"$iot_dir/replay.json" 2>/dev/null
assert_eq "each datagram is a packet, and each packet is complete" "$sent {\"complete\":$sent}" \
	"$(jq -rc '.captures[0] | "\(.packets) \(.verdicts | with_entries(select(.value > 0)))"' "$iot_dir/replay.json")"
tap_end
