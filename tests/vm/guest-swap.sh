# shellcheck shell=sh
# SPDX-License-Identifier: BSD-2-Clause
#
# A swap test in the guest: one daemon (session) a case, in its lifetime one workload that swaps, with ordinary reads,
# writes and fsync beside it. The host judges afterwards (check-swap.sh).
#
#	swap_disks			prepare the disks "swap" and "mixed"; sets swap_disk and swap_mixed
#	swap_begin SESSION [CONFIGURATION-LINE...]	start the daemon, note the counters
#	swap_area NAME...		switch on, the first with the highest priority: disk, partition, file, small (a file)
#	swap_huge on|off		transparent huge pages, and larger folios where the kernel has them
#	swap_hog global|max|high [HOG-ARGUMENT...]	swap-hog under that pressure, ordinary I/O beside it
#	swap_stress			the same with stress-ng
#	swap_claim NAME VALUE FILTER	what jq must make of the sums (swap.jq); swap_claim_lost: of those of the losses
#	swap_end			switch off, note the counters, stop the daemon
#
# No area is in use when the counters are read, before and after: nothing can be swapped then, whatever else runs, so
# the sums are exact without cutting records by time. "mixed" has partitions: 1 raw, 2 swap, 3 ext4 (with the swap file).

# shellcheck disable=SC2154 # iot_* come from daemon.sh

# swap_wait_part DEVICE
swap_wait_part() { wait_for 10 test -b "/dev/$1" || bail disks "no partition $1"; }

swap_disks() {
	swap_disk=$(vm_disk swap) || bail disks "no disk swap"
	swap_mixed=$(vm_disk mixed) || bail disks "no disk mixed"
	printf 'n\np\n1\n2048\n34815\nn\np\n2\n34816\n428031\nn\np\n3\n428032\n\nw\n' | fdisk "/dev/$swap_mixed" >/tmp/fdisk.log 2>&1
	for _n in 1 2 3; do swap_wait_part "${swap_mixed}p$_n"; done
	for _area in "${swap_disk}" "${swap_mixed}p2"; do
		mkswap "/dev/$_area" >/tmp/mkswap.log 2>&1 || bail disks "mkswap: $(cat /tmp/mkswap.log)"
	done
	# Nothing that the file system does later, by itself.
	mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "/dev/${swap_mixed}p3" >/tmp/mkfs.log 2>&1 ||
		bail disks "mkfs.ext4: $(cat /tmp/mkfs.log)"
	swap_all="$swap_disk $swap_mixed"
	swap_raw=${swap_mixed}p1
	mkdir -p /mixed
	mount -t ext4 "/dev/${swap_mixed}p3" /mixed || bail disks "ext4 cannot be mounted"
	swap_file=/mixed/swapfile
	dd if=/dev/zero of=$swap_file bs=1M count=160 conv=fsync 2>/dev/null && chmod 600 $swap_file
	swap_small=/mixed/small
	dd if=/dev/zero of=$swap_small bs=1M count=12 conv=fsync 2>/dev/null && chmod 600 $swap_small
	for _area in $swap_file $swap_small; do
		mkswap "$_area" >/tmp/mkswap.log 2>&1 || bail disks "mkswap: $(cat /tmp/mkswap.log)"
	done
	sync
	swap_cgroups
}

swap_cgroups() {
	mkdir -p /sys/fs/cgroup/hog /sys/fs/cgroup/ordinary
	echo "+io +memory" >/sys/fs/cgroup/cgroup.subtree_control || bail cgroups "no memory or io controller"
}

# swap_path AREA	a name of swap_disks's, or a path
swap_path() {
	case $1 in
	disk) echo "/dev/$swap_disk" ;;
	partition) echo "/dev/${swap_mixed}p2" ;;
	file) echo "$swap_file" ;;
	small) echo "$swap_small" ;;
	*) echo "$1" ;;
	esac
}

# Every sector that is swapped to, and none else: "DISK FIRST END". The first page of an area is its header.
# swap_extents PATH
swap_extents() {
	if [ -b "$1" ]; then
		_dir=$(readlink -f "/sys/class/block/${1#/dev/}")
		_start=0 _owner=${_dir##*/}
		if [ -e "$_dir/partition" ]; then
			_start=$(cat "$_dir/start") _owner=${_dir%/*} _owner=${_owner##*/}
		fi
		echo "$_owner $((_start + 8)) $((_start + $(cat "$_dir/size")))"
		return
	fi
	# A file: on the partition that is mounted at its directory.
	_dir=$(readlink -f "/sys/class/block/$(awk -v at="${1%/*}" '$2 == at { sub(".*/", "", $1); print $1 }' /proc/mounts)")
	_owner=${_dir%/*}
	filefrag -e -b512 "$1" | awk -v disk="${_owner##*/}" -v start="$(cat "$_dir/start")" '
		$1 ~ /^[0-9]+:$/ {
			gsub(/[.:]+/, " ")
			first = $4 + start
			if ($2 == 0)
				first += 8
			print disk, first, $5 + start + 1
		}'
}

swap_begin() {
	swap_session=/results/$1
	swap_name=$1
	shift
	note "$swap_name: begins at $(cut -d" " -f1 /proc/uptime) s"
	iot_setup "$swap_session"
	printf '%s\n' "retention:" "  min_free: 0" "$@" >"$iot_dir/config.yaml"
	iot_start || bail "$swap_name daemon" "it did not start"
	quiet-counters "$swap_session/begin" || bail "$swap_name" "no rest before it begins"
	: >"$swap_session/areas"
	: >"$swap_session/claims"
	echo "$swap_all" >"$swap_session/disks"
	echo "$swap_raw" >"$swap_session/raw"
	swap_begun=$(cut -d. -f1 /proc/uptime)
	: >"$swap_session/expect.json"
	swap_areas=
}

swap_area() {
	for _area; do
		_path=$(swap_path "$_area")
		swap_extents "$_path" >>"$swap_session/areas"
		swapon "$_path" || bail "$swap_name" "swapon $_path failed"
		swap_areas="$_path $swap_areas"
	done
}

swap_huge() {
	_thp=/sys/kernel/mm/transparent_hugepage
	_option=madvise
	swap_hog_options=-t
	[ "$1" = on ] || _option=never swap_hog_options=
	echo "$_option" >$_thp/enabled
	# 6.8 (multi-size THP): 64 KiB beside 2 MiB.
	for _dir in $_thp/hugepages-64kB $_thp/hugepages-2048kB; do
		[ ! -e "$_dir/enabled" ] || echo "$_option" >"$_dir/enabled"
	done
}

# in_cgroup NAME COMMAND...
# shellcheck disable=SC2016
in_cgroup_sh='echo $$ >/sys/fs/cgroup/$1/cgroup.procs; shift; exec "$@"'
in_cgroup() { sh -c "$in_cgroup_sh" sh "$@"; }

# The same in the background; sets beside to its process id. (A function's would be that of a shell of its own.)
# shellcheck disable=SC2034 # for the caller
beside_in_cgroup() {
	sh -c "$in_cgroup_sh" sh "$@" &
	beside=$!
}

# swap_off PATH	no limit may be in the way: what comes back is charged to the cgroup it was swapped out of
swap_off() {
	for _file in memory.max memory.high; do
		echo max >"/sys/fs/cgroup/hog/$_file"
	done
	swapoff "$1"
}

mem_available_mb() { awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo; }

# Until the file "stop" is there: buffered writes with fsync, reads from a cold cache, direct I/O on the raw partition.
swap_ordinary() {
	while [ ! -e /tmp/stop ]; do
		if [ -d /mixed ]; then
			dd if=/dev/zero of=/mixed/ordinary bs=64K count=12 conv=fsync 2>/dev/null
			echo 1 >/proc/sys/vm/drop_caches
			cat /mixed/ordinary >/dev/null
		fi
		block-workload -c ordinary -o "$swap_session/expect.json" "/dev/$swap_raw" write:0:64K:4 read:1M:16K:8 \
			write-batch:2M:4K:8 read-batch:2M:4K:8 fsync || bail "$swap_name ordinary" "block-workload failed"
	done
}

swap_beside() {
	rm -f /tmp/stop
	swap_ordinary &
	_ordinary=$!
	"$@" >"$swap_session/hog.log" 2>&1
	_status=$?
	: >/tmp/stop
	wait $_ordinary
	assert_eq "$swap_name: the workload ends well" 0 $_status
	[ $_status = 0 ] || sed 's/^/# /' "$swap_session/hog.log"
	sync
}

# swap_limit global|max|high	sets swap_mb, how much to ask for; a test may want other sizes of a cgroup's
swap_limit() {
	echo max >/sys/fs/cgroup/hog/memory.max
	echo max >/sys/fs/cgroup/hog/memory.high
	case $1 in
	global) swap_mb=$(($(mem_available_mb) + 24)) ;;
	max | high)
		swap_mb=${swap_ask:-$([ -n "$vm_long" ] && echo 64 || echo 32)}
		echo "${swap_get:-16}M" >"/sys/fs/cgroup/hog/memory.$1"
		;;
	esac
}

# An emulated processor takes up to half a millisecond for a page that goes or comes, so not many do.
swap_hog() {
	swap_limit "$1"
	_pressure=$1
	shift
	if [ $# -gt 0 ]; then
		:
	elif [ -n "$vm_long" ]; then
		set -- fill touch:3000 pageout touch:1500 verify
	elif [ "$_pressure" = global ]; then
		set -- fill touch:2500
	else
		set -- fill touch:900 pageout touch:600
	fi
	# shellcheck disable=SC2086 # options are words
	swap_beside in_cgroup hog swap-hog $swap_hog_options -n "$swap_name" "$swap_mb" "$@"
}

swap_stress() {
	swap_limit "$1"
	swap_beside in_cgroup hog stress-ng --vm 2 --vm-bytes "$((swap_mb / 2))M" -t 4
}

swap_claim() { printf 'sums\t%s\t%s\t%s\n' "$swap_name: $1" "$2" "$3" >>"$swap_session/claims"; }
swap_claim_lost() { printf 'lost\t%s\t%s\t%s\n' "$swap_name: $1" "$2" "$3" >>"$swap_session/claims"; }

swap_end() {
	note "$swap_name: $(($(cut -d. -f1 /proc/uptime) - swap_begun)) s so far"
	ctl --json status >"$swap_session/status.json"
	ctl probes >"$swap_session/probes.txt"
	# What would be judged after that is the fault of this.
	for _path in $swap_areas; do swap_off "$_path" || bail "$swap_name" "swapoff $_path failed"; done
	sync
	quiet-counters "$swap_session/end" || not_ok "$swap_name" "no rest at its end"
	iot_stop
	assert_eq "$swap_name: the daemon ends well" 0 $?
	note "$swap_name: $(($(cut -d. -f1 /proc/uptime) - swap_begun)) s, memory left $(mem_available_mb) MiB"
}
