#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154,SC2086 # libraries and variables of the guest; names without blanks
#
# The packet stream's tracepoints on real kernels: every hook that the kernel has takes its program, the chain of
# probes of a chosen packet is the way that it took (forwarded, of either family, tagged, translated, dropped by a rule
# and by a full socket), and what the record counts is what the kernel counts, to the last packet.
#
# Emulated, a load of the programs takes ten seconds or more and each program run half of one: so one watch over
# all traffic, and one of the raw_tp programs over a packet or two; with LONG=1 behind a filter expression, whose
# room the verifier walks through for another 30 s.
#
# make check has it on the two oldest; ALL_KERNELS=1 on 6.12 and 7.x as well, where it passes, too.
#
# timeout: 240
# vm-kernels: 5.10 6.1
# vm: --module veth --module 8021q --module nf_tables --module nft_chain_nat --module nft_nat
# vm: --tool ip --tool nft
# vm: --built tests/tools/packet-smoke --built tests/tools/packet-workload

. /tests/lib/guest-lib.sh
pk_ip=/usr/local/bin/ip
. /tests/lib/packet.sh
. /tests/lib/packet-scenarios.sh

step() { note "$(cut -d ' ' -f 1 /proc/uptime) $*"; }
mkdir -p /run /var && ln -s /run /var/run
pk_dir=/tmp/packet
mkdir -p $pk_dir
for module in veth 8021q nf_tables nft_chain_nat nft_nat; do
	vm_modprobe $module || bail packet "no $module"
done

# ---- the three namespaces of packet.sh, in few programs ----------------------------------------------

mac() { echo "02:00:00:00:0$1"; }
# ends DEV NET HOST PEER-HOST	addresses of a device, and where its neighbour is
ends() {
	cat <<-EOT
		link set $1 addrgenmode none
		addr add 10.98.$2.$3/24 dev $1
		addr add fd98:$2::$3/64 dev $1 nodad
		link set $1 up
		neigh replace 10.98.$2.$4 lladdr $5 nud permanent dev $1
		neigh replace fd98:$2::$4 lladdr $5 nud permanent dev $1
	EOT
}
cat >$pk_dir/root <<-EOT
	netns add $pk_a
	netns add $pk_r
	netns add $pk_b
	link add va index 101 netns $pk_a address $(mac 1:02) type veth peer name ra index 102 netns $pk_r address $(mac 1:01)
	link add rb index 103 netns $pk_r address $(mac 2:01) type veth peer name vb index 104 netns $pk_b address $(mac 2:02)
EOT
{
	ends va 1 2 1 "$(mac 1:01)"
	echo "link add link va name va.7 type vlan id 7"
	ends va.7 7 2 1 "$(mac 1:01)"
	echo "route add default via 10.98.1.1"
	echo "route add ::/0 via fd98:1::1"
} >$pk_dir/a
{
	ends ra 1 1 2 "$(mac 1:02)"
	ends rb 2 1 2 "$(mac 2:02)"
	echo "link add link ra name ra.7 type vlan id 7"
	ends ra.7 7 1 2 "$(mac 1:02)"
} >$pk_dir/r
{
	ends vb 2 2 1 "$(mac 2:01)"
	echo "route add default via 10.98.2.1"
	echo "route add ::/0 via fd98:2::1"
} >$pk_dir/b
cat >$pk_dir/nft <<-EOT
	table ip t {
		chain translated {
			type nat hook prerouting priority -100
			ip daddr 10.98.1.1 udp dport 7100 dnat to 10.98.2.2:7000
		}
		chain filtered {
			type filter hook forward priority 0
			udp dport 7200 drop
		}
	}
EOT
if ! $pk_ip -batch $pk_dir/root || ! $pk_ip -n $pk_r -batch $pk_dir/r || ! $pk_ip -n $pk_a -batch $pk_dir/a ||
	! $pk_ip -n $pk_b -batch $pk_dir/b; then
	bail packet "cannot make the namespaces"
fi
pk_in $pk_r sh -c "echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding
	exec nft -f $pk_dir/nft" || bail packet "no rules of nft"
pk_inode_a=$(stat -Lc %i /run/netns/$pk_a)
pk_inode_r=$(stat -Lc %i /run/netns/$pk_r)
pk_inode_b=$(stat -Lc %i /run/netns/$pk_b)
pk_if_va=101 pk_if_ra=102 pk_if_rb=103 pk_if_vb=104
for ns in $pk_a $pk_r $pk_b; do
	$pk_ip netns exec $ns sleep 1000 &
	case $ns in
	"$pk_a") pk_pid_a=$! ;;
	"$pk_r") pk_pid_r=$! ;;
	*) pk_pid_b=$! ;;
	esac
done
if ! wait_for 20 grep -q vb: /proc/$pk_pid_b/net/dev || ! wait_for 20 grep -q ra: /proc/$pk_pid_r/net/dev ||
	! wait_for 20 grep -q va: /proc/$pk_pid_a/net/dev; then
	bail packet "no processes in the namespaces"
fi
pk_settle || bail packet "the counters never rest"
step "set up"

# ---- all traffic, watched once -------------------------------------------------------------------------

# Their words would come between the records.
cat >$pk_dir/traffic <<-EOT
	exec >/dev/null
	$pk_ip netns exec $pk_b sh -c 'packet-workload udp-receive 10.98.2.2 7000 30 &
		packet-workload udp-receive 10.98.2.2 7001 1000 2304 &
		packet-workload tcp-receive 10.98.2.2 7002 & wait' &
	sleep 1
	$pk_ip netns exec $pk_a sh -c 'set -e
		packet-workload udp-send 10.98.2.2 7001 60 1000
		packet-workload udp-send 10.98.2.2 7000 20 100
		packet-workload udp-send 10.98.2.2 7000 5 4000
		packet-workload udp-send 10.98.1.1 7100 5 100
		packet-workload udp-send 10.98.2.2 7200 5 100
		packet-workload tcp-send 10.98.2.2 7002 64K
		packet-workload ping 10.98.2.2 5
		packet-workload ping fd98:2::2 5
		packet-workload ping 10.98.7.1 5' || exit 1
	wait
EOT
pk_snapshot >$pk_dir/before
packet-smoke --records -- sh $pk_dir/traffic >$pk_dir/all 2>$pk_dir/err
assert_eq "books balance" 0 $?
grep '^bad' $pk_dir/all | head -n 5 | sed 's/^/# /'
sed 's/^/# /' $pk_dir/err
step "watched"
pk_settle || bail packet "the counters never rest"
pk_snapshot >$pk_dir/after
grep '^record' $pk_dir/all >$pk_dir/records
grep -v '^record' $pk_dir/all >$pk_dir/out
# A line a packet: the flow by its first record, the flow by its last, the probes in the order of their hops. By tracepoints
# the end of a datagram may pass unobserved (7.x), and the next one go on under its id: it begins where it is queued first.
awk -v a="$pk_inode_a" -v r="$pk_inode_r" -v b="$pk_inode_b" '
	{
		for (i = 2; i <= NF; i++) {
			k = index($i, "=")
			if (k) f[substr($i, 1, k - 1)] = substr($i, k + 1)
			else if ($i == ">") flow = $(i - 1) ">" $(i + 1)
		}
		ns = f["netns"] == a ? "a" : f["netns"] == r ? "r" : f["netns"] == b ? "b" : f["netns"]
		id = f["id"]; h = f["hop"]
		at[id, h] = f["probe"] "." ns
		what[id, h] = "ip=" f["ip"] " l4=" f["l4"] " " flow
		to[id, h] = flow
		code[id, h] = f["code"]
		if (h == 1) order[++n] = id
		if (h + 0 > last[id] + 0) last[id] = h + 0
	}
	END {
		for (k = 1; k <= n; k++) {
			id = order[k]; s = ""; begin = 1
			for (h = 1; h <= last[id]; h++) {
				s = s " " at[id, h]
				if (h < last[id] && !(at[id, h + 1] == "66.a" && what[id, h + 1] ~ /^ip=17 /)) continue
				print what[id, begin], to[id, h], "code=" code[id, h], "way" s
				s = ""; begin = h + 1
			}
		}
	}' $pk_dir/records >$pk_dir/ways
# way PATTERN [N] [LENGTH]	the way of the Nth packet (3rd) whose line matches
way() { grep -- "$1" $pk_dir/ways | sed -n "${2:-3}p" | sed 's/.* way //' | cut -c "1-${3:-200}"; }
delta() { pk_delta $pk_dir/before $pk_dir/after "$1" "$2"; }

assert_eq "no hook's program was refused" "" "$(sed -n 's/^probe [0-9]* \([^ ]*\) .*state=refused.*/\1/p' $pk_dir/out | tr '\n' ' ')"
assert_eq "hooked by" tp_btf "$(pk_hook_of 67)"
assert_eq "no run missed" 0 "$(pk_sum missed)"
assert_eq "no record lost" 0 "$(pk_sum reserve_failed)"
for end in "$pk_a va" "$pk_r ra" "$pk_r rb" "$pk_b vb"; do
	ns=${end% *} dev=${end#* }
	assert_eq "$dev: sent" "$(delta $ns $dev:tx_packets)" $(($(pk_count $ns $dev 68 n) - $(pk_count $ns $dev 68 code)))
	assert_eq "$dev: bytes sent" "$(delta $ns $dev:tx_bytes)" "$(pk_count $ns $dev 68 bytes)"
	assert_eq "$dev: received" "$(delta $ns $dev:rx_packets)" "$(pk_count $ns $dev 64 n)"
done
step "counted"
assert_eq "ping: way of a request" "$pk_way 69.b" "$(way 'l4=8/0 10.98.1.2:')"
assert_eq "ping: way of an answer" '66.b 67.b 65.r 68.b 64.r 66.r 67.r 65.a 68.r 64.a' "$(way 'l4=0/0 10.98.2.2:[0-9]*>10.98.1.2:' 3 ${#pk_way})"
# 6.1 frees it by kfree_skb, without a reason, though it has answered it.
assert_eq "ping6: way of a request" "$pk_way 69.b" "$(way 'l4=128/0 .fd98:1::2' | sed 's/ 70.b$/ 69.b/')"
assert_eq "vlan: way of a request" '66.a 67.a 66.a 67.a 65.r 68.a 68.a 64.r 69.r' "$(way 'l4=8/0 10.98.7.2:')"
assert_num "vlan: tagged on the wire" "$(grep -c ' probe=67 .* vlan=7 ' $pk_dir/records)" -ge 10
# Its end may pass unobserved (6.18), and the next packet at its address go on under its id.
assert_eq "udp: way of one" "$pk_way" "$(way '>10.98.2.2:7000 ' 3 ${#pk_way})"
assert_eq "fragments: those without ports" 10 "$(grep -c " probe=64 .* netns=$pk_inode_b .* ip=17 .* 10.98.1.2:0 > 10.98.2.2:0" $pk_dir/records)"
assert_eq "nat: way of one" "$pk_way" "$(way '>10.98.1.1:7100 ' 3 ${#pk_way})"
assert_eq "nat: where all of them came" 5 "$(grep -c " probe=64 .* netns=$pk_inode_b .* 10.98.1.2:[0-9]* > 10.98.2.2:7000" $pk_dir/records | awk '{ print $1 - 25 }')"
assert_eq "nft: way of a dropped one" '66.a 67.a 65.r 68.a 64.r 70.r' "$(way '>10.98.2.2:7200 ')"
assert_eq "nft: all of them dropped there" 5 "$(grep -c " probe=70 .* netns=$pk_inode_r .*:7200" $pk_dir/records)"
full=$(delta $pk_b Udp:RcvbufErrors)
assert_num "full socket: it was" "$full" -gt 0
assert_eq "full socket: refused" "$full" "$(pk_count $pk_b - 74 n)"
assert_eq "full socket: dropped" "$full" "$(grep -c " probe=70 .* netns=$pk_inode_b .*:7001" $pk_dir/records)"
# 74 tells which packet since 6.10.
assert_eq "full socket: way of a dropped one" "$pk_way 70.b" \
	"$(grep '>10.98.2.2:7001 .* 70.b$' $pk_dir/ways | sed -n '3s/.* way //p' | sed 's/ 74.b 70.b$/ 70.b/')"
assert_eq "datagrams: received or refused, by the kernel" $(($(delta $pk_b Udp:InDatagrams) + full)) \
	"$(grep -c " probe=64 .* netns=$pk_inode_b .* ip=17 .* > 10.98.2.2:700[01]" $pk_dir/records)"
assert_eq "IP packets that came, of both versions" $(($(delta $pk_b Ip:InReceives) + $(delta $pk_b Ip6InReceives))) \
	"$(pk_count $pk_b - 64 n)"
assert_eq "tcp: segments sent again" "$(delta $pk_a Tcp:RetransSegs)" "$(pk_count $pk_a - 71 n)"
assert_num "tcp: of 64 KiB" "$(grep -c " probe=64 .* netns=$pk_inode_b .* ip=6 .*:7002" $pk_dir/records)" -ge 4
grep '^probe' $pk_dir/out | sed 's/ seen=.* missed/ missed/; s/^/# /'
step "checked"

# ---- the raw_tp programs ------------------------------------------------------------------------------------

options='' selected="1 7300 1 7301"
[ -z "${vm_long:-}" ] || { options='--filter udp[2:2]=7301' selected="1 7301"; }
packet-smoke --records --fallback $options -- $pk_ip netns exec $pk_a sh -c 'exec >/dev/null
	packet-workload udp-send 10.98.2.2 7300 1 100; packet-workload udp-send 10.98.2.2 7301 1 100' >$pk_dir/out 2>$pk_dir/err
assert_eq "raw_tp: books balance" 0 $?
assert_eq "raw_tp: hooked by" raw_tp "$(pk_hook_of 67)"
assert_eq "raw_tp: no hook's program was refused" 0 "$(grep -c '^probe .*state=refused' $pk_dir/out)"
assert_eq "raw_tp: packets" "$selected" \
	"$(sed -n "s/^record .* probe=66 .* netns=$pk_inode_a .* > 10.98.2.2:\\(73[0-9]*\\).*/\\1/p" $pk_dir/out | sort | uniq -c | awk '{ printf "%s%s %s", n++ ? " " : "", $1, $2 }')"
assert_eq "raw_tp: way of one" "$pk_way 70.b" "$(pk_chain '> 10.98.2.2:7301')"
step "done"
kill $pk_pid_a $pk_pid_r $pk_pid_b
tap_end
