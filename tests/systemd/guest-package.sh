# shellcheck shell=sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154,SC2317 # libraries and variables of the guest; functions called by name
#
# The packages under a real systemd, from installation to purge, in the parts that the file `parts` names. See
# tests/systemd/test-package.sh.

. ./tap.sh
. ./diskstats.sh
. ./daemon.sh
IOTRACED=/usr/sbin/iotraced IOTRACECTL=/usr/bin/iotracectl
iot_state=/var/lib/iotraced iot_dir=/run/iot-test iot_sock=/run/iotraced/control.sock
mkdir -p "$iot_dir"
# The machine's command line sends what systemd itself says to the console.
systemctl log-target journal-or-kmsg
note "$(systemctl --version | head -n 1), kernel $(uname -r)"
load=''
for dir in /sys/block/nvme*n1; do
	read -r serial <"$dir/device/serial"
	[ "$serial" != load ] || load=${dir##*/}
done
[ -n "$load" ] || bail "disk" "not found"

write() { dd if=/dev/zero of="/dev/$load" bs=4k count="$1" oflag=direct 2>/dev/null; }
property() { systemctl show -P "$1" iotraced; }
state() { echo "$(property ActiveState)/$(property SubState)"; }
unit_is() { [ "$(state)" = "$1" ]; }
new_one() { [ "$(property MainPID)" != "$pid" ] && unit_is active/running; }
installed() { dpkg-query -W -f '${db:Status-Status} ' iotraced iotraced-tools 2>/dev/null; }
# journal FILTER	of the unit's lines of this boot, as JSON, what jq makes of it
journal() {
	journalctl --sync
	journalctl -b -u iotraced -o json --no-pager | jq -r "$1"
}
# event NAME JQ	the last line with that event's id: what jq makes of it
event() {
	journalctl --sync
	_id=$(awk -v name="$1" '$2 == name { gsub("\"", "", $3); print $3 }' ./log-ids.h)
	journalctl -b -o json --no-pager MESSAGE_ID="$_id" | tail -n 1 | jq -r "$2"
}

# ---- install -------------------------------------------------------------------------------------------------

installation() {
	assert_status "install" 0 dpkg -i ./iotraced.deb ./iotraced-tools.deb
	assert_eq "both are configured" "installed installed " "$(installed)"
	assert_eq "it does not start by itself" "inactive/dead disabled" "$(state) $(systemctl is-enabled iotraced)"
	assert_eq "user and groups are there" "iotraced iotraced iotraced-admin" \
		"$(getent passwd iotraced | cut -d: -f1) $(getent group iotraced | cut -d: -f1) $(getent group iotraced-admin | cut -d: -f1)"
	assert_eq "systemd-analyze verify is quiet" "" "$(systemd-analyze verify --man=no iotraced.service 2>&1)"
	security=$(systemd-analyze security --no-pager iotraced.service | sed -n 's/.*exposure level for [^:]*: \([0-9.]*\).*/\1/p')
	note "systemd-analyze security: $security"
	assert_status "exposure of at most 1.0" 0 awk -v s="$security" 'BEGIN { exit !(s != "" && s <= 1.0) }'
	assert_eq "the journal knows our messages" "$(grep -c '^#define LOG_ID' ./log-ids.h)" \
		"$(journalctl --list-catalog --no-pager | grep -c 'iotraced')"
}

# ---- enable --now: ready means collecting ----------------------------------------------------------------------

enabling() {
	printf 'devices:\n  include: [%s]\nstreams:\n  block:\n    block_age: 50ms\n' "$load" >/etc/iotraced/conf.d/test.yaml
	assert_status "enable --now" 0 systemctl enable --now iotraced
	before=$(diskstats_snapshot "$load")
	write 40 # nothing between ready and this
	assert_eq "it runs" "active/running enabled" "$(state) $(systemctl is-enabled iotraced)"
	assert_status "flush" 0 iotracectl flush
	after=$(diskstats_snapshot "$load")
	assert_eq "everything since ready is in the record" \
		"$(($(diskstats_delta "$before" "$after" reads) + $(diskstats_delta "$before" "$after" writes)))" \
		"$(iotracectl --json cat | wc -l)"
	assert_eq "journal: recording, with its capture" "6 $(iotracectl --json segments | jq -r '.[0].capture') iotraced" \
		"$(event LOG_ID_RECORDING '"\(.PRIORITY) \(.IOTRACED_CAPTURE) \(.SYSLOG_IDENTIFIER)"')"
	assert_ne "and says what that means" "" "$(journalctl -b -u iotraced -x --no-pager | grep 'The recorder has begun')"
}

# ---- who may ask -------------------------------------------------------------------------------------------------

asking() {
	if ! { useradd -M member && usermod -a -G iotraced member && useradd -M stranger; }; then
		bail "users" "they could not be made"
	fi
	as() {
		_user=$1
		shift
		setpriv --reuid "$_user" --regid "$_user" --init-groups "$@"
	}
	assert_status "a member of the group may ask" 0 as member iotracectl status
	assert_status "and read what was recorded" 0 as member iotracectl --json cat
	assert_status "but not rotate" 4 as member iotracectl rotate
	assert_status "others may not ask" 4 as stranger iotracectl status
	assert_status "nor read" 4 as stranger iotracectl cat
}

# ---- reload ------------------------------------------------------------------------------------------------------

reloading() {
	pid=$(property MainPID)
	echo 'retention: {max_size: 512MiB}' >/etc/iotraced/conf.d/good.yaml
	assert_status "reload" 0 systemctl reload iotraced
	wait_for 20 unit_is active/running || bail "reload" "$(state)"
	limit() { iotracectl config | sed -n 's/^ *max_size: \([^ ]*\).*/\1/p'; }
	limit_is() { [ "$(limit)" = "$1" ]; }
	assert_status "the new configuration is in effect" 0 wait_for 20 limit_is 512MiB
	assert_eq "journal: reloaded" 6 "$(event LOG_ID_RELOADED .PRIORITY)"
	printf 'retention:\n  max_size: many\n' >/etc/iotraced/conf.d/good.yaml
	systemctl reload iotraced
	refused() { [ "$(event LOG_ID_RELOAD_REFUSED .PRIORITY)" = 3 ]; }
	assert_status "journal: a bad configuration is refused" 0 wait_for 20 refused
	assert_ne "with its place" "" "$(event LOG_ID_RELOAD_REFUSED .MESSAGE | grep 'good.yaml:2:')"
	assert_eq "the old one stays in effect, in the same process" "512MiB $pid" "$(limit) $(property MainPID)"
	rm /etc/iotraced/conf.d/good.yaml
}

# ---- watchdog ------------------------------------------------------------------------------------------------------

watchdog() {
	mkdir -p /etc/systemd/system/iotraced.service.d
	printf '[Service]\nWatchdogSec=9\n' >/etc/systemd/system/iotraced.service.d/test.conf
	systemctl daemon-reload
	assert_status "restart" 0 systemctl restart iotraced
	pid=$(property MainPID)
	kill -STOP "$pid"
	assert_status "the watchdog replaces one that stands still" 0 wait_for 90 new_one
	assert_ne "journal: by systemd's watchdog" "" "$(journal '.MESSAGE // "" | tostring | select(startswith("iotraced.service: Watchdog timeout"))' | head -n 1)"
	write 10
	rm -r /etc/systemd/system/iotraced.service.d
	systemctl daemon-reload
}

# ---- upgrade -------------------------------------------------------------------------------------------------------

upgrading() {
	echo '# changed by the operator' >>/etc/iotraced/iotraced.yaml
	pid=$(property MainPID)
	assert_status "upgrade" 0 dpkg -i ./iotraced-next.deb ./iotraced-tools-next.deb
	assert_status "it runs on, restarted" 0 wait_for 30 new_one
	assert_eq "an upgrade keeps the operator's configuration" 1 "$(grep -c 'changed by the operator' /etc/iotraced/iotraced.yaml)"
	assert_eq "and what was enabled" enabled "$(systemctl is-enabled iotraced)"
	write 10
}

# ---- the archive ---------------------------------------------------------------------------------------------------

archiving() {
	mkdir /srv/archive && chown iotraced-archive /srv/archive
	echo 'ARCHIVE=/srv/archive' >/etc/iotraced/archive.conf
	mkdir -p /etc/systemd/system/iotraced-archive.service.d
	printf '[Service]\nReadWritePaths=/srv/archive\n' >/etc/systemd/system/iotraced-archive.service.d/test.conf
	systemctl daemon-reload
	assert_eq "systemd-analyze verify is quiet about the archive" "" \
		"$(systemd-analyze verify --man=no iotraced-archive.service iotraced-archive.path iotraced-archive.timer 2>&1)"
	note "systemd-analyze security, archive: $(systemd-analyze security --no-pager iotraced-archive.service | sed -n 's/.*exposure level for [^:]*: \([0-9.]*\).*/\1/p')"
	assert_status "the archive is enabled" 0 systemctl enable --now iotraced-archive.path iotraced-archive.timer
	write 10
	assert_status "a seal" 0 iotracectl rotate
	all_shipped() { [ "$(iotracectl --json segments | jq -c '[.[] | select(.state == "sealed")] | [length > 0, all(.shipped)]')" = '[true,true]' ]; }
	assert_status "what is sealed is shipped, and said to be" 0 wait_for 60 all_shipped
	assert_eq "by its own user" iotraced-archive "$(find /srv/archive -name '*.iot' -printf '%u\n' | sort -u)"
	assert_eq "as it is here" "$(md5sum <"$(find /var/lib/iotraced -name '*.iot' | sort | head -n 1)")" \
		"$(md5sum <"$(find /srv/archive -name '*.iot' | sort -t / -k 7 | head -n 1)")"
	# Without the path, what was sealed meanwhile is the timer's, which starts the same service.
	systemctl stop iotraced-archive.path
	write 10
	iotracectl rotate >/dev/null
	assert_eq "the timer waits" "active/waiting iotraced-archive.service" \
		"$(systemctl show -P ActiveState iotraced-archive.timer)/$(systemctl show -P SubState iotraced-archive.timer) $(systemctl show -P Unit iotraced-archive.timer)"
	assert_status "a later run" 0 systemctl start iotraced-archive.service
	assert_status "ships what was sealed meanwhile" 0 wait_for 60 all_shipped
	systemctl disable --now iotraced-archive.timer iotraced-archive.path 2>/dev/null
}

# ---- stop, disable -------------------------------------------------------------------------------------------------

stopping() {
	assert_status "stop" 0 systemctl stop iotraced
	assert_eq "without complaint" "success 0 inactive/dead" "$(property Result) $(property ExecMainStatus) $(state)"
	assert_eq "everything is sealed" "" "$(find "$iot_state" -name '*.open')"
	assert_eq "by the stop" shutdown "$(iotracectl --json segments | jq -r 'max_by(.last_ns).reason')"
	assert_eq "journal: stopping" 6 "$(event LOG_ID_STOPPING .PRIORITY)"
	assert_status "the whole record is complete" 0 iotracectl verify
	systemctl disable iotraced 2>/dev/null
	assert_eq "disabled" disabled "$(systemctl is-enabled iotraced)"
	dpkg -i ./iotraced.deb ./iotraced-tools.deb >/dev/null 2>&1
	assert_eq "an installation starts nothing that was stopped" "inactive/dead disabled" "$(state) $(systemctl is-enabled iotraced)"
}

# ---- remove, purge -------------------------------------------------------------------------------------------------

removing() {
	systemctl start iotraced || bail "start" "it failed"
	assert_status "remove while it runs" 0 dpkg -r iotraced
	assert_eq "it was stopped" "" "$(cat /proc/[0-9]*/comm 2>/dev/null | grep -x iotraced)"
	assert_eq "the record stays, sealed" "yes 0" \
		"$([ -n "$(find "$iot_state" -name '*.iot')" ] && echo yes) $(find "$iot_state" -name '*.open' | wc -l)"
	assert_eq "the configuration stays" yes "$([ -e /etc/iotraced/iotraced.yaml ] && echo yes)"
	assert_status "what stays can be read" 0 iotracectl verify
	assert_status "purge" 0 dpkg -P iotraced iotraced-tools
	assert_eq "nothing is left" "" "$(find /etc /var/lib /usr /run -path /var/lib/dpkg -prune -o -name '*iotrace*' -print)"
}

while read -r part; do
	"$part" </dev/null
done <parts
[ "$tap_n_not_ok" = 0 ] || journalctl -b -u iotraced --no-pager | tail -n 60 | sed 's/^/# /'
tap_end
