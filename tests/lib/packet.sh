# shellcheck shell=sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2154,SC2086 # pk_dir is set by the test; names without blanks in them
#
# Three network namespaces in a row, the middle one forwarding, and what their own counters say about traffic
# through them; for tests on this host and in the virtual machines. POSIX shell, for busybox.
#
#	$pk_a va ---- ra $pk_r rb ---- vb $pk_b		10.98.1.2 .1 | 10.98.2.1 .2, fd98:1:: and fd98:2:: alike
#
# Neighbours are permanent, there are no link-local addresses and no offloads: nothing is sent but what a
# test sends, so that counters can be compared to the last packet.

# iproute2's, by its path where a shell has an applet of that name.
pk_ip=${pk_ip:-ip}

pk_a=iotpa$$ pk_r=iotpr$$ pk_b=iotpb$$

pk_in() {
	_pk_ns=$1
	shift
	$pk_ip netns exec "$_pk_ns" "$@"
}

# pk_link NS DEV ADDRESS4 ADDRESS6
pk_link() {
	$pk_ip -n "$1" link set "$2" addrgenmode none &&
		$pk_ip -n "$1" addr add "$3/24" dev "$2" &&
		$pk_ip -n "$1" addr add "$4/64" dev "$2" nodad &&
		$pk_ip -n "$1" link set "$2" up
}

pk_mac() { pk_in "$1" cat "/sys/class/net/$2/address"; }

# pk_neighbour NS DEV ADDRESS4 ADDRESS6 MAC
pk_neighbour() {
	$pk_ip -n "$1" neigh replace "$3" lladdr "$5" nud permanent dev "$2" &&
		$pk_ip -n "$1" neigh replace "$4" lladdr "$5" nud permanent dev "$2"
}

pk_up() {
	for _pk_n in $pk_a $pk_r $pk_b; do
		$pk_ip netns add "$_pk_n" && $pk_ip -n "$_pk_n" link set lo up || return 1
	done
	$pk_ip link add va netns $pk_a type veth peer name ra netns $pk_r || return 1
	$pk_ip link add rb netns $pk_r type veth peer name vb netns $pk_b || return 1
	pk_link $pk_a va 10.98.1.2 fd98:1::2 && pk_link $pk_r ra 10.98.1.1 fd98:1::1 &&
		pk_link $pk_r rb 10.98.2.1 fd98:2::1 && pk_link $pk_b vb 10.98.2.2 fd98:2::2 || return 1
	pk_neighbour $pk_a va 10.98.1.1 fd98:1::1 "$(pk_mac $pk_r ra)" &&
		pk_neighbour $pk_r ra 10.98.1.2 fd98:1::2 "$(pk_mac $pk_a va)" &&
		pk_neighbour $pk_r rb 10.98.2.2 fd98:2::2 "$(pk_mac $pk_b vb)" &&
		pk_neighbour $pk_b vb 10.98.2.1 fd98:2::1 "$(pk_mac $pk_r rb)" || return 1
	$pk_ip -n $pk_a route add default via 10.98.1.1 && $pk_ip -n $pk_b route add default via 10.98.2.1 &&
		$pk_ip -n $pk_a -6 route add default via fd98:1::1 && $pk_ip -n $pk_b -6 route add default via fd98:2::1 || return 1
	# Of the namespace, not of the machine.
	pk_in $pk_r sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding'
	# Asked once: an exec in a namespace is slow in an emulated machine.
	pk_inode_a=$(pk_in $pk_a stat -Lc %i /proc/self/ns/net)
	pk_inode_r=$(pk_in $pk_r stat -Lc %i /proc/self/ns/net)
	pk_inode_b=$(pk_in $pk_b stat -Lc %i /proc/self/ns/net)
	pk_if_va=$(pk_in $pk_a cat /sys/class/net/va/ifindex)
	pk_if_ra=$(pk_in $pk_r cat /sys/class/net/ra/ifindex)
	pk_if_rb=$(pk_in $pk_r cat /sys/class/net/rb/ifindex)
	pk_if_vb=$(pk_in $pk_b cat /sys/class/net/vb/ifindex)
	pk_settle
}

pk_down() {
	for _pk_n in $pk_a $pk_r $pk_b; do
		$pk_ip netns del "$_pk_n" 2>/dev/null
	done
}

# pk_counters NAMESPACE	of a process that lives there, if the test keeps one: a program less
pk_counters() {
	case $1 in
	"$pk_a") _pk_pid=${pk_pid_a:-} ;;
	"$pk_r") _pk_pid=${pk_pid_r:-} ;;
	*) _pk_pid=${pk_pid_b:-} ;;
	esac
	if [ -n "$_pk_pid" ]; then
		cat /proc/$_pk_pid/net/dev /proc/$_pk_pid/net/snmp /proc/$_pk_pid/net/snmp6
	else
		pk_in "$1" cat /proc/net/dev /proc/net/snmp /proc/net/snmp6
	fi
}

# What /proc/net/dev, snmp and snmp6 say, one "NAMESPACE KEY VALUE" a line; DEV:rx_packets, Udp:InDatagrams,
# Ip6InReceives.
pk_snapshot() {
	for _pk_n in $pk_a $pk_r $pk_b; do
		# shellcheck disable=SC2016 # awk's own
		pk_counters "$_pk_n" | awk -v ns="$_pk_n" '
			$1 == "Ip6InReceives" { print ns, $1, $2 }
			$1 ~ /:$/ && $1 !~ /^(Ip|Icmp|IcmpMsg|Tcp|Udp|UdpLite):$/ {
				print ns, $1 "rx_bytes", $2; print ns, $1 "rx_packets", $3
				print ns, $1 "tx_bytes", $10; print ns, $1 "tx_packets", $11; next
			}
			$1 ~ /^(Ip|Udp|Tcp|Icmp):$/ {
				if ($1 == last) for (i = 2; i <= NF; i++) print ns, $1 name[i], $i
				else for (i = 2; i <= NF; i++) name[i] = $i
				last = $1 == last ? "" : $1
			}'
	done
}

# pk_delta BEFORE AFTER NAMESPACE KEY
pk_delta() {
	awk -v ns="$3" -v key="$4" '$1 == ns && $2 == key { v[FILENAME] = $3 }
		END { print v[ARGV[2]] - v[ARGV[1]] }' "$1" "$2"
}

# Waits until nothing moves any more; the news that namespaces make when they come up takes a while.
pk_settle() {
	_pk_tries=100
	while [ "$_pk_tries" -gt 0 ]; do
		pk_snapshot >"$pk_dir/settle1"
		sleep 0.5
		pk_snapshot >"$pk_dir/settle2"
		cmp -s "$pk_dir/settle1" "$pk_dir/settle2" && return 0
		_pk_tries=$((_pk_tries - 1))
	done
	return 1
}

pk_inode() {
	case $1 in
	"$pk_a") echo "$pk_inode_a" ;;
	"$pk_r") echo "$pk_inode_r" ;;
	"$pk_b") echo "$pk_inode_b" ;;
	esac
}

pk_ifindex() {
	case $1 in
	va) echo "$pk_if_va" ;;
	ra) echo "$pk_if_ra" ;;
	rb) echo "$pk_if_rb" ;;
	vb) echo "$pk_if_vb" ;;
	esac
}

# pk_count NAMESPACE DEV|- PROBE FIELD	sums a field of packet-smoke's lines per device (-: all of them)
pk_count() {
	awk -v ns="netns=$(pk_inode "$1")" -v dev="$2" -v ifi="if=$(pk_ifindex "$2")" -v probe="probe=$3" -v field="$4=" '
		$1 == "device" && $2 == ns && $4 == probe && (dev == "-" || $3 == ifi) {
			for (i = 5; i <= NF; i++)
				if (index($i, field) == 1) n += substr($i, length(field) + 1)
		}
		END { print n + 0 }' "$pk_dir/out"
}

pk_sum() { sed -n "s/^probe .* $1=\\([0-9]*\\).*/\\1/p" "$pk_dir/out" | awk '{ n += $1 } END { print n + 0 }'; }
