#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The packet stream's kernel side on this host, by tracepoints: traffic of every kind through three namespaces,
# compared with the kernel's own counters to the last packet, with plain loads and with the fallback,
# without loss and with a ring that is too small.
#
# timeout: 500

set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib/tap.sh
. "$here/../lib/tap.sh"
# shellcheck source=tests/lib/packet.sh
. "$here/../lib/packet.sh"
# shellcheck source=tests/lib/packet-scenarios.sh
. "$here/../lib/packet-scenarios.sh"

tools=$here/../../${B:-build}/tests/tools
case ${B:-build} in /*) tools=$B/tests/tools ;; esac
PATH=$tools:$PATH

[ "$(id -u)" = 0 ] || { skip packet-probes "needs root"; tap_end; }
[ -x "$tools/packet-smoke" ] || bail packet-probes "no packet-smoke: run make tests-bin"
command -v ip >/dev/null || { skip packet-probes "needs iproute2"; tap_end; }

pk_dir=$(mktemp -d "${TMPDIR:-/tmp}/iotraced-packet.XXXXXX") || bail packet-probes "no temporary directory"
cleanup() {
	pk_down
	rm -rf "$pk_dir"
}
trap cleanup EXIT
trap 'exit 143' INT TERM HUP
pk_up || bail packet-probes "cannot make namespaces"

pk_options='' pk_label=tp_btf
pk_scenarios
assert_eq "hooked by" tp_btf "$(pk_hook_of 64)"
pk_options='--ring-size 4K --stall'
pk_loss filed
pk_options='--ring-size 4K --stall --ledger 1K'
pk_loss 'with a full ledger'
pk_options='--ring-size 64K --flip-ms 50'
pk_loss 'across epochs'
pk_options=--fallback pk_label=raw_tp
pk_scenarios
assert_eq "hooked by" raw_tp "$(pk_hook_of 64)"
tap_end
