#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The recipe for ClickHouse, with two servers of Debian's: an archive of two hosts, loaded by packaging/clickhouse, holds
# what `report` and `cat` say of it, each request once, also after a load that was killed.
#
# timeout: 300
cd "$(dirname "$0")/../.." || exit 2
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
B=${B:-build}
IOTRACECTL=$(realpath "${IOTRACECTL:-$B/iotracectl}")
PATH=$(dirname "$IOTRACECTL"):$PATH:/usr/sbin
for tool in clickhouse-server clickhouse-client jq "$B/tests/tools/make-segment"; do
	command -v "$tool" >/dev/null || { echo "skip clickhouse: no $tool; run: tests/lib/install-deps.sh archive"; exit 77; }
done

work=$(mktemp -d)
servers=()
# shellcheck disable=SC2317 # by the trap
cleanup() {
	[ ${#servers[@]} = 0 ] || { kill "${servers[@]}" && wait; } 2>/dev/null
	rm -rf "$work"
}
trap cleanup EXIT
ports=($((20000 + RANDOM % 10000)) $((30001 + RANDOM % 10000)))
for i in 0 1; do
	tests/archive/clickhouse.sh "$work/server$i" "${ports[i]}" "${ports[1 - i]}" >"$work/out$i" 2>&1 &
	servers+=($!)
done
# on SERVER QUERY
on() { clickhouse-client --host 127.0.0.1 --port "${ports[$1]}" --query "$2"; }
for i in 0 1; do
	for _ in $(seq 100); do
		on "$i" "SELECT 1" >/dev/null 2>&1 && break
		sleep 0.3
	done
	clickhouse-client --host 127.0.0.1 --port "${ports[i]}" -n <packaging/clickhouse/schema.sql ||
		bail "server" "$(tail -n 3 "$work/out$i" "$work/server$i/errors")"
done
note "ClickHouse $(on 0 'SELECT version()')"

# ---- an archive of two hosts -------------------------------------------------------------------------------------------

mkdir "$work/archive"
for machine in 1 2; do
	if ! { "$B/tests/tools/make-segment" "$work/state$machine" segments=3 requests=20000 lost=$((7 * machine)) machine=$machine >/dev/null &&
		iotracectl archive --once --state "$work/note$machine" "$work/archive" "$work/state$machine" >/dev/null; }; then bail "archive" "it could not be made"; fi
done
hosts=("$work"/archive/host=*)
assert_eq "an archive of two hosts" 2 "${#hosts[@]}"
load() { packaging/clickhouse/load.sh "$2" --host 127.0.0.1 --port "${ports[$1]}" 2>"$work/said"; }

# What `report` says of each host, disk and operation, and the same of the tables. The mean is an integer there.
reported() {
	iotracectl --json report "$@" 2>/dev/null | jq -r '.devices[] | .host as $host | .disk as $disk | .ops[] |
		[$host, $disk, .op, .requests, .bytes, .bytes_done, .merges, .requeues, .errors,
		.queue_ns.n, .queue_ns.min, .queue_ns.max, .queue_ns.mean, .device_ns.n, .device_ns.min, .device_ns.max, .device_ns.mean] | @tsv' |
		LC_ALL=C sort
}
sums() {
	on "$1" "SELECT host, disk, op, count(), sum(bytes), sum(bytes_done), sum(merges), sum(requeues), countIf(status != 0),
		count(queue_latency_ns), min(queue_latency_ns), max(queue_latency_ns), intDiv(sum(queue_latency_ns), count(queue_latency_ns)),
		count(device_latency_ns), min(device_latency_ns), max(device_latency_ns), intDiv(sum(device_latency_ns), count(device_latency_ns))
		FROM iotraced.requests GROUP BY host, disk, op" | LC_ALL=C sort
}

assert_eq "a host's segments are loaded" "3 segments loaded, 60000 requests" "$(load 0 "${hosts[0]}")"
assert_eq "once more there is nothing to do" "0 segments loaded, 0 requests" "$(load 0 "${hosts[0]}")"
assert_num "the report says something" "$(reported "${hosts[0]}" | wc -l)" -ge 10
assert_eq "its numbers are the report's" "$(reported "${hosts[0]}")" "$(sums 0)"

# Every value, not only sums: each column as `cat --json` has it, null where it is null.
columns='id dev disk part op flags sector bytes bytes_done error swap start_ns insert_ns issue_ns complete_ns pid tgid comm cgroup
	ino fsdev origin cpu requeues merges segments issue_last_ns issue_cpu hwq status realtime_ns capture file_by cgroup_by reclaim unswapped_bytes'
# shellcheck disable=SC2086 # a list
list=$(printf '%s, ' $columns)
# Numbers may be text or not, by their width; their order is that of the id.
plain='to_entries | map(.value |= if type == "number" then tostring else . end) | from_entries'
iotracectl --json cat "${hosts[0]}" 2>/dev/null | head -n 20000 |
	jq -cS --arg c "$list" '. as $r | reduce ($c | rtrimstr(", ") | split(", "))[] as $k ({}; .[$k] = $r[$k]) | '"$plain" | LC_ALL=C sort >"$work/cat"
on 0 "SELECT ${list%, } FROM iotraced.requests WHERE seq = 1 ORDER BY complete_ns FORMAT JSONEachRow" |
	jq -cS "$plain" | LC_ALL=C sort >"$work/rows"
assert_eq "every field is as cat shows it" "20000 " "$(wc -l <"$work/rows") $(diff "$work/cat" "$work/rows" | head -n 4)"

# ---- interrupted --------------------------------------------------------------------------------------------------------

# As a load that was killed leaves it: of one segment half the requests, of another all and no row.
first=$(find "${hosts[1]}" -name '*.iot' | sort | head -n 1) second=$(find "${hosts[1]}" -name '*.iot' | sort | sed -n 2p)
insert() { clickhouse-client --host 127.0.0.1 --port "${ports[1]}" --query "INSERT INTO iotraced.requests_local FORMAT RowBinary"; }
middle=$(iotracectl --json segments "$first" 2>/dev/null | jq -r '.[0] | ((.first_ns | tonumber) + (.last_ns | tonumber)) / 2000000000 | floor')
iotracectl export --format=clickhouse --until "@$middle" "$first" 2>/dev/null | insert
iotracectl export --format=clickhouse "$second" 2>/dev/null | insert
left=$(on 1 'SELECT count() FROM iotraced.requests_local WHERE seq = 1')
assert_num "some of a segment is there" "$left" -gt 0
assert_num "and not all" "$left" -lt 20000
assert_eq "a load takes up what another has left" "3 segments loaded, 60000 requests" "$(load 1 "${hosts[1]}")"
assert_eq "each request is there once" "$(reported "${hosts[1]}")" "$(sums 1)"

# ---- the cluster --------------------------------------------------------------------------------------------------------

for i in 0 1; do
	clickhouse-client --host 127.0.0.1 --port "${ports[i]}" -n <packaging/clickhouse/distributed.sql || bail "cluster" "distributed.sql"
done
assert_eq "each server answers for both hosts, as the report does" "$(reported "$work/archive")" "$(sums 0)"
assert_eq "the other one, too" "$(sums 0)" "$(sums 1)"
assert_eq "what is loaded on one server is not loaded on the other" "0 segments loaded, 0 requests" "$(load 1 "$work/archive")"
assert_eq "verdicts of the segments come along" "$(iotracectl --json segments "$work/archive" 2>/dev/null | jq -r '.[] | "\(.host) \(.seq) \(.verdict)"' | sort)" \
	"$(on 1 "SELECT concat(host, ' ', toString(seq), ' ', verdict) FROM iotraced.segments" | sort)"

# ---- damage -------------------------------------------------------------------------------------------------------------

mkdir "$work/damaged"
"$B/tests/tools/make-segment" "$work/state3" segments=1 requests=20000 machine=3 >/dev/null
cp "$work"/state3/*.iot "$work/damaged/" && damaged=$(echo "$work"/damaged/*.iot)
printf '\377\376\375' | dd of="$damaged" bs=1 seek=$(($(stat -c %s "$damaged") / 2)) conv=notrunc 2>/dev/null
assert_eq "a damaged segment is not called loaded" "0 segments loaded, 0 requests" "$(load 0 "$work/damaged")"
assert_ne "it is said" "" "$(grep '^load: ' "$work/said")"
tap_end
