#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The root file system of a machine with a real systemd, made once and kept outside the tree:
#
#	${IOTRACED_CACHE:-/var/cache/iotraced}/systemd/SUITE.img	one partition, ext4, at 1 MiB
#
# It is this host's own Debian release (what is built here has to run there), by debootstrap from the mirror that
# the host's apt uses, with systemd, the libraries that our programs are linked with, and jq. Nothing of ours is in it:
# tests/systemd/run.sh puts that into a copy.
#
# usage: image.sh	prints the image's path; B=build is where the programs are
# Exit: 0, 77 it could not be had, 1 the same where CI=true.

set -u -o pipefail
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lib/mirror.sh
. tests/lib/mirror.sh

cache=${IOTRACED_CACHE:-/var/cache/iotraced}/systemd
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
work=
# shellcheck disable=SC2317 # by the trap
cleanup() {
	[ -n "$work" ] || return 0
	mountpoint -q "$work/root" && umount -R "$work/root"
	rm -rf "$work"
}
trap cleanup EXIT

give_up() {
	echo "image: $1" >&2
	[ "${CI:-}" = true ] && exit 1
	exit 77
}

# shellcheck source=/dev/null
. /etc/os-release
suite=${VERSION_CODENAME:-}
if [ "${ID:-}" != debian ] || [ -z "$suite" ]; then give_up "this host is not Debian"; fi
command -v debootstrap >/dev/null || give_up "no debootstrap on this host"

# Packages of the libraries that our programs need.
libraries() {
	ldd "${B:-build}/iotraced" "${B:-build}/iotracectl" "${B:-build}/tests/tools/block-workload" |
		grep -Eo '/[^ )]+' | sort -u | xargs -n 1 readlink -f | sort -u |
		xargs dpkg-query -S 2>/dev/null | cut -d: -f1 | sort -u | grep '^lib' | xargs
}
wanted=$(libraries)
[ -n "$wanted" ] || give_up "the programs are not built"
packages="systemd systemd-sysv jq $wanted"
image=$cache/$suite.img

mkdir -p "$cache" || exit 1
exec 9>"$cache/.lock" || exit 1
flock 9
if [ -e "$image" ] && [ "$(cat "$image.stamp" 2>/dev/null)" = "$packages" ]; then
	echo "$image"
	exit 0
fi
uri=$(mirror "^(stable|oldstable|oldoldstable|testing|$suite)\$")
[ -n "$uri" ] || give_up "no Debian main archive among this host's apt sources"
work=$(mktemp -d "$cache/.new.XXXXXX") || exit 1
echo "image: $suite with systemd, by debootstrap" >&2
# In memory: dpkg syncs every file, which takes minutes on a busy disk.
if ! { mkdir "$work/root" && mount -t tmpfs -o size=1500m,mode=755 iot-image "$work/root"; }; then give_up "no tmpfs"; fi
# Bounded: a mirror that hangs is one that is not there.
timeout -k 10 400 debootstrap --variant=minbase --keyring="$keyring" --include="$(echo "$packages" | tr ' ' ,)" \
	"$suite" "$work/root" "$uri" >"$work/log" 2>&1 || give_up "debootstrap: $(tail -n 1 "$work/log")"
# Nothing of this is needed, or waits for devices that are not there.
rm -rf "$work"/root/var/cache/apt/* "$work"/root/var/lib/apt/lists/* "$work"/root/usr/share/{doc,man,locale}/*
for unit in getty@tty1.service serial-getty@ttyS0.service apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer \
	e2scrub_all.timer e2scrub_reap.service fstrim.timer systemd-timesyncd.service; do
	ln -sf /dev/null "$work/root/etc/systemd/system/$unit"
done
: >"$work/root/etc/machine-id"
# The kernel finds it by the partition's id (PARTUUID=696f7472-01), since disks are found in any order: the id, one
# partition of type 83 from sector 2048 on with 0x1ff800 sectors, the boot sector's mark.
make_image() {
	truncate -s 1G "$work/image" &&
		printf 'rtoi' | dd of="$work/image" bs=1 seek=440 conv=notrunc &&
		printf '\0\0\0\0\203\0\0\0\0\10\0\0\0\370\37\0' | dd of="$work/image" bs=1 seek=446 conv=notrunc &&
		printf '\125\252' | dd of="$work/image" bs=1 seek=510 conv=notrunc &&
		mke2fs -q -t ext4 -b 4096 -E offset=1048576,lazy_itable_init=0,lazy_journal_init=0 -d "$work/root" "$work/image" \
			$((1023 * 256))
}
make_image >>"$work/log" 2>&1 || give_up "no image: $(tail -n 1 "$work/log")"
mv "$work/image" "$image" && echo "$packages" >"$image.stamp" && echo "$image"
