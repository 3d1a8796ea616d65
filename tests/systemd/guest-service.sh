# shellcheck shell=sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154 # libraries and variables of the guest
#
# The unit under a real systemd: started as installed, asked by whom it may be, reloaded, restarted, and killed
# again and again while numbered I/O goes on. See tests/systemd/test-service.sh.

. ./guest-lib.sh
record_disk 'segment_age: 2s' >/etc/iotraced/conf.d/test.yaml
answers() { ctl status; }

# ---- start ---------------------------------------------------------------------------------------------------

assert_status "the unit is as systemd wants it" 0 systemd-analyze verify --man=no /usr/lib/systemd/system/iotraced.service
# More kills than the unit bears in a minute.
mkdir -p /etc/systemd/system/iotraced.service.d
printf '[Unit]\nStartLimitIntervalSec=0\n' >/etc/systemd/system/iotraced.service.d/test.conf
systemd-sysusers || bail "sysusers" "it failed"
systemctl daemon-reload
before=$(diskstats_snapshot "$load")
assert_status "enable --now" 0 systemctl enable --now iotraced
assert_eq "it runs" active/running "$(state)"
assert_status "it answers at once: ready means ready" 0 ctl status
assert_eq "it runs as" iotraced "$(ps -o user= -p "$(property MainPID)" 2>/dev/null || stat -c %U "/proc/$(property MainPID)")"
assert_eq "with these capabilities only: bpf, perfmon, syslog" c400000000 \
	"$(sed -n 's/^CapEff:\t0*//p' "/proc/$(property MainPID)/status")"
assert_num "a status line" "$(property StatusText | wc -c)" -gt 10
assert_num "what a successor needs is kept" "$(property NFileDescriptorStore)" -gt 5
assert_eq "modes of state and run directory" "750 iotraced 755 iotraced" \
	"$(stat -c '%a %U' "$iot_state" /run/iotraced | xargs)"

# ---- who may ask -------------------------------------------------------------------------------------------------

# as GROUP COMMAND...	as nobody, in that group
as() {
	_group=$1
	shift
	setpriv --reuid nobody --regid nogroup --groups "$_group" "$@"
}
assert_status "a stranger is refused" 4 as nogroup iotracectl --socket "$iot_sock" status
assert_status "group iotraced may ask" 0 as iotraced iotracectl --socket "$iot_sock" status
assert_status "and change nothing" 4 as iotraced iotracectl --socket "$iot_sock" rotate
assert_status "group iotraced-admin may rotate as well" 0 as iotraced,iotraced-admin iotracectl --socket "$iot_sock" rotate

# ---- reload, restart ---------------------------------------------------------------------------------------------

pid=$(property MainPID)
write 300
assert_status "reload" 0 systemctl reload iotraced
assert_status "it runs on" 0 wait_for 20 unit_is active/running
assert_eq "as the same process" "$pid" "$(property MainPID)"
write 300
echo 'streams: [' >/etc/iotraced/conf.d/wrong.yaml
systemctl reload iotraced
assert_status "a wrong configuration changes nothing" 0 ctl status
rm /etc/iotraced/conf.d/wrong.yaml
write 100
assert_eq "one capture so far" 1 "$(captures)"

# ---- killed ------------------------------------------------------------------------------------------------------

(while [ ! -e /run/iot-test/enough ]; do write 500; done) &
writer=$!
kills=0
while [ "$kills" -lt "$(cat kills)" ]; do
	pid=$(property MainPID)
	kill -KILL "$pid"
	kills=$((kills + 1))
	# Every third one while it starts.
	[ $((kills % 3)) != 0 ] || { sleep 0.4; continue; }
	wait_for 30 new_one || bail "restart after kill $kills" "$(property ActiveState) $(property Result)"
done
wait_for 30 answers || bail "after $kills kills" "it does not answer"
touch /run/iot-test/enough
wait "$writer"
wait_for 20 diskstats_idle "$load"
note "$(property NRestarts) restarts by systemd"
assert_num "systemd restarted it" "$(property NRestarts)" -ge $(($(cat kills) / 2))
assert_eq "one capture still" 1 "$(captures)"

# ---- restarted, and upgraded to a file with the same layout ---------------------------------------------------------

rm /run/iot-test/enough
(while [ ! -e /run/iot-test/enough ]; do write 200; done) &
writer=$!
cp -p "$IOTRACED" /run/iot-test/new && echo >>/run/iot-test/new
for i in 1 2 3 4; do
	pid=$(property MainPID)
	[ "$i" != 3 ] || { cp -p /run/iot-test/new "$IOTRACED.new" && mv "$IOTRACED.new" "$IOTRACED"; }
	assert_status "restart $i" 0 systemctl restart iotraced
	assert_status "restart $i: it answers" 0 ctl status
	assert_num "restart $i: another process" "$(property MainPID)" -ne "$pid"
done
touch /run/iot-test/enough
wait "$writer"
wait_for 20 diskstats_idle "$load"
assert_eq "one capture after the restarts" 1 "$(captures)"
assert_eq "each restart left it, none sealed it" 4 "$(journalctl -u iotraced --no-pager -o cat | grep -c 'leaving the capture to a successor')"
assert_status "stop" 0 systemctl stop iotraced
want=$(requests "$before")
assert_eq "stopped without complaint" "success 0" "$(property Result) $(property ExecMainStatus)"
assert_eq "nothing is kept of what has ended" 0 "$(property NFileDescriptorStore)"
assert_status "the record is complete" 0 iotracectl verify "$iot_state"
iot_cat >/run/iot-test/records
assert_eq "requests produced = stored" "$want" "$(wc -l </run/iot-test/records)"
assert_eq "none twice" "" "$(sed 's/^{"id":"\([0-9]*\)".*/\1/' /run/iot-test/records | sort | uniq -d | head -n 3)"
assert_eq "nothing is left open" "" "$(find "$iot_state" -name '*.open')"
assert_status "nothing of it failed" 0 test -z "$(systemctl --failed --no-legend --plain | grep iotraced)"
guest_end
