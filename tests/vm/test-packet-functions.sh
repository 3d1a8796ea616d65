#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154,SC2086 # libraries and variables of the guest; names without blanks
#
# The functions of the stack as probes of packets, on real kernels, by fentry and by kprobes: the chain of one
# datagram from one namespace through a second to a third is the way that the kernel's source gives it, and
# each function is entered as often as there were datagrams. By fentry births and ends are seen as well, and each
# packet is one id from the one to the other.
#
# timeout: 240
# vm-kernels: 6.12
# vm: --module veth --tool ip --tool setpriv
# vm: --built tests/tools/packet-smoke --built tests/tools/packet-workload

. /tests/lib/guest-lib.sh
pk_ip=/usr/local/bin/ip
. /tests/lib/packet.sh
. /tests/lib/packet-batch.sh
. /tests/lib/packet-scenarios.sh

mkdir -p /run /var && ln -s /run /var/run
pk_dir=/tmp/packet
mkdir -p $pk_dir
vm_modprobe veth || bail packet-functions "no veth"

pk_up_quickly || bail packet-functions "cannot make namespaces"

pk_n=20
pk_udp="$pk_ip netns exec $pk_b packet-workload udp-receive 10.98.2.2 7000 $pk_n & receiver=\$!; sleep 1
	$pk_ip netns exec $pk_a packet-workload udp-send 10.98.2.2 7000 $pk_n 100 && wait \$receiver"

pk_tcp="$pk_ip netns exec $pk_b packet-workload tcp-receive 10.98.2.2 7000 & receiver=\$!; sleep 1
	$pk_ip netns exec $pk_a packet-workload tcp-send 10.98.2.2 7000 300K && wait \$receiver; sleep 1"

# pk_run OPTION [TRAFFIC]
pk_run() {
	packet-smoke "$1" --records -- sh -c "exec >/dev/null; ${2:-$pk_udp}" >$pk_dir/out 2>$pk_dir/err
	_pk_status=$?
	assert_eq "$pk_label: books balance" 0 "$_pk_status"
	[ "$_pk_status" = 0 ] || { grep '^bad' $pk_dir/out | head -n 5; cat $pk_dir/err; } | sed 's/^/# /'
}

# How many records of our datagrams a probe made.
pk_records() { grep -c "^record .* probe=$1 .* 10.98.1.2:[0-9]* > 10.98.2.2:7000" $pk_dir/out; }

pk_check_way() {
	for pk_probe in 82:40 83:20 84:20 85:40 93:20 96:40 117:20; do
		assert_eq "$pk_label: probe ${pk_probe%:*} is hooked by" "$1" "$(pk_hook_of ${pk_probe%:*})"
		assert_eq "$pk_label: entries into ${pk_probe%:*}" ${pk_probe#*:} "$(pk_records ${pk_probe%:*})"
	done
	# Whether nf_hook_slow is on it depends on the security modules, which hook POST_ROUTING.
	# ip_output, __dev_queue_xmit, the driver's hooks; netif_rx, netif_receive_skb, ip_rcv; ip_forward; udp_rcv, its queue.
	assert_eq "$pk_label: way of a datagram" \
		'85.a 96.a 66.a 67.a 65.r 68.a 64.r 82.r 84.r 85.r 96.r 66.r 67.r 65.b 68.r 64.b 82.b 83.b 93.b 117.b' \
		"$(pk_chain '> 10.98.2.2:7000' 5 | sed 's/ 90\..//g; s/\(117.b\).*/\1/')"
}

pk_figure() { sed -n "s/^$1 .*\b$2=\([0-9]*\).*/\1/p" $pk_dir/out; }

# Each packet is one id from its birth to its end: TCP's, too, whose ends no tracepoint shows. Checked by packet-smoke:
# numbers without gaps, none twice, and none behind the end.
pk_check_identity() {
	assert_eq "$pk_label: identity" "identity exact" "$(grep '^identity' $pk_dir/out)"
	assert_eq "$pk_label: ids of more than one packet" 0 "$(pk_figure packets merged)"
	assert_num "$pk_label: packets" "$(pk_figure packets n)" -ge "$1"
	assert_eq "$pk_label: packets born while we looked" "$(pk_figure packets n)" "$(pk_figure packets from_start)"
	assert_eq "$pk_label: packets that ended" "$(pk_figure packets n)" "$(pk_figure packets ended)"
	assert_eq "$pk_label: births nobody saw" 0 "$(pk_figure 'probe 97' missed)"
	assert_eq "$pk_label: ends nobody saw" 0 "$(pk_figure 'probe 109' missed)"
}

pk_label=fentry
pk_run --functions
pk_check_way fentry
pk_check_identity 20
grep '^probe' $pk_dir/out | sed 's/ not_selected=.* missed/ missed/; s/^/# /'
grep '^memory' $pk_dir/out | sed 's/^/# /'
pk_label='fentry, TCP'
pk_run --functions "$pk_tcp"
pk_check_identity 20
# With the rights of the service: the self-test makes itself a user namespace.
pk_label='as the service'
# shellcheck disable=SC3045 # busybox has it
ulimit -l unlimited # as the unit does; kernels before 5.11 charge maps to it
as_service() {
	/usr/local/bin/setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps -all,+perfmon,+bpf \
		--ambient-caps -all,+perfmon,+bpf --bounding-set -all,+perfmon,+bpf "$@"
}
as_service /usr/local/bin/packet-smoke --functions -- true >$pk_dir/out 2>$pk_dir/err
assert_eq "$pk_label: it runs" 0 $?
sed 's/^/# /' $pk_dir/err
assert_eq "$pk_label: identity" "identity exact" "$(grep '^identity' $pk_dir/out)"
pk_label=kprobe
pk_run --kprobe
pk_check_way kprobe
assert_eq "kprobe: identity" 0 "$(grep -c '^identity exact' $pk_dir/out)"
tap_end
