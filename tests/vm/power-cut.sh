#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154 # libraries and variables of the guest
#
# The machine whose power tests/live/test-power-cut.sh cuts: it records under load on ext4 on a disk with a volatile
# cache, and says on a line of its own which segments are sealed, with the digest of what is in them. It does not
# end; it is killed.
#
# vm: --module virtio_pci --module virtio_blk --memory 384 --disk load=64M --built iotraced --built iotracectl

. /tests/lib/guest-lib.sh

vm_modprobe virtio_pci || bail "virtio_pci" "this kernel has none"
vm_modprobe virtio_blk || bail "virtio_blk" "this kernel has none"
state=vda
wait_for 10 test -b "/dev/$state" || bail disks "not found"
load=$(vm_disk load) || bail disks "not found"
iot_setup /tmp/run
mount -t ext4 "/dev/$state" "$iot_state" || bail mount "it failed"
printf 'devices:\n  include: [%s]\nretention:\n  min_free: 0\n  max_size: 1GiB\nstreams:\n  block:\n    block_age: 20ms\n    sync: %s\n' \
	"$load" "${1:-seal}" >"$iot_dir/config.yaml"
iot_start || bail daemon "it did not start"
while :; do dd if=/dev/zero of="/dev/$load" bs=4k count=2000 oflag=direct 2>/dev/null; done &
while :; do
	name=$(ctl rotate) || bail rotate "it failed"
	name=${name##*/}
	# Only what rotate has answered for is promised to be on the disk.
	echo "$(sha256sum <"$iot_state/$name" | cut -d' ' -f1) $name" >/dev/ttyS2
done
