#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 300
#
# Exports, read by the real programs they are for: blkparse, btt and fio for blktrace, fio for its log, jq for JSON
# Lines and the sidecar, python's csv module where there is python. Counts must come out as they went in. No root.

set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib/tap.sh
. "$here/../lib/tap.sh"
# shellcheck source=tests/lib/ctl.sh
. "$here/../lib/ctl.sh"
ctl_setup export make-segment make-packets
make=$tools/make-segment

"$make" lossy segments=2 requests=3000 lost=21 >lossy.json || bail export "cannot make segments"
"$make" doubt segments=1 requests=100 lost=2 unattributed=5 >doubt.json || bail export "cannot make segments"
"$make" plain segments=2 requests=400 plain >plain.json || bail export "cannot make segments"

# ---- lines --------------------------------------------------------------------------------------------

"$ctl" cat --json lossy >cat.jsonl 2>/dev/null
assert_status "jsonl: export" 0 "$ctl" export --format=jsonl --output out.jsonl lossy
assert_eq "jsonl: the same as cat --json" "" "$(cmp out.jsonl cat.jsonl 2>&1)"
assert_eq "jsonl: to stdout too" "" "$("$ctl" export --format=jsonl lossy 2>err | cmp - cat.jsonl 2>&1)"
assert_grep "jsonl: with the verdict on stderr" 'lost: 2 segments, 6,000 requests, 21 lost' err
assert_eq "sidecar: verdict" "lost 10" "$(jq -r '.record | "\(.verdict) \(.code)"' out.jsonl.loss.json)"
assert_eq "sidecar: counts" "6000 21 86016" \
	"$(jq -r '"\(.requests) \(.losses_total.n) \(.losses_total.bytes)"' out.jsonl.loss.json)"
assert_eq "sidecar: losses of sealed segments are final" true "$(jq .losses_final out.jsonl.loss.json)"
"$make" unsealed segments=1 requests=100 open >/dev/null
"$ctl" export --format=jsonl --output unsealed.jsonl unsealed
assert_eq "sidecar: of an unsealed one they are not" "0 false" "$? $(jq .losses_final unsealed.jsonl.loss.json)"
assert_eq "sidecar: every loss with its owner" "21 21 nvme0n1 write block_rq_complete reserve-failed" \
	"$(jq -r '[(.losses | length), ([.losses[].id] | unique | length), (.losses[0] | .disk, .op, .probe, (.cause | gsub("_"; "-")))]
		| join(" ")' out.jsonl.loss.json)"
assert_status "jsonl: a lossy record is exported all the same" 0 "$ctl" export --format jsonl -o doubt.jsonl doubt
assert_eq "sidecar: windows of doubt" "unknown unattributed 5" \
	"$(jq -r '[.record.verdict, (.windows[0] | .kind, .n)] | map(tostring) | join(" ")' doubt.jsonl.loss.json)"

assert_status "csv: export" 0 "$ctl" export --format=csv --output=out.csv lossy
assert_eq "csv: header" "id,dev,disk,part,op,flags,sector,bytes,bytes_done,error,swap,start_ns" \
	"$(head -n 1 out.csv | cut -d, -f1-12)"
assert_eq "csv: has a sidecar" 6000 "$(jq .requests out.csv.loss.json)"
if command -v python3 >/dev/null; then
	# Row by row against cat --json, through a parser that is not ours.
	python3 - out.csv cat.jsonl >csv.result <<'PY'
import csv, json, sys
rows = list(csv.DictReader(open(sys.argv[1], newline='', encoding='utf-8')))
lines = [json.loads(l) for l in open(sys.argv[2], encoding='utf-8')]
def text(v):
    return '' if v is None else '|'.join(v) if isinstance(v, list) else str(v)
bad = [(k, r[k], l[k]) for r, l in zip(rows, lines) for k in l if r.get(k) != text(l[k])]
print(len(rows), len(lines), len(bad), len(lines[0]) == len(rows[0]), bad[:1])
PY
	assert_eq "csv: every field as in JSON" "6000 6000 0 True []" "$(cat csv.result)"
else
	skip "csv: every field as in JSON" "no python3"
fi

# ---- clickhouse, by the types that the schema says ----------------------------------------------------------

"$ctl" export --format=clickhouse lossy 2>/dev/null >rows
if command -v python3 >/dev/null; then
	python3 - "$here/../../packaging/clickhouse/schema.sql" rows cat.jsonl >rows.result <<'PY'
import json, re, struct, sys
table = re.search(r'requests_local \((.*?)\n\)', open(sys.argv[1]).read(), re.S).group(1)
columns = [line.split(None, 1) for line in table.replace(',\n', '\n').strip().splitlines()]
data, at = open(sys.argv[2], 'rb').read(), 0
numbers = {'UInt64': '<Q', 'UInt32': '<I', 'UInt16': '<H', 'Int32': '<i', 'DateTime': '<I'}
def length():
    global at
    n = shift = 0
    while True:
        byte = data[at]; at += 1
        n |= (byte & 127) << shift; shift += 7
        if byte < 128:
            return n
def value(kind):
    global at
    if kind.startswith('Nullable('):
        at += 1
        return None if data[at - 1] else value(kind[9:-1])
    if kind.startswith('Array('):
        return [value(kind[6:-1]) for _ in range(length())]
    if kind == 'String':
        n = length(); at += n
        return data[at - n:at].decode('utf-8')
    (v,) = struct.unpack_from(numbers[kind], data, at)
    at += struct.calcsize(numbers[kind])
    return v
rows = []
while at < len(data):
    rows.append({name: value(kind) for name, kind in columns})
lines = [json.loads(line) for line in open(sys.argv[3], encoding='utf-8')]
text = lambda v: v if v is None or isinstance(v, list) else str(v)
shared = [k for k in lines[0] if k in rows[0]]
bad = [(k, r[k], l[k]) for r, l in zip(rows, lines) for k in shared if text(r[k]) != text(l[k])]
bad += [r for r in rows if r['time'] != r['realtime_ns'] // 10**9 or not r['host']]
print(len(rows), len(lines), sorted(set(lines[0]) - set(shared)), bad[:1])
PY
	assert_eq "clickhouse: every column of the schema as in JSON" "6000 6000 ['submitter', 'swap_rule'] []" "$(cat rows.result)"
else
	skip "clickhouse: every column of the schema as in JSON" "no python3"
fi
assert_eq "duckdb: the recipe has every field of JSON" "$(head -n 1 cat.jsonl | jq -r 'keys[]' | sort)" \
	"$(sed -n '/^FROM read_json/,/^})/p' "$here/../../packaging/duckdb/requests.sql" | grep -o '[a-z_]*: .[A-Z]' | sed 's/:.*//' | sort)"

# ---- oracleGeneral, by its layout: u32 seconds, u64 object, u32 size, i64 next, packed ----------------------

"$make" short segments=2 requests=900 >/dev/null
assert_status "oracleGeneral: export" 0 "$ctl" export --format=oracleGeneral --output=short.oracle short
"$ctl" cat --json short 2>/dev/null >short.jsonl
# Objects in order; the next access to each, found by looking for it.
jq -rs 'map(select((.op == "read" or .op == "write" or .op == "zone_append") and .bytes > 0)
	| .at = (.start_ns // .insert_ns // .issue_ns | tonumber)) | sort_by(.at) | .[0].at as $first
	| .[] | "\((.at - $first) / 1000000000 | floor) \(.disk) \(.sector * 512 / 4096 | floor) \((.sector * 512 + .bytes - 1) / 4096 | floor)"' short.jsonl |
	awk '{ for (b = $3; b <= $4; b++) { n++; at[n] = $1; id[n] = $2 " " b } }
		END { for (i = n; i >= 1; i--) { next_of[i] = id[i] in seen ? seen[id[i]] : "never"; seen[id[i]] = i }
			for (i = 1; i <= n; i++) print at[i], id[i], next_of[i] }' >oracle.want
od -An -v -w24 -tu4 short.oracle | awk '
	{ device = int($3 / 65536); block = $3 % 65536 * 4294967296 + $2
		print $1, device, block, $4, $5 == 4294967295 && $6 == 4294967295 ? "never" : $6 * 4294967296 + $5 }' >oracle.got
assert_eq "oracleGeneral: every block in the order of asking, and its next access" "" \
	"$(awk '{ print $1, $3, 4096, $4 }' oracle.want >want.txt; awk '{ print $1, $3, $4, $5 }' oracle.got | cmp - want.txt 2>&1)"
assert_eq "oracleGeneral: a device, a number" "$(awk '{ print $2 }' oracle.want | sort | uniq -c | awk '{ print $1 }' | sort)" \
	"$(awk '{ print $2 }' oracle.got | sort | uniq -c | awk '{ print $1 }' | sort)"
assert_eq "oracleGeneral: some come again" true "$(awk '$4 != "never"' oracle.want | grep -q . && echo true)"

# ---- perfetto ---------------------------------------------------------------------------------------------

assert_status "perfetto: export" 0 "$ctl" export --format=perfetto --output=trace.json lossy
assert_eq "perfetto: the verdict" "record lost, 21 lost" "$(jq -r .otherData.verdict trace.json)"
# The members that the Trace Event Format asks for, by phase, and nothing else than these phases.
assert_eq "perfetto: every event is one" "" "$(jq -c '.traceEvents[] | select(
	((.pid | type) == "number" and (.tid | type) == "number" and (.name | type) == "string" and (
		(.ph == "M" and .name == "process_name" and (.args.name | type) == "string") or
		((.ts | type) == "number" and (.cat | type) == "string" and (
			((.ph == "b" or .ph == "e") and (.id | type) == "string") or
			(.ph == "i" and .s == "p"))))) | not)' trace.json | head -n 1)"
assert_eq "perfetto: spans that begin end" "[]" "$(jq -c '[.traceEvents[] | select(.ph == "b" or .ph == "e")]
	| group_by([.pid, .cat, .id, .name]) | map(select((map(.ph) != ["b", "e"]) or .[0].ts > .[1].ts)) | .[:1]' trace.json)"
jq -c '.traceEvents as $all | ($all | map(select(.ph == "M") | {"\(.pid)": .args.name}) | add) as $disks
	| $all | group_by(.id)[] | select(.[0].cat == "request") | map({"\(.ph) \(.name)": .}) | add | . as $s
	| (to_entries | map(select(.value.args)) | .[0].value) as $b
	| [$b.args.id, $disks["\($b.pid)"], $b.name, $b.args.sector, $b.args.bytes, ($b.ts * 1000 | round),
		($s["e \($b.name)"].ts * 1000 | round), ($s["b device"].ts // null | if . then . * 1000 | round else . end)]' \
	trace.json | sort >spans
jq -c '[.id, .disk, .op, (.sector | if . then tostring else . end), .bytes, (.start_ns // .insert_ns // .issue_ns | tonumber),
	(.complete_ns | tonumber), (.issue_last_ns | if . then tonumber else . end)]' cat.jsonl | sort >spans.want
assert_eq "perfetto: each request, to the nanosecond" "6000 " "$(wc -l <spans) $(cmp spans spans.want 2>&1)"
assert_eq "perfetto: each loss" "21 86016" \
	"$(jq -r '[.traceEvents[] | select(.name == "lost") | .args] | "\(map(.n | tonumber) | add) \(map(.bytes | tonumber) | add)"' trace.json)"
"$ctl" export --format=perfetto doubt 2>/dev/null >doubt.trace
assert_eq "perfetto: windows of doubt" 'unattributed block_rq_complete 5' \
	"$(jq -r '.traceEvents[] | select(.cat == "doubt" and .ph == "b") | "\(.name) \(.args.probe) \(.args.n)"' doubt.trace)"

# ---- every format -----------------------------------------------------------------------------------------

"$ctl" cat --json --op write,read --since @1795915410 --until @1795915415 lossy 2>/dev/null >asked
assert_eq "some are in the time" true "$([ -s asked ] && [ "$(wc -l <asked)" -lt 5000 ] && echo true)"
mapfile -t formats < <(ctl_formats pcapng segment)
assert_eq "those of the help" true "$([[ ${#formats[@]} -ge 9 && " ${formats[*]} " == *' csv jsonl blktrace '*' prometheus '* ]] && echo true)"
for format in "${formats[@]}"; do
	"$ctl" export "--format=$format" --strict "--output=strict.$format" lossy >/dev/null 2>&1
	assert_eq "$format: --strict refuses losses, and writes nothing" "1 " "$? $(ls -d "strict.$format"* 2>/dev/null)"
	assert_status "$format: a lossy record" 0 "$ctl" export "--format=$format" "--output=all.$format" lossy
	assert_eq "$format: its sidecar" "lost 21 true" \
		"$(jq -r '"\(.record.verdict) \(.losses_total.n) \(.losses_final)"' "all.$format.loss.json")"
	"$ctl" export "--format=$format" --op write,read --since @1795915410 --until @1795915415 "--output=some.$format" lossy 2>/dev/null
	assert_eq "$format: filters, and no more" "$(wc -l <asked) true" \
		"$(jq -r '"\(.requests) \(.filtered)"' "some.$format.loss.json")"
done

# Segments are rewritten, of either stream; pcapng is of packets.
head -c 32 /dev/urandom >key && chmod 600 key
mkdir pk
"$tools/make-packets" pk lost || bail export "cannot make packets"
strict() { # NAME INPUT ARGUMENT...
	local out=strict.$1 in=$2
	shift 2
	"$ctl" export --strict --output="$out" "$@" "$in" >/dev/null 2>&1
	echo "$? $(ls -d "$out"* 2>/dev/null)"
}
assert_eq "segment: --strict refuses losses, and writes nothing" "1 " "$(strict segment lossy --format=segment --anonymize=key)"
assert_eq "segment: and those of packets" "1 " "$(strict segment pk --format=segment --anonymize=key)"
assert_eq "pcapng: --strict refuses losses, and writes nothing" "1 " "$(strict pcapng pk --format=pcapng)"

# ---- progress ---------------------------------------------------------------------------------------------

# Whoever reads is slow to begin, so that the export lasts longer than it stays silent.
"$make" many segments=1 requests=70000 >/dev/null
mkfifo slow
{ sleep 0.5; cat; } <slow >/dev/null &
script -qec "'$ctl' export --format=jsonl --output=slow many" /dev/null >typescript </dev/null
assert_grep "a long export says on a terminal how far it is" '65,536 of 70,000 records \(93%\)' typescript
{ sleep 0.5; cat; } <slow >/dev/null &
"$ctl" export --format=jsonl --output=slow many 2>err
assert_eq "and nothing elsewhere" "" "$(cat err)"
wait

# ---- outputs that fail ------------------------------------------------------------------------------------

assert_status "strict: refuses losses" 1 "$ctl" export --format=csv --strict --output=strict.csv lossy
assert_eq "strict: writes nothing" "" "$(ls strict* 2>/dev/null)"
assert_status "strict: takes a complete record" 0 "$ctl" export --format=csv --strict --output=strict.csv plain
echo precious >kept.csv
"$ctl" export --format=csv --force --output=kept.csv missing.iot >/dev/null 2>&1
assert_eq "a failed export leaves the old file" precious "$(cat kept.csv)"
sums=$(sha256sum kept.csv kept.csv.loss.json 2>/dev/null)
"$ctl" export --format=csv --output=kept.csv plain 2>err
assert_eq "an export does not replace a file" "1 1" "$? $(grep -c 'kept.csv: exists already; --force replaces it' err)"
assert_eq "and leaves it as it was" "$sums" "$(sha256sum kept.csv kept.csv.loss.json 2>/dev/null)"
assert_status "an export replaces the old file with --force" 0 "$ctl" export --format=csv --force --output=kept.csv plain
: >beside.csv.loss.json
assert_status "nor a sidecar" 1 "$ctl" export --format=csv --output=beside.csv plain
assert_eq "a refused export leaves nothing" "beside.csv.loss.json" "$(find . -name 'beside*' -printf '%f\n')"
ln -s nowhere link.csv
assert_status "nor a symbolic link to nowhere" 1 "$ctl" export --format=csv --output=link.csv plain
assert_eq "whole" 801 "$(wc -l <kept.csv)"
[ -c /dev/full ] && {
	"$ctl" export --format=jsonl lossy >/dev/full 2>err
	assert_eq "a full disk" "1 1" "$? $(grep -c 'No space left on device' err)"
}
# A file size limit stands for a full disk, so that no file system has to be made.
(
	trap '' XFSZ
	ulimit -f 100
	"$ctl" export --format=jsonl --output=big.jsonl lossy 2>err
) ; assert_eq "a disk that fills up" 1 $?
assert_eq "leaves nothing behind" "" "$(ls big* 2>/dev/null)"
(
	trap '' XFSZ
	ulimit -f 100
	"$ctl" export --format=blktrace --output=big lossy 2>err
) ; assert_eq "a disk that fills up, blktrace" 1 $?
assert_eq "leaves nothing behind, blktrace" "" "$(ls -d big* 2>/dev/null)"
assert_status "no such directory" 1 "$ctl" export --format=csv --output=no/such.csv plain
assert_status "output is a directory" 1 "$ctl" export --format=csv --output=. plain
assert_status "blktrace to stdout" 2 "$ctl" export --format=blktrace plain
mkdir taken && touch taken/file
assert_status "blktrace into a directory with files" 1 "$ctl" export --format=blktrace --output=taken plain
assert_eq "which stay" taken/file "$(ls taken/*)"
mkdir empty
assert_status "blktrace into an empty directory" 0 "$ctl" export --format=blktrace --output=empty/ plain
assert_eq "with its sidecar" 800 "$(jq .requests empty.loss.json)"
"$make" other machine=1 segments=1 requests=10 >/dev/null
assert_status "blktrace of two hosts is refused" 1 "$ctl" export --format=blktrace --output=two other plain
assert_eq "no temporary files" "" "$(find . -name '*.tmp*')"

# ---- blktrace, read by blkparse ------------------------------------------------------------------------------

assert_status "blktrace: export" 0 "$ctl" export --format=blktrace --output=bt lossy
if ! command -v blkparse >/dev/null || ! command -v btt >/dev/null; then
	skip "blktrace: read by blkparse and btt" "not installed"
	skip "blktrace: replayed by fio" "no blkparse"
	tap_end
fi
assert_eq "blktrace: both disks, a file per CPU" "nvme0n1.blktrace.0 nvme0n1.blktrace.1 nvme0n1.blktrace.2 nvme0n1.blktrace.3 \
sdb.blktrace.0 sdb.blktrace.1 sdb.blktrace.2 sdb.blktrace.3" "$(find bt -type f -printf '%f\n' | sort | paste -sd " ")"
for disk in nvme0n1 sdb; do
	# the name comes last: it may hold blanks, and one holds a newline
	blkparse -D bt -i $disk -f '%a %d %S %n %p %e %T.%9t %C\n' >$disk.txt 2>$disk.err
	assert_eq "blkparse: $disk is read" "0 " "$? $(cat $disk.err)"
	assert_grep "blkparse: $disk has no gaps" 'Skips: 0 forward' $disk.txt
	jq -r "select(.disk == \"$disk\")" cat.jsonl >$disk.jsonl
	count() { awk -v a="$1" '$1 == a' $disk.txt | wc -l; }
	want() { jq -r "select($1) | .id" $disk.jsonl | wc -l; }
	passthrough='(.op | startswith("drv_"))'
	assert_eq "blkparse: $disk Q" "$(want "$passthrough | not")" "$(count Q)"
	assert_eq "blkparse: $disk G" "$(want "$passthrough | not")" "$(count G)"
	assert_eq "blkparse: $disk I" "$(want '.insert_ns != null')" "$(count I)"
	assert_eq "blkparse: $disk D" "$(($(want true) + $(want '.requeues > 0')))" "$(count D)"
	assert_eq "blkparse: $disk R" "$(want '.requeues > 0')" "$(count R)"
	assert_eq "blkparse: $disk C" "$(want true)" "$(count C)"
	assert_eq "blkparse: $disk reads, KiB" \
		"$(jq -s 'map(select(.op == "read" or .op == "drv_in") | .bytes) | add / 1024' $disk.jsonl)" \
		"$(awk '$1 == "C" && $2 ~ /^R/ { s += $4 } END { print s / 2 }' $disk.txt)"
	assert_eq "blkparse: $disk writes and write_zeroes, KiB" \
		"$(jq -s 'map(select(.op == "write" or .op == "write_zeroes") | .bytes) | add / 1024' $disk.jsonl)" \
		"$(awk '$1 == "C" && $2 ~ /^W/ { s += $4 } END { print s / 2 }' $disk.txt)"
	assert_eq "blkparse: $disk discards" "$(want '.op == "discard"')" \
		"$(awk '$1 == "C" && $2 ~ /^D/' $disk.txt | wc -l)"
	assert_eq "blkparse: $disk flushes" "$(want '.op == "flush"')" \
		"$(awk '$1 == "C" && $2 ~ /^F/' $disk.txt | wc -l)"
	assert_eq "blkparse: $disk sync" "$(want '.flags | index("sync")')" \
		"$(awk '$1 == "C" && $2 ~ /S/' $disk.txt | wc -l)"
	assert_eq "blkparse: $disk errors" "$(want '.error == -5')" \
		"$(awk '$1 == "C" && $6 == 65531' $disk.txt | wc -l)"
	assert_eq "blkparse: $disk in time order" "" \
		"$(awk '$1 ~ /^[QGIDRC]$/ { print $7 }' $disk.txt | sort -cn 2>&1)"
done
assert_eq "blkparse: names" "$(jq -r 'select((.op | startswith("drv_") | not) and .comm == "fio") | .pid' nvme0n1.jsonl | sort -u | tr '\n' ' ')" \
	"$(awk '$1 == "Q" && $8 == "fio" { print $5 }' nvme0n1.txt | sort -u | tr '\n' ' ')"
blkparse -D bt -i nvme0n1 -f '%a %z\n' 2>/dev/null | awk '$1 == "C" { print $2; exit }' >wall
first=$(jq -r '.realtime_ns' nvme0n1.jsonl | sort -n | head -n 1)
assert_eq "blkparse: wall-clock time of the first completion" "$(date -u -d "@${first%?????????}" +%T)" "$(cut -d. -f1 wall)"
blkparse -D bt -i nvme0n1 2>/dev/null | grep -a ' m ' >message
assert_grep "blkparse: the verdict is in the trace" 'iotraced [0-9.]+: record lost, 21 lost' message

# ---- btt -------------------------------------------------------------------------------------------------------

blkparse -q -O -D bt -i nvme0n1 -d merged.bin >/dev/null 2>blkparse.err
assert_eq "blkparse -d" "0 " "$? $(cat blkparse.err)"
btt -i merged.bin -o btt >/dev/null 2>btt.err
assert_eq "btt takes it without complaint" "0 " "$? $(cat btt.err)"
btt -i merged.bin >btt.txt 2>/dev/null
n=$(jq -r 'select(.bytes > 0 and (.op | startswith("drv_") | not)) | .id' nvme0n1.jsonl | wc -l)
assert_eq "btt: D2C of every request with data" "$n" "$(awk '$1 == "D2C" { print $5; exit }' btt.txt)"
assert_eq "btt: average D2C, microseconds" \
	"$(jq -rs 'map(select(.bytes > 0 and (.op | startswith("drv_") | not))
		| (.complete_ns | tonumber) - (.issue_last_ns | tonumber)) | add / length / 1000 | floor' nvme0n1.jsonl)" \
	"$(awk '$1 == "D2C" { printf "%d\n", $3 * 1000000; exit }' btt.txt)"

# ---- fio ---------------------------------------------------------------------------------------------------------

command -v fio >/dev/null || { skip "fio: replay" "not installed"; tap_end; }
"$ctl" export --format=blktrace --output=replay plain
blkparse -q -O -D replay -i nvme0n1 -d replay.bin >/dev/null 2>&1
truncate -s 512M target
fio --name=replay --read_iolog=replay.bin --replay_redirect="$dir/target" --replay_no_stall=1 --ioengine=psync \
	--allow_file_create=0 --output-format=json --output=fio.json 2>fio.err
assert_eq "fio: replays it without complaint" "0 0 " "$? $(jq '.jobs[0].error' fio.json) $(cat fio.err)"
assert_eq "fio: reads and writes" \
	"$(jq -r '"\(.ops["nvme0n1 read"].requests) \(.ops["nvme0n1 write"].requests)"' plain.json)" \
	"$(jq -r '.jobs[0] | "\(.read.total_ios) \(.write.total_ios)"' fio.json)"
assert_eq "fio: bytes" \
	"$(jq -r '"\(.ops["nvme0n1 read"].bytes) \(.ops["nvme0n1 write"].bytes)"' plain.json)" \
	"$(jq -r '.jobs[0] | "\(.read.io_bytes) \(.write.io_bytes)"' fio.json)"

assert_status "fio log: export" 0 "$ctl" export --format=fio --output=lossy.log lossy
jq -rs '{read: "read", write: "write", flush: "sync", discard: "trim", secure_erase: "trim", zone_append: "write"} as $names
	| map(select($names[.op]) | .at = (.start_ns // .insert_ns // .issue_ns | tonumber)) | sort_by(.at)
	| .[0].at as $first | .[] | "\((.at - $first) / 1000 | floor) /dev/\(.disk) \($names[.op]) " +
	if .op == "flush" then "0 0" else "\(.sector * 512) \(.bytes)" end' cat.jsonl >log.want
assert_eq "fio log: every request in the order of asking" "" "$(grep -Ev ' (add|open|close)$|^fio' lossy.log | cmp - log.want 2>&1)"
assert_eq "fio log: what it has no word for is counted" "$(wc -l <log.want) $((6000 - $(wc -l <log.want)))" \
	"$(jq -r '"\(.requests) \(.requests_left_out)"' lossy.log.loss.json)"
assert_status "fio log: of two hosts is refused" 1 "$ctl" export --format=fio --output=two.log other plain
TMPDIR=$dir/none assert_status "fio log: nowhere to sort" 1 "$ctl" export --format=fio --output=none.log plain
# What fio did, by its own log: direction, size, offset (fields 3, 4, 5).
"$ctl" export --format=fio --dev nvme0n1 --op read,write --output=replay.log plain
fio --name=log --read_iolog=replay.log --replay_redirect="$dir/target" --replay_no_stall=1 --ioengine=psync \
	--allow_file_create=0 --write_bw_log="$dir/done" --log_offset=1 --output-format=json --output=log.json 2>fio.err
assert_eq "fio log: replayed without complaint" "0 0 " "$? $(jq '.jobs[0].error' log.json) $(cat fio.err)"
assert_eq "fio log: sizes, offsets and order" "" "$(awk '$3 == "read" || $3 == "write" { print ($3 == "write"), $5, $4 }' replay.log >want.ops
	awk -F', *' '{ print $3, $4, $5 }' done_bw.1.log | cmp - want.ops 2>&1)"
# At its times: with stalls it takes as long as the trace did (and not much less).
us=$(awk 'END { print $1 }' replay.log)
fio --name=pace --read_iolog=replay.log --replay_redirect="$dir/target" --ioengine=psync --allow_file_create=0 \
	--replay_time_scale=100 --output-format=json --output=pace.json 2>/dev/null
assert_eq "fio log: microseconds" true "$(jq --argjson us "$us" '.jobs[0].job_runtime * 1000 >= $us * 0.9' pace.json)"

tap_end
