# SPDX-License-Identifier: BSD-2-Clause
#
# Sums the records of a swap test, and names those whose tag is wrong by where they lie.
#
#	jq -c -n --argjson areas [{disk, first, end}...] --arg rule RULE-OR-EMPTY -f swap.jq RECORDS
#
# RECORDS: JSON lines of `iotracectl cat` or, of `iotracectl export`, the losses. What no swap area covers must not be
# tagged, and all that one covers must be, since nobody else has business there; of a request that the kernel merged
# across the border, the part inside is the swapped one. RULE: what must have told all of it (else flag and page).
# Losses without an owner are filed together and have no place of their own: only their sums count.

def ends: .sector + .bytes / 512;
def is_data: .sector != null and .bytes > 0 and (.op == "read" or .op == "write");
# Bytes of it that lie inside of an area
def inside($r):
  [$areas[] | select(.disk == $r.disk) | ([$r.sector, .first] | max) as $from | ([($r | ends), .end] | min) as $to
    | $to - $from | select(. > 0)] | add // 0 | . * 512;
def wrong:
  (if is_data then inside(.) else 0 end) as $inside
  | (if .swap == "none" then 0 else .bytes - .unswapped_bytes end) as $swapped
  | (if $swapped != $inside then "it has the tag \(.swap) for \($swapped) bytes" else empty end),
    (if has("swap_rule") | not then empty
     elif .swap_rule != (if .swap == "none" then null elif $rule != "" then $rule else {out: "flag", in: "page"}[.swap] end) then "its rule is \(.swap_rule)" else empty end),
    (if .swap == "none" and .unswapped_bytes != 0 then "it has unswapped_bytes" else empty end),
    (if (.flags | index("swap") != null) != (.swap == "out") then "its flags are \(.flags)" else empty end),
    (if ({out: "write", in: "read"}[.swap] // .op) != .op then "it is a \(.op)" else empty end)
  | . + " (\($inside) bytes inside the areas)";

reduce (inputs | select(type == "object")) as $r ({out: 0, in: 0, n: 0, n_out: 0, n_in: 0, no_start: 0, requeued: 0, partial: 0, mixed: 0, wrong: []};
  .n += 1
  | (($r.bytes_done // $r.bytes) - $r.unswapped_bytes) as $bytes
  | if $r.swap == "out" then .out += $bytes | .n_out += 1
    elif $r.swap == "in" then .in += $bytes | .n_in += 1
    else . end
  | if $r.swap != "none" then
      (if $r.flags | index("no-start") then .no_start += 1 else . end)
      | (if $r.flags | index("partial") then .partial += 1 else . end)
      | (if $r.unswapped_bytes > 0 then .mixed += 1 else . end)
      | (if ($r.requeues // 0) > 0 then .requeued += 1 else . end)
    else . end
  | if (.wrong | length < 8) and ($r.n // 1) == 1 then
      .wrong += [$r | wrong as $why | "\(.op) \(.disk) \(.sector)+\(.bytes) id \(.id): \($why)"] else . end)
