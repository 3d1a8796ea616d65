# shellcheck shell=sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2119,SC2154,SC2317 # libraries and variables of the guest; functions called by name
#
# The packages under a real systemd, from installation to purge, in the parts that the file `parts` names. See
# tests/systemd/test-package.sh.

. ./guest-lib.sh
# The machine's command line sends what systemd itself says to the console.
systemctl log-target journal-or-kmsg
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
	record_disk >/etc/iotraced/conf.d/test.yaml
	assert_status "enable --now" 0 systemctl enable --now iotraced
	before=$(diskstats_snapshot "$load")
	write 40 # nothing between ready and this
	assert_eq "it runs" "active/running enabled" "$(state) $(systemctl is-enabled iotraced)"
	assert_eq "it sees the addresses of /proc/kallsyms" "" "$(journal '.MESSAGE // "" | tostring | select(contains("shows no addresses"))')"
	assert_status "flush" 0 iotracectl flush
	assert_eq "everything since ready is in the record" "$(requests "$before")" "$(iotracectl --json cat | wc -l)"
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

# ---- numbers for monitoring ------------------------------------------------------------------------------------------

metrics() {
	timer=iotraced-metrics.timer socket=iotraced-metrics-http.socket
	assert_eq "numbers for monitoring are off" "disabled disabled" "$(systemctl is-enabled $timer $socket | xargs)"
	assert_eq "systemd-analyze verify is quiet about them" "" \
		"$(systemd-analyze verify --man=no iotraced-metrics.service iotraced-metrics-http@.service $timer $socket 2>&1)"
	note "systemd-analyze security: $(systemd-analyze security --no-pager iotraced-metrics.service iotraced-metrics-http@x.service |
		sed -n 's/.*exposure level for \([^:]*\): \([0-9.]*\).*/\1 \2/p' | xargs)"

	# Enabled before node_exporter is there: it waits for the directory.
	assert_status "they can be enabled" 0 systemctl enable --now $timer $socket
	assert_eq "one socket, of this host only" 0100007F:2645 "$(awk '$4 == "0A" && $2 ~ /:2645$/ { print $2 }' /proc/net/tcp /proc/net/tcp6)"
	# ask COMMAND...	what it gets that asks as that user does, without CRs
	ask() {
		"$@" bash -c 'exec 3<>/dev/tcp/127.0.0.1/9797 && printf "GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n" >&3 && cat <&3' | tr -d '\r'
	}
	head_of() { sed '/^$/q' "$1"; }
	body_of() { sed '1,/^$/d' "$1"; }
	names() { sed -n 's/^\(iotraced[^ ]*\) .*/\1/p'; }
	ask setpriv --reuid nobody --regid nogroup --clear-groups >$iot_dir/asked
	assert_eq "HTTP: whoever is on this host is answered" "HTTP/1.1 200 OK application/openmetrics-text; version=1.0.0; charset=utf-8" \
		"$(head_of $iot_dir/asked | sed -n '1p; s/^Content-Type: //p' | xargs)"
	assert_eq "HTTP: what was promised came" "$(head_of $iot_dir/asked | sed -n 's/^Content-Length: //p') # EOF" \
		"$(body_of $iot_dir/asked | wc -c) $(tail -n 1 $iot_dir/asked)"
	assert_eq "HTTP: of the daemon, which is up" "iotraced_up 1" "$(grep '^iotraced_up ' $iot_dir/asked)"
	iotracectl status --format=openmetrics | names >$iot_dir/names
	assert_eq "HTTP: the numbers that status has" "$(cat $iot_dir/names)" "$(body_of $iot_dir/asked | names)"
	# Who connects and is silent does not keep others out, nor its place for ever.
	bash -c 'exec 3<>/dev/tcp/127.0.0.1/9797 && cat <&3; echo gone >'$iot_dir/silent &
	silent=$!
	sleep 1
	assert_eq "HTTP: beside one that is silent" "iotraced_up 1" "$(ask env | grep '^iotraced_up ')"
	assert_status "HTTP: which is sent away" 0 wait_for 40 test -e $iot_dir/silent
	wait "$silent"
	answering() { systemctl list-units --no-legend --plain 'iotraced-metrics-http@*' | wc -l; }
	none_answers() { [ "$(answering)" = 0 ]; }
	assert_status "HTTP: no process is left" 0 wait_for 20 none_answers

	directory=/var/lib/prometheus/node-exporter
	mkdir -p $directory && chown nobody /var/lib/prometheus $directory
	file=$directory/iotraced.prom
	assert_status "the timer writes a file as soon as there is a directory" 0 wait_for 60 test -s $file
	assert_eq "for others to read" "644 root" "$(stat -c '%a %U' $file)"
	assert_eq "with the same numbers" "$(cat $iot_dir/names)" "$(names <$file)"
	assert_eq "of the daemon, which is up" "iotraced_up 1" "$(grep '^iotraced_up ' $file)"
	# Another file each time, so that a reader has one or the other; nothing else there at its end.
	inode=$(stat -c %i $file)
	replaced() { [ "$(stat -c %i "$file")" != "$inode" ]; }
	exec 4<$file
	assert_status "and again" 0 wait_for 60 replaced
	assert_eq "who had it open has it whole" "$(cat $iot_dir/names)" "$(names <&4)"
	exec 4<&-
	systemctl stop $timer
	assert_eq "nothing else is there" "$file" "$(find $directory -type f)"

	systemctl stop iotraced
	assert_status "without a daemon" 0 systemctl start iotraced-metrics.service
	assert_eq "both say so" "iotraced_up 0 iotraced_up 0" "$(grep '^iotraced_up ' $file) $(ask env | grep '^iotraced_up ')"
	journalctl -b --no-pager -o cat -u iotraced-metrics.service -u 'iotraced-metrics-http@*' >$iot_dir/said
	assert_eq "the journal has: twice that no daemon answered, once that one was silent, nothing of all the rest" "2 1 0" \
		"$(grep -c 'no daemon answers' $iot_dir/said) $(grep -c "result 'timeout'" $iot_dir/said) $(grep -vc -e 'no daemon answers' \
			-e "result 'timeout'" -e 'runtime time limit' $iot_dir/said)"
	sed 's/^/# /' $iot_dir/said
	rm $file && mkdir $file
	assert_status "what cannot be written is a failure" 1 systemctl start iotraced-metrics.service
	rmdir $file && systemctl reset-failed iotraced-metrics.service
	assert_status "they can be disabled" 0 systemctl disable --now $timer $socket
	assert_eq "then nobody listens" "" "$(awk '$4 == "0A" && $2 ~ /:2645$/' /proc/net/tcp /proc/net/tcp6)"
	assert_eq "and nothing has failed" "" "$(systemctl --failed --no-legend --plain | grep iotraced)"
	systemctl start iotraced
}

# ---- packets ---------------------------------------------------------------------------------------------------------

packets() {
	mkdir -p /etc/systemd/system/iotraced.service.d
	cp /usr/share/doc/iotraced/examples/packets.conf /etc/systemd/system/iotraced.service.d/ || bail "packets.conf" "it is in no package"
	printf 'streams:\n  packet:\n    enabled: true\n    functions: fentry\n' >/etc/iotraced/conf.d/packets.yaml
	# For the self-test: finit_module(2), as the image has no modprobe, which the kernel would start.
	perl -e 'open(my $f, "<", "veth.ko") or die; my $none = ""; syscall(313, fileno($f), $none, 0) == 0 or die "$!\n"' ||
		bail "veth" "it cannot be loaded"
	systemctl daemon-reload
	assert_eq "systemd-analyze verify is quiet with packets.conf" "" "$(systemd-analyze verify --man=no iotraced.service 2>&1)"
	note "systemd-analyze security, packets.conf: $(systemd-analyze security --no-pager iotraced.service | sed -n 's/.*exposure level for [^:]*: \([0-9.]*\).*/\1/p')"
	begun=$(date +%s)
	assert_status "restart with the packet stream" 0 systemctl restart iotraced
	note "it took $(($(date +%s) - begun)) s"
	assert_eq "it runs" "active/running 0" "$(state) $(property NRestarts)"
	note "$(property StatusText)"
	for i in 1 2 3 4 5; do
		bash -c 'echo test >/dev/udp/127.0.0.1/4321'
	done
	# Names are written as a segment is sealed.
	assert_status "a seal" 0 iotracectl rotate
	assert_eq "each packet is recorded, by its interface's name" "5 lo" \
		"$(iotracectl --json cat | jq -sr '[.[] | select(.dport == 4321 and .probe == "net_dev_queue")] | "\(length) \([.[].iface] | unique | join(" "))"')"
	assert_eq "the self-test ran: an id is one packet" exact "$(iotracectl --json status | jq -r '.streams[] | select(.name == "packet") | .identity')"
	assert_status "stop" 0 systemctl stop iotraced
	assert_eq "without complaint" "success 0 inactive/dead" "$(property Result) $(property ExecMainStatus) $(state)"
	assert_status "the record of both is complete" 0 iotracectl verify
	rm -r /etc/systemd/system/iotraced.service.d /etc/iotraced/conf.d/packets.yaml
	systemctl daemon-reload
}

# ---- the package's own test (autopkgtest) ------------------------------------------------------------------------------

own_test() {
	systemctl stop iotraced
	rm /etc/iotraced/conf.d/test.yaml
	assert_status "the package's own test of the recorder" 0 sh ./recorder
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
guest_end
