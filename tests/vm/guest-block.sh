# shellcheck shell=sh
# SPDX-License-Identifier: BSD-2-Clause
#
# A block test in the guest: one daemon (session), in its lifetime one or more phases, each a known workload on one
# disk. The guest only does and notes down; the host judges afterwards (check-block.sh), since an emulated processor
# is slow at that, and since segments must be readable elsewhere anyway.
#
#	block_start SESSION		start the daemon
#	block_begin PHASE DISK		note the counters
#	block_run DEVICE OPERATION...	block-workload, in a cgroup of its own
#	block_claim NAME VALUE FILTER	what jq must make of the phase's records (an array, of that disk only)
#	block_end			note the counters again
#	block_stop			seal, end
#
# The host then holds the records of each phase against what the workload did, field by field (expect.jq), against
# /proc/diskstats to the last unit (books.jq), against the kernel's own block trace (witness.jq), and the claims.
# A phase may set before block_begin: block_comm, block_zeroout (write_zeroes or write), block_part (a partition to
# look at as well), block_expect=no and block_trace=no to leave out a witness where the test has its own.

# shellcheck disable=SC2154 # iot_* come from daemon.sh

block_tracing=/sys/kernel/tracing
block_comm=wl
block_zeroout=write_zeroes
block_expect=yes
block_trace=yes
block_part=

# The workload's cgroup, with the io controller, so that bios carry its id.
block_cgroup() {
	echo +io >/sys/fs/cgroup/cgroup.subtree_control 2>/dev/null
	mkdir -p /sys/fs/cgroup/iot-workload
	block_cgroup_id=$(stat -c %i /sys/fs/cgroup/iot-workload)
}

# block_start SESSION [CONFIGURATION-LINE...]
block_start() {
	block_session=/results/$1
	shift
	block_cgroup
	iot_setup "$block_session"
	# The state lies in memory: no floor of free space, or sealed segments would be deleted at once.
	printf '%s\n' "retention:" "  min_free: 0" "$@" >"$iot_dir/config.yaml"
	iot_start || bail "daemon" "it did not start"
}

block_stop() {
	iot_stop
	assert_eq "${block_session##*/}: the daemon ends well" 0 $?
}

block_trace_start() {
	[ "$block_trace" = yes ] || return 0
	echo 0 >$block_tracing/tracing_on
	echo mono >$block_tracing/trace_clock
	echo 4096 >$block_tracing/buffer_size_kb
	for _event in block_rq_issue block_rq_requeue; do
		echo 1 >"$block_tracing/events/block/$_event/enable"
	done
	echo >$block_tracing/trace
	echo 1 >$block_tracing/tracing_on
}

block_trace_stop() {
	[ "$block_trace" = yes ] || return 0
	echo 0 >$block_tracing/tracing_on
	grep -v '^#' $block_tracing/trace >"$block_dir/trace"
	echo 0 >$block_tracing/events/block/enable
}

# CLOCK_MONOTONIC and the boot's clock are one in a machine that never sleeps.
block_now_ns() { awk '{ sub(/\./, "", $1); print $1 "0000000" }' /proc/uptime; }

# block_begin PHASE DISK
block_begin() {
	block_phase=$1
	block_disk=$2
	block_dir=$block_session/phase.$(echo "$1" | tr ' /' '__')
	mkdir -p "$block_dir"
	: >"$block_dir/expect.json"
	: >"$block_dir/claims"
	wait_for 10 diskstats_idle "$block_disk"
	block_trace_start
	sleep 0.1
	block_t0=$(block_now_ns)
	block_before=$(diskstats_snapshot "$block_disk")
	block_part_before=$(diskstats_snapshot "${block_part:-none}")
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
		$_options -c "$block_comm" -o "$block_dir/expect.json" "/dev/$_device" "$@" ||
		bail "$block_phase workload" "it failed: $*"
}

# block_claim NAME VALUE FILTER		of the phase's records
block_claim() { printf 'records\t%s\t%s\t%s\n' "$1" "$2" "$3" >>"$block_dir/claims"; }

# block_claim_file FILE NAME VALUE FILTER	of another JSON file in the phase's directory
block_claim_file() { printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" >>"$block_dir/claims"; }

block_end() {
	wait_for 10 diskstats_idle "$block_disk"
	# The last completion's accounting comes a moment after its tracepoint.
	sleep 0.2
	block_after=$(diskstats_snapshot "$block_disk")
	block_part_after=$(diskstats_snapshot "${block_part:-none}")
	block_trace_stop
	for _dir in "/sys/class/block/$block_disk" "/sys/class/block/$block_disk/$block_disk"*; do
		[ ! -e "$_dir/dev" ] || echo "${_dir##*/} $(cat "$_dir/dev") $(cat "$_dir/start" 2>/dev/null || echo 0) $(cat "$_dir/size")"
	done >"$block_dir/devices"
	cat >"$block_dir/meta" <<-END
		phase='$block_phase'
		disk='$block_disk'
		part='$block_part'
		t0=$block_t0
		t1=$(block_now_ns)
		release='$(uname -r)'
		before='$block_before'
		after='$block_after'
		part_before='$block_part_before'
		part_after='$block_part_after'
		cgroup='$block_cgroup_id'
		zeroout='$block_zeroout'
		expect='$block_expect'
		trace='$block_trace'
	END
	# Phases are told apart by time, at the resolution of /proc/uptime.
	sleep 0.1
}
