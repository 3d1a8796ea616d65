# shellcheck shell=sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2154,SC2086,SC2016 # what packet.sh and the test set; names without blanks in them
#
# Traffic of every kind through the namespaces of packet.sh, watched by packet-smoke: what it counts per device
# and namespace must be what the kernel counts, to the last packet, and the chain of probes of one chosen
# packet must be the way it took. $pk_options: how packet-smoke is to watch; $pk_label: for the names.

# pk_watch NAME COMMAND...	the command runs under packet-smoke; then all devices are compared
pk_watch() {
	_pk_name=$1
	shift
	pk_settle || not_ok "$pk_label $_pk_name: a start at rest" "the counters never rest"
	pk_snapshot >"$pk_dir/before"
	# shellcheck disable=SC2086 # options are words
	packet-smoke $pk_options --records -- "$@" >"$pk_dir/out" 2>"$pk_dir/err"
	_pk_status=$?
	pk_settle || not_ok "$pk_label $_pk_name: an end at rest" "the counters never rest"
	pk_snapshot >"$pk_dir/after"
	assert_eq "$pk_label $_pk_name: books balance" 0 "$_pk_status"
	[ "$_pk_status" = 0 ] || { grep '^bad' "$pk_dir/out" | head -n 5; cat "$pk_dir/err"; } | sed 's/^/# /'
	assert_eq "$pk_label $_pk_name: no run missed" 0 "$(pk_sum missed)"
	if [ "${_pk_name#loss }" != "$_pk_name" ]; then
		# A loss is filed against packet and probe, whatever the device: only the sum is exact.
		_pk_sent=0
		for _pk_end in "$pk_a va" "$pk_r ra" "$pk_r rb" "$pk_b vb"; do
			_pk_sent=$((_pk_sent + $(pk_delta "$pk_dir/before" "$pk_dir/after" "${_pk_end% *}" "${_pk_end#* }:tx_packets")))
		done
		assert_eq "$pk_label $_pk_name: sent on all devices" "$_pk_sent" \
			"$(sed -n 's/^probe 68 .* emitted=\([0-9]*\) reserve_failed=\([0-9]*\).*/\1 \2/p' "$pk_dir/out" | awk '{ print $1 + $2 }')"
		return
	fi
	assert_eq "$pk_label $_pk_name: no record lost" 0 "$(pk_sum reserve_failed)"
	for _pk_end in "$pk_a va" "$pk_r ra" "$pk_r rb" "$pk_b vb"; do
		_pk_n=${_pk_end% *} _pk_d=${_pk_end#* }
		_pk_sent=$(($(pk_count "$_pk_n" "$_pk_d" 68 n) - $(pk_count "$_pk_n" "$_pk_d" 68 code)))
		assert_eq "$pk_label $_pk_name: $_pk_d sent" \
			"$(pk_delta "$pk_dir/before" "$pk_dir/after" "$_pk_n" "$_pk_d:tx_packets")" "$_pk_sent"
		assert_eq "$pk_label $_pk_name: $_pk_d bytes sent" \
			"$(pk_delta "$pk_dir/before" "$pk_dir/after" "$_pk_n" "$_pk_d:tx_bytes")" "$(pk_count "$_pk_n" "$_pk_d" 68 bytes)"
		assert_eq "$pk_label $_pk_name: $_pk_d received" \
			"$(pk_delta "$pk_dir/before" "$pk_dir/after" "$_pk_n" "$_pk_d:rx_packets")" "$(pk_count "$_pk_n" "$_pk_d" 64 n)"
	done
}

# pk_chain PATTERN [N]	the probes of the Nth packet whose first record matches, in hop order, as "64.b 66.r ..."
pk_chain() {
	_pk_id=$(sed -n "s/^record .* id=\\([0-9]*\\) hop=1 .*$1.*/\\1/p" "$pk_dir/out" | sed -n "${2:-1}p")
	[ -n "$_pk_id" ] || return 0
	grep "^record .* id=$_pk_id " "$pk_dir/out" |
		sed 's/.* hop=\([0-9]*\) probe=\([0-9]*\) .* netns=\([0-9]*\) .*/\1 \2 \3/' | sort -n |
		awk -v a="$(pk_inode $pk_a)" -v r="$(pk_inode $pk_r)" -v b="$(pk_inode $pk_b)" '
			{ s = s (NR > 1 ? " " : "") $2 "." ($3 == a ? "a" : $3 == r ? "r" : $3 == b ? "b" : $3) }
			END { print s }'
}

pk_hook_of() { sed -n "s/^probe $1 .* hook=\\([^ ]*\\) state=attached.*/\\1/p" "$pk_dir/out"; }

# One datagram a -> r -> b, up to the socket.
pk_way='66.a 67.a 65.r 68.a 64.r 66.r 67.r 65.b 68.r 64.b'

pk_ways() {
	pk_ping
	pk_watch ping6 $pk_ip netns exec $pk_a packet-workload ping fd98:2::2 5
	assert_eq "$pk_label ping6: way of a request" "$pk_way 69.b" "$(pk_chain 'l4=128\/0 .*fd98:1::2' 3)"
}

pk_ping() {
	pk_watch ping $pk_ip netns exec $pk_a packet-workload ping 10.98.2.2 5
	assert_eq "$pk_label ping: way of a request" "$pk_way 69.b" "$(pk_chain 'l4=8\/0 .*10.98.1.2' 3)"
	assert_eq "$pk_label ping: Ip InReceives" "$(pk_delta "$pk_dir/before" "$pk_dir/after" $pk_b Ip:InReceives)" \
		"$(pk_count $pk_b - 64 n)"
}

pk_scenarios() {
	pk_ways

	pk_watch udp sh -c "$pk_ip netns exec $pk_b packet-workload udp-receive 10.98.2.2 7000 500 & receiver=\$!; sleep 0.5
		$pk_ip netns exec $pk_a packet-workload udp-send 10.98.2.2 7000 500 100 && wait \$receiver"
	# Its end may pass unobserved (6.18), and the next packet at its address go on under its id.
	_pk_chain=$(pk_chain '> 10.98.2.2:7000' | cut -c "1-${#pk_way}")
	assert_eq "$pk_label udp: way of the first" "$pk_way" "$_pk_chain"
	assert_eq "$pk_label udp: InDatagrams" "$(pk_delta "$pk_dir/before" "$pk_dir/after" $pk_b Udp:InDatagrams)" \
		$(($(pk_count $pk_b vb 64 n) - $(pk_count $pk_b - 74 n)))

	pk_watch fragments sh -c "$pk_ip netns exec $pk_b packet-workload udp-receive 10.98.2.2 7000 20 & receiver=\$!; sleep 0.5
		$pk_ip netns exec $pk_a packet-workload udp-send 10.98.2.2 7000 20 4000 && wait \$receiver"
	assert_eq "$pk_label fragments: forwarded" "$(pk_delta "$pk_dir/before" "$pk_dir/after" $pk_r Ip:ForwDatagrams)" \
		"$(pk_count $pk_r rb 66 n)"
	assert_eq "$pk_label fragments: three of each datagram" 60 "$(pk_count $pk_r rb 66 n)"

	pk_watch tcp sh -c "$pk_ip netns exec $pk_b packet-workload tcp-receive 10.98.2.2 7000 & receiver=\$!; sleep 0.5
		$pk_ip netns exec $pk_a packet-workload tcp-send 10.98.2.2 7000 1M && wait \$receiver"
	assert_eq "$pk_label tcp: Ip InReceives" "$(pk_delta "$pk_dir/before" "$pk_dir/after" $pk_b Ip:InReceives)" \
		"$(pk_count $pk_b - 64 n)"
	assert_num "$pk_label tcp: a MiB in segments of at most 64 KiB" "$(pk_count $pk_b - 64 n)" -ge 16
	# Usually none of either: what is lost on no link is not sent again.
	assert_eq "$pk_label tcp: segments retransmitted" \
		"$(pk_delta "$pk_dir/before" "$pk_dir/after" $pk_a Tcp:RetransSegs)" "$(pk_count $pk_a - 71 n)"

	pk_full_socket
	pk_blackhole
	pk_vlan
	pk_selection
}

pk_full_socket() {
	pk_watch full-socket sh -c "$pk_ip netns exec $pk_b packet-workload udp-receive 10.98.2.2 7000 1000 2304 & receiver=\$!; sleep 0.5
		$pk_ip netns exec $pk_a packet-workload udp-send 10.98.2.2 7000 200 1000 && wait \$receiver"
	_pk_full=$(pk_delta "$pk_dir/before" "$pk_dir/after" $pk_b Udp:RcvbufErrors)
	assert_num "$pk_label full-socket: it was" "$_pk_full" -gt 0
	assert_eq "$pk_label full-socket: refused" "$_pk_full" "$(pk_count $pk_b - 74 n)"
	assert_eq "$pk_label full-socket: dropped" "$_pk_full" "$(pk_count $pk_b - 70 n)"
}

pk_blackhole() {
	$pk_ip -n $pk_r route replace blackhole 10.98.3.0/24
	pk_watch blackhole $pk_ip netns exec $pk_a packet-workload udp-send 10.98.3.1 7000 50 100
	assert_eq "$pk_label blackhole: dropped" 50 "$(pk_count $pk_r - 70 n)"
	assert_eq "$pk_label blackhole: way of one" '66.a 67.a 65.r 68.a 64.r 70.r' "$(pk_chain '> 10.98.3.1:7000' 20)"
}

# A VLAN on top of the first link; its packets pass two devices on each side.
pk_vlan() {
	if ! $pk_ip -n $pk_a link add link va name va.7 type vlan id 7 2>/dev/null; then
		note "$pk_label: this kernel has no VLAN devices; the machines' kernels have, see tests/vm/test-packet.sh"
		return
	fi
	$pk_ip -n $pk_r link add link ra name ra.7 type vlan id 7
	pk_link $pk_a va.7 10.98.7.2 fd98:7::2 && pk_link $pk_r ra.7 10.98.7.1 fd98:7::1
	pk_neighbour $pk_a va.7 10.98.7.1 fd98:7::1 "$(pk_mac $pk_r ra.7)"
	pk_neighbour $pk_r ra.7 10.98.7.2 fd98:7::2 "$(pk_mac $pk_a va.7)"
	pk_watch vlan $pk_ip netns exec $pk_a packet-workload ping 10.98.7.1 5
	assert_eq "$pk_label vlan: way of a request" '66.a 67.a 66.a 67.a 65.r 68.a 68.a 64.r 69.r' \
		"$(pk_chain 'l4=8\/0 .*10.98.7.2' 3)"
	assert_num "$pk_label vlan: tagged on the wire" "$(grep -c '^record .* probe=67 .* vlan=7 ' "$pk_dir/out")" -ge 10
	$pk_ip -n $pk_a link del va.7
	$pk_ip -n $pk_r link del ra.7
}

# One flow in many: nothing of the others is recorded, everything of those chosen.
pk_selection() {
	_pk_options=$pk_options
	pk_options="$pk_options --sample 3"
	pk_settle
	# shellcheck disable=SC2086
	packet-smoke $pk_options --records -- $pk_ip netns exec $pk_a sh -c 'for port in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		packet-workload udp-send 10.98.3.1 $((7000 + port)) 10 100 >/dev/null; done' >"$pk_dir/out" 2>"$pk_dir/err"
	assert_eq "$pk_label sample: books balance" 0 $?
	_pk_ports=$(sed -n 's/^record .* probe=66 .*> 10.98.3.1:\([0-9]*\).*/\1/p' "$pk_dir/out" | sort -u | grep -c .)
	assert_num "$pk_label sample: some of 20 flows" "$_pk_ports" -gt 0
	assert_num "$pk_label sample: not all of them" "$_pk_ports" -lt 20
	assert_eq "$pk_label sample: all packets of those" $((_pk_ports * 10)) "$(pk_count $pk_a va 66 n)"
	assert_eq "$pk_label sample: and all their drops" $((_pk_ports * 10)) \
		"$(grep -c '^record .* probe=70 .* hop=6 \|^record .* hop=6 probe=70' "$pk_dir/out")"
	assert_eq "$pk_label sample: the rest is counted" $((200 - _pk_ports * 10)) \
		"$(sed -n 's/^probe 66 .* not_selected=\([0-9]*\).*/\1/p' "$pk_dir/out")"
	pk_options=$_pk_options

	# An expression; its arithmetic uses what classic BPF has of memory. Not selected: drops only, as such.
	pk_settle
	# shellcheck disable=SC2086
	packet-smoke $pk_options --records --rare 5 --filter 'udp and (dst port 7003 or udp[2:2] * 3 - ip[0] / 69 = 21014)' -- \
		$pk_ip netns exec $pk_a sh -c 'for port in 1 2 3 4 5 6 7 8 9 10; do
		packet-workload udp-send 10.98.3.1 $((7000 + port)) 10 100 >/dev/null; done' >"$pk_dir/out" 2>"$pk_dir/err"
	assert_eq "$pk_label filter: books balance" 0 $?
	assert_eq "$pk_label filter: the ports asked for" '7003 7005' \
		"$(sed -n 's/^record .* probe=66 .*> 10.98.3.1:\([0-9]*\).*/\1/p' "$pk_dir/out" | sort -u | tr '\n' ' ' | sed 's/ $//')"
	assert_eq "$pk_label filter: all of their packets" 20 "$(pk_count $pk_a va 66 n)"
	assert_eq "$pk_label filter: the way of one" '66.a 67.a 65.r 68.a 64.r 70.r' "$(pk_chain '> 10.98.3.1:7003' 5)"
	assert_eq "$pk_label filter: the rest is counted" 80 "$(sed -n 's/^probe 66 .* not_selected=\([0-9]*\).*/\1/p' "$pk_dir/out")"
	# Before 5.17 a drop has no reason, and only one with a reason is always on.
	if [ "$(sed -n 's/^probe 70 .* not_selected=\([0-9]*\).*/\1/p' "$pk_dir/out")" != 80 ]; then
		assert_num "$pk_label filter: drops of others, at a rate" "$(pk_suppressed)" -gt 0
		assert_eq "$pk_label filter: and said to be of others" \
			$((80 - $(pk_suppressed))) "$(grep -c '^record .* hop=1 probe=70 .* flags=0x[0-9a-f]*4[45] ' "$pk_dir/out")"
	fi
}

pk_suppressed() { sed -n 's/^probe 70 .* suppressed=\([0-9]*\).*/\1/p' "$pk_dir/out"; }

# A ring far too small: everything that is lost is filed against its packet, or counted with its window.
pk_loss() {
	pk_watch "loss $1" sh -c "$pk_ip netns exec $pk_b packet-workload udp-receive 10.98.2.2 7000 3000 & receiver=\$!; sleep 0.5
		$pk_ip netns exec $pk_a packet-workload udp-send 10.98.2.2 7000 3000 100 && wait \$receiver"
	assert_num "$pk_label loss $1: there was" "$(pk_sum reserve_failed)" -gt 0
	assert_eq "$pk_label loss $1: filed or counted" "$(pk_sum reserve_failed)" $(($(pk_sum filed) + $(pk_sum unattributed)))
}
