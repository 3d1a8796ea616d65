#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Loads into the tables of schema.sql what an archive of iotraced holds of block I/O and ClickHouse does not yet: each
# segment once, also when a load was interrupted or is run again. One at a time on a server.
#
# usage: load.sh ARCHIVE [OPTION...]	ARCHIVE: an archive, or a part of it (ARCHIVE/host=H)
# OPTIONs are clickhouse-client's: --host, --port, --user, ... Needs clickhouse-client, iotracectl and jq.
#
# A segment's row comes after its requests. One without a row of which there are requests was being loaded when a load
# ended: these are taken away, and it is loaded again. What is loaded on any server of a cluster (distributed.sql) is not
# loaded anew; rows go to this one, so each server loads the hosts that it is to have.
# Exit: 0, or 1 if a segment could not be loaded, which it says.

set -eu -o pipefail
[ $# -ge 1 ] || { sed -n '4,14s/^# \{0,1\}//p' "$0" >&2; exit 2; }
archive=$1
client=(clickhouse-client "${@:2}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Damage is said of each file below, so the whole list's exit code says nothing new.
iotracectl --json segments "$archive" 2>"$work/said" | jq -c '.[] | select(.stream == "block")' >"$work/all" || true
[ -s "$work/all" ] || { cat "$work/said" >&2; echo "load: no segments of block I/O in $archive" >&2; exit 1; }
"${client[@]}" --query "SELECT concat(capture, ' ', toString(seq)) FROM iotraced.segments" | sort >"$work/loaded"
failed=0 loaded=0 requests=0
while IFS= read -r segment; do
	IFS=$'\t' read -r capture seq records state path \
		< <(jq -r '[.capture, .seq, .records, .state, .path] | @tsv' <<<"$segment")
	[ "$state" = sealed ] || { echo "load: $path: $state, left out" >&2; failed=1; continue; }
	! grep -qxF "$capture $seq" "$work/loaded" || continue
	# Numbers and hex, so nothing in it needs quoting.
	which="capture = '$capture' AND seq = $seq"
	if [ "$("${client[@]}" --query "SELECT count() FROM iotraced.requests_local WHERE $which")" != 0 ]; then
		"${client[@]}" --query "ALTER TABLE iotraced.requests_local DELETE WHERE $which"
		while [ "$("${client[@]}" --query "SELECT count() FROM system.mutations WHERE database = 'iotraced' AND NOT is_done")" != 0 ]; do
			sleep 0.2
		done
	fi
	iotracectl export --format=clickhouse "$path" 2>"$work/said" |
		"${client[@]}" --query "INSERT INTO iotraced.requests_local FORMAT RowBinary" || {
		sed "s|^iotracectl: |load: $capture $seq: |" "$work/said" >&2
		failed=1
		continue
	}
	# A reader that met damage has sent less than the segment says that it has.
	got=$("${client[@]}" --query "SELECT count() FROM iotraced.requests_local WHERE $which")
	if [ "$got" != "$records" ]; then
		echo "load: $capture $seq: $got of $records requests could be read" >&2
		failed=1
		continue
	fi
	jq -c '{host, capture, seq, stream, name, reason, first_ns, last_ns, records, in_flight, ledger_entries, verdict, reasons}' \
		<<<"$segment" | "${client[@]}" --query "INSERT INTO iotraced.segments_local FORMAT JSONEachRow"
	echo "$capture $seq" >>"$work/loaded"
	loaded=$((loaded + 1)) requests=$((requests + got))
done <"$work/all"
echo "$loaded segments loaded, $requests requests"
exit "$failed"
