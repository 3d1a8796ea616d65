#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154 # libraries and variables of the guest
#
# Memory reclaim by whom and for whom: a task that is short of memory, whoever asks for pages of a cgroup or of a process
# to go, and kswapd. What is swapped out stands under the cgroup whose memory it was, whoever swapped it.
#
# On 7.x the kernel may skip runs of a program under such pressure (README, "What it does not see"): not exact there.
#
# vm-kernels: 5.10 6.12
# timeout: 240
# vm: --memory 320 --disk swap=256M --built iotraced --built iotracectl --built tests/tools/file-workload
# vm: --built tests/tools/swap-hog --check check-block.sh

. /tests/lib/guest-lib.sh
. /tests/lib/guest-block.sh

swap=$(vm_disk swap) || bail swap "not found"
block_expect=no block_trace=no
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
mkswap "/dev/$swap" >/tmp/mkswap.log 2>&1

cgroup() { mkdir -p "/sys/fs/cgroup/$1"; }
id_of() { stat -c %i "/sys/fs/cgroup/$1"; }
# Swap is on within a phase only: whoever was swapped out, the daemon included, may be read again at any time, also
# between the last request of a phase and the reading of its counters.
begin() {
	note "$1 at $(cut -d" " -f1 /proc/uptime) s"
	swapon "/dev/$swap" || bail swapon "$(tail -n 1 /tmp/mkswap.log)"
	block_begin "$1" "$swap"
}
end() {
	swapoff "/dev/$swap" || bail swapoff "it failed"
	block_end
}

# work CGROUP COMMAND...
work() {
	# shellcheck disable=SC2016
	sh -c 'echo $$ >/sys/fs/cgroup/$1/cgroup.procs; shift; exec "$@"' sh "$@" || bail "$block_phase workload" "it failed: $*"
}

# filled CGROUP BYTES
# shellcheck disable=SC2317 # called by way of wait_for
filled() { [ "$(cat "/sys/fs/cgroup/$1/memory.current")" -gt "$2" ]; }

# claims CGROUP KIND-OR-EMPTY	of all that was swapped out
claims() {
	_kind=null
	[ -z "$2" ] || _kind="\"$2\""
	block_claim "$block_phase: something was swapped out" true 'any(.swap == "out")'
	block_claim "$block_phase: all of it so" "[$_kind]" 'map(select(.swap == "out") | .reclaim) | unique'
	block_claim "$block_phase: from that cgroup" "[[\"$(id_of "$1")\",\"page\"]]" \
		'map(select(.swap == "out") | [.cgroup, .cgroup_by]) | unique'
	block_claim "$block_phase: every origin is swap" '["swap"]' 'map(select(.bytes > 0) | .origin) | unique'
}

block_start reclaim

cgroup small
echo 12M >/sys/fs/cgroup/small/memory.max
begin "direct reclaim"
work small file-workload -c hog - anon:24M touch:
claims small direct
block_claim "direct reclaim: by the task that is short" '["hog"]' 'map(select(.swap == "out") | .comm) | unique'
block_claim "direct reclaim: read again" true 'any(.swap == "in")'
block_claim "direct reclaim: reading is no reclaim" '[null]' 'map(select(.swap == "in") | .reclaim) | unique'
block_claim "direct reclaim: read for its owner" "[\"$(id_of small)\"]" 'map(select(.swap == "in") | .cgroup) | unique'
end

cgroup asked
begin "madvise"
work asked swap-hog 8 fill pageout
case $vm_label in
5.10) claims asked "" ;; # nothing is set in the task there
*) claims asked proactive ;;
esac
end

# memory.reclaim: 94968384dde1 (5.19)
if [ -e /sys/fs/cgroup/asked/memory.reclaim ]; then
	begin "memory.reclaim"
	rm -f /tmp/go
	work asked file-workload -c hog - anon:16M wait:/tmp/go &
	worker=$!
	wait_for 30 filled asked 16777216
	assert_eq "memory.reclaim: there is memory to reclaim" 0 $?
	echo 8M >/sys/fs/cgroup/asked/memory.reclaim
	: >/tmp/go
	wait $worker
	claims asked proactive
	block_claim "memory.reclaim: by who asked" true 'map(select(.swap == "out")) | all(.comm != "hog")'
	end
fi

cgroup large
begin "global reclaim"
work large file-workload -c hog - "anon:$(($(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo) + 32))M"
block_claim "global reclaim: kswapd's are kswapd's" true \
	'map(select(.swap == "out")) | length > 0 and all((.comm | startswith("kswapd")) == (.reclaim == "kswapd"))'
block_claim "global reclaim: kswapd took part" true 'any(.reclaim == "kswapd")'
block_claim "global reclaim: the rest was direct" '[]' \
	'(map(select(.swap == "out") | .reclaim) | unique) - ["direct", "kswapd"]'
# Whose pages go is the kernel's choice; it counts them by cgroup since 15ff4d409e1a.
of_large='map(select(.swap == "out" and .cgroup == "'"$(id_of large)"'"))'
block_claim "global reclaim: some from that cgroup" true "$of_large | length > 0"
pages=$(awk '$1 == "pswpout" { print $2 }' /sys/fs/cgroup/large/memory.stat)
[ -z "$pages" ] ||
	block_claim "global reclaim: as many bytes as its memory.stat says" "$((pages * 4096))" "$of_large | map(.bytes) | add"
block_claim "global reclaim: all by the page" '["page"]' 'map(select(.swap == "out") | .cgroup_by) | unique'
end
block_stop
tap_end
