# SPDX-License-Identifier: BSD-2-Clause
#
# What /proc/diskstats must have counted for one disk (or one partition), by the records: prints shell assignments.
#
#	jq -rn --slurpfile r RECORDS --arg disk NAME --arg part NAME-OR-EMPTY -f books.jq
#
# The kernel files every request under read, write (each odd operation: write_zeroes and secure_erase too) or discard,
# unless it is without I/O accounting (no-stat), and counts the sectors of what was completed. A flush is what the
# flush machinery sends (flush-seq); it counts as nothing else.

def group:
  if IN("read", "drv_in", "zone_open", "zone_finish", "zone_close") then "read"
  elif . == "discard" then "discard"
  elif . == "flush" then "flush"
  else "write" end;
def sectors: map(.bytes_done / 512 | floor) | add // 0;
def merges: map(.merges) | add // 0;

[$r[] | select(.disk == $disk and ($part == "" or .part == $part)) | . + {group: (.op | group)}
  | select(if .group == "flush" then .flags | index("flush-seq") else .flags | index("no-stat") | not end)]
| map(select(.group == "read")) as $read | map(select(.group == "write")) as $write
| map(select(.group == "discard")) as $discard | map(select(.group == "flush")) as $flush
| "rec_reads=\($read | length) rec_read_sectors=\($read | sectors) rec_read_merges=\($read | merges)",
  "rec_writes=\($write | length) rec_write_sectors=\($write | sectors) rec_write_merges=\($write | merges)",
  "rec_discards=\($discard | length) rec_discard_sectors=\($discard | sectors) rec_discard_merges=\($discard | merges)",
  "rec_flushes=\($flush | length)",
  "rec_requeues=\([$r[] | select(.disk == $disk) | .requeues] | add // 0)",
  "rec_all=\([$r[] | select(.disk == $disk)] | length)",
  "rec_ids=\([$r[] | .id] | unique | length) rec_total=\($r | length)"
