#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The kernel side on this host, over a loop device on memory: what the records (and, when the ring is too
# small, the ledger) add up to per device must equal the kernel's own counters in /proc/diskstats exactly,
# with plain loads and with the fallback, with and without loss, across changes of the epoch.
#
# timeout: 400

set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib/tap.sh
. "$here/../lib/tap.sh"
# shellcheck source=tests/lib/diskstats.sh
. "$here/../lib/diskstats.sh"

smoke=$here/../../${B:-build}/tests/tools/probe-smoke
case ${B:-build} in /*) smoke=$B/tests/tools/probe-smoke ;; esac

[ "$(id -u)" = 0 ] || { skip probes "needs root"; tap_end; }
[ -x "$smoke" ] || bail probes "no $smoke: run make tests-bin"
command -v fio >/dev/null || { skip probes "needs fio"; tap_end; }

dir=$(mktemp -d /dev/shm/iotraced-probes.XXXXXX) || bail probes "no memory file system"
loop=
cleanup() {
	[ -z "$loop" ] || losetup -d "$loop"
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'trap "" INT TERM HUP; exit 143' INT TERM HUP # a second one must not stop the cleanup
truncate -s 128M "$dir/disk" || bail probes "cannot make a disk image"
loop=$(losetup -f --show "$dir/disk") || { skip probes "no loop device"; loop='' && tap_end; }
disk=${loop#/dev/}
number=$(cat "/sys/block/$disk/dev")

# A fixed number of requests of every kind a loop device takes.
cat >"$dir/workload.fio" <<EOF
[global]
filename=$loop
direct=1
ioengine=libaio
iodepth=16
size=32M
[random]
rw=randrw
bs=4k
fsync=32
[sequential]
stonewall
rw=write
bs=64k
[trim]
stonewall
rw=randtrim
bs=16k
[read]
stonewall
rw=read
bs=256k
EOF
# Buffered writes: merged and split by the kernel, submitted by its workers, flushed at the end.
cat >"$dir/workload.sh" <<EOF
fio --output=/dev/null "$dir/workload.fio" || exit 1
dd if=/dev/zero of="$loop" bs=1M count=48 conv=fsync 2>/dev/null
echo 3 >/proc/sys/vm/drop_caches 2>/dev/null
dd if="$loop" of=/dev/null bs=1M count=48 2>/dev/null
EOF

# field NAME OF-THE-DEVICE-LINE
field() { sed -n "s/^device $number .* \{0,1\}$1=\([0-9]*\).*/\1/p" "$dir/out"; }
sum() { sed -n "s/^probe .* $1=\([0-9]*\).*/\1/p" "$dir/out" | awk '{ n += $1 } END { print n + 0 }'; }

# Whether all sums equal the kernel's. Where not, this kernel may have run no program on a completion whose
# request had no later life that could prove it (see tests/live/test-exact.sh).
whole() {
	for group in reads writes discards flushes; do
		[ "$(diskstats_delta "$before" "$after" $group)" = "$(field $group)" ] || return 1
	done
}

# watch NAME OPTION...	runs the workload under probe-smoke and compares all columns
watch() {
	name=$1
	shift
	for try in 1 2 3 4 5; do
		observe "$@"
		whole && break
		note "$name, try $try: a completion that no program saw, and no later life that proves it"
	done
	assert_eq "$name-books-balance" 0 "$status"
	[ "$status" = 0 ] || grep '^bad' "$dir/out" | head -n 5 | sed 's/^/# /'
	[ -s "$dir/err" ] && sed 's/^/# /' "$dir/err"
	for group in reads writes discards; do
		assert_eq "$name-$group" "$(diskstats_delta "$before" "$after" $group)" "$(field $group)"
		assert_eq "$name-${group}_sectors" "$(diskstats_delta "$before" "$after" "${group%s}_sectors")" \
			"$(field "${group}_sectors")"
	done
	assert_eq "$name-flushes" "$(diskstats_delta "$before" "$after" flushes)" "$(field flushes)"
	assert_num "$name-not-empty" "$(($(field records) + $(field lost)))" -gt 100
}

observe() {
	wait_for 10 diskstats_idle "$disk"
	before=$(diskstats_snapshot "$disk")
	"$smoke" --include "$disk" "$@" -- sh "$dir/workload.sh" >"$dir/out" 2>"$dir/err"
	status=$?
	wait_for 10 diskstats_idle "$disk"
	after=$(diskstats_snapshot "$disk")
}

# What a full ring lost. Ends that no run saw (this kernel runs no tracing program now and then, for a whole
# softirq) are filed too and part of all sums, but they are the kernel's doing and may happen at any time.
lost() { echo $(($(field lost) - $(field unseen))); }

# Of a loss nobody knows the merges.
merges() {
	[ "$(field lost)" = 0 ] || return 0
	for group in reads writes discards; do
		assert_eq "$1-${group}_merges" "$(diskstats_delta "$before" "$after" "${group%s}_merges")" \
			"$(field "${group}_merges")"
	done
}

hook_of() { sed -n "s/^probe [0-9]* $1 hook=\([^ ]*\) state=attached.*/\1/p" "$dir/out"; }

watch direct
merges direct
assert_eq direct-hook tp_btf "$(hook_of block_rq_complete)"
assert_eq direct-lost 0 "$(lost)"
assert_eq direct-begun 0 "$(field no_start)"

watch fallback --fallback
merges fallback
assert_eq fallback-hook raw_tp "$(hook_of block_rq_complete)"
assert_eq fallback-lost 0 "$(lost)"

watch two-rings --ring-cpus 1
assert_eq two-rings-lost 0 "$(lost)"

watch epochs --flip-ms 20
merges epochs
assert_eq epochs-lost 0 "$(lost)"
assert_num epochs-several "$(sed -n 's/^records=.* epochs=\([0-9]*\) .*/\1/p' "$dir/out")" -ge 5

# Nobody reads a ring of 16 KiB: nearly all is lost, and all of it is filed.
watch stalled --ring-size 16KiB --stall
assert_num stalled-lost "$(field lost)" -gt 1000
assert_eq stalled-unattributed 0 "$(sum unattributed)"

# A ledger of 64 entries refuses most: the rest is counted as unattributed, and nothing is silent.
wait_for 10 diskstats_idle "$disk"
"$smoke" --include "$disk" --ring-size 16KiB --stall --ledger 64 -- sh "$dir/workload.sh" >"$dir/out" 2>&1
assert_eq tiny-ledger-books-balance 0 $?
assert_num tiny-ledger-unattributed "$(sum unattributed)" -gt 1000
assert_eq tiny-ledger-sum "$(sum reserve_failed)" "$(($(sum unattributed) + $(sum filed)))"

# An in-flight map of 4 entries: requests go unidentified, and still make exactly one record each.
watch unidentified --in-flight-entries 4
assert_num unidentified-counted "$(sum identity_full)" -gt 100

# Another device's filter: seen and not selected, no record.
"$smoke" --exclude "$disk" --exclude 'loop*' -- sh "$dir/workload.sh" >"$dir/out" 2>&1
assert_eq excluded-books-balance 0 $?
assert_eq excluded-records '' "$(field records)"
assert_num excluded-counted "$(sum not_selected)" -gt 1000

tap_end
