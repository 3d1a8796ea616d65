# shellcheck shell=sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154 # libraries and variables of the guest
#
# Restarts under a real systemd that cannot go on with the capture: the unit fails, or the program that is started reads
# another layout. Either way what was recorded is sealed, to its last request. See tests/systemd/test-upgrade.sh.

. ./guest-lib.sh
record_disk 'segment_age: 2s' >/etc/iotraced/conf.d/test.yaml
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
assert_eq "requests produced = stored" "$(requests "$before")" "$(iot_cat | wc -l)"
assert_status "every capture is complete" 0 iotracectl verify "$iot_state"
assert_eq "nothing is left open" "" "$(find "$iot_state" -name '*.open')"
assert_status "nothing of it failed" 0 test -z "$(systemctl --failed --no-legend --plain | grep iotraced)"
guest_end
