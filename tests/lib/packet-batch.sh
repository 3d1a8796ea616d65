# shellcheck shell=sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2154,SC2086,SC2034 # of packet.sh and the test; names without blanks in them
#
# The namespaces of packet.sh made by few programs, IPv4 only, for emulated machines, where each takes long. Link
# addresses are ours, so neighbours are known beforehand.

# pk_batch DEV ADDRESS NEIGHBOUR LINK-ADDRESS
pk_batch() {
	cat <<-EOF
		link set $1 addrgenmode none
		addr add $2/24 dev $1
		link set $1 up
		neigh replace $3 lladdr $4 nud permanent dev $1
	EOF
}

pk_up_quickly() {
	cat >$pk_dir/root <<-EOF
		netns add $pk_a
		netns add $pk_r
		netns add $pk_b
		link add va netns $pk_a address 02:00:00:00:01:02 type veth peer name ra netns $pk_r address 02:00:00:00:01:01
		link add rb netns $pk_r ${pk_device_of_rb:-} address 02:00:00:00:02:01 type veth peer name vb netns $pk_b address 02:00:00:00:02:02
	EOF
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
		$pk_ip -n $pk_b -batch $pk_dir/b || return 1
	pk_in $pk_r sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
	pk_inode_a=$(stat -Lc %i /run/netns/$pk_a)
	pk_inode_r=$(stat -Lc %i /run/netns/$pk_r)
	pk_inode_b=$(stat -Lc %i /run/netns/$pk_b)
}
