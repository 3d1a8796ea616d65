#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The Debian packages' whole life under this Debian's systemd: install, enable, who may ask, reload, restart, watchdog,
# stop, disable, upgrade, remove, purge, and what else is enabled by hand: archive, numbers for monitoring, packets.
# tests/systemd/guest-package.sh is what runs in the machine.
#
# usage: test-package.sh [PART]	only the machine that has that part (watchdog, removing, archiving, metrics, packets)
#
# timeout: 3900

cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# Those that are there, unless a source is newer.
deb=$(find "$B/deb" -maxdepth 1 -name 'iotraced_*.deb' 2>/dev/null | head -n 1)
if [ -z "$deb" ] || [ -n "$(git ls-files -z | xargs -0 -I{} find {} -newer "$deb" 2>/dev/null | grep -v ^tests/ | head -n 1)" ]; then
	packaging/build-deb.sh "$B/deb" || { echo "not ok packages: they could not be built"; exit 1; }
	deb=$(find "$B/deb" -maxdepth 1 -name 'iotraced_*.deb' | head -n 1)
fi
cp "$B"/deb/iotraced_*.deb "$work/iotraced.deb" && cp "$B"/deb/iotraced-tools_*.deb "$work/iotraced-tools.deb" || exit 1
# The same again as a later version: what an upgrade does is the scripts' and systemd's doing.
version=$(dpkg-deb -f "$work/iotraced.deb" Version)
for name in iotraced iotraced-tools; do
	dpkg-deb -R "$work/$name.deb" "$work/unpacked" &&
		sed -i -e "s/^Version: .*/Version: $version+next/" -e "s/(= $version)/(= $version+next)/" "$work/unpacked/DEBIAN/control" &&
		dpkg-deb -Znone --root-owner-group -b "$work/unpacked" "$work/$name-next.deb" >/dev/null || exit 1
	rm -rf "$work/unpacked"
done
read -r _ kernel_dir _ < <(tests/vm/kernels.sh "${SYSTEMD_KERNEL:-6.1}")
cp "$kernel_dir"/lib/modules/*/kernel/drivers/net/veth.ko "$work/" || exit 1
# In several machines: qemu emulates, and one would take more than ten minutes on a busy host. That the packet stream's programs
# are loaded takes some by itself.
status=0
for parts in "installation enabling asking reloading watchdog" "installation enabling upgrading stopping removing" \
	"installation enabling archiving own_test" "installation enabling metrics" "installation enabling packets"; do
	case " $parts " in *" ${1:-} "*) ;; *) [ $# = 0 ] || continue ;; esac
	tr ' ' '\n' <<<"$parts" >"$work/parts"
	limit=570
	[ "${parts##* }" != packets ] || limit=1200
	tests/systemd/run.sh --timeout "$limit" --install 0 --log "${LOGS:-$B/test-logs}/systemd-package-${parts##* }.console" \
		tests/systemd/guest-package.sh "$work"/*.deb "$work/veth.ko" "$work/parts" \
		daemon/log-ids.h packaging/debian/tests/recorder || status=$?
done
exit "$status"
