# shellcheck shell=sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154 # libraries and variables of the guest
#
# How the scripts begin that run in a machine with systemd: the installed programs, the unit and the empty disk.

. ./tap.sh
. ./diskstats.sh
. ./daemon.sh
IOTRACED=/usr/sbin/iotraced IOTRACECTL=/usr/bin/iotracectl
iot_state=/var/lib/iotraced iot_dir=/run/iot-test iot_sock=/run/iotraced/control.sock
mkdir -p "$iot_dir"
note "$(systemctl --version | head -n 1), kernel $(uname -r)"

load=''
for dir in /sys/block/nvme*n1; do
	read -r serial <"$dir/device/serial"
	[ "$serial" != load ] || load=${dir##*/}
done
[ -n "$load" ] || bail "disk" "not found"

# record_disk [KEY...]	the configuration: that disk alone, and these keys of the block stream
record_disk() {
	printf 'devices:\n  include: [%s]\nstreams:\n  block:\n    block_age: 50ms\n' "$load"
	[ $# = 0 ] || printf '    %s\n' "$@"
}
write() { dd if=/dev/zero of="/dev/$load" bs=4k count="$1" oflag=direct 2>/dev/null; }
property() { systemctl show -P "$1" iotraced; }
state() { echo "$(property ActiveState)/$(property SubState)"; }
unit_is() { [ "$(state)" = "$1" ]; }
new_one() { [ "$(property MainPID)" != "$pid" ] && unit_is active/running; }
captures() { find "$iot_state" -name 'block-*' -printf '%f\n' | cut -d- -f2 | sort -u | wc -l; }
# requests BEFORE	how many the disk had since that snapshot
requests() {
	_after=$(diskstats_snapshot "$load")
	echo $(($(diskstats_delta "$1" "$_after" reads) + $(diskstats_delta "$1" "$_after" writes)))
}
# At the end, for whoever reads what failed.
guest_end() {
	[ "$tap_n_not_ok" = 0 ] || journalctl -b -u iotraced --no-pager | tail -n 60 | sed 's/^/# /'
	tap_end
}
