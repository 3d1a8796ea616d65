#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154,SC2086 # libraries and variables of the guest; names without blanks
#
# TC and XDP programs of our own (tests/bpf) at a device between two namespaces, observed by a daemon: what they let
# through, drop, send elsewhere, clone and rewrite; one is replaced while the daemon records; and a flood comes while the
# daemon does not get to run. check-programs.sh holds the record against what was sent.
#
# LONG=1 observes functions as well, so that a clone has a parent and ids are exact; it loads for a minute more.
#
# timeout: 300
# vm-kernels: 6.12
# vm: --module veth --module sch_ingress --module cls_bpf --tool ip --tool tc --check check-programs.sh
# vm: --built iotraced --built iotracectl --built tests/tools/packet-workload --built tests/bpf/net-programs.bpf.o

. /tests/lib/guest-lib.sh
pk_ip=/usr/local/bin/ip
. /tests/lib/packet.sh
. /tests/lib/packet-batch.sh

mkdir -p /run /var /results && ln -s /run /var/run
pk_dir=/tmp/packet
mkdir -p $pk_dir
for module in veth sch_ingress cls_bpf; do
	vm_modprobe $module || bail programs "no $module"
done
pk_device_of_rb='index 103' # where the programs send to
pk_up_quickly || bail programs "cannot make namespaces"
# Nobody listens there, and the kernel's word about that would take the next datagram's place.
$pk_ip -n $pk_b route del default
object=/usr/local/bin/net-programs.bpf.o
in_r() { pk_in $pk_r "$@"; }
if ! in_r tc qdisc add dev ra clsact || ! in_r tc filter add dev ra ingress pref 1 handle 1 bpf da obj $object sec tc-one; then
	bail programs "tc takes no program"
fi
in_r $pk_ip link set ra xdp obj $object sec xdp-one || bail programs "the device takes no XDP program"

iot_setup /results
functions=off
[ -z "${vm_long:-}" ] || functions=fentry
cat >$iot_dir/config.yaml <<-EOT
	streams:
	  block:
	    enabled: false
	  packet:
	    enabled: true
	    programs: true
	    functions: $functions
	    ring_size: 128KiB
EOT
iot_start || bail programs "no daemon"
note "$(cut -d ' ' -f 1 /proc/uptime) recording"

# observed PATTERN	a row of the probe table, as JSON
observed() { ctl --json probes | grep "\"name\":\"$1"; }
has_gone() { observed "$1" | grep -q '"gone":true'; }
is_observed() { observed "$1" | grep -q '"state":"attached"'; }
send() { pk_in $pk_a packet-workload udp-send 10.98.2.2 "$1" "$2" 100 >/dev/null; }

is_observed tc:decide_by_port_the_first#
assert_eq "the TC program is observed" 0 $?
is_observed xdp:frames_by_port#
assert_eq "the XDP program is observed" 0 $?
for port in 7100 7101 7102 7103 7104 7111 7112; do
	send $port 3
done
sleep 4
in_r tc filter replace dev ra ingress pref 1 handle 1 bpf da obj $object sec tc-two
assert_eq "the TC program is replaced" 0 $?
wait_for 60 is_observed tc:decide_by_port_the_second#
assert_eq "the new one is observed" 0 $?
wait_for 60 has_gone tc:decide_by_port_the_first#
assert_eq "the old one is let go" 0 $?
note "$(cut -d ' ' -f 1 /proc/uptime) replaced"
# Packets wait nowhere here, but a verdict allows for ten seconds between two probes.
sleep 11
send 7101 3
sleep 1
kill -STOP $iot_pid
send 7105 400
kill -CONT $iot_pid
sleep 1
send 7100 3
sleep 1
ctl --json probes >/results/probes.jsonl
iot_stop
assert_eq "the daemon ends" 0 $?
sed 's/^/# /' $iot_log
assert_eq "programs that are gone" 1 "$(grep -c '"gone":true' /results/probes.jsonl)"
printf 'netns_r=%s\nlong=%s\n' "$pk_inode_r" "${vm_long:-}" >/results/facts
note "$(cut -d ' ' -f 1 /proc/uptime) done"
tap_end
