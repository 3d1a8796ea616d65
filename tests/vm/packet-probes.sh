#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154 # libraries and variables of the guest
#
# The packet stream's kernel side alone, on real kernels: which programs each takes and by which hook, and
# that what they count is what the kernel counts, to the last packet.
#
# Not a part of make check: emulated, it takes minutes a kernel, and it does not pass on 5.10 yet, where the way of a
# forwarded packet comes without net_dev_start_xmit and net_dev_xmit. tests/vm/run.sh 7 tests/vm/packet-probes.sh runs it.
#
# timeout: 900
# vm: --module veth --module 8021q --tool ip
# vm: --built tests/tools/packet-smoke --built tests/tools/packet-workload

. /tests/lib/guest-lib.sh
pk_ip=/usr/local/bin/ip
. /tests/lib/packet.sh
. /tests/lib/packet-scenarios.sh

mkdir -p /run /var && ln -s /run /var/run
pk_dir=/tmp/packet
mkdir -p $pk_dir
vm_modprobe veth || bail packet-probes "no veth"
vm_modprobe 8021q || bail packet-probes "no 8021q"
pk_up || bail packet-probes "cannot make namespaces"

# Emulated, each watch takes seconds: all kinds of traffic with LONG=1, else those that differ by kernel.
pk_options='' pk_label=tp_btf
if [ -n "${vm_long:-}" ]; then
	pk_scenarios
else
	pk_ping
	pk_full_socket
	pk_vlan
fi
assert_eq "hooked by" tp_btf "$(pk_hook_of 64)"
grep '^probe' $pk_dir/out | sed 's/ seen=.* missed/ missed/; s/^/# /'
if [ -n "${vm_long:-}" ]; then
	pk_options='--ring-size 4K --stall'
	pk_loss filed
	pk_options='--ring-size 4K --stall --ledger 1K'
	pk_loss 'with a full ledger'
	pk_options='--ring-size 64K --flip-ms 50'
	pk_loss 'across epochs'
fi
pk_options=--fallback pk_label=raw_tp
pk_ping
[ -z "${vm_long:-}" ] || pk_selection
assert_eq "hooked by" raw_tp "$(pk_hook_of 64)"
tap_end
