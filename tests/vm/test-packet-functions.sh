#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154,SC2086 # libraries and variables of the guest; names without blanks
#
# The functions of the stack as probes of packets, on real kernels, by fentry and by kprobes: the chain of one
# datagram from one namespace through a second to a third is the way that the kernel's source gives it, and
# each function is entered as often as there were datagrams.
#
# timeout: 240
# vm-kernels: 6.12 7
# vm: --module veth --tool ip
# vm: --built tests/tools/packet-smoke --built tests/tools/packet-workload

. /tests/lib/guest-lib.sh
pk_ip=/usr/local/bin/ip
. /tests/lib/packet.sh
. /tests/lib/packet-scenarios.sh

mkdir -p /run /var && ln -s /run /var/run
pk_dir=/tmp/packet
mkdir -p $pk_dir
vm_modprobe veth || bail packet-functions "no veth"

# As pk_up, in few programs: each takes long in an emulated machine. Link addresses are ours, so neighbours are known.
cat >$pk_dir/root <<-EOF
	netns add $pk_a
	netns add $pk_r
	netns add $pk_b
	link add va netns $pk_a address 02:00:00:00:01:02 type veth peer name ra netns $pk_r address 02:00:00:00:01:01
	link add rb netns $pk_r address 02:00:00:00:02:01 type veth peer name vb netns $pk_b address 02:00:00:00:02:02
EOF
# pk_batch DEV ADDRESS NEIGHBOUR LINK-ADDRESS
pk_batch() {
	cat <<-EOF
		link set $1 addrgenmode none
		addr add $2/24 dev $1
		link set $1 up
		neigh replace $3 lladdr $4 nud permanent dev $1
	EOF
}
{
	pk_batch va 10.98.1.2 10.98.1.1 02:00:00:00:01:01
	echo "route add default via 10.98.1.1"
} >$pk_dir/a
{
	pk_batch ra 10.98.1.1 10.98.1.2 02:00:00:00:01:02
	pk_batch rb 10.98.2.1 10.98.2.2 02:00:00:00:02:02
} >$pk_dir/r
{
	pk_batch vb 10.98.2.2 10.98.2.1 02:00:00:00:02:01
	echo "route add default via 10.98.2.1"
} >$pk_dir/b
$pk_ip -batch $pk_dir/root && $pk_ip -n $pk_a -batch $pk_dir/a && $pk_ip -n $pk_r -batch $pk_dir/r &&
	$pk_ip -n $pk_b -batch $pk_dir/b || bail packet-functions "cannot make namespaces"
pk_in $pk_r sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
pk_inode_a=$(stat -Lc %i /run/netns/$pk_a)
pk_inode_r=$(stat -Lc %i /run/netns/$pk_r)
pk_inode_b=$(stat -Lc %i /run/netns/$pk_b)

pk_n=20
pk_udp="$pk_ip netns exec $pk_b packet-workload udp-receive 10.98.2.2 7000 $pk_n & receiver=\$!; sleep 1
	$pk_ip netns exec $pk_a packet-workload udp-send 10.98.2.2 7000 $pk_n 100 && wait \$receiver"

# pk_run OPTION...
pk_run() {
	packet-smoke "$@" --records -- sh -c "exec >/dev/null; $pk_udp" >$pk_dir/out 2>$pk_dir/err
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

pk_label=fentry
pk_run --functions
pk_check_way fentry
grep '^probe' $pk_dir/out | sed 's/ not_selected=.* missed/ missed/; s/^/# /'
pk_label=kprobe
pk_run --kprobe
pk_check_way kprobe
tap_end
