#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 300
#
# Traces of other tools as segments: what export wrote comes back equal, as blktrace's files and as the text that the real
# blkparse makes of them; a real perf's record of a loop device is what /proc/diskstats counted (root); nothing that is
# imported is more than unknown; what is broken is one error, and leaves nothing. No root but for perf.

set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib/tap.sh
. "$here/../lib/tap.sh"
# shellcheck source=tests/lib/ctl.sh
. "$here/../lib/ctl.sh"
# shellcheck source=tests/lib/loop.sh
. "$here/../lib/loop.sh"
# shellcheck source=tests/lib/diskstats.sh
. "$here/../lib/diskstats.sh"
perf=
if [ "$(id -u)" = 0 ] && command -v perf >/dev/null && [ "${1:-}" != inside ]; then
	# tracefs for perf, in a mount namespace of its own.
	exec unshare --mount --propagation private "$0" inside
fi
if [ "${1:-}" = inside ]; then
	mount -t tracefs trace /sys/kernel/tracing 2>/dev/null
	[ ! -e /sys/kernel/tracing/events/block/block_rq_issue/format ] || perf=1
fi
ctl_setup import make-segment peak-rss
make=$tools/make-segment

"$make" plain segments=3 requests=30000 plain >/dev/null || bail import "cannot make segments"
"$make" all segments=2 requests=3000 >/dev/null || bail import "cannot make segments"
"$ctl" export --format=blktrace --output bt plain || bail import "cannot export"
"$ctl" export --format=blktrace --output all-bt all || bail import "cannot export"

# Whose a trace is, nobody tells: two are not of one machine, nor beside each other in one boot.
for m in 1 2; do
	"$make" of$m segments=1 requests=300 plain machine=$m capture=$m boot=$m later=$((m * 1000)) >/dev/null
	"$ctl" export --format=blktrace --output of$m-bt of$m && "$ctl" import -o of$m-i of$m-bt 2>/dev/null
done
assert_eq "traces of two machines are two hosts'" "2 2" "$("$ctl" report --json of1-i of2-i 2>/dev/null | jq -r '"\(.hosts) \(.devices | length)"')"
assert_eq "and nothing is counted twice" 0 "$("$ctl" verify of1-i of2-i 2>&1 | grep -c 'counted twice')"

# figures DIRECTORY JQ	what report counts of each device and operation: exact numbers, times included
figures() {
	"$ctl" report --json "$1" 2>/dev/null | jq -c "$2"
}
# shellcheck disable=SC2016 # jq's own
all='.devices[] | .disk as $disk | .ops[] | [$disk, .op, .requests, .bytes, .bytes_done, .errors, .requeues, .queue_ns, .device_ns]'
# Of requests with a beginning and an end that blktrace has words for; merges, and who was not told, are not in the export.
lines='select((.op == "read" or .op == "write") and .start_ns != null and (.flags | index("no-start") | not))
	| [.disk, .op, .sector, .bytes, .bytes_done, .error, .pid, .requeues > 0, .realtime_ns, (.complete_ns | tonumber) - (.start_ns | tonumber),
	(.complete_ns | tonumber) - (.issue_ns | tonumber), .issue_cpu, .cpu, (.flags - ["nomerge", "partial", "swap"])]'
# names FILE	pid and process of each, as far as a pid has one name
names() { jq -r 'select(.op == "read") | [.disk, .pid, .comm] | @tsv' "$1" | sort | uniq; }

# ---- what export wrote ---------------------------------------------------------------------------------------

"$ctl" import --output i bt >said
assert_eq "import: of a directory of blktrace's files" "0 i: 90,000 requests of 420,001 events of blktrace, in 1 segment" "$? $(cat said)"
assert_eq "import: all that report says is equal, to the nanosecond" "$(figures plain "$all")" "$(figures i "$all")"
assert_ne "import: and it is something" "" "$(figures i "$all")"
"$ctl" cat --json plain 2>/dev/null | jq -c "$lines" | sort >want
"$ctl" cat --json i 2>/dev/null | jq -c "$lines" | sort >got
assert_eq "import: each request" "90000 " "$(wc -l <got) $(cmp want got 2>&1)"
"$ctl" cat --json plain 2>/dev/null >plain.jsonl
"$ctl" cat --json i 2>/dev/null >i.jsonl
assert_eq "import: names of processes" "$(names plain.jsonl | awk '!seen[$1, $2]++' | cut -f 1,2)" "$(names i.jsonl | cut -f 1,2)"
assert_eq "import: a pid has the first name that it had" "" \
	"$(names i.jsonl | grep -Fxv -f <(names plain.jsonl))"
"$ctl" import --output again bt >/dev/null
assert_eq "import: the same trace is the same capture" "" "$(diff -r i again 2>&1)"
assert_status "import: and copies of one count once" 11 "$ctl" verify i again
assert_eq "import: in the report, too" 90000 "$("$ctl" report --json i again 2>/dev/null | jq .requests)"
"$ctl" import --output named bt/nvme0n1 >/dev/null
assert_eq "import: by the name of the disk" "" "$(diff -r i named 2>&1)"
"$ctl" import --output files bt/nvme0n1.blktrace.* >/dev/null
assert_eq "import: by files" "" "$(diff -r i files 2>&1)"

"$ctl" import --output all-i all-bt >said
assert_eq "import: two disks, every operation" "0 all-i: 6,000 requests" "$? $(cut -d ' ' -f 1-3 said)"
# write_zeroes are writes to blktrace; a queue time from an unknown beginning is not one.
# shellcheck disable=SC2016 # jq's own
some='[.devices[] | .disk as $disk | .ops[] | {k: "\($disk) \(.op | sub("write_zeroes"; "write"))", requests, bytes, bytes_done, errors, requeues, device: .device_ns.n}]
	| group_by(.k)[] | [.[0].k, (map(.requests) | add), (map(.bytes) | add), (map(.bytes_done) | add), (map(.errors) | add),
	(map(.requeues) | add), (map(.device) | add)]'
assert_eq "import: numbers, bytes, errors, requeues" "$(figures all "$some")" "$(figures all-i "$some")"
"$ctl" cat --json all 2>/dev/null | jq -c "$lines" | sort >want
"$ctl" cat --json all-i 2>/dev/null | jq -c "$lines" | sort >got
assert_eq "import: each of these" "" "$(comm -23 want got | head -n 1)"
assert_num "import: and they are some" "$(wc -l <want)" -gt 4000

# ---- what is said of it --------------------------------------------------------------------------------------

"$ctl" verify i >verify.txt
assert_eq "verify: unknown" 11 $?
assert_grep "verify: names the source" 'imported from blktrace: what that tool lost is not known' verify.txt
assert_eq "verify: what follows from it is one line" 3 "$(wc -l <verify.txt)"
assert_grep "report: names the source" '^Imported  blktrace: 420001 events of 4 files' <("$ctl" report i 2>/dev/null)
assert_eq "report: in JSON" "blktrace unknown false" "$("$ctl" report --json i 2>/dev/null |
	jq -r '"\(.sources[0] | split(":")[0]) \(.record.verdict) \(.losses_final)"')"
assert_eq "segments: says that they are imported" "imported" "$("$ctl" segments i | awk 'NR == 2 { print $9 }')"
assert_eq "segments: and whose" "blktrace" "$("$ctl" --json segments i | jq -r '.[0].source | split(":")[0]')"
assert_eq "cat: what was not told is null" "null null null null null null null null" \
	"$(head -n 1 i.jsonl | jq -r '"\(.cgroup) \(.ino) \(.swap) \(.origin) \(.tgid) \(.segments) \(.hwq) \(.status)"')"
for filter in "--swap only" "--dev sda" "--op discard" "--since @1795915403 --until @1795915404"; do
	# shellcheck disable=SC2086 # words
	"$ctl" --json report $filter i 2>/dev/null >filtered
	assert_eq "report $filter: not known" unknown "$(jq -r .record.verdict filtered)"
done
assert_grep "report --swap: and why" 'did not tell swap' <("$ctl" report --swap only i 2>&1)
assert_status "export --strict refuses it" 1 "$ctl" export --format=csv --strict --output=strict.csv i
(umask 077 && head -c 32 /dev/urandom >key)
"$ctl" export --format=segment --anonymize=key --output anon i 2>/dev/null
assert_grep "its copies say whose trace it is" 'imported from blktrace' <("$ctl" verify anon)
assert_eq "and are not more than unknown" 11 "$("$ctl" verify anon >/dev/null; echo $?)"

# ---- killed ------------------------------------------------------------------------------------------------------

# What is not whole yet has a name that no reader of trees believes, whatever is in it.
mkdir tree && cp -r i tree/whole && mkfifo waits
exec 9<>waits
"$ctl" import --output tree/o - <waits >/dev/null 2>&1 &
importer=$!
for _ in {1..100}; do
	part=$(find tree -maxdepth 1 -name '.o.tmp-??????')
	[ -z "$part" ] || break
	sleep 0.1
done
{ kill -9 $importer && wait $importer; } 2>/dev/null
exec 9>&-
assert_ne "killed: leaves a directory with a name of its own" "" "$part"
"$ctl" import --output other all-bt >/dev/null && cp other/*.iot "${part:-tree}"
assert_eq "killed: what is in it is no record" "90000 1" "$("$ctl" report --json tree 2>/dev/null | jq .requests) $("$ctl" --json segments tree | jq length)"
rm -rf tree other

# ---- what perf was not asked for ------------------------------------------------------------------------------

cat >no-cpu.txt <<'END'
dd 7/8 4.000001000: block:block_rq_issue: 8,0 R 512 () 1 + 1 [dd]
swap 0/0 4.000002000: block:block_rq_complete: 8,0 R () 1 + 1 [0]
END
"$ctl" import --output no-cpu no-cpu.txt >/dev/null
assert_eq "perf without CPUs, with processes: null, and known" "null null 8 7" \
	"$("$ctl" cat --json no-cpu 2>/dev/null | jq -r '"\(.cpu) \(.issue_cpu) \(.pid) \(.tgid)"')"
assert_eq "perf without CPUs: in CSV, too" "" "$("$ctl" export --format=csv no-cpu 2>/dev/null | grep -w 8191)"
assert_eq "perf without CPUs: one file of blktrace" "no-cpu-bt/sda.blktrace.0" \
	"$("$ctl" export --format=blktrace --output no-cpu-bt no-cpu 2>/dev/null; find no-cpu-bt -type f | sed 's/[^/]*.blktrace/sda.blktrace/')"
assert_eq "perf without CPUs: nothing but the source is in doubt" "" "$("$ctl" verify --verbose no-cpu | grep -E '^ ' |
	grep -vE 'imported from|without a wall clock|counters not known|cannot be counted|failures not known')"

# ---- several segments ----------------------------------------------------------------------------------------

"$ctl" import --segment-size=100KiB --output many bt >said
assert_eq "segments: by size" "6 6" "$(find many -name '*.iot' | wc -l) $(sed -n 's/.* in \([0-9]*\) segments$/\1/p' said)"
assert_eq "segments: they are one chain, whole" "0 none" "$("$ctl" segments --chain many >chain; echo $?) $(awk 'NR == 2 { print $(NF - 1) }' chain)"
assert_grep "segments: nothing but the source is in doubt" '^together: unknown: 6 segments, 90,000 requests' <("$ctl" verify many)
assert_eq "segments: no doubt of others" "" "$("$ctl" verify --verbose many | grep -E '^ ' |
	grep -vE 'imported from|counters not known|cannot be counted|failures not known')"
assert_eq "segments: the report is that of one" "$(figures i "$all")" "$(figures many "$all")"

# ---- through blkparse ----------------------------------------------------------------------------------------

if command -v blkparse >/dev/null; then
	blkparse -D bt -i nvme0n1 >text
	"$ctl" import --output text-i text >said
	assert_eq "blkparse: its text" "text-i: 90,000 requests of 420,001 events of blkparse, in 1 segment" "$(head -n 1 said)"
	assert_eq "blkparse: equal to what it was made of" "$(figures plain "$all")" "$(figures text-i "$all")"
	assert_grep "blkparse: has no wall clock, and that is said" 'without a wall clock' <("$ctl" verify text-i)
	assert_eq "blkparse: through a pipe" "" "$("$ctl" import --output pipe - <text >/dev/null; diff -r text-i pipe 2>&1)"
	assert_eq "blkparse: two texts have two beginnings" 1 "$("$ctl" import --output two text <(cat text) >/dev/null 2>err; echo $?)"
	assert_grep "blkparse: which is said" 'another beginning' err
	blkparse -q -O -D bt -i nvme0n1 -d merged >/dev/null 2>&1
	"$ctl" import --output merged-i merged >/dev/null
	nameless='.devices[] | .ops[] | [.op, .requests, .bytes, .bytes_done, .errors, .requeues, .queue_ns, .device_ns]'
	assert_eq "blkparse -d: one stream of all" "$(figures plain "$nameless")" "$(figures merged-i "$nameless")"
	# One file of four is not there: holes in no other's numbers, and half of many a request.
	mkdir less && cp bt/nvme0n1.blktrace.[012] less
	"$ctl" import --output less-i less >said
	"$ctl" cat --json less-i 2>/dev/null >less.jsonl
	only_end=$(jq -r 'select(.issue_ns == null) | .id' less.jsonl | wc -l)
	said_number() { sed -n "s/^ *\([0-9,]*\) $1.*/\1/p" said | tr -d ,; }
	assert_eq "a CPU is missing: what has no beginning is there, and counted" "$only_end" "$(said_number 'of which only')"
	# Each end is a request's, or of a part of one, as it looks where the beginning of another stands in for its own.
	assert_eq "a CPU is missing: every end is there" "$(jq -r 'select(.cpu != 3) | .id' plain.jsonl | wc -l)" \
		"$(($(wc -l <less.jsonl) + $(said_number 'ends of a part')))"
	assert_eq "a CPU is missing: every beginning has an end, or is in flight" "$(jq -r 'select(.issue_cpu != 3) | .id' plain.jsonl | wc -l)" \
		"$(($(wc -l <less.jsonl) - only_end + $("$ctl" --json segments less-i | jq '.[-1].in_flight')))"
	# Events that are not there show in the numbers.
	head -n 100000 text | sed '5000,5099d' >holes
	"$ctl" import --output holes-i holes >/dev/null
	assert_eq "a hole in the text: lost without owner" "100" "$("$ctl" --json verify holes-i | jq .whole.unattributed)"
else
	skip "blkparse: its text" "not installed"
fi

# ---- broken --------------------------------------------------------------------------------------------------

# fails NAME PATTERN ARGUMENT...	exit code 1, one line that says it, and nothing is left
fails() {
	local name=$1 pattern=$2
	shift 2
	"$ctl" import --output broken "$@" >/dev/null 2>err
	assert_eq "$name: an error, one line, nothing left" "1 1 " "$? $(wc -l <err) $(ls -d broken* 2>/dev/null)"
	assert_grep "$name: says where" "$pattern" err
}
head -c 1000 bt/nvme0n1.blktrace.1 >cut.blktrace.0
fails "cut" 'cut.blktrace.0: offset 960: the file ends in the middle of an event' cut
{ head -c 960 bt/nvme0n1.blktrace.1 && printf %0100d 0; } >junk
fails "junk behind events" 'junk: offset 960: no blktrace event begins here' junk
head -c 5000 /dev/urandom >noise
fails "noise" 'noise: is neither' noise
fails "noise that is said to be blktrace" 'noise: offset 0: no blktrace event' --format=blktrace noise
fails "noise that is said to be text" 'noise: line [0-9]+:' --format=perf noise
: >nothing
fails "an empty file" 'nothing: has no event' nothing
fails "no such file" 'missing: no such file, and no missing.blktrace.0' missing
fails "a file twice" 'named twice' bt/nvme0n1.blktrace.0 bt/nvme0n1.blktrace.0
mkdir full && : >full/file
"$ctl" import --output full bt 2>err
assert_eq "a directory with files" "1 file" "$? $(ls full)"
assert_status "no place" 2 "$ctl" import bt
assert_status "an unknown format" 2 "$ctl" import --format=csv --output broken bt
assert_status "a size that is none" 2 "$ctl" import --segment-size=0 --output broken bt
# Whatever is wrong, it is no crash.
bad=0
for i in {1..60}; do
	head -c 4000 bt/nvme0n1.blktrace.0 >flipped
	printf '%b' "\\x$(printf %02x $((i * 37 % 256)))" | dd of=flipped bs=1 seek=$((i * 61)) conv=notrunc 2>/dev/null
	rm -rf flipped-i
	"$ctl" import --output flipped-i flipped >/dev/null 2>err
	code=$?
	[ $code = 0 ] || { [ $code = 1 ] && [ ! -e flipped-i ] && [ "$(wc -l <err)" = 1 ]; } || bad=$((bad + 1))
	[ $code != 0 ] || { "$ctl" verify flipped-i >/dev/null; [ $? = 11 ]; } || bad=$((bad + 1))
done
assert_eq "bytes that are wrong: an error, or a trace that is unknown" 0 $bad

# ---- memory --------------------------------------------------------------------------------------------------

"$make" many-requests segments=4 requests=100000 plain >/dev/null && "$ctl" export --format=blktrace --output many-bt many-requests
assert_status "a trace that memory does not hold" 0 "$tools/peak-rss" rss "$ctl" import --output many-i many-bt
note "1,866,667 events: at most $(cat rss) KiB"
assert_num "is sorted outside of it: KiB" "$(cat rss)" -lt 81920
rm -rf many-bt many-i many-requests

# ---- a real perf ---------------------------------------------------------------------------------------------

if [ -z "$perf" ]; then
	skip "perf: its text of a loop device" "needs root, perf and tracefs"
	tap_end
fi
if ! { mkdir ram && mount -t tmpfs iot-test ram && loop_setup ram 64M; }; then
	bail "perf" "no loop device"
fi
trap 'loop_done; umount ram 2>/dev/null; rm -rf "$dir"' EXIT
before=$(diskstats_snapshot "$loop_name")
perf record -q -o ram/data -m 2048 -a -e block:block_getrq -e block:block_rq_insert -e block:block_rq_issue -e block:block_rq_complete \
	-e block:block_rq_requeue -e block:block_bio_backmerge -e block:block_rq_merge -- sh -c "
	dd if=/dev/zero of=$loop bs=64k count=300 oflag=direct; dd if=$loop of=/dev/null bs=16k count=200 iflag=direct" >perf.log 2>&1
loop_settle
after=$(diskstats_snapshot "$loop_name")
perf script --ns -i ram/data >perf.txt 2>perf.err
"$ctl" import --output perf-i perf.txt >said 2>&1
assert_eq "perf: is imported" 0 $?
"$ctl" cat --json perf-i 2>/dev/null | jq -c --arg dev "$(cat "/sys/block/$loop_name/dev")" 'select(.dev == $dev)' >perf.jsonl
for what in read write; do
	assert_eq "perf: ${what}s, as the kernel counts" "$(diskstats_delta "$before" "$after" ${what}s)" \
		"$(jq -r "select(.op == \"$what\") | .id" perf.jsonl | wc -l)"
	assert_eq "perf: sectors of ${what}s" "$(diskstats_delta "$before" "$after" ${what}_sectors)" \
		"$(jq -s "map(select(.op == \"$what\") | .bytes / 512) | add" perf.jsonl)"
done
assert_eq "perf: dd did it, and each has its times" "dd true" "$(jq -rs '[(map(select(.sector < 38400) | .comm) | group_by(.) | max_by(length)[0]),
	all(.start_ns != null and .issue_ns != null and (.issue_ns | tonumber) >= (.start_ns | tonumber)
	and (.complete_ns | tonumber) >= (.issue_ns | tonumber))] | join(" ")' perf.jsonl)"
assert_grep "perf: unknown, by its name" 'imported from perf: what that tool lost is not known' <("$ctl" verify perf-i)
tap_end
