#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154,SC2086 # libraries and variables of the guest; names without blanks
#
# The daemon on a kernel whose functions can be hooked: its segments say that ids are exact, and what is proved of a TCP
# transfer and of datagrams through three namespaces, to a socket that reads and to none, is `complete`; with
# tracepoints alone the same TCP packets are `merged`.
#
# timeout: 240
# vm-kernels: 6.12
# vm: --module veth --tool ip --tool jq --built iotraced --built iotracectl
# vm: --built tests/tools/packet-workload

. /tests/lib/guest-lib.sh
pk_ip=/usr/local/bin/ip
. /tests/lib/packet.sh
. /tests/lib/packet-batch.sh

mkdir -p /run /var && ln -s /run /var/run
pk_dir=/tmp/packet
mkdir -p $pk_dir
vm_modprobe veth || bail packet-identity "no veth"
pk_up_quickly || bail packet-identity "cannot make namespaces"

pk_traffic() {
	pk_in $pk_b packet-workload tcp-receive 10.98.2.2 7000 &
	_pk_receiver=$!
	pk_in $pk_b packet-workload udp-receive 10.98.2.2 7001 20 &
	_pk_receivers="$_pk_receiver $!"
	sleep 1
	pk_in $pk_a packet-workload tcp-send 10.98.2.2 7000 200K
	pk_in $pk_a packet-workload udp-send 10.98.2.2 7001 20 100
	pk_in $pk_a packet-workload udp-send 10.98.2.2 7002 5 100
	wait $_pk_receivers
	sleep 1
} >/dev/null

# pk_record FUNCTIONS
pk_record() {
	iot_setup /tmp/identity-$1
	cat >$iot_dir/config.yaml <<-EOF
		streams:
		  block: {enabled: false}
		  packet: {enabled: true, functions: $1}
	EOF
	iot_start || bail "$1" "no daemon"
	pk_traffic
	ctl --json probes >$iot_dir/probes.json
	assert_status "$1: the daemon ends" 0 iot_stop
	"$IOTRACECTL" --json replay $iot_state >$iot_dir/replay.json
	"$IOTRACECTL" replay $iot_state | sed 's/^/# /'
}

# pk_of EXPRESSION	of the capture
pk_of() { jq -r ".captures[0] | $1" $iot_dir/replay.json; }

pk_record fentry
assert_eq "fentry: identity" exact "$(pk_of .identity)"
assert_eq "fentry: no hook is refused" 0 "$(jq '[.. | objects | select(.state? == "refused")] | length' $iot_dir/probes.json)"
assert_eq "fentry: packets that may be several" 0 "$(pk_of '.verdicts.merged // 0')"
assert_eq "fentry: packets in doubt" 0 "$(pk_of '.verdicts.unknown // 0')"
# What was on its way when the capture began or ended is not: news of the namespaces.
assert_num "fentry: complete" "$(pk_of '.verdicts.complete // 0')" -ge 50
assert_num "fentry: complete, of a hundred" "$(pk_of '(.verdicts.complete // 0) * 100 / .packets | floor')" -ge 90
pk_tcp_ids=$("$IOTRACECTL" --json cat --flow='tcp :7000' $iot_state | jq -r .id | sort -u | wc -l)
assert_num "fentry: TCP packets" "$pk_tcp_ids" -ge 20

pk_record off
assert_eq "off: identity is not exact" false "$(pk_of '.identity == "exact"')"
assert_num "off: packets that may be several" "$(pk_of '.verdicts.merged // 0')" -ge 1
tap_end
