#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 120
#
# Numbers for monitoring: the status of a daemon and sums over a recorded range, as OpenMetrics and as Prometheus' text,
# read by prometheus_client's parsers (python3-prometheus-client) and, where there is one, by promtool.

set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
B=$(realpath "${B:-build}")
IOTRACED=${IOTRACED:-$B/iotraced} IOTRACECTL=${IOTRACECTL:-$B/iotracectl}
# shellcheck source=tests/lib/daemon.sh
. tests/lib/daemon.sh

# The package's modules are those of Debian's own interpreter.
python=/usr/bin/python3
"$python" -c 'import prometheus_client' 2>/dev/null || { skip metrics "needs python3-prometheus-client"; tap_end; }
dir=$(mktemp -d /tmp/iot-metrics.XXXXXX) || exit 1
# shellcheck disable=SC2317 # by the trap
cleanup() {
	[ -z "$iot_pid" ] || kill -KILL "$iot_pid" 2>/dev/null
	rm -rf "$dir"
}
trap cleanup EXIT

# samples FORMAT FILE	"NAME LABEL=VALUE,... NUMBER" a line, sorted; fails if the parser does
samples() {
	"$python" - "$1" "$2" <<'PY' | sort
import sys
if sys.argv[1] == "openmetrics":
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
else:
    from prometheus_client.parser import text_string_to_metric_families as parse
for family in parse(open(sys.argv[2], encoding="utf-8").read()):
    kind = "counter" if family.samples and all(s.name.endswith("_total") for s in family.samples) else "gauge"
    # What is not known has a family without samples.
    assert (family.type == kind or not family.samples) and family.documentation, family
    for s in family.samples:
        print(s.name, ",".join(f"{k}={v}" for k, v in sorted(s.labels.items())), f"{s.value:.15g}")
PY
	return "${PIPESTATUS[0]}"
}
names() { awk '{ print $1, NF == 2 ? "" : $2 }' "$1"; }
value() { awk -v name="$2" -v labels="${3:-}" '$1 == name && (NF == 2 ? "" : $2) == labels { print $NF }' "$1"; }
# http METHOD TARGET BODY-FILE PROGRAM...	what metrics-http answers, by a client that knows HTTP: status, type, length if the body
# has it, what is left of the connection
http() {
	"$python" - "$@" <<'PY'
import http.client, socket, subprocess, sys
ours, its = socket.socketpair()
child = subprocess.Popen(["units/metrics-http.sh", *sys.argv[4:]], stdin=its, stdout=its)
its.close()
client = http.client.HTTPConnection("localhost")
client.sock = ours
client.request(sys.argv[1], sys.argv[2])
answer = client.getresponse()
body = answer.read()
open(sys.argv[3], "wb").write(body)
same = sys.argv[1] == "HEAD" or int(answer.headers["Content-Length"]) == len(body)
print(answer.status, answer.headers["Content-Type"], same, child.wait())
PY
}
openmetrics='application/openmetrics-text; version=1.0.0; charset=utf-8'
if command -v promtool >/dev/null; then
	promtool() { command promtool check metrics <"$1" 2>&1; }
else
	promtool() { :; }
fi

# ---- a range ------------------------------------------------------------------------------------------

ctl=$IOTRACECTL
"$B/tests/tools/make-segment" "$dir/lossy" segments=2 requests=3000 lost=21 >"$dir/lossy.json" || bail metrics "cannot make segments"
for format in openmetrics prometheus; do
	out=$dir/range.$format
	assert_status "$format: export" 0 "$ctl" export --format=$format -o "$out" "$dir/lossy"
	samples $format "$out" >"$out.txt"
	assert_eq "$format: a parser takes it" 0 $?
	assert_eq "$format: requests by device and operation" \
		"$(jq -r '.ops | to_entries[] | "\(.key) \(.value.requests)"' "$dir/lossy.json" | sort)" \
		"$(awk '$1 == "iotraced_range_requests" { match($2, /device=[^,]*/); d = substr($2, 8, RLENGTH - 7)
			match($2, /operation=[^,]*/); o = substr($2, RSTART + 10, RLENGTH - 10); n[d " " o] += $NF }
			END { for (k in n) print k, n[k] }' "$out.txt" | sort)"
	assert_eq "$format: errors, losses and their bytes" "$(jq -r '"\(.errors) \(.lost) \(.lost_bytes)"' "$dir/lossy.json")" \
		"$(awk '{ s[$1] += $NF } END { print s["iotraced_range_errors"], s["iotraced_range_lost_requests"], s["iotraced_range_lost_bytes"] }' "$out.txt")"
	assert_eq "$format: the verdict" "0 1 0 0 0 1" "$(for v in complete lost unknown torn corrupt; do
		value "$out.txt" iotraced_range_verdict verdict=$v; done | paste -sd ' ') $(value "$out.txt" iotraced_range_losses_final)"
	assert_eq "$format: the sidecar" "6000 lost" "$(jq -r '"\(.requests) \(.record.verdict)"' "$out.loss.json")"
	assert_status "$format: --strict refuses" 1 "$ctl" export --format=$format --strict -o "$dir/no" "$dir/lossy"
done
"$B/tests/tools/make-segment" "$dir/open" segments=2 requests=300 open >/dev/null
"$ctl" export --format=openmetrics -o "$dir/open.om" "$dir/open" 2>/dev/null
assert_eq "losses that nobody has counted yet are not 0" "0 0" \
	"$(sed -n 's/^iotraced_range_losses_final //p' "$dir/open.om") $(grep -cE '^iotraced_range_lost(_requests|_bytes)?[ {]' "$dir/open.om")"
assert_eq "both have the same numbers" "" "$(cmp "$dir/range.openmetrics.txt" "$dir/range.prometheus.txt" 2>&1)"
assert_eq "latencies as the report has them" \
	"$("$ctl" report --json "$dir/lossy" 2>/dev/null | jq '.devices[] | select(.disk == "sdb") | .ops[] | select(.op == "read") | .device_ns.p99')" \
	"$(value "$dir/range.prometheus.txt" iotraced_range_device_seconds 'device=sdb,host=host0,operation=read,percentile=99,swap=none' |
		awk '{ printf "%d\n", $1 * 1e9 + 0.5 }')"
"$B/tests/tools/make-segment" "$dir/two" segments=2 requests=1000 >/dev/null
"$B/tests/tools/make-segment" "$dir/two" segments=1 requests=1000 capture=1 later=1000 noswap unselected=5 selection="include nvme*" >/dev/null
for format in openmetrics prometheus; do
	"$ctl" export --format=$format -o "$dir/two.$format" "$dir/two" 2>/dev/null
	samples $format "$dir/two.$format" >"$dir/two.txt"
	assert_eq "$format: what the record is not about" "980 1 1" \
		"$(value "$dir/two.txt" iotraced_range_between_captures_seconds) $(value "$dir/two.txt" iotraced_range_selected devices=all
		) $(sed -n 's/^iotraced_range_selected devices=include nvme\* //p' "$dir/two.txt")"
	assert_eq "$format: what may be swap is not called none" "discard flush write_zeroes in unknown" \
		"$(awk '$1 == "iotraced_range_requests" && /swap=none/ { match($2, /operation=[^,]*/); print substr($2, RSTART + 10, RLENGTH - 10) }' \
			"$dir/two.txt" | grep -v drv_in | sort -u | paste -sd ' ') $(grep -o 'operation=read,swap=[a-z]*' "$dir/two.txt" |
			cut -d= -f3 | sort -u | paste -sd ' ')"
done
assert_eq "the sidecar says so, too" '["all","include nvme*"] {"block":"980000000000","packet":null}' \
	"$(jq -c .selections,.between_captures_ns "$dir/two.prometheus.loss.json" | paste -sd ' ')"
assert_eq "--op, and nothing else" "read" \
	"$("$ctl" export --format=prometheus --op read "$dir/lossy" 2>/dev/null | grep -o 'operation="[a-z_]*' | sort -u | cut -d'"' -f2)"
assert_eq "promtool has nothing to say" "" "$(promtool "$dir/range.prometheus")"
"$B/tests/tools/make-segment" "$dir/hostile" segments=1 requests=50 hostile >/dev/null
"$ctl" export --format=openmetrics "$dir/hostile" >"$dir/hostile.om" 2>/dev/null
assert_eq "names that mean to break it do not" true \
	"$(samples openmetrics "$dir/hostile.om" | grep -qF "onload='evil()'" && echo true)"

# ---- a daemon -----------------------------------------------------------------------------------------

out=$dir/iotraced.prom
"$ctl" --socket "$dir/none" status --format=prometheus -o "$out" 2>/dev/null
assert_eq "no daemon is a number, and an exit code" "3 0" "$? $(samples prometheus "$out" | awk '{ print $NF }')"
assert_status "but not if it could not be written" 1 "$ctl" --socket "$dir/none" status --format=prometheus -o "$dir/none/out"
assert_status "no such format" 2 "$ctl" status --format=csv
assert_status "an output without a format" 2 "$ctl" status -o "$out"
assert_eq "HTTP: no daemon is a number" "200 $openmetrics True 0, iotraced_up  0" \
	"$(http GET /metrics "$dir/body" "$ctl" --socket "$dir/none" 2>/dev/null), $(samples openmetrics "$dir/body")"
assert_eq "HTTP: one that cannot be asked is not" "503 text/plain; charset=utf-8 True 0" \
	"$(http GET /metrics "$dir/body" "$ctl" --no-such-option 2>/dev/null)"
for asked in "POST /metrics 405" "GET / 404" "GET /metrics/x 404" "HEAD /metrics 200" "GET /metrics?format=text 200"; do
	read -r method target code <<<"$asked"
	assert_eq "HTTP: $method $target" "$code" "$(http "$method" "$target" "$dir/body" "$ctl" --socket "$dir/none" 2>/dev/null | cut -d' ' -f1)"
done
for request in 'GET /metrics\r\n\r\n' 'nonsense\n\n'; do
	# shellcheck disable=SC2059 # with escapes
	assert_eq "HTTP: $request" "HTTP/1.1 400 Bad Request" "$(printf "$request" | units/metrics-http.sh false | head -n 1 | tr -d '\r')"
done
assert_eq "HTTP: who says nothing is answered nothing" 0 "$(units/metrics-http.sh false </dev/null; echo $?)"
[ "$(id -u)" = 0 ] || { skip "the status of a daemon" "needs root"; tap_end; }

iot_setup "$dir/run"
iot_start || bail "start"
"$ctl" --socket "$iot_sock" flush
before=$(stat -c %i "$out")
"$ctl" --socket "$iot_sock" --json status >"$dir/before.json"
for format in openmetrics prometheus; do
	assert_status "status: $format" 0 "$ctl" --socket "$iot_sock" status --format=$format -o "$out"
	samples $format "$out" >"$dir/status.$format"
	assert_eq "status: a parser takes $format" 0 $?
done
"$ctl" --socket "$iot_sock" --json status >"$dir/after.json"
assert_eq "HTTP: a daemon's" "200 $openmetrics True 0" "$(http GET /metrics "$dir/body" "$ctl" --socket "$iot_sock")"
samples openmetrics "$dir/body" >"$dir/status.http"
assert_eq "HTTP: a parser takes it" 0 $?
assert_eq "HTTP: the same numbers" "$(names "$dir/status.openmetrics")" "$(names "$dir/status.http")"
assert_eq "the file was replaced, whole, without --force" "no iotraced.prom" \
	"$([ "$before" = "$(stat -c %i "$out")" ] && echo yes || echo no) $(cd "$dir" && echo iotraced.prom*)"
assert_eq "promtool has nothing to say of it" "" "$(promtool "$out")"
assert_eq "both have the same numbers" "$(names "$dir/status.openmetrics")" "$(names "$dir/status.prometheus")"
assert_eq "it is up" 1 "$(value "$dir/status.prometheus" iotraced_up)"
# between METRIC LABELS FILTER	the metric lies between what the status had before and after
between() {
	local v
	v=$(value "$dir/status.prometheus" "$1" "$2")
	assert_eq "$1{$2} is that of the status" true "$(jq -n --slurpfile a "$dir/before.json" --slurpfile b "$dir/after.json" \
		--argjson v "${v:-null}" "(\$a[0] | $3) <= \$v and \$v <= (\$b[0] | $3)")"
}
between iotraced_records_total stream=block '.streams[0].records'
between iotraced_seen_total stream=block '.streams[0].seen'
between iotraced_written_bytes_total stream=block '.streams[0].bytes_written'
for cause in filed unattributed missed decode_failed output_failed; do
	between iotraced_lost_total "cause=$cause,stream=block" ".streams[0].lost.$cause"
done
between iotraced_ring_size_bytes stream=block '.streams[0].ring.size_bytes'
between iotraced_store_segments "" '.store.segments'
between iotraced_uptime_seconds "" '.uptime_ns | tonumber / 1e9'
assert_eq "one verdict is 1" 1 "$(awk '$1 == "iotraced_verdict" { s += $NF } END { print s }' "$dir/status.prometheus")"
# It may have changed meanwhile, and then only once: it does not get better.
verdicts=$(jq -rs 'map(.streams[0].verdict) | join(" ")' "$dir/before.json" "$dir/after.json")
is=$(awk '$1 == "iotraced_verdict" && $NF == 1 { sub(/.*verdict=/, "", $2); print $2 }' "$dir/status.prometheus")
assert_eq "and it is the status' ($verdicts)" "$is" "$(grep -xF -- "$is" <<<"$(tr ' ' '\n' <<<"$verdicts lost")" | head -n 1)"
# What is not known has no sample.
assert_eq "null is no 0" "$(jq '.store.unshipped_segments == null' "$dir/after.json")" \
	"$([ -z "$(value "$dir/status.prometheus" iotraced_store_unshipped_segments)" ] && echo true || echo false)"
kill -TERM "$iot_pid" && wait "$iot_pid"
iot_pid=

tap_end
