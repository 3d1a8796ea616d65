# shellcheck shell=sh
# SPDX-License-Identifier: BSD-2-Clause
#
# A phase of a block test: one daemon, one disk, a known workload, three witnesses.
#
#	block_begin PHASE DISK		start the daemon, then look at the counters
#	block_run DEVICE OPERATION...	block-workload, in a cgroup of its own
#	block_end			look at the counters again, seal, and hold the records against
#					- what the workload did, field by field (expect.jq)
#					- /proc/diskstats: counts, sectors and merges to the last unit (books.jq)
#					- the kernel's own block trace: same requests, flags, CPUs, times (witness.jq)
# A phase may set first: block_comm, block_zeroout (write_zeroes or write), block_part and block_bases for a
# partition, block_expect=no and block_trace=no to leave out the first or last witness where the test has its own.

# shellcheck disable=SC2154 # iot_* come from daemon.sh, rec_* from books.jq

block_tracing=/sys/kernel/tracing
block_comm=wl
block_zeroout=write_zeroes
block_expect=yes
block_trace=yes
block_bases='{}'
block_part=

# tap_take FILE		takes over check lines that another program made
tap_take() {
	while read -r _line; do
		case $_line in
		"ok "*) ok "${_line#ok }" ;;
		"not ok "*) not_ok "$(echo "${_line#not ok }" | sed 's/: .*//')" "$(echo "$_line" | sed 's/^[^:]*: //')" ;;
		esac
	done <"$1"
}

block_devno() { cat "/sys/class/block/$1/dev"; }

# The workload's cgroup, with the io controller, so that bios carry its id.
block_cgroup() {
	echo +io >/sys/fs/cgroup/cgroup.subtree_control 2>/dev/null
	mkdir -p /sys/fs/cgroup/iot-workload
	block_cgroup_id=$(stat -c %i /sys/fs/cgroup/iot-workload)
}

block_trace_start() {
	[ "$block_trace" = yes ] || return 0
	echo 0 >$block_tracing/tracing_on
	echo mono >$block_tracing/trace_clock
	echo 16384 >$block_tracing/buffer_size_kb
	for _event in block_rq_issue block_rq_complete block_rq_requeue; do
		echo 1 >"$block_tracing/events/block/$_event/enable"
	done
	echo >$block_tracing/trace
	echo 1 >$block_tracing/tracing_on
}

# The trace of one disk as JSON lines
block_trace_stop() {
	[ "$block_trace" = yes ] || return 0
	echo 0 >$block_tracing/tracing_on
	awk -v dev="$(block_devno "$block_disk" | tr : ,)" '
		/^#/ { next }
		{
			for (i = 1; i <= NF && $i !~ /^\[[0-9]+\]$/; i++);
			cpu = substr($i, 2, length($i) - 2) + 0
			split($(i + 2), t, "[.:]")
			event = $(i + 3)
			if ($(i + 4) != dev)
				next
			ns = t[1] t[2] "000"
			sub(/^0+/, "", ns)
			if (event == "block_rq_issue:")
				printf "{\"event\":\"issue\",\"cpu\":%d,\"t_ns\":%s,\"rwbs\":\"%s\",\"bytes\":%s,\"sector\":%s}\n",
					cpu, ns, $(i + 5), $(i + 6), $(i + 8)
			else if (event == "block_rq_complete:")
				printf "{\"event\":\"complete\",\"cpu\":%d,\"t_ns\":%s,\"rwbs\":\"%s\",\"nr\":%s}\n",
					cpu, ns, $(i + 5), $(i + 9)
			else if (event == "block_rq_requeue:")
				printf "{\"event\":\"requeue\",\"cpu\":%d,\"t_ns\":%s,\"rwbs\":\"%s\"}\n", cpu, ns, $(i + 5)
		}' $block_tracing/trace >"$iot_dir/trace.json"
	echo 0 >$block_tracing/events/block/enable
}

# block_begin PHASE DISK [DAEMON ARGUMENT...]
block_begin() {
	block_phase=$1
	block_disk=$2
	shift 2
	block_cgroup
	iot_setup "/tmp/phase.$(echo "$block_phase" | tr ' /' '__')"
	: >"$iot_dir/expect.json"
	wait_for 10 diskstats_idle "$block_disk"
	iot_start "$@" || bail "$block_phase daemon" "it did not start"
	block_trace_start
	block_before=$(diskstats_snapshot "$block_disk")
	[ -z "$block_part" ] || block_part_before=$(diskstats_snapshot "$block_part")
}

# block_run DEVICE OPERATION...
block_run() {
	_device=$1
	shift
	block_run_with "" "$_device" "$@"
}

# block_run_on CPU DEVICE OPERATION...
block_run_on() {
	_cpu=$1
	_device=$2
	shift 2
	block_run_with "-p $_cpu" "$_device" "$@"
}

block_run_with() {
	_options=$1
	_device=$2
	shift 2
	# shellcheck disable=SC2086 # options are words
	sh -c 'echo $$ >/sys/fs/cgroup/iot-workload/cgroup.procs; exec block-workload "$@"' sh \
		$_options -c "$block_comm" -o "$iot_dir/expect.json" "/dev/$_device" "$@" ||
		bail "$block_phase workload" "it failed: $*"
}

# block_equal_books NAME BEFORE AFTER FIELD...	the records' sums (rec_*) against the counters
block_equal_books() {
	_name=$1
	_before=$2
	_after=$3
	shift 3
	for _field; do
		_want=$(diskstats_delta "$_before" "$_after" "$_field")
		if [ "$_want" = none ]; then
			note "this kernel's diskstats have no $_field"
			continue
		fi
		eval "_got=\$rec_$_field"
		assert_eq "$_name diskstats $_field" "$_want" "$_got"
	done
}

# block_books PARTITION-OR-EMPTY	sets rec_*
block_books() {
	eval "$(jq -rn --slurpfile r "$iot_dir/records.json" --arg disk "$block_disk" --arg part "$1" -f /tests/lib/books.jq)"
}

# The partition's own line. The flush itself is counted on the disk only.
block_end_part() {
	block_books "$block_part"
	block_equal_books "$block_phase $block_part" "$block_part_before" "$block_part_after" \
		reads read_sectors read_merges writes write_sectors write_merges discards discard_sectors
	block_books ""
}

block_end() {
	wait_for 10 diskstats_idle "$block_disk"
	# The last completion's accounting comes a moment after its tracepoint.
	sleep 0.2
	block_after=$(diskstats_snapshot "$block_disk")
	[ -z "$block_part" ] || block_part_after=$(diskstats_snapshot "$block_part")
	block_trace_stop
	iot_stop
	assert_eq "$block_phase daemon ends" 0 $?
	assert_status "$block_phase verify" 0 "$IOTRACECTL" verify "$iot_state"
	iot_cat >"$iot_dir/records.json" 2>"$iot_dir/cat.log" || not_ok "$block_phase cat" "$(tail -n 3 "$iot_dir/cat.log")"
	block_books ""
	assert_eq "$block_phase ids differ" "$rec_total" "$rec_ids"
	block_equal_books "$block_phase" "$block_before" "$block_after" reads read_sectors read_merges writes write_sectors write_merges \
		discards discard_sectors discard_merges flushes
	[ -z "$block_part" ] || block_end_part
	[ "$block_expect" = no ] || block_check_expect
	if [ "$block_trace" = yes ]; then
		assert_eq "$block_phase requeues as traced" \
			"$(grep -c '"event":"requeue"' "$iot_dir/trace.json")" "$rec_requeues"
		if [ "$rec_requeues" = 0 ]; then
			jq -rn --slurpfile r "$iot_dir/records.json" --slurpfile w "$iot_dir/trace.json" --arg disk "$block_disk" \
				--arg phase "$block_phase" -f /tests/lib/witness.jq >"$iot_dir/witness.tap" 2>&1 ||
				not_ok "$block_phase trace" "$(head -n 3 "$iot_dir/witness.tap")"
			tap_take "$iot_dir/witness.tap"
		fi
	fi
}

block_check_expect() {
	_sync_reads=false
	_start_exact=false
	vm_kernel_ge 6 0 && _sync_reads=true
	vm_kernel_ge 6 5 && _start_exact=true
	# 5.12 (309dca309fc3) gave bios the partition itself; before, one without data was the disk's.
	_flush_on_part=false
	vm_kernel_ge 5 12 && _flush_on_part=true
	_devs=$(for _dir in "/sys/class/block/$block_disk" "/sys/class/block/$block_disk"/"$block_disk"*; do
		[ -e "$_dir/dev" ] && printf '"%s":"%s"\n' "${_dir##*/}" "$(cat "$_dir/dev")"
	done | tr '\n' , | sed 's/,$//')
	jq -rn --slurpfile r "$iot_dir/records.json" --slurpfile e "$iot_dir/expect.json" -f /tests/lib/expect.jq --argjson o "{
		\"phase\":\"$block_phase\",\"disk\":\"$block_disk\",\"bases\":$block_bases,\"devs\":{$_devs},\"sync_reads\":$_sync_reads,
		\"cgroup\":\"$block_cgroup_id\",\"zeroout\":\"$block_zeroout\",\"start_exact\":$_start_exact,
		\"flush_on_part\":$_flush_on_part}" \
		>"$iot_dir/expect.tap" 2>&1 || not_ok "$block_phase expectations" "$(tail -n 3 "$iot_dir/expect.tap")"
	tap_take "$iot_dir/expect.tap"
	assert_eq "$block_phase all operations checked" "$(wc -l <"$iot_dir/expect.json")" "$(grep -Ec '^(not )?ok ' "$iot_dir/expect.tap")"
}

# block_field JQ-FILTER	over the phase's records of the disk (an array); prints the compact result
block_field() {
	jq -cs "[.[] | select(.disk == \"$block_disk\")] | $1" "$iot_dir/records.json"
}
