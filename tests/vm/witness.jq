# SPDX-License-Identifier: BSD-2-Clause
#
# Holds records against the kernel's own trace of the same requests (tracefs, see guest-block.sh): every issued
# request is in both, with the same sector, size and CPU, with the flags that the trace's letters tell, and at the
# same time. Only for phases without requeues, where a request is issued once.
#
#	jq -rn --slurpfile r RECORDS --slurpfile w TRACE --arg disk NAME --arg phase NAME -f witness.jq

def num: if . == null then null else tonumber end;
def key: "\(.sector // 0)+\(.bytes)";
def abs: if . < 0 then -. else . end;
# "WFS" -> the letters behind the operation
def letters: capture("^F?(R|WZ|W|DE|D|F|N|Z[A-Z]*)(?<rest>F?A?S?M?)").rest;

([$r[] | select(.disk == $disk and .issue_ns != null)] | group_by(key)
  | map({key: .[0] | key, value: sort_by(.issue_ns | num)}) | from_entries) as $records
| ([$w[] | select(.event == "issue")] | group_by(key)
  | map({key: .[0] | key, value: sort_by(.t_ns)}) | from_entries) as $traced
| [ ([$records, $traced | keys[]] | unique[]) as $k
    | ($records[$k] // []) as $a | ($traced[$k] // []) as $b
    | if ($a | length) != ($b | length) then "\($k): \($a | length) records, \($b | length) in the trace"
      else range($a | length) as $i | $a[$i] as $x | $b[$i] as $y | ($y.rwbs | letters) as $l
        | (if $x.issue_cpu != $y.cpu then "\($k): issue_cpu \($x.issue_cpu), traced on \($y.cpu)" else empty end),
          (if ($x.flags | index("sync") != null) != ($l | test("S")) then "\($k): \($x.flags), traced as \($y.rwbs)" else empty end),
          (if ($l | test("F")) and ($x.flags | index("fua") == null) then "\($k): no fua, traced as \($y.rwbs)" else empty end),
          (if ($l | test("M")) != ($x.flags | index("meta") != null) then "\($k): \($x.flags), traced as \($y.rwbs)" else empty end),
          # The host may take the processor away between the two tracers, so a single pair proves little.
          (if (($x.issue_ns | num) - $y.t_ns | abs) > 500000000 then "\($k): issue_ns \($x.issue_ns), traced at \($y.t_ns)" else empty end)
      end ] as $bad
| [ $records | to_entries[] | .key as $k | range(.value | length) as $i | select($traced[$k][$i] != null)
    | (.value[$i].issue_ns | num) - $traced[$k][$i].t_ns | abs ] as $apart
| ($apart | sort | .[length / 2 | floor]) as $median
| if ($apart | length) == 0 then "not ok \($phase) trace: nothing to compare"
  elif ($bad | length) > 0 then "not ok \($phase) trace: \($bad | length) differences: \($bad[:5] | join("; "))"
  elif $median > 2000000 then "not ok \($phase) trace: times are \($median) ns apart in the median"
  else "ok \($phase) trace" end
