#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154,SC2086 # libraries and variables of the guest; names without blanks
#
# Ids of packets against the kernel's own account of its memory: beside us ftrace writes down where sk_buffs are
# allocated, and at which address each tracepoint sees a packet. check-packet-identity.sh lays both records side by
# side: an address from one allocation to the next is one packet, and has to have one id; by functions each id has to
# be one packet, too, and by tracepoints alone one that is several has to say so.
#
# LONG=1 tries more hooks that do not run; on 6.1 and 7.x with ALL_KERNELS=1 (5.10 hides addresses in its trace).
#
# timeout: 300
# vm-kernels: 6.12
# vm: --module veth --tool ip --check check-packet-identity.sh
# vm: --built tests/tools/packet-smoke --built tests/tools/packet-workload

. /tests/lib/guest-lib.sh
pk_ip=/usr/local/bin/ip
. /tests/lib/packet.sh
. /tests/lib/packet-batch.sh

mkdir -p /run /var /results && ln -s /run /var/run
pk_dir=/tmp/packet
mkdir -p $pk_dir
vm_modprobe veth || bail packet-identity "no veth"
pk_up_quickly || bail packet-identity "cannot make namespaces"
tracing=/sys/kernel/tracing
[ -e $tracing/trace ] || mount -t tracefs tracefs $tracing || bail packet-identity "no tracefs"

# What the kernel calls an allocation of an sk_buff, or of two at once for TCP.
one=$(cat /sys/kernel/slab/skbuff_head_cache/object_size)
two=$(cat /sys/kernel/slab/skbuff_fclone_cache/object_size)
case $one:$two in
*[!0-9:]* | :* | *:) bail packet-identity "no sizes of the slabs: $one $two" ;;
esac
echo 0 >$tracing/tracing_on
echo mono >$tracing/trace_clock
echo 0 >$tracing/options/hash-ptr || bail packet-identity "this kernel hides addresses in its trace"
echo 8192 >$tracing/buffer_size_kb
echo "bytes_req == $one || bytes_req == $two" >$tracing/events/kmem/kmem_cache_alloc/filter
for event in kmem/kmem_cache_alloc net/net_dev_queue net/netif_receive_skb; do
	echo 1 >$tracing/events/$event/enable || bail packet-identity "no event $event"
done

# Nothing moves when the trace begins and ends, so that each of its sightings has a record.
cat >$pk_dir/traffic <<-EOT
	exec >/dev/null
	echo 1 >$tracing/tracing_on
	$pk_ip netns exec $pk_b sh -c 'packet-workload udp-receive 10.98.2.2 7000 120 &
		packet-workload tcp-receive 10.98.2.2 7002 & packet-workload tcp-echo 10.98.2.2 7003 & wait' &
	sleep 1
	$pk_ip netns exec $pk_a sh -c 'set -e
		packet-workload udp-send 10.98.2.2 7000 100 100
		packet-workload tcp-send 10.98.2.2 7002 200K
		packet-workload udp-send 10.98.2.2 7000 20 4000
		packet-workload tcp-ping 10.98.2.2 7003 50
		packet-workload ping 10.98.2.2 20' || exit 1
	wait
	sleep 1
	echo 0 >$tracing/tracing_on
EOT

# watch NAME OPTION...
watch() {
	_name=$1
	shift
	echo >$tracing/trace
	packet-smoke "$@" --records -- sh $pk_dir/traffic >$pk_dir/out 2>$pk_dir/err
	assert_eq "$_name: books balance" 0 $?
	sed 's/^/# /' $pk_dir/err
	mkdir /results/$_name
	grep -E ' (kmem_cache_alloc|net_dev_queue|netif_receive_skb): ' $tracing/trace >/results/$_name/trace
	grep -E '^record .* probe=6[46] ' $pk_dir/out >/results/$_name/records
	grep -vE '^record' $pk_dir/out >/results/$_name/out
	assert_eq "$_name: events that ftrace lost" 0 \
		"$(cat $tracing/per_cpu/cpu*/stats | awk '/^(overrun|dropped events)/ { n += $NF } END { print n + 0 }')"
	grep -E '^(identity|packets)' $pk_dir/out | sed "s/^/# $_name: /"
}

echo "$one $two" >/results/sizes
watch functions --functions
watch tracepoints

# A hook that is not there although it is taken to be: the self-test at start has to find out, and ids are not exact then.
# 98: clones are not born; 109: what is freed by no other way does not end.
deaf() {
	packet-smoke --functions --deaf $1 -- true >$pk_dir/out 2>$pk_dir/err
	assert_eq "deaf to $1: it runs" 0 $?
	sed 's/^/# /' $pk_dir/err
	grep '^identity' $pk_dir/out | sed 's/^/# /'
	assert_num "deaf to $1: $2" "$(sed -n "s/^identity self-test: .* \([0-9]*\) $2.*/\1/p" $pk_dir/out)" -gt 0
	assert_eq "deaf to $1: births and ends are left alone" 0 "$(grep -cE '^probe (9[789]|10[0-9]|11[0-4]) .*state=attached' $pk_dir/out)"
}
[ -z "${vm_long:-}" ] || deaf 98 ghosts
deaf 109 endless

# One that falls silent when that is over: what it does not see is counted as runs that were missed, by what it proves.
deaf_later() {
	packet-smoke --functions --deaf-later $1 -- sh $pk_dir/traffic >$pk_dir/out 2>$pk_dir/err
	sed 's/^/# /' $pk_dir/err
	assert_eq "deaf later to $1: identity" "identity exact" "$(grep '^identity' $pk_dir/out)"
	assert_num "deaf later to $1: $2" "$(sed -n "s/^probe $3 .* missed=\([0-9]*\).*/\1/p" $pk_dir/out)" -gt 0
}
if [ -n "${vm_long:-}" ]; then
	deaf_later 98 ghosts 97
	deaf_later 109 doubled 109
fi
tap_end
