#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 120
#
# Clients of every kind against a daemon that records: nobody can stop it from answering others or from
# collecting, and each gets one clear answer. Who may ask what; what iotracectl says and exits with.

set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
IOTRACED=${IOTRACED:-${B:-build}/iotraced} IOTRACECTL=${IOTRACECTL:-${B:-build}/iotracectl}
# shellcheck source=tests/lib/daemon.sh
. tests/lib/daemon.sh
abuse=${B:-build}/tests/tools/control-abuse

[ "$(id -u)" = 0 ] || { skip control "needs root"; tap_end; }
dir=$(mktemp -d /tmp/iot-control.XXXXXX) || exit 1
chmod 755 "$dir"
holders=()
loop=
# shellcheck disable=SC2317 # by the trap
cleanup() {
	[ -z "$iot_pid" ] || kill -KILL "$iot_pid" 2>/dev/null
	[ ${#holders[@]} = 0 ] || kill "${holders[@]}" 2>/dev/null
	[ -z "$loop" ] || losetup -d "$loop" 2>/dev/null
	rm -rf "$dir"
}
trap cleanup EXIT

iot_setup "$dir/run"
iot_start || bail "start"
control=io.iotraced.Control

# ---- the wire -----------------------------------------------------------------------------------------

"$abuse" "$iot_sock" call '{"method":"org.varlink.service.GetInfo"}' >"$dir/out"
assert_eq "GetInfo" iotraced "$(head -n 1 "$dir/out" | jq -r .parameters.product)"
"$abuse" "$iot_sock" call '{"method":"org.varlink.service.GetInterfaceDescription",
	"parameters":{"interface":"'$control'"}}' >"$dir/out"
assert_grep "GetInterfaceDescription" 'method Rotate' "$dir/out"
"$abuse" "$iot_sock" half "{\"method\":\"$control.Status\"}" >"$dir/out"
assert_eq "half-closed: answered, then closed" "collecting (closed)" \
	"$(head -n 1 "$dir/out" | jq -r .parameters.status.state) $(tail -n 1 "$dir/out")"
"$abuse" "$iot_sock" call "{\"method\":\"$control.Nonsense\"}" >"$dir/out"
assert_grep "unknown method" 'org.varlink.service.MethodNotFound' "$dir/out"

# A client that speaks only Python's standard library: the form is trivial to script.
if command -v python3 >/dev/null; then
	python3 - "$iot_sock" >"$dir/out" <<'END'
import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(json.dumps({"method": "io.iotraced.Control.Status"}).encode() + b"\0")
data = b""
while not data.endswith(b"\0"):
    data += s.recv(65536)
print(json.loads(data[:-1])["parameters"]["status"]["streams"][0]["name"])
END
	assert_eq "a foreign client" block "$(cat "$dir/out")"
fi

# ---- abuse --------------------------------------------------------------------------------------------

truncate -s 32M "$dir/disk"
loop=$(losetup -f --show "$dir/disk") || bail "loop device"
dd if=/dev/zero of="$loop" bs=4k count=200 oflag=direct status=none
ctl flush
records() { ctl --json status | jq -r '.streams[0].records'; }
begin=$(records)

"$abuse" "$iot_sock" garbage >"$dir/out"
assert_grep "bytes that are no text" 'Failed.*not a JSON object' "$dir/out"
assert_eq "are answered, then closed" "(closed)" "$(tail -n 1 "$dir/out")"
"$abuse" "$iot_sock" call 'GET / HTTP/1.0' >"$dir/out"
assert_grep "garbage is answered with one error" 'Failed.*not a JSON object' "$dir/out"
"$abuse" "$iot_sock" call '{"a":[[[[[[[[[[1]]]]]]]]]]}' >"$dir/out"
assert_grep "nested too deep" 'Failed.*deeper than 8' "$dir/out"
"$abuse" "$iot_sock" flood 10485760 >"$dir/out"
assert_grep "10 MB are cut off" 'larger than 64 KiB' "$dir/out"
assert_eq "and closed" "(closed)" "$(tail -n 1 "$dir/out")"

"$abuse" "$iot_sock" slow "{\"method\":\"$control.Status\"}" 20 40 >"$dir/slow" &
holders+=($!)
"$abuse" "$iot_sock" silent 43 40 >"$dir/silent" &
holders+=($!)
wait_for 5 grep -q holding "$dir/silent"
wait_for 5 grep -q holding "$dir/slow"
assert_status "63 idle clients: others are served" 0 timeout 2 "$IOTRACECTL" --socket "$iot_sock" status
"$abuse" "$iot_sock" silent 1 40 >"$dir/one" &
holders+=($!)
wait_for 5 grep -q holding "$dir/one"
timeout 2 "$IOTRACECTL" --socket "$iot_sock" status >"$dir/out" 2>&1
assert_eq "64 idle clients: the next is told" 1 $?
assert_grep "in words" 'too many clients' "$dir/out"
dd if=/dev/zero of="$loop" bs=4k count=300 oflag=direct status=none
assert_eq "the daemon lives" yes "$(kill -0 "$iot_pid" && echo yes)"
assert_num "and stays small, KiB" "$(awk '/^VmRSS/ { print $2 }' "/proc/$iot_pid/status")" -lt 65536
# The idle deadline is 30 s: then there is room again, with nobody having gone away.
sleep 25
if wait_for 12 ctl status; then
	ok "idle clients are closed after 30 s"
else
	not_ok "idle clients are closed after 30 s" "still too many clients"
fi
kill "${holders[@]}" 2>/dev/null
wait "${holders[@]}" 2>/dev/null
holders=()

ctl flush
assert_num "nothing of this stopped the recording" $(($(records) - begin)) -ge 300
ctl rotate nonsense >"$dir/rotate" 2>&1
assert_eq "rotate says which streams there are" "1 iotracectl: no stream 'nonsense'; this daemon records: block" \
	"$? $(cat "$dir/rotate")"
ctl rotate block >/dev/null
assert_eq "of the test's device, exactly" 500 \
	"$("$IOTRACECTL" --json --dev "${loop#/dev/}" cat "$iot_state" | jq -r 'select(.op == "write") | .id' | wc -l)"

# ---- who may ask ----------------------------------------------------------------------------------------

cp "$IOTRACECTL" "$dir/iotracectl"
nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$dir/iotracectl" --socket "$iot_sock" "$@"; }
nobody status >"$dir/out" 2>&1
assert_eq "a closed socket: denied" 4 $?
assert_grep "and said why" 'no permission to use' "$dir/out"
chmod 666 "$iot_sock"
assert_status "reads for whoever can open the socket" 0 nobody status
nobody rotate >"$dir/out" 2>&1
assert_eq "changes are not" 4 $?
assert_grep "and the reason is given" 'iotraced-admin' "$dir/out"
assert_status "flush neither" 4 nobody flush
before=$(find "$iot_state" -name '*.iot' | wc -l)
assert_status "root may" 0 ctl rotate
assert_eq "and it happened once" $((before + 1)) "$(find "$iot_state" -name '*.iot' | wc -l)"
assert_eq "and the next status counts it in the store" $((before + 1)) "$(ctl --json status | jq .store.segments)"

# ---- a state directory that is taken away ----------------------------------------------------------------

# A daemon of its own: what its directory held is gone.
(
	iot_setup "$dir/gone"
	iot_start || exit 9
	rm -rf "$iot_state"
	ctl flush >"$dir/flush.txt" 2>&1
	echo "$?" >>"$dir/flush.txt"
	ctl rotate >"$dir/rotate.txt" 2>&1
	echo "$?" >>"$dir/rotate.txt"
	iot_stop KILL
)
assert_grep "flush into a deleted directory fails" '^1$' "$dir/flush.txt"
assert_grep "and names the file" "^iotracectl: $dir/gone/state/block-[0-9a-f]{32}-0000000001.open: deleted while it is" "$dir/flush.txt"
assert_grep "rotate fails, too" '^1$' "$dir/rotate.txt"
assert_grep "and names the file" "^iotracectl: $dir/gone/state/block-[0-9a-f]{32}-000000000[12].(open|iot): No such file" "$dir/rotate.txt"

# Only the open segment: the next one is recorded well, and still the record is not whole.
(
	iot_setup "$dir/one-gone"
	iot_start || exit 9
	rm -f "$iot_state"/*.open
	# Told by itself: nothing was written, flushed or rotated since.
	wait_for 5 grep -q 'block: segment 1: deleted while it is written to' "$iot_log"
	ctl --json status >"$dir/deleted.json"
	ctl status >"$dir/deleted.txt"
	for _ in 1 2; do
		ctl rotate 2>&1
		echo "$?"
	done >"$dir/rotate.txt"
	ctl --json status >"$dir/status.json"
	ctl status >"$dir/status.txt"
	wait_for 5 grep -q 'segment 1 could not be sealed' "$iot_log"
	ctl --json status >"$dir/after.json"
	rm -f "$iot_state"/*.open
	iot_stop TERM
	cp "$iot_log" "$dir/one-gone.log"
)
assert_eq "status calls it unknown at once" "unknown true 0 degraded" \
	"$(jq -r '"\(.streams[0] | "\(.verdict) \(.segment.unlinked) \(.seal_errors)") \(.state)"' "$dir/deleted.json")"
assert_grep "and says what happened" '^ +: deleted while it is written to; what is in it is lost at its end$' "$dir/deleted.txt"
assert_eq "the log says so, once" 1 "$(grep -c 'error: block: segment 1: deleted while' "$dir/one-gone.log")"
assert_eq "of the next segment's file nothing is said" false "$(jq '.streams[0].segment.unlinked' "$dir/after.json")"
assert_eq "the last one, deleted too, is gone and not recovered" "1 0" \
	"$(grep -c 'the last segment could not be sealed: .*; its file is gone' "$dir/one-gone.log") $(
		grep -c 'is recovered at the next start' "$dir/one-gone.log")"
assert_eq "rotate without the file fails, the next does not" "1 0" "$(grep -x '[0-9]' "$dir/rotate.txt" | xargs)"
assert_eq "status does not call it complete" "unknown 1 degraded" \
	"$(jq -r '"\(.streams[0].verdict) \(.streams[0].seal_errors) \(.state)"' "$dir/status.json")"
assert_grep "status says why" '^ +Segments: 1 segment could not be sealed$' "$dir/status.txt"
assert_eq "and so does the log, once" 1 \
	"$(grep -c 'error: block: segment 1 could not be sealed: No such file.*its file is gone' "$dir/one-gone.log")"

# ---- iotracectl ---------------------------------------------------------------------------------------

assert_status "no daemon" 3 "$IOTRACECTL" --socket "$dir/none" status
assert_status "not even a directory" 3 "$IOTRACECTL" --socket "$dir/none/none" status
assert_status "a stray argument" 2 ctl status now
ctl probes >"$dir/probes.txt"
assert_eq "probes are in the order of their numbers" "$(ctl --json probes | jq .id | sort -n | tr '\n' ' ')" \
	"$(awk '$1 ~ /^[0-9]+$/ && $2 != "of" { print $1 }' "$dir/probes.txt" | tr '\n' ' ')"
assert_eq "each probe that is not attached is explained" \
	"$(ctl --json probes | jq -r 'select(.state != "attached") | .name' | sort)" \
	"$(sed -n '/probes attached; not attached:$/,/^$/s/^  \([a-z_]*\) (.*): ..*/\1/p' "$dir/probes.txt" | sort)"
ctl status >"$dir/status.txt"
assert_grep "status counts what is recorded" '^ +Store: .* sealed \(.*\), 1 being recorded; ' "$dir/status.txt"
assert_eq "status has no plural of one" 0 "$(grep -cE '(^|[^0-9.,])1 (segments|records|events)' "$dir/status.txt")"
ctl --json probes | jq -s -e 'map(select(.state == "attached")) | length >= 4' >/dev/null
assert_eq "probes as JSON lines" 0 $?
ctl --json rotate | jq -e '.segments | length == 1' >/dev/null
assert_eq "rotate as JSON" 0 $?

iot_stop TERM
assert_eq "SIGTERM exits 0" 0 $?
iot_proved "$iot_state"
assert_eq "verify" 0 $?

# What lies between two captures is in neither, whatever is proved of each.
assert_eq "one capture has nothing between" null \
	"$("$IOTRACECTL" --json verify "$iot_state" | jq .whole.between_captures_ns.block)"
iot_start
iot_stop TERM
"$IOTRACECTL" verify "$iot_state" >"$dir/verify.txt"
assert_grep "verify: of two captures" '^  of the block stream, .* lie between captures and are in none$' "$dir/verify.txt"
assert_num "and how long that was" "$("$IOTRACECTL" --json verify "$iot_state" |
	jq -r .whole.between_captures_ns.block)" -gt 0

# ---- a directory that another took the place of; requests that nobody records

printf 'streams:\n  block: {enabled: false}\n  packet: {enabled: true, filter: "udp port 9"}\n' >"$iot_dir/config.yaml"
iot_start || bail "start" "packets alone"
assert_eq "the directory is where its name leads" false "$(ctl --json status | jq .store.elsewhere)"
mv "$iot_state" "$iot_state.moved" && mkdir "$iot_state"
assert_eq "or it is not" true "$(ctl --json status | jq .store.elsewhere)"
assert_grep "said to people" 'another directory has this name now' <(ctl --color=never status)
ctl inflight >"$dir/inflight.txt" 2>&1
assert_eq "what is in flight is not known where requests are not recorded" "1 1" \
	"$? $(grep -c 'does not record requests' "$dir/inflight.txt")"
rmdir "$iot_state" && mv "$iot_state.moved" "$iot_state"
assert_eq "nor are they none" "null null" \
	"$(ctl --json top --interval 500ms --count 1 | jq -r '"\(.requests) \(.in_flight)"')"
assert_grep "top for people" '^I/O     not recorded' <(ctl --color=never top --interval 500ms --count 1)
iot_stop TERM
tap_end
