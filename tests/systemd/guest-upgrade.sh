# shellcheck shell=sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154 # libraries and variables of the guest
#
# Restarts under a real systemd that cannot go on with the capture: the unit fails, or the program that is started reads
# another layout. Either way what was recorded is sealed, to its last request. See tests/systemd/test-upgrade.sh.

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
printf 'devices:\n  include: [%s]\nstreams:\n  block:\n    block_age: 50ms\n    segment_age: 2s\n' "$load" >/etc/iotraced/conf.d/test.yaml

write() { dd if=/dev/zero of="/dev/$load" bs=4k count="$1" oflag=direct 2>/dev/null; }
property() { systemctl show -P "$1" iotraced; }
captures() { find "$iot_state" -name 'block-*' -printf '%f\n' | cut -d- -f2 | sort -u | wc -l; }

systemd-sysusers || bail "sysusers" "it failed"
systemctl daemon-reload
before=$(diskstats_snapshot "$load")
systemctl start iotraced || bail "start" "it failed"
write 200
# What is kept is dropped when the unit fails: so a daemon that cannot go on seals it.
echo 'streams: [' >/etc/iotraced/conf.d/wrong.yaml
assert_status "restart with a wrong configuration" 1 systemctl restart iotraced
rm /etc/iotraced/conf.d/wrong.yaml
assert_eq "which it says" 78 "$(property ExecMainStatus)"
systemctl reset-failed iotraced
assert_status "start with a good one" 0 systemctl start iotraced
write 200
# Another layout, as of another version: its predecessor's own program ends the capture. And back.
for i in 1 2; do
	cp -p "$IOTRACED" /run/iot-test/old
	mv iotraced-other-layout "$IOTRACED" && cp -p /run/iot-test/old iotraced-other-layout
	assert_status "restart into another layout $i" 0 systemctl restart iotraced
	assert_status "it answers after restart $i into another layout" 0 ctl status
	write 200
done
systemctl stop iotraced
assert_eq "captures: before, wrong configuration, layout, and back" 4 "$(captures)"
assert_eq "by their own programs" 2 "$(journalctl -u iotraced --no-pager -o cat | grep -c 'is ended by the program that recorded it')"
after=$(diskstats_snapshot "$load")
assert_eq "requests produced = stored" "$(($(diskstats_delta "$before" "$after" reads) + $(diskstats_delta "$before" "$after" writes)))" "$(iot_cat | wc -l)"
assert_status "every capture is complete" 0 iotracectl verify "$iot_state"
assert_eq "nothing is left open" "" "$(find "$iot_state" -name '*.open')"
assert_status "nothing of it failed" 0 test -z "$(systemctl --failed --no-legend --plain | grep iotraced)"
[ "$tap_n_not_ok" = 0 ] || journalctl -u iotraced --no-pager | tail -n 40 | sed 's/^/# /'
tap_end
