# SPDX-License-Identifier: BSD-2-Clause
#
# Holds records (iotracectl --json cat) against what block-workload says it did, field by field. Prints a
# line "ok ..." or "not ok ...: reasons" for every operation.
#
#	jq -rn --slurpfile r RECORDS --slurpfile e EXPECTATIONS --argjson devices [{name, dev, start, size}...] \
#		--argjson o OPTIONS -f expect.jq
#
# OPTIONS: phase (name in front), disk (name), cgroup (id of the workload's), zeroout (the operation a BLKZEROOUT
#	becomes), sync_reads (the kernel flags a direct read as sync), start_exact (a start hook exists for passthrough
#	requests), part_of_bio (a request's partition is the one that was opened; before 5.12 it is the one that
#	covers the sector, also for the whole disk, and none for a flush)

def num: if . == null then null else tonumber end;
def same($what; $want; $got): if $want == $got then empty else "\($what) is \($got | tojson), not \($want | tojson)" end;
def holds($what; $cond): if $cond then empty else $what end;

# Flags that describe the record rather than the request
def request_flags: map(select(IN("flush-seq", "no-start", "no-stat", "partial") | not)) | sort;

# A large operation is split, and what is split may not be merged again.
def want_flags($call; $big):
  if $call == "read" then (if $o.sync_reads and ($big | not) then ["sync"] else [] end)
  elif $call == "read-batch" or $call == "read-deep" then []
  elif $call == "dsync" then ["fua", "idle", "sync"]
  elif $call == "discard" then ["sync"]
  elif $call == "zeroout" then (if $o.zeroout == "write_zeroes" then ["nounmap", "sync"] else ["sync"] end)
  else ["idle", "sync"] end;

def want_op: if .call == "zeroout" then $o.zeroout else .op end;

# Times lie in order and between the workload's own clock readings.
def check_times($x):
  (.start_ns | num) as $start | (.insert_ns | num) as $insert | (.issue_ns | num) as $issue
  | (.issue_last_ns | num) as $last | (.complete_ns | num) as $complete
  | holds("no start_ns"; $start != null),
    holds("no issue_ns"; $issue != null),
    holds("no complete_ns"; $complete != null),
    holds("start_ns before the call"; $start == null or $start >= $x.t0),
    holds("insert_ns before start_ns"; $insert == null or $start == null or $insert >= $start),
    holds("issue_ns before insert_ns"; $insert == null or $issue == null or $issue >= $insert),
    holds("issue_ns before start_ns"; $start == null or $issue == null or $issue >= $start),
    holds("issue_last_ns before issue_ns"; $last == null or $issue == null or $last >= $issue),
    holds("complete_ns before issue_last_ns"; $last == null or $complete == null or $complete >= $last),
    holds("complete_ns after the call"; $complete == null or $complete <= $x.t1);

def check_who($x):
  same("submitter"; "start"; .submitter),
  same("pid"; $x.pid; .pid), same("tgid"; $x.tgid; .tgid), same("comm"; $x.comm; .comm),
  same("cgroup"; $o.cgroup; .cgroup);

def check_where($x):
  holds("no id"; .id != null),
  same("disk"; $o.disk; .disk), same("part"; $x.part; .part), same("dev"; $x.dev; .dev);

def device($name): first($devices[] | select(.name == $name));
def on_disk: {part: null, dev: device($o.disk).dev};
# Where the kernel accounts a request for that sector of that device
def home($name; $sector):
  if $name != $o.disk then {part: $name, dev: device($name).dev}
  elif $o.part_of_bio then on_disk
  else first(($devices[] | select(.name != $o.disk and $sector >= .start and $sector < .start + .size)
    | {part: .name, dev}), on_disk) end;

# One whole request of the operation
def check_data($x):
  check_where($x), check_times($x), check_who($x),
  same("op"; $x.want; .op),
  same("flags"; want_flags($x.call; $x.bytes > 1048576); .flags | if $x.bytes > 524288 then . - ["nomerge"] else . end | request_flags),
  same("bytes_done"; .bytes; .bytes_done),
  same("error"; 0; .error), same("status"; 0; .status),
  same("swap"; "none"; .swap), same("swap_rule"; null; .swap_rule),
  same("requeues"; 0; .requeues),
  holds("no hwq"; .hwq != null), holds("no segments"; $x.want == "write_zeroes" or .segments > 0);

def within($x): select((.start_ns // .issue_ns // "0" | num) >= $x.t0 and (.complete_ns | num) <= $x.t1);
def of_part($x): select(.part == $x.part);

def check_range($x; $all):
  [$all[] | of_part($x) | within($x) | select(.op == $x.want and .bytes > 0
    and .sector != null and .sector >= $x.first and .sector < $x.first + $x.bytes / 512)] | sort_by(.sector)
  | . as $got
  | holds("\(length) records: \(tojson)"; length == 1 or (length > 0 and ($x.bytes > 524288 or $x.count > 1))),
    same("bytes of all its records"; $x.bytes; map(.bytes) | add),
    same("first sector"; $x.first; .[0].sector),
    holds("its records leave a gap or overlap";
      all(range(1; length); $got[.].sector == $got[. - 1].sector + $got[. - 1].bytes / 512)),
    # Each of the operation's bios became a request or was merged into one.
    holds("\(length) records and \(map(.merges) | add) merges for \($x.count) bios"; $x.bytes > 524288 or length + (map(.merges) | add) == $x.count),
    (.[] | check_data($x));

# A flush of the disk: the flush itself, issued by whoever ran the queue, and the empty request that asked for it.
def check_flush($x; $all):
  [$all[] | within($x) | select(.op == "flush")] as $flush
  | [$all[] | within($x) | select(.op == "write" and .bytes == 0)] as $ask
  | holds("\($flush | length) flush records instead of 1"; ($flush | length) == 1),
    holds("\($ask | length) empty requests instead of 1"; ($ask | length) == 1),
    ($flush[] | holds("flush: no id"; .id != null), same("flush: disk"; $o.disk; .disk), same("flush: sector"; null; .sector),
      same("flush: bytes"; 0; .bytes), same("flush: error"; 0; .error),
      holds("flush: preflush not among \(.flags | tojson)"; .flags | index("preflush")),
      same("flush: submitter"; "issue"; .submitter), holds("flush: no issue_ns"; .issue_ns != null),
      holds("flush: completed before issued"; (.complete_ns | num) >= (.issue_ns | num))),
    ($ask[] | check_where(if $o.part_of_bio then $x else $x + on_disk end), check_who($x), same("bytes_done"; 0; .bytes_done), same("error"; 0; .error),
      holds("preflush not among \(.flags | tojson)"; .flags | index("preflush")),
      holds("sync not among \(.flags | tojson)"; .flags | index("sync")));

def check_passthrough($x; $all):
  [$all[] | within($x) | select(.op == "drv_in")]
  | holds("\(length) records instead of 1"; length == 1),
    (.[] | check_where($x + on_disk), same("sector"; null; .sector), same("bytes"; $x.bytes; .bytes),
      same("pid"; $x.pid; .pid), same("tgid"; $x.tgid; .tgid), same("comm"; $x.comm; .comm),
      holds("submitter is \(.submitter)"; .submitter == "start" or (($o.start_exact | not) and .submitter == "issue")),
      same("error"; 0; .error), same("insert_ns"; null; .insert_ns),
      holds("times not in order"; (.issue_ns | num) >= $x.t0 and (.complete_ns | num) >= (.issue_ns | num)
        and (.complete_ns | num) <= $x.t1));

[$r[] | select(.disk == $o.disk)] as $all
| $e | to_entries[] | .key as $i | .value
| (.device | sub(".*/"; "")) as $name
| (.sector + (if $name == $o.disk then 0 else device($name).start end)) as $first
| (. + {t0: (.t0_ns | num), t1: (.t1_ns | num), want: want_op, first: $first} + home($name; $first)) as $x
| [ if .call == "fsync" then check_flush($x; $all)
    elif .op == "drv_in" then check_passthrough($x; $all)
    elif .call == "dsync" then check_range($x; $all), check_flush($x; $all)
    else check_range($x; $all) end ]
| if length == 0 then "ok \($o.phase) \($i) \($x.call) \($x.first)+\($x.bytes / 512 | floor)"
  else "not ok \($o.phase) \($i) \($x.call) \($x.first)+\($x.bytes / 512 | floor): \(join("; "))" end
