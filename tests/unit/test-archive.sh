#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# iotracectl archive into a directory: what arrives is what was sealed, once, also after copies that were cut or
# corrupted, a full disk and a note that was cut; what is noted has arrived. Remotes: tests/archive/.
cd "$(dirname "$0")/../.." || exit 2
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
IOTRACECTL=$(realpath "${IOTRACECTL:-${B:-build}/iotracectl}")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
src=$work/state dst=$work/archive note=$work/note
mkdir "$src" "$dst"
archive() { "$IOTRACECTL" archive --state "$note" "$@" "$dst" "$src"; }
sums() { (cd "$1" && find . -name '*.iot' -exec md5sum {} + | sed 's|\./.*/||; s|\./||' | sort); }
shipped() { "$IOTRACECTL" --json segments --state "$note" "$src" 2>/dev/null | jq -r '[.[] | select(.shipped)] | length'; }
command -v jq >/dev/null || { echo "skip archive: no jq"; exit 77; }

for name in empty sequential mixed lost unknown; do
	cp "tests/golden/v1/$name.iot" "$src/block-00000000000000000000000000000000-$name.iot"
done
cp tests/golden/v1/unsealed.open "$src/"
assert_eq "nothing is noted yet" null "$("$IOTRACECTL" --json segments "$src" 2>/dev/null | jq -r '.[0].shipped')"
assert_eq "all is shipped" "$dst: 5 segments (SIZE) shipped, 0 failed" "$(archive --once | sed 's/([^)]*)/(SIZE)/')"
assert_eq "as it was" "$(sums "$src")" "$(sums "$dst")"
assert_eq "into places by host, stream and day" "host=golden/stream=block/date=2026-01-01" \
	"$(cd "$dst" && find . -name '*.iot' -printf '%h\n' | sort -u | sed 's|\./||')"
assert_eq "what is open is not" "" "$(find "$dst" -name '*.open*')"
assert_eq "and noted" 5 "$(shipped)"
assert_eq "once" "0 0" "$(archive --json | jq -r '"\(.shipped) \(.failed)"')"
assert_eq "verbs read the tree" "$("$IOTRACECTL" --json cat "$src"/*.iot 2>/dev/null | md5sum)" \
	"$("$IOTRACECTL" --json cat "$dst" 2>/dev/null | md5sum)"

# ---- what lacks -------------------------------------------------------------------------------------------------

chain() { "$IOTRACECTL" --json segments --chain "$@" | jq -c '.[] | [.segments, .first_seq, .last_seq, .missing, .n_missing, .end]'; }
assert_eq "a hole, and no end" '[5,1,6,[{"from":4,"to":4}],1,"missing"]' "$(chain "$dst")"
assert_eq "several" '[3,1,5,[{"from":2,"to":2},{"from":4,"to":4}],2,"missing"]' \
	"$(chain "$dst"/*/*/*/*{empty,mixed,lost}.iot)"
"$IOTRACECTL" segments --chain "$dst" >"$work/chain"
assert_eq "says so by its exit code" 11 $?
assert_ne "and in words" "" "$(grep -E ' 4 +later ones are missing' "$work/chain")"
assert_eq "before the first, too" '[1,3,3,[{"from":1,"to":2}],2,"missing"]' "$(chain "$dst"/*/*/*/*mixed.iot)"

# ---- what is not right is done again ------------------------------------------------------------------------------

cut() { truncate -s -"$1" "$note"; }
cut 5
assert_eq "a note that was cut: that one again" 1 "$(archive --json | jq .shipped)"
assert_eq "and all are noted" 5 "$(shipped)"
touch -d yesterday "$src"/*mixed.iot
assert_eq "another file of the name: again" "4 1 5" "$(shipped) $(archive --json | jq .shipped) $(shipped)"
printf 'iotraced-archive 1 elsewhere:x\n' >"$work/other" && tail -n +2 "$note" >>"$work/other" && mv "$work/other" "$note"
assert_eq "another destination: all again" 5 "$(archive --json 2>/dev/null | jq .shipped)"
echo junk >"$dst/host=golden/stream=block/date=2026-01-01/.block-00000000000000000000000000000000-empty.iot.part"
rm "$note"
assert_eq "what a killed one has left is in nobody's way" "5 " \
	"$(archive --json | jq .shipped) $(find "$dst" -name '*.part')"
assert_eq "still once" "$(sums "$src")" "$(sums "$dst")"

# ---- the last good copy ---------------------------------------------------------------------------------------------

good=$(sums "$dst")
spoil() { printf 'XXXX' | dd of="$1" bs=1 seek="$2" conv=notrunc status=none; }
cp -r "$src" "$work/whole"
for to in directory remote; do
	to_dst=$dst
	[ $to = directory ] || to_dst=:local:$dst
	[ $to = directory ] || command -v rclone >/dev/null || { skip "a remote" "no rclone"; break; }
	again() { rm -f "$note"; timeout 60 "$IOTRACECTL" archive --state "$note" "$to_dst" "$src" >"$work/said" 2>"$work/errors"; }
	spoil "$src"/*mixed.iot 3000
	truncate -s -200 "$src"/*lost.iot
	: >"$src"/*unknown.iot
	again
	assert_eq "$to: what is damaged is not shipped" "1 3" "$? $(grep ': not shipped: ' "$work/errors" | sort -u | wc -l)"
	assert_eq "$to: and counted" "2 3" "$(sed -E 's/.*: ([0-9]+) segments.* ([0-9]+) failed/\1 \2/' "$work/said")"
	assert_eq "$to: the good copies stay" "$good" "$(sums "$dst")"
	cp -p "$work/whole"/*.iot "$src"
	cp "$work/whole"/*sequential.iot "$src"/*empty.iot
	mkdir -p "$work/held" && cp "$dst"/*/*/*/*empty.iot "$work/held/"
	cp "$work/whole"/*mixed.iot "$dst"/*/*/*/*empty.iot
	before=$(sums "$dst")
	again
	assert_eq "$to: nor is one that is whole replaced by another" "1 1" \
		"$? $(grep 'empty.iot: .*another segment is there, and whole: not replaced' "$work/errors" | sort -u | wc -l)"
	assert_eq "$to: it stays" "$before" "$(sums "$dst")"
	cp -p "$work/whole"/*.iot "$src"
	cp "$work/held"/*empty.iot "$dst"/*/*/*/
	spoil "$dst"/*/*/*/*mixed.iot 3000
	again
	assert_eq "$to: one that is damaged there is replaced" "0 $good" "$? $(sums "$dst")"
done

# ---- what cannot be done --------------------------------------------------------------------------------------------

"$IOTRACECTL" archive --once --state "$work/note2" "$work/not-mounted" "$src" >"$work/said" 2>&1
assert_eq "a destination that is not there is not made" "1 no" "$? $([ -e "$work/not-mounted" ] && echo yes || echo no)"
assert_eq "and nothing is noted" 0 "$(note=$work/note2 shipped)"
(exec 9>"$note.lock" && flock 9 && archive --once >"$work/said" 2>&1; echo $? >"$work/status")
assert_eq "one at a time" "1 $note: another iotracectl archive is at work" "$(cat "$work/status") $(sed 's/^iotracectl: //' "$work/said")"
mkfifo "$work/fifo"
for verb in "archive --once --state $work/fifo $dst" "segments --state $work/fifo"; do
	# shellcheck disable=SC2086 # several words
	timeout 20 "$IOTRACECTL" $verb "$src" >/dev/null 2>"$work/said"
	assert_eq "a FIFO is no note: ${verb%% *}" "1 1" "$? $(grep -c "fifo: is no file but a FIFO" "$work/said")"
done
# No file may have more than 8 KiB: that is the disk's end for the larger ones.
rm -rf "$dst" "$note" && mkdir "$dst"
(ulimit -f 8 && trap '' XFSZ && archive --once >"$work/said" 2>&1; echo $? >"$work/status")
small=$(find "$src" -name '*.iot' -size -8193c | wc -l)
assert_eq "a full disk: what has no room is not there" "1 $small $small" \
	"$(cat "$work/status") $(find "$dst" -name '*.iot' | wc -l) $(shipped)"
assert_eq "not even a part of it" "" "$(find "$dst" -name '*.part')"
(archive >/dev/null 2>&1)
assert_eq "with room it arrives" "$(sums "$src")" "$(sums "$dst")"
for wrong in "" "x y z a"; do
	# shellcheck disable=SC2086 # several words, or none
	"$IOTRACECTL" archive --state "$work/n" $wrong >/dev/null 2>&1
	assert_eq "usage: archive $wrong" 2 $?
done
tap_end
