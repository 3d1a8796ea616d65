#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# /init of the test machines: mounts what a script may expect, runs /tests/script with its output on the
# second serial line between the two markers that run.sh waits for, hands /results back as a tar on the
# raw disk of that serial number, and powers off. The kernel's own messages stay on the first line.

export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc -o nosuid,nodev,noexec proc /proc
mount -t sysfs -o nosuid,nodev,noexec sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
for dir in /dev/shm /run /tmp /results /var/lib; do
	mkdir -p "$dir"
	mount -t tmpfs -o size=90% tmpfs "$dir"
done
mount -t debugfs debugfs /sys/kernel/debug
mount -t tracefs tracefs /sys/kernel/tracing
mkdir -p /sys/fs/bpf /sys/fs/cgroup
mount -t bpf bpf /sys/fs/bpf
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ln -sf /proc/self/fd /dev/fd
hostname iotraced-vm
ip link set lo up
# All that the tests read of the kernel stays on its console line, without the load of it.
echo 6 >/proc/sys/kernel/printk

# shellcheck source=/dev/null # vm_nonce, vm_args, vm_label
. /tests/env
# shellcheck source=/dev/null
. /tests/lib/guest-lib.sh

stty -F /dev/ttyS1 raw -echo
# shellcheck disable=SC2154
echo "@@start $vm_nonce" >/dev/ttyS1
# shellcheck disable=SC2154,SC2086 # both are set by /tests/env; the arguments are words
(cd /tmp && exec /bin/sh /tests/script $vm_args) >/dev/ttyS1 2>&1 </dev/null
status=$?

if [ -n "$(ls -A /results)" ]; then
	disk=$(vm_disk iot-results) && tar -C /results -cf "/dev/$disk" . && sync
	[ -n "$disk" ] || status=125
fi
stty -F /dev/ttyS1 raw # set after draining, so all output is out
echo "@@end $vm_nonce $status" >/dev/ttyS1
stty -F /dev/ttyS1 raw
poweroff -f
