#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Boots a machine with Debian and its own systemd (image.sh), where `make install` has put our programs and units, and
# runs one script in it as a service, after everything else has started.
#
# usage: run.sh [--timeout SEC] [--log FILE] [--install 0] SCRIPT [FILE...]
#	SCRIPT runs as root; FILEs and tests/lib and guest-lib.sh are beside it, in /opt/test
#	--install 0: without our programs and units, for packages
#
# Kernel as in tests/vm (SYSTEMD_KERNEL, default 6.1), ext4 on NVMe, and an empty NVMe disk with the serial `load`.
# qemu emulates, see tests/vm/run.sh. Exit: the script's status, 124 timeout, 125 no machine, 77 no image or kernel.

set -u -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.." || exit 125

limit=180 log='' install=1
while [ $# -gt 0 ]; do
	case $1 in
	--timeout) limit=$2 ;;
	--log) log=$2 ;;
	--install) install=$2 ;;
	*) break ;;
	esac
	shift 2
done
script=$1
shift

kernel_line=$(tests/vm/kernels.sh "${SYSTEMD_KERNEL:-6.1}") || exit $?
read -r _ kernel_dir _ <<<"$kernel_line"
image=$("$here/image.sh") || exit $?
work=$(mktemp -d /dev/shm/iotraced-systemd.XXXXXX) || exit 125
qemu_pid=''
# shellcheck disable=SC2317 # by the trap
cleanup() {
	[ -z "$qemu_pid" ] || { kill -KILL "$qemu_pid" && wait "$qemu_pid"; } 2>/dev/null
	mountpoint -q "$work/mnt" && umount "$work/mnt"
	rm -rf "$work"
}
trap cleanup EXIT
trap 'trap "" INT TERM HUP; exit 143' INT TERM HUP

nonce=$$.$RANDOM$RANDOM
mkdir "$work/mnt"
cp --sparse=always "$image" "$work/root.img" && truncate -s 64M "$work/load.img" &&
	mount -o loop,offset=1048576 "$work/root.img" "$work/mnt" || exit 125
# The same spelling as in `make`: another one is another set of flags, hence another build.
B=${B:-build}
if [ "$install" = 1 ]; then
	make -s B="${B#"$PWD"/}" DESTDIR="$work/mnt" prefix=/usr install || exit 125
fi
mkdir -p "$work/mnt/opt/test" "$work/mnt/etc/systemd/system/multi-user.target.wants"
cp "$script" "$work/mnt/opt/test/script"
cp tests/lib/*.sh "$here/guest-lib.sh" "$@" "$work/mnt/opt/test/" || exit 125
cat >"$work/mnt/opt/test/main" <<-END
	#!/bin/sh
	echo "@@start $nonce"
	cd /opt/test && sh ./script
	echo "@@end $nonce \$?"
	sync
	# The line has to be out before the machine is gone.
	stty raw
	systemctl poweroff --force --force
END
cat >"$work/mnt/etc/systemd/system/iot-test.service" <<-END
	[Unit]
	Description=Test
	After=multi-user.target
	[Service]
	Type=oneshot
	ExecStart=/bin/sh /opt/test/main
	StandardInput=file:/dev/ttyS1
	StandardOutput=file:/dev/ttyS1
	StandardError=file:/dev/ttyS1
	TimeoutStartSec=infinity
END
ln -s ../iot-test.service "$work/mnt/etc/systemd/system/multi-user.target.wants/"
umount "$work/mnt" || exit 125

: >"$work/output"
qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot \
	-machine q35 -accel tcg,thread=multi -cpu max -smp 2 -m 768 -kernel "$kernel_dir/vmlinuz" \
	-append "root=PARTUUID=696f7472-01 rootwait rw console=ttyS0 panic=-1 oops=panic mitigations=off systemd.show_status=1 systemd.log_target=console" \
	-serial "file:$work/console" -serial "file:$work/output" \
	-drive "if=none,id=root,file=$work/root.img,format=raw,cache=unsafe" -device nvme,drive=root,serial=root \
	-drive "if=none,id=load,file=$work/load.img,format=raw,cache=unsafe" -device nvme,drive=load,serial=load \
	>"$work/qemu.log" 2>&1 </dev/null &
qemu_pid=$!
deadline=$((SECONDS + limit)) timed_out=''
while kill -0 "$qemu_pid" 2>/dev/null; do
	[ "$SECONDS" -lt "$deadline" ] || timed_out=1
	[ -z "$timed_out" ] || kill -KILL "$qemu_pid"
	sleep 0.2
done
wait "$qemu_pid" 2>/dev/null
qemu_pid=''
[ -z "$log" ] || { mkdir -p "$(dirname "$log")" && cp "$work/console" "$log"; }
tr -d '\r' <"$work/output" | grep -av '^@@'
status=$(tr -d '\r' <"$work/output" | sed -n "s/^@@end $nonce \([0-9]*\).*/\1/p" | tail -n 1)
if [ -z "$status" ]; then
	tail -n 40 "$work/console" "$work/qemu.log" | tr -d '\r' | sed 's/^/# console: /'
	[ -z "$timed_out" ] || exit 124
	exit 125
fi
exit "$status"
