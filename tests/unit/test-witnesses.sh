#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The virtual machine tests hold records against expectations with three jq programs. Each of them must accept a
# right record and notice any single field that is wrong.

set -u
here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$here/lib/tap.sh"
command -v jq >/dev/null || {
	echo "no jq"
	exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

options='{"phase":"p","disk":"d","sync_reads":true,"cgroup":"77","zeroout":"write_zeroes","start_exact":false,"part_of_bio":true}'
devices='[{"name":"d","dev":"259:0","start":0,"size":1000},{"name":"d1","dev":"259:1","start":8,"size":8}]'
record='{"id":"1","dev":"259:0","disk":"d","part":null,"op":"read","flags":["sync"],"sector":8,"bytes":4096,
	"bytes_done":4096,"error":0,"status":0,"swap":"none","swap_rule":null,"start_ns":"110","insert_ns":null,
	"issue_ns":"120","issue_last_ns":"120","complete_ns":"130","pid":5,"tgid":5,"comm":"wl","cgroup":"77",
	"requeues":0,"merges":0,"segments":1,"issue_cpu":0,"cpu":0,"hwq":0,"submitter":"start"}'
# A read, eight writes that became one, and a flush with the empty request that asked for it
jq -nc "$record, ($record | .id = \"2\" | .op = \"write\" | .flags = [\"sync\", \"idle\"] | .sector = 64 | .bytes = 32768
	| .bytes_done = 32768 | .merges = 7 | .start_ns = \"210\" | .issue_ns = \"220\" | .issue_last_ns = \"220\" | .complete_ns = \"230\"),
	($record | .id = \"3\" | .op = \"flush\" | .flags = [\"preflush\", \"flush-seq\", \"no-stat\"] | .sector = null | .bytes = 0
	| .bytes_done = 0 | .submitter = \"issue\" | .comm = \"kworker\" | .start_ns = null | .issue_ns = \"320\" | .issue_last_ns = \"320\"
	| .complete_ns = \"330\"),
	($record | .id = \"4\" | .op = \"write\" | .flags = [\"preflush\", \"sync\"] | .sector = 0 | .bytes = 0 | .bytes_done = 0
	| .issue_ns = null | .issue_last_ns = null | .start_ns = \"310\" | .complete_ns = \"340\")" >"$work/good"
expectation='{"device":"/dev/d","call":"read","op":"read","sector":8,"bytes":4096,"count":1,"errno":0,"pid":5,"tgid":5,
	"comm":"wl","t0_ns":"100","t1_ns":"199"}'
jq -nc "$expectation, ($expectation | .call = \"write-batch\" | .op = \"write\" | .sector = 64 | .bytes = 32768 | .count = 8
	| .t0_ns = \"200\" | .t1_ns = \"299\"), ($expectation | .call = \"fsync\" | .op = \"flush\" | .bytes = 0 | .sector = 0
	| .t0_ns = \"300\" | .t1_ns = \"399\")" >"$work/expect"
trace='{"event":"issue","cpu":0,"t_ns":121,"rwbs":"RS","bytes":4096,"sector":8}'
jq -nc "$trace, ($trace | .t_ns = 221 | .rwbs = \"WS\" | .bytes = 32768 | .sector = 64),
	($trace | .t_ns = 321 | .rwbs = \"FF\" | .bytes = 0 | .sector = 0)" >"$work/trace"

expectations() {
	jq -rn --slurpfile r "$1" --slurpfile e "$work/expect" --argjson devices "$devices" \
		--argjson o "$options" -f "$here/vm/expect.jq"
}
witness() {
	jq -rn --slurpfile r "$1" --slurpfile w "$work/trace" --arg disk d --arg phase p -f "$here/vm/witness.jq"
}
books() { jq -rn --slurpfile r "$1" --arg disk d --arg part "" -f "$here/vm/books.jq" | tr '\n' ' '; }

assert_eq "expectations: right records" 3 "$(expectations "$work/good" | grep -c '^ok ')"
assert_eq "trace: right records" "ok p trace" "$(witness "$work/good")"
assert_eq "books: right records" "rec_reads=1 rec_read_sectors=8 rec_read_merges=0 rec_writes=2 rec_write_sectors=64 \
rec_write_merges=7 rec_discards=0 rec_discard_sectors=0 rec_discard_merges=0 rec_flushes=1 rec_requeues=0 rec_all=4 \
rec_ids=4 rec_total=4 " "$(books "$work/good")"

# One field wrong in the first record: exactly one operation is not ok.
while read -r change; do
	jq -c "if .id == \"1\" then $change else . end" "$work/good" >"$work/bad"
	assert_eq "expectations: $change" 1 "$(expectations "$work/bad" | grep -c '^not ok ')"
done <<-'END'
	.id = null
	.dev = "259:1"
	.disk = "e"
	.part = "d1"
	.op = "write"
	.flags = []
	.flags = ["sync", "meta"]
	.sector = 9
	.sector = null
	.bytes = 8192
	.bytes_done = 0
	.error = -5
	.status = 10
	.swap = "in"
	.start_ns = "99"
	.start_ns = null
	.insert_ns = "109"
	.insert_ns = "121"
	.issue_ns = null
	.issue_last_ns = "119"
	.complete_ns = "119"
	.complete_ns = "200"
	.pid = 6
	.tgid = 6
	.comm = "kworker"
	.cgroup = null
	.requeues = 1
	.merges = 1
	.segments = 0
	.hwq = null
	.submitter = "insert"
END
# Before 5.12 the partition that covers the sector speaks, even for the whole disk.
options=${options/'"part_of_bio":true'/'"part_of_bio":false'}
assert_eq "expectations: a disk's record without the partition" 1 "$(expectations "$work/good" | grep -c '^not ok ')"
jq -c 'if .id == "1" then .part = "d1" | .dev = "259:1" else . end' "$work/good" >"$work/bad"
assert_eq "expectations: a disk's record with it" 0 "$(expectations "$work/bad" | grep -c '^not ok ')"
options=${options/'"part_of_bio":false'/'"part_of_bio":true'}
jq -c 'select(.id != "3")' "$work/good" >"$work/bad"
assert_eq "expectations: no flush" 1 "$(expectations "$work/bad" | grep -c '^not ok ')"
jq -c '., (select(.id == "1") | .id = "9")' "$work/good" >"$work/bad"
assert_eq "expectations: a record twice" 1 "$(expectations "$work/bad" | grep -c '^not ok ')"
jq -c 'if .id == "4" then .pid = 6 else . end' "$work/good" >"$work/bad"
assert_eq "expectations: a flush by somebody else" 1 "$(expectations "$work/bad" | grep -c '^not ok ')"

while read -r change; do
	jq -c "if .id == \"1\" then $change else . end" "$work/good" >"$work/bad"
	assert_eq "trace: $change" 1 "$(witness "$work/bad" | grep -c '^not ok ')"
done <<-'END'
	.issue_cpu = 1
	.flags = []
	.flags = ["sync", "meta"]
	.sector = 9
	.bytes = 512
	.issue_ns = "900000000"
	.issue_ns = null
END

tap_end
