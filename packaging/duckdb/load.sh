#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Makes of what an archive of iotraced holds of block I/O files that DuckDB reads as they are (requests.sql): for each
# segment one of JSON lines, in the archive's own partitions (host=H/stream=block/date=D), and one list of all segments
# with what each proves. Again: only what is new is made.
#
# usage: load.sh ARCHIVE DIRECTORY, then: cd DIRECTORY && duckdb -init .../requests.sql
# Needs iotracectl and jq.
# Exit: 0, or 1 if a segment could not be read whole, which it says.

set -eu -o pipefail
[ $# -eq 2 ] || { sed -n '4,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }
archive=${1%/} out=$2
mkdir -p "$out"
work=$(mktemp -d "$out/.load.XXXXXX")
trap 'rm -rf "$work"' EXIT

# Damage is said of each file below, so the whole list's exit code says nothing new.
iotracectl --json segments "$archive" 2>"$work/said" | jq -c '.[] | select(.stream == "block")' >"$work/all" || true
[ -s "$work/all" ] || { cat "$work/said" >&2; echo "load: no segments of block I/O in $archive" >&2; exit 1; }
failed=0 made=0
: >"$work/segments"
while IFS= read -r segment; do
	IFS=$'\t' read -r name records state path < <(jq -r '[.name, .records, .state, .path] | @tsv' <<<"$segment")
	[ "$state" = sealed ] || { echo "load: $path: $state, left out" >&2; failed=1; continue; }
	below=${path#"$archive"/}
	[ "$below" = "${below%/*}" ] && below=. || below=${below%/*}
	file=$out/$below/${name%.iot}.jsonl
	if [ ! -e "$file" ]; then
		iotracectl export --format=jsonl "$path" 2>"$work/said" >"$work/rows" || {
			sed "s|^iotracectl: |load: $path: |" "$work/said" >&2
			failed=1
			continue
		}
		# A reader that met damage has written less than the segment says that it has.
		[ "$(wc -l <"$work/rows")" = "$records" ] || {
			echo "load: $path: not all of its $records requests could be read" >&2
			failed=1
			continue
		}
		mkdir -p "$out/$below"
		mv "$work/rows" "$file"
		made=$((made + 1))
	fi
	# The table has what there is a file of, so that its verdicts are those of the requests.
	jq -c '{host, capture, seq, name, reason, first_ns, last_ns, records, in_flight, ledger_entries, verdict, reasons}' \
		<<<"$segment" >>"$work/segments"
done <"$work/all"
mv "$work/segments" "$out/segments.json"
echo "$made segments made, $(wc -l <"$out/segments.json") in all"
exit "$failed"
