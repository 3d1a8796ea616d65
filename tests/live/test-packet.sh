#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2154 # the libraries and their variables
#
# The packet stream through the daemon and back: datagrams to a port where nobody listens, each of which the kernel
# drops and counts (Udp: NoPorts). All of them are in the record, with reason, location and interface; rotations
# lose nothing; tshark reads the export. With a ring of one page the books balance, losses are owned or bounded,
# and the block stream beside it does not lose a record.
#
# timeout: 300

cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/daemon.sh

dir=$(mktemp -d /dev/shm/iot-packet.XXXXXX) || exit 1
cleanup() {
	[ -n "${iot_pid:-}" ] && iot_stop KILL
	rm -rf "$dir"
}
trap cleanup EXIT

port=$((20000 + RANDOM % 10000))
no_ports() { awk '/^Udp: [0-9]/ { print $3 }' /proc/net/snmp; }

# send COUNT	datagrams of their own sockets, so that none waits for an ICMP error of another
send() {
	local i
	for ((i = 0; i < $1; i++)); do
		echo hello >"/dev/udp/127.0.0.1/$port" || return 1
	done
}

# ours PROBE	observations of our datagrams at a probe, as JSON lines
ours() {
	"$IOTRACECTL" --json cat "$iot_state"/packet-* 2>/dev/null |
		jq -c --arg probe "$1" --argjson port "$port" 'select(.probe == $probe and .dport == $port and .proto == "udp")'
}

# block_proved NAME	the segments of the block stream alone
block_proved() {
	mkdir "$iot_dir/block"
	cp "$iot_state"/block-* "$iot_dir/block"
	iot_proved "$iot_dir/block"
	assert_eq "$1: the block stream lost nothing" 0 $?
}

phase_complete() {
	local before dropped verified n=0
	iot_setup "$dir/complete"
	printf 'streams:\n  packet: {enabled: true, block_age: 50ms}\n' >"$iot_dir/config.yaml"
	iot_start || bail "daemon" "it did not start"
	before=$(no_ports)
	while [ $n -lt 10 ]; do
		send 20 || bail "datagrams" "cannot be sent"
		ctl rotate packet >/dev/null || not_ok "rotation $n" "refused"
		n=$((n + 1))
	done
	dropped=$(($(no_ports) - before))
	ctl --json status >"$iot_dir/status.json"
	iot_stop
	assert_eq "daemon ends" 0 $?
	assert_eq "status has both streams" "block packet" \
		"$(jq -r '[.. | .streams? // empty | .[].name] | join(" ")' "$iot_dir/status.json")"
	assert_eq "segments of the packet stream" 11 "$(find "$iot_state" -name 'packet-*.iot' | wc -l)"
	assert_eq "nothing left open" 0 "$(find "$iot_state" -name '*.open' | wc -l)"
	"$IOTRACECTL" verify "$iot_state"/packet-*.iot >"$iot_dir/verify.txt"
	verified=$?
	assert_eq "packet stream is proved complete" 0 $verified
	[ $verified = 0 ] || sed 's/^/# /' "$iot_dir/verify.txt"
	block_proved "rotations of packets"
	assert_eq "datagrams at net_dev_queue" 200 "$(ours net_dev_queue | wc -l)"
	assert_eq "datagrams at netif_receive_skb" 200 "$(ours netif_receive_skb | wc -l)"
	ours kfree_skb >"$iot_dir/drops.json"
	assert_eq "drops, by the kernel's own count" "$dropped" "$(wc -l <"$iot_dir/drops.json")"
	assert_eq "drops have an interface" lo "$(jq -rs 'map(.iface) | unique | join(",")' "$iot_dir/drops.json")"
	assert_eq "and a place in UDP's code" true "$(jq -s 'all(.location | test("udp"))' "$iot_dir/drops.json")"
	assert_eq "but no address of the kernel" true \
		"$("$IOTRACECTL" cat --json "$iot_state"/packet-*.iot | jq -s 'map(.where // 0 | tonumber) | max > 0 and max < 140737488355328')"
	# Since 5.17 with a reason.
	if grep -q NO_SOCKET "$iot_dir/drops.json"; then
		assert_eq "and a reason" NO_SOCKET "$(jq -rs 'map(.reason) | unique | join(",")' "$iot_dir/drops.json")"
	else
		skip "and a reason" "this kernel gives none"
	fi
	if command -v tshark >/dev/null; then
		"$IOTRACECTL" export --format pcapng --output "$iot_dir/o.pcapng" "$iot_state"/packet-*.iot
		assert_eq "export of pcapng" 0 $?
		assert_eq "tshark: our datagrams" 200 "$(tshark -r "$iot_dir/o.pcapng" \
			-Y "frame.interface_name == \"net_dev_queue\" && udp.dstport == $port" \
			2>/dev/null | wc -l)"
	else
		skip "export of pcapng" "no tshark"
	fi
}

# phase_lossy NAME LEDGER-ENTRIES UNATTRIBUTED
phase_lossy() {
	local name=$1 status
	iot_setup "$dir/${name// /-}"
	printf 'streams:\n  packet: {enabled: true, ring_size: 4KiB, ledger_entries: %s}\n' "$2" >"$iot_dir/config.yaml"
	iot_start || bail "$name: daemon" "it did not start"
	send 300
	iot_stop
	assert_eq "$name: daemon ends" 0 $?
	"$IOTRACECTL" --json verify "$iot_state"/packet-*.iot >"$iot_dir/verify.json"
	status=$?
	assert_eq "$name: verify sees the loss" "$([ "$3" = true ] && echo 11 || echo 10)" "$status"
	assert_eq "$name: books balance" 0 "$(jq '.whole.books_unbalanced' "$iot_dir/verify.json")"
	assert_eq "$name: losses with an owner" true "$(jq '.whole.lost > 0' "$iot_dir/verify.json")"
	assert_eq "$name: losses without" "$3" "$(jq '.whole.unattributed > 0' "$iot_dir/verify.json")"
	block_proved "$name"
}

phase_complete
phase_lossy "one page" 65536 false
phase_lossy "one page, one ledger entry" 1 true
tap_end
