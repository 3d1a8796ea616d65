#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What `sudo make run` shows after building: iotraced records the block I/O of this machine for a few seconds,
# some of it made here on a loop device over memory and on the real disk, then iotracectl says what it was.
#
# DURATION=SEC (default 12) records longer. Segments stay in $B/run/segments; all else is taken away again.
set -u
cd "$(dirname "$0")/../.." || exit 1

B=${B:-build}
duration=${DURATION:-12}
iotraced=$B/iotraced iotracectl=$B/iotracectl
segments=$B/run/segments

fail() {
	echo "run: $*" >&2
	exit 1
}

say() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }
# Shows a command as it would be typed, then runs it.
show() {
	printf '%s$ %s%s\n' "$bold" "$*" "$plain"
	"$@"
}
bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
	bold=$'\033[1m' plain=$'\033[0m'
fi

[[ $duration =~ ^[0-9]{1,5}$ && $duration -ge 8 ]] || fail "DURATION=$duration: a number of seconds, at least 8"
[ "$(id -u)" = 0 ] || fail "recording needs root (or CAP_BPF and CAP_PERFMON): sudo make run"
[[ -x $iotraced && -x $iotracectl ]] || fail "$iotraced is not built; run make"

# In memory, so that the loop device's own file makes no I/O; the socket's path has to be short as well.
scratch=$(mktemp -d /dev/shm/iotraced-run.XXXXXX 2>/dev/null || mktemp -d) || exit 1
socket=$scratch/sock
daemon='' loop=''

# Called by the trap: whatever happens, nothing stays but the segments. A second signal (Ctrl-C pressed again, or
# timeout(1), which signals both its child and its group) must not leave the daemon and the scratch behind.
cleanup() {
	trap '' INT TERM HUP
	if [ -n "$daemon" ] && kill -TERM "$daemon" 2>/dev/null; then
		wait "$daemon"
	fi
	[ -z "$loop" ] || losetup -d "$loop"
	rm -rf "$scratch" "$B/run/file"
}
trap cleanup EXIT
trap 'trap "" INT TERM HUP; exit 130' INT
trap 'trap "" INT TERM HUP; exit 143' TERM HUP

wait_until_ready() {
	local tries=150
	until "$iotracectl" --socket "$socket" status >/dev/null 2>&1; do
		tries=$((tries - 1))
		if [ "$tries" -eq 0 ] || ! kill -0 "$daemon" 2>/dev/null; then
			return 1
		fi
		sleep 0.1
	done
}

io_on_loop() {
	truncate -s 64M "$scratch/disk" || return
	if ! loop=$(losetup -f --show "$scratch/disk" 2>/dev/null); then
		loop=
		echo "(no loop device to be had here; the disk alone has to do)"
		return
	fi
	echo "3 seconds of random 4 KiB reads and writes, depth 8, on $loop, a device over memory"
	if command -v fio >/dev/null; then
		fio --name=demo --filename="$loop" --direct=1 --rw=randrw --bs=4k --iodepth=8 --ioengine=libaio \
			--rate_iops=4000 --time_based --runtime=3 --output-format=terse >/dev/null 2>&1 ||
			echo "(fio failed; going on)"
	else
		dd if=/dev/zero of="$loop" bs=4k count=4000 oflag=direct status=none
		dd if="$loop" of=/dev/null bs=4k count=4000 iflag=direct status=none
	fi
}

io_on_disk() {
	echo "4 MiB written to a file in $B/run and fsync'ed, 5 times"
	for _ in 1 2 3 4 5; do
		# A slow or busy disk must not outlast the recording.
		[ $((SECONDS - began)) -lt $((duration - 4)) ] || return
		timeout 3 dd if=/dev/zero of="$B/run/file" bs=128k count=32 conv=fsync status=none || return
	done
}

say "iotraced records the block I/O of this machine for $duration s"
rm -rf "$segments" && mkdir -p "$segments" || exit 1
printf '%s$ %s%s\n' "$bold" "$iotraced --state-dir $segments --socket $socket --duration $duration" "$plain"
# In a session of its own: Ctrl-C reaches this script, which then stops the daemon in good order.
setsid "$iotraced" --state-dir "$segments" --socket "$socket" --duration "$duration" 2>&1 </dev/null &
daemon=$!
began=$SECONDS
if ! wait_until_ready; then
	if ! kill -0 "$daemon" 2>/dev/null; then
		wait "$daemon"
		code=$?
		daemon=''
		fail "iotraced ended with status $code before it recorded anything; it says why above"
	fi
	fail "iotraced was not ready within 15 s"
fi

say "Meanwhile, some I/O"
io_on_loop
io_on_disk

say "What the daemon does (the socket answers while it records)"
show "$iotracectl" --socket "$socket" --no-pager status

say "Waiting for the end: the rings are drained and the segment is sealed"
wait "$daemon"
code=$?
daemon=''
[ "$code" = 0 ] || fail "iotraced ended with status $code"
if [ -n "$loop" ]; then
	losetup -d "$loop"
	loop=''
fi

say "What was recorded"
show "$iotracectl" --no-pager report "$segments"
reported=$?

say "Can the record be trusted? The books are recomputed from the segments"
show "$iotracectl" --no-pager verify "$segments"
verified=$?
case $verified in
0) meaning="complete: nothing that happened is missing" ;;
10) meaning="observations were lost, and it is known which" ;;
11) meaning="completeness cannot be proved; the reasons are above" ;;
*) meaning="the segments are damaged" ;;
esac
echo "(exit status $verified: $meaning)"

# For who called sudo, who builds and tests without it next.
[ -z "${SUDO_UID:-}" ] || chown -R "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" "$B"
say "The segments stay in $segments"
# shellcheck disable=SC2012 # names of our own making
ls -lh "$segments" | sed '1d; / lock$/d; s/^/  /'
cat <<END

More to see:
  $iotracectl cat $segments                one line a request
  $iotracectl --json cat $segments         the same as JSON
  $iotracectl report --op write $segments  only writes
  $iotracectl export --format=csv --output trace.csv $segments
To record for good, as root: make install && systemd-sysusers && systemctl daemon-reload, then
  systemctl enable --now iotraced
END

[ "$reported" -lt 20 ] && [ "$verified" -lt 20 ]
