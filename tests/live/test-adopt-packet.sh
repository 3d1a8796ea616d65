#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2154,SC2034,SC2317 # the libraries and their variables; theirs; phases by their names
#
# SIGKILL with somebody who keeps the descriptors, as in test-adopt.sh, of a daemon that records packets: numbered
# datagrams over loopback, each of which passes five probes and is dropped at a sixth, since nobody listens. At each
# probe records and ledger together are every number that was sent, once; the kernel's own count of drops agrees; books
# balance, and the verdict is what it would be without the kills. With the block stream beside it, both go on.
#
# usage: test-adopt-packet.sh [PHASE...]	of: one both small named config upgrade (all)
#
# IOT_ADOPT_KILLS (default 4) and IOT_ADOPT_NAMED (default 1) as in test-adopt.sh. With functions: tests/vm/adopt-functions.sh.
#
# timeout: 480

cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
IOTRACED=${IOTRACED:-${B:-build}/iotraced} IOTRACECTL=${IOTRACECTL:-${B:-build}/iotracectl}
. tests/lib/daemon.sh
. tests/lib/diskstats.sh
. tests/lib/loop.sh
. tests/lib/adopt.sh
tools=${B:-build}/tests/tools

dir=$(mktemp -d /dev/shm/iot-adopt-packet.XXXXXX) || exit 1
send_pid='' sup_pid='' fio_pid=''
# shellcheck disable=SC2317 # by the trap
cleanup() {
	local p
	for p in $send_pid $fio_pid; do
		kill "$p" 2>/dev/null && wait "$p"
	done
	[ -n "$sup_pid" ] && kill -KILL "$sup_pid" 2>/dev/null
	[ -n "${loop:-}" ] && loop_done
	rm -rf "$dir"
}
trap cleanup EXIT
kills=${IOT_ADOPT_KILLS:-4}
rounds=${IOT_ADOPT_NAMED:-1}

# Ports that nobody listens at; one for each 1024 datagrams. Whoever else sends there would be counted, too.
first_port=24000
filter="udp and dst host 127.0.0.1 and dst portrange $first_port-31000"
no_ports() { awk '/^Udp: [0-9]/ { print $3 }' /proc/net/snmp; }

# begin PHASE [CONFIGURATION LINE...]	of the packet stream; $block: that of the block stream
begin() {
	local name=$1
	shift
	adopt_begin "$name" < <(
		printf '%s\n' "${block:-streams:}"
		[ -n "${block:-}" ] || printf '  block: {enabled: false}\n'
		printf '  packet:\n    enabled: true\n    filter: "%s"\n' "$filter"
		printf '    %s\n' "block_records: 256" "block_age: 10ms" "segment_age: 150ms" "$@"
	)
	dropped=$(no_ports)
	"$tools/packet-workload" udp-numbered 127.0.0.1 "$first_port" "${pause_usec:-300}" >"$iot_dir/sent" &
	send_pid=$!
}

# The numbers that the records and losses at a probe stand for, whose packets are HEADER bytes longer than what was sent.
numbers() {
	"$IOTRACECTL" --json cat --probe "$1" "$iot_state" 2>/dev/null |
		sed -n 's/.*"len":\([0-9]*\),.*"proto":"udp",.*"dport":\([0-9]*\),.*/\1 \2/p' |
		awk -v first="$first_port" -v header="$2" '{ print ($2 - first) * 1024 + $1 - header - 8 }'
	jq -r --arg probe "$1" '.losses[] | select(.probe == $probe) | "\(.bytes) \(.flow) \(.n)"' "$iot_dir/packets.pcapng.loss.json" |
		sed 's/^\([0-9]*\) .*:\([0-9]*\) \([0-9]*\)$/\1 \2 \3/' |
		awk -v first="$first_port" -v header="$2" '{ print $3 == 1 ? ($2 - first) * 1024 + $1 - header - 8 : "several" }'
}

# each PROBE HEADER
each() {
	numbers "$1" "$2" | sort -n >"$iot_dir/numbers"
	assert_eq "$phase: at $1 each datagram, once" "$sent $sent 0 $((sent - 1))" \
		"$(wc -l <"$iot_dir/numbers") $(uniq "$iot_dir/numbers" | wc -l) $(head -n 1 "$iot_dir/numbers") $(tail -n 1 "$iot_dir/numbers")"
}

end() {
	kill -INT "$send_pid"
	wait "$send_pid"
	send_pid=
	sent=$(sed -n 's/^sent=//p' "$iot_dir/sent")
	dropped=$(($(no_ports) - dropped))
	if [ -n "$fio_pid" ]; then
		kill -INT "$fio_pid"
		wait "$fio_pid"
		fio_pid=
		loop_settle
		after=$(diskstats_snapshot "$loop_name")
	fi
	adopt_end
	"$IOTRACECTL" export --format=pcapng --output "$iot_dir/packets.pcapng" "$iot_state" 2>/dev/null
	lost=$(jq '[.losses[].n] | add // 0' "$iot_dir/packets.pcapng.loss.json")
	note "$phase: $killed kills, $sent datagrams, $(jq .observations "$iot_dir/packets.pcapng.loss.json") observations, $lost in the ledger, $(jq length "$iot_dir/segments.json") segments"
}

exact() {
	local drops
	adopt_whole
	each net_dev_queue 42
	each net_dev_start_xmit 42
	each net_dev_xmit 42
	each netif_rx 28
	each netif_receive_skb 28
	drops=$("$IOTRACECTL" --json cat --probe kfree_skb "$iot_state" 2>/dev/null |
		awk -v first="$first_port" 'match($0, /"dport":[0-9]+/) { port = substr($0, RSTART + 8, RLENGTH - 8) + 0; if (port >= first && port <= 31000) n++ } END { print n + 0 }')
	# Drops of others are always on.
	drops=$((drops + $(jq --argjson first "$first_port" '[.losses[] | select(.probe == "kfree_skb") |
		select((.flow // "" | [scan("[0-9]+")] | last // "0" | tonumber) as $p | $p >= $first and $p <= 31000) | .n] | add // 0' \
		"$iot_dir/packets.pcapng.loss.json")))
	assert_eq "$phase: drops, by the kernel's own count" "$dropped" "$drops"
	assert_eq "$phase: no observation twice" 0 \
		"$("$IOTRACECTL" --json cat "$iot_state" 2>/dev/null | sed -n 's/^{"packet":"\([0-9]*\)","hop":\([0-9]*\),.*/\1 \2/p' | grep -v ' 0$' | sort | uniq -d | wc -l)"
}

proved() {
	[ "$verified" = 0 ] || jq -r '.whole.reasons[]' "$iot_dir/verify.json" | sed 's/^/# /' | head -n 20
	assert_eq "$phase: complete" 0 "$verified"
}

# ---- at random instants ---------------------------------------------------------------------------------

phase_one() {
	begin "one ring"
	assert_eq "one ring: state, rings, links, programs, maps and the daemon are kept" "exe link map prog ring state" \
		"$(sed -n 's/^fd packet\.[0-9a-f]\{16\}\.[0-9a-f]\{16\}\.\([a-z]*\).*/\1/p' "$sup" | sort -u | xargs)"
	kill_random "$kills"
	end
	exact
	proved
	assert_eq "one ring: what has ended is kept no longer" "$(count fd)" "$(count remove)"
	assert_num "one ring: gone on with" "$(grep -c 'going on' "$iot_log")" -ge $((kills / 2))
}

# Two rings and two streams: with one of them not adopted there would be two captures.
phase_both() {
	local block before records ledger produced
	loop_setup "$dir" 64M || bail "loop device" "none to be had"
	block="devices: {include: [$loop_name]}
streams:
  block: {block_records: 64, block_age: 10ms, segment_age: 250ms, ring_cpus: 1}"
	loop_settle
	before=$(diskstats_snapshot "$loop_name")
	begin "both streams" "ring_cpus: 1"
	fio --name=load --filename="$loop" --direct=1 --ioengine=io_uring --bs=4k --randrepeat=0 --time_based \
		--runtime=3000 --output=/dev/null --rw=randrw --iodepth=4 --rate_iops=1000 >/dev/null 2>&1 &
	fio_pid=$!
	kill_random "$kills"
	end
	exact
	"$IOTRACECTL" export --format=csv --output "$iot_dir/records.csv" "$iot_state" >/dev/null 2>&1
	records=$(($(wc -l <"$iot_dir/records.csv") - 1))
	ledger=$(jq '[.losses[] | select(.request) | .n] | add // 0' "$iot_dir/records.csv.loss.json")
	produced=$(($(diskstats_delta "$before" "$after" reads) + $(diskstats_delta "$before" "$after" writes)))
	hidden=$(($(unseen_in "$iot_dir/records.csv") - ledger))
	[ "$hidden" -le 0 ] || [ "$hidden" -gt 8 ] || produced=$((produced < records + ledger + hidden ? produced : produced - hidden))
	assert_eq "both streams: requests produced = records + ledger" "$produced" $((records + ledger))
	loop_done
	loop=
}

phase_small() {
	local pause_usec=2000
	begin "small rings" "ring_cpus: 1" "ring_size: 4KiB"
	kill_random "$kills"
	end
	exact
	assert_num "small rings: lost" "$lost" -gt 0
	assert_eq "small rings: and said so" 10 "$verified"
}

# ---- at instants with a name ------------------------------------------------------------------------------

phase_named() {
	begin "named points"
	named "${adopt_points[@]}"
	end
	exact
	proved
}

# ---- what cannot be gone on with ----------------------------------------------------------------------------

phase_config() {
	begin "another filter"
	sleep 0.5
	sed -i 's/portrange/portrange 1-2 or dst portrange/' "$iot_dir/config.yaml"
	kill -KILL "$(cat "$iot_dir/pid")"
	wait_for 60 ready 2 || not_ok "$phase: start" "no READY within 60 s"
	sleep 0.5
	end
	assert_eq "$phase: two captures" 2 "$(captures)"
	assert_grep "$phase: it says why" "the capture before ends with packet-.*: the configuration has changed" "$iot_log"
	assert_eq "$phase: the books balance" 0 "$(whole .whole.books_unbalanced)"
	assert_eq "$phase: both are sealed by the daemon" '["shutdown","shutdown"]' \
		"$(jq -c 'group_by(.name | split("-")[1]) | map(last.reason)' "$iot_dir/segments.json")"
	assert_eq "$phase: the first is proved" 0 "$(verdict 1)"
	assert_eq "$phase: the second is proved" 0 "$(verdict 2)"
	# Sent without a gap; what is missing are those between the two captures, in one piece.
	numbers net_dev_queue 42 | sort -n >"$iot_dir/numbers"
	assert_eq "$phase: one gap, between the captures" 1 "$(awk 'NR > 1 && $1 != last + 1 { n++ } { last = $1 } END { print n + 0 }' "$iot_dir/numbers")"
}

# To another file with the same layout, to another layout, and back. The first goes on; the others end one capture, to
# its last record, and begin the next.
phase_upgrade() {
	local i
	begin "upgrade"
	cp "$IOTRACED" "$dir/new"
	echo >>"$dir/new"
	sleep 0.3
	restart "$dir/new"
	sleep 0.3
	restart "$tools/iotraced-other-layout"
	sleep 0.3
	restart "$IOTRACED"
	sleep 0.3
	end
	assert_eq "$phase: gone on with, and two captures more" "1 3" "$(grep -c 'going on recording' "$iot_log") $(captures)"
	assert_eq "$phase: it says why" 2 "$(grep -c 'is ended by the program that recorded it: this build reads another layout' "$iot_log")"
	assert_eq "$phase: all are sealed by the daemon" '["shutdown","shutdown","shutdown"]' \
		"$(jq -c 'group_by(.name | split("-")[1]) | map(last.reason)' "$iot_dir/segments.json")"
	assert_eq "$phase: the books balance" 0 "$(whole .whole.books_unbalanced)"
	for ((i = 1; i <= 3; i++)); do
		assert_eq "$phase: capture $i is proved" 0 "$(verdict "$i")"
	done
	numbers net_dev_queue 42 | sort -n >"$iot_dir/numbers"
	assert_eq "$phase: none twice" 0 "$(uniq -d "$iot_dir/numbers" | wc -l)"
	assert_eq "$phase: two gaps, between the captures" 2 "$(awk 'NR > 1 && $1 != last + 1 { n++ } { last = $1 } END { print n + 0 }' "$iot_dir/numbers")"
}

[ $# -gt 0 ] || set -- one both small named config upgrade
for arg; do
	"phase_${arg//-/_}"
done
tap_end
