#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 180
#
# The daemon as a service, on this host: it starts, tells the service manager the truth, reloads, stops and
# seals; and everything that can be refused is refused with one clear message and its exit code.

set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
IOTRACED=${IOTRACED:-${B:-build}/iotraced} IOTRACECTL=${IOTRACECTL:-${B:-build}/iotracectl}
# shellcheck source=tests/lib/daemon.sh
. tests/lib/daemon.sh
tools=${B:-build}/tests/tools

[ "$(id -u)" = 0 ] || { skip service "needs root"; tap_end; }
dir=$(mktemp -d /tmp/iot-service.XXXXXX) || exit 1
chmod 755 "$dir"
listener=
held=
# shellcheck disable=SC2317 # by the trap
cleanup() {
	[ -z "$iot_pid" ] || kill -KILL "$iot_pid" 2>/dev/null
	[ -z "$listener" ] || kill "$listener" 2>/dev/null
	! mountpoint -q "$dir/mnt" || fsfreeze -u "$dir/mnt" 2>/dev/null
	[ -z "$held" ] || losetup -d "$held"
	! mountpoint -q "$dir/mnt" || umount "$dir/mnt"
	rm -rf "$dir"
}
trap cleanup EXIT

# refused NAME CODE PATTERN COMMAND...	must end by itself within 10 s, with one error line
refused() {
	local name=$1 code=$2 pattern=$3 got lines
	shift 3
	timeout 10 "$@" >"$dir/refused" 2>&1 </dev/null
	got=$?
	lines=$(grep -c 'error: ' "$dir/refused")
	if [ "$got" != "$code" ]; then
		not_ok "$name" "exit status $got instead of $code"
	elif ! grep -Eq -- "$pattern" "$dir/refused"; then
		not_ok "$name" "no '$pattern' in what it says"
	elif [ "$lines" != 1 ]; then
		not_ok "$name" "$lines error lines instead of one"
	else
		ok "$name"
		return
	fi
	sed 's/^/# /' "$dir/refused"
}

open_segments() { find "$iot_state" -name '*.open' | wc -l; }
sealed_segments() { find "$iot_state" -name '*.iot' | wc -l; }

# ---- command line and configuration ------------------------------------------------------------------

refused "unknown option" 64 -- "$IOTRACED" --nonsense
refused "unexpected argument" 64 start "$IOTRACED" start
refused "bad duration" 64 duration "$IOTRACED" --duration soon
assert_status "help" 0 "$IOTRACED" --help
assert_eq "-h is --help" "$("$IOTRACED" --help)" "$("$IOTRACED" -h)"
assert_eq "help fits 80 columns" "" "$("$IOTRACED" --help | grep -vE '^.{0,80}$')"
assert_status "version" 0 "$IOTRACED" --version
refused "missing configuration" 78 "$dir/none.yaml" "$IOTRACED" --config "$dir/none.yaml" --check-config
printf 'state_dir: %s\nstreams:\n  block:\n    ringsize: 16MiB\n' "$dir/s" >"$dir/bad.yaml"
refused "unknown key" 78 "bad.yaml:4:5: .*ring_size" "$IOTRACED" --config "$dir/bad.yaml" --check-config
refused "unknown key at start" 78 "bad.yaml:4:5" "$IOTRACED" --config "$dir/bad.yaml"
printf 'streams:\n  block:\n    enabled: false\n' >"$dir/off.yaml"
refused "nothing to record" 78 "streams.block.enabled" "$IOTRACED" --config "$dir/off.yaml" --check-config
refused "files may not be as large as segments" 78 'streams.block.segment_size.: 67108864 bytes, but .* 131072 here' \
	bash -c 'ulimit -f 128 && exec "$@"' - "$IOTRACED" --state-dir "$dir/small" --check-config
printf 'log_level: debug\n' >"$dir/good.yaml"
assert_status "good configuration" 0 "$IOTRACED" --config "$dir/good.yaml" --check-config
assert_status "probe check" 0 sh -c "'$IOTRACED' --probe-check >'$dir/probes'"
assert_grep "with the ring that the rate needs" '^block: [0-9]+ requests/s in the [0-9.]+ s that this took; a ring of 16384KiB holds 99864 records' "$dir/probes"

# ---- start, status, stop ------------------------------------------------------------------------------

iot_setup "$dir/a"
printf 'streams:\n  block:\n    segment_age: 10m\n' >"$iot_dir/config.yaml"
iot_start || bail "start"
ok "start"
assert_eq "one open segment" 1 "$(open_segments)"
ctl --json status >"$dir/status.json"
assert_eq "status is JSON" collecting "$(jq -r .state "$dir/status.json")"
assert_eq "status names the pid" "$iot_pid" "$(jq -r .pid "$dir/status.json")"
assert_eq "socket mode" 660 "$(stat -c %a "$iot_sock")"
ctl --color=never status >"$dir/status.txt"
assert_grep "status for people" '^ +Segment: block-' "$dir/status.txt"
assert_num "status fits one screen" "$(wc -l <"$dir/status.txt")" -le 24
assert_status "probes" 0 ctl probes
assert_status "inflight" 0 ctl inflight
ctl config >"$dir/config.txt"
assert_grep "config shows the override" "^state_dir: .*$iot_state.*--state-dir" "$dir/config.txt"
assert_grep "config shows the file" 'segment_age: 10m.*config.yaml' "$dir/config.txt"

name=$(ctl rotate)
assert_eq "rotate seals what it names" yes "$([ -n "$name" ] && [ -f "$iot_state/$name" ] && echo yes)"
assert_status "flush" 0 ctl flush
assert_status "rotate an unknown stream" 1 ctl rotate nonsense
assert_eq "rotate changed nothing then" 1 "$(sealed_segments)"

# ---- a second instance ----------------------------------------------------------------------------------

refused "second instance, same state directory" 75 "$iot_state" \
	"$IOTRACED" --state-dir "$iot_state" --socket "$dir/other.sock"
refused "second instance, same socket" 75 "$iot_sock" \
	"$IOTRACED" --state-dir "$dir/other" --socket "$iot_sock"
assert_eq "a failed start leaves no directory that it made" no "$([ -e "$dir/other" ] || echo no)"
assert_status "the first goes on" 0 ctl status

# ---- reload ---------------------------------------------------------------------------------------------

printf 'log_level: loud\n' >"$iot_dir/config.yaml"
kill -HUP "$iot_pid"
wait_for 5 grep -q 'running configuration stays' "$iot_log"
assert_grep "bad reload is refused with a place" 'config.yaml:1:12' "$iot_log"
ctl config >"$dir/config.txt"
assert_grep "the old configuration stays" 'segment_age: 10m' "$dir/config.txt"

printf 'streams:\n  block:\n    segment_age: 5m\n    ring_size: 1MiB\n' >"$iot_dir/config.yaml"
kill -HUP "$iot_pid"
wait_for 5 grep -q 'configuration taken from' "$iot_log"
ctl config >"$dir/config.txt"
assert_grep "good reload is taken" 'segment_age: 5m' "$dir/config.txt"
assert_grep "what needs a restart is named" 'wait for a restart: .*ring_size' "$iot_log"
assert_eq "and shown" streams.block.ring_size "$(ctl --json status | jq -r .config.restart_needed)"
assert_grep "and keeps its running value" 'ring_size: 16MiB' "$dir/config.txt"
assert_eq "reload alone seals nothing" 1 "$(sealed_segments)"
printf 'devices:\n  exclude: [loop*]\n' >"$iot_dir/config.yaml"
kill -HUP "$iot_pid"
wait_for 10 grep -q 'new filter is in effect' "$iot_log"
assert_eq "a changed device filter closes the segment" 2 "$(sealed_segments)"
ctl rotate >/dev/null
# The header stands in front of the file as plain bytes.
says_exclude() { head -c 8192 "$iot_state/${name%1.iot}$1.iot" | grep -aq 'exclude loop\*' && echo yes; }
assert_eq "the segment before does not promise it" "" "$(says_exclude 2)"
assert_eq "the segment after says what is recorded" yes "$(says_exclude 3)"

# A pattern that matches nothing is no error (the disk may come), but not silent.
printf 'devices:\n  include: [nosuchdisk*, loop*]\n  exclude: [loop99, loop1]\n' >"$iot_dir/config.yaml"
kill -HUP "$iot_pid"
wait_for 10 grep -q 'no disk here matches' "$iot_log"
assert_grep "a pattern that matches no disk is logged" 'no disk here matches: include nosuchdisk\*, exclude loop99 ' "$iot_log"
assert_eq "and shown" "include nosuchdisk*, exclude loop99" "$(ctl --json status | jq -r .config.unmatched_devices)"
ctl status >"$dir/status.txt"
assert_grep "to people, too" '^ +Devices: no disk matches: include nosuchdisk\*, exclude loop99$' "$dir/status.txt"

# A request in flight while the filter is changed to let its disk in: it ends in a segment that says the disk is
# selected. A loop device on a frozen file system keeps it for as long as needed.
hold() {
	truncate -s 48M "$dir/outer" && mkfs.ext4 -q -F "$dir/outer" && mkdir "$dir/mnt" || return 1
	mount -o loop "$dir/outer" "$dir/mnt" || return 1
	dd if=/dev/zero of="$dir/mnt/inner" bs=1M count=8 conv=fsync 2>/dev/null || return 1
	held=$(losetup -f --show "$dir/mnt/inner") || { held='' && return 1; }
}
ended() { awk -v d="${held#/dev/}" '$3 == d { print $4 + $8 }' /proc/diskstats; }
# shellcheck disable=SC2317 # by wait_for
in_flight() { [ "$(awk '{ print $1 + $2 }' "/sys/block/${held#/dev/}/inflight")" -ge 1 ]; }
# shellcheck disable=SC2317 # by wait_for
in_effect() { [ "$(grep -c 'new filter is in effect' "$iot_log")" -gt "$n_filters" ]; }
reload_filter() { # DEVICES
	n_filters=$(grep -c 'new filter is in effect' "$iot_log")
	printf 'devices: %s\n' "$1" >"$iot_dir/config.yaml"
	kill -HUP "$iot_pid"
	wait_for 10 in_effect
}
if hold; then
	# This kernel may run no program on a completion (see tests/live/test-exact.sh).
	for _ in 1 2 3; do
		reload_filter "{exclude: [${held#/dev/}]}"
		fsfreeze -f "$dir/mnt"
		dd if=/dev/zero of="$held" bs=4k count=1 oflag=direct 2>/dev/null &
		writer=$!
		wait_for 5 in_flight
		ctl inflight >"$dir/left-out.txt" 2>&1
		reload_filter "{include: [${held#/dev/}]}"
		before=$(ended)
		fsfreeze -u "$dir/mnt"
		wait "$writer"
		name=$(ctl rotate)
		expected=$(($(ended) - before))
		found=$("$IOTRACECTL" --json cat --dev "${held#/dev/}" "$iot_state/$name" | wc -l)
		[ "$expected" != "$found" ] || break
	done
	assert_grep "of a request that is left out the kernel's count tells" \
		"${held#/dev/}: the kernel counts 1 in flight, 0 are listed" "$dir/left-out.txt"
	assert_grep "and nothing else is claimed" '^nothing that is recorded is in flight$' "$dir/left-out.txt"
	assert_num "a request was in flight when its disk was selected again" "$expected" -ge 1
	assert_eq "and the segment that says so has it" "$expected" "$found"
else
	skip "in flight over a reload" "no file system on a loop device"
fi

# ---- stop -----------------------------------------------------------------------------------------------

iot_stop TERM
assert_eq "SIGTERM exits 0" 0 $?
assert_eq "nothing is left open" 0 "$(open_segments)"
assert_eq "the socket is gone" no "$([ -e "$iot_sock" ] || echo no)"
iot_proved "$iot_state"
assert_eq "verify after SIGTERM" 0 $?
assert_status "no daemon" 3 ctl status

# Asked to stop in the middle of rotations: what was begun ends, what was not does not, all of it is proved.
iot_setup "$dir/busy"
iot_start || bail "start for rotations"
rotations=()
for _ in 1 2 3 4 5; do
	ctl rotate >/dev/null 2>&1 &
	rotations+=($!)
done
sleep 0.03
iot_stop TERM
assert_eq "SIGTERM during rotations exits 0" 0 $?
wait "${rotations[@]}"
iot_proved "$iot_state"
assert_eq "and everything verifies" 0 $?

# And while segments turn by themselves, which nobody can ask to wait: a turn may begin at any instant of a stop.
stops=0
for _ in 1 2 3 4 5 6; do
	iot_setup "$dir/turning"
	rm -rf "$iot_state" && mkdir -p "$iot_state"
	printf 'streams: {block: {segment_age: 100ms}}\n' >"$iot_dir/config.yaml"
	iot_start || bail "start for turns"
	sleep "0.$((RANDOM % 300 + 100))"
	iot_stop TERM
	iot_proved "$iot_state" || break
	stops=$((stops + 1))
done
assert_eq "SIGTERM between turns leaves nothing unproved" 6 "$stops"

iot_setup "$dir/a"
rm -f "$iot_dir/config.yaml"
iot_start || bail "start again"
iot_stop INT
assert_eq "SIGINT exits 0" 0 $?
assert_status "--duration ends by itself" 0 timeout 20 "$IOTRACED" --state-dir "$iot_state" \
	--socket "$iot_sock" --duration 500ms

# ---- after SIGKILL --------------------------------------------------------------------------------------

iot_setup "$dir/killed"
iot_start || bail "start before SIGKILL"
ctl flush
live=$(find "$iot_state" -name '*.open')
"$IOTRACECTL" recover "$live" >"$dir/recover.txt" 2>&1
assert_eq "recover refuses the segment that is being written" \
	"1 iotracectl: $live: is being written by process $iot_pid; 'iotracectl rotate' seals it" "$? $(cat "$dir/recover.txt")"
assert_eq "and makes no file beside it" "1 0" "$(open_segments) $(sealed_segments)"
iot_stop KILL
assert_eq "SIGKILL leaves the segment and a dead socket" "1 yes" \
	"$(open_segments) $([ -S "$iot_sock" ] && echo yes)"
iot_start || bail "start after SIGKILL"
ok "a dead socket is replaced"
assert_grep "the torn segment is recovered" 'recovery: block-' "$iot_log"
iot_stop TERM
assert_eq "and sealed" "0 2" "$(open_segments) $(sealed_segments)"

# ---- the service manager --------------------------------------------------------------------------------

iot_setup "$dir/notify"
"$tools/notify-listen" "$dir/notify.sock" "$iot_state" >"$dir/notify.txt" &
listener=$!
wait_for 5 test -S "$dir/notify.sock"
NOTIFY_SOCKET=$dir/notify.sock WATCHDOG_USEC=1500000 iot_start || bail "start under a service manager"
dd if=/dev/zero of="$dir/notify/file" bs=64k count=64 oflag=dsync status=none
sleep 2.2
kill -HUP "$iot_pid"
wait_for 5 grep -q RELOADING=1 "$dir/notify.txt"
sleep 0.5
iot_stop TERM
assert_grep "READY after the first segment" '^open=1 READY=1 \| STATUS=block: ' "$dir/notify.txt"
assert_eq "READY once per start and reload" 2 "$(grep -c READY=1 "$dir/notify.txt")"
assert_grep "STATUS says something" \
	'STATUS=block: [0-9]+ events/s, [0-9]+ lost, [0-9]+ unattributed, segment 1 ' "$dir/notify.txt"
assert_grep "STATUS counts events" 'STATUS=block: [1-9][0-9]* events/s' "$dir/notify.txt"
assert_num "WATCHDOG is fed" "$(grep -c WATCHDOG=1 "$dir/notify.txt")" -ge 3
assert_grep "RELOADING carries the time" 'RELOADING=1 \| MONOTONIC_USEC=[0-9]+$' "$dir/notify.txt"
assert_grep "recovery asks for time" 'EXTEND_TIMEOUT_USEC=' "$dir/notify.txt"
assert_grep "STOPPING" 'STOPPING=1' "$dir/notify.txt"
# A process that hangs says nothing.
NOTIFY_SOCKET=$dir/notify.sock WATCHDOG_USEC=600000 iot_start || bail "start for the watchdog"
kill -STOP "$iot_pid"
sleep 0.2
before=$(grep -c WATCHDOG=1 "$dir/notify.txt")
sleep 1.2
assert_eq "no WATCHDOG from a process that hangs" "$before" "$(grep -c WATCHDOG=1 "$dir/notify.txt")"
kill -CONT "$iot_pid"
iot_stop TERM
kill "$listener"
listener=

# Under the journal lines carry their level; a socket handed over is used and left alone.
iot_setup "$dir/activated"
"$tools/control-abuse" "$iot_sock" activate "$(realpath "$IOTRACED")" --state-dir "$iot_state" \
	--socket "$dir/unused.sock" >>"$iot_log" 2>&1 &
iot_pid=$!
wait_for 10 test -S "$iot_sock"
assert_status "socket activation" 0 ctl status
assert_eq "the configured path is not used" no "$([ -e "$dir/unused.sock" ] || echo no)"
iot_stop TERM
assert_eq "the manager's socket stays" yes "$([ -S "$iot_sock" ] && echo yes)"
rm -f "$iot_sock"

# ---- what cannot work -------------------------------------------------------------------------------------

iot_setup "$dir/bad"
refused "state directory without a parent" 73 "$dir/no/such" \
	"$IOTRACED" --state-dir "$dir/no/such" --socket "$iot_sock"
touch "$dir/file"
refused "state directory that is a file" 73 "$dir/file" \
	"$IOTRACED" --state-dir "$dir/file" --socket "$iot_sock"
refused "socket in no directory" 73 "$dir/no/such" \
	"$IOTRACED" --state-dir "$iot_state" --socket "$dir/no/such/sock"
refused "socket in a directory that is missing" 73 "there is no directory $dir/nodir" \
	"$IOTRACED" --state-dir "$iot_state" --socket "$dir/nodir/sock"
assert_eq "which is not made" no "$([ -e "$dir/nodir" ] || echo no)"
refused "socket path that is a file" 73 "is no socket" \
	"$IOTRACED" --state-dir "$iot_state" --socket "$dir/file"
assert_eq "the file is still there" yes "$([ -f "$dir/file" ] && echo yes)"
mkdir "$dir/mnt"
cat >"$dir/mounted.sh" <<'END'
mount -t tmpfs -o "$1" none "$2" || exit 99
[ "$3" = full ] && dd if=/dev/zero of="$2/fill" bs=4k status=none 2>/dev/null
[ "$3" = ro ] && mount -o remount,ro "$2"
shift 3
exec "$@"
END
if unshare -m true 2>/dev/null; then
	refused "read-only state directory" 73 "$dir/mnt" unshare -m sh "$dir/mounted.sh" size=1m "$dir/mnt" \
		ro "$IOTRACED" --state-dir "$dir/mnt" --socket "$iot_sock"
	refused "full state directory" 73 "$dir/mnt" unshare -m sh "$dir/mounted.sh" \
		size=16k,nr_inodes=3 "$dir/mnt" full "$IOTRACED" --state-dir "$dir/mnt" --socket "$iot_sock"
else
	skip "read-only and full state directories" "cannot make a mount namespace"
fi

refused "no CAP_BPF" 77 "CAP_BPF" setpriv --bounding-set=-bpf,-perfmon,-sys_admin \
	"$IOTRACED" --state-dir "$iot_state" --socket "$iot_sock"
refused "probe check without CAP_PERFMON" 77 "CAP_PERFMON" \
	setpriv --bounding-set=-perfmon,-sys_admin "$IOTRACED" --probe-check
chown -R 65534:65534 "$iot_dir"
cp "$IOTRACED" "$IOTRACECTL" "$dir/"
refused "nobody, no capabilities" 77 "CAP_BPF" setpriv --reuid=65534 --regid=65534 --clear-groups \
	"$dir/iotraced" --state-dir "$iot_state" --socket "$iot_sock"
refused "nobody, a foreign state directory" 73 "$dir/a/state" setpriv --reuid=65534 --regid=65534 \
	--clear-groups "$dir/iotraced" --state-dir "$dir/a/state" --socket "$iot_sock"
assert_eq "no socket is left behind" no "$([ -e "$iot_sock" ] || echo no)"

# As a service runs: not root, two capabilities.
chown -R 65534:65534 "$dir/bad"
setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=+bpf,+perfmon --ambient-caps=+bpf,+perfmon \
	"$dir/iotraced" --state-dir "$iot_state" --socket "$iot_sock" >>"$iot_log" 2>&1 &
iot_pid=$!
if wait_for 10 ctl status; then
	ok "runs unprivileged with CAP_BPF and CAP_PERFMON"
	assert_status "and its own user may rotate" 0 setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$dir/iotracectl" --socket "$iot_sock" rotate
else
	not_ok "runs unprivileged with CAP_BPF and CAP_PERFMON" "$(tail -n 1 "$iot_log")"
fi
iot_stop TERM
assert_eq "and seals" 0 $?

tap_end
