#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The packages that test-deb.sh has built, built once more in another place, with another umask, time zone and locale:
# the same bytes.
#
# timeout: 900
cd "$(dirname "$0")/../.." || exit 2
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
B=${B:-build}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for tool in dpkg-buildpackage dh; do
	command -v "$tool" >/dev/null || { echo "skip packages: no $tool; run: tests/lib/install-deps.sh deb-check"; exit 77; }
done
debs=("$B"/deb/*.deb)
[ -e "${debs[0]}" ] || bail "packages" "not built: run tests/packages/test-deb.sh"
there=$work/another/and/longer/place
umask 077
TZ=Asia/Kathmandu LC_ALL=C.UTF-8 packaging/build-deb.sh "$there" >/dev/null || bail "build elsewhere" "it failed"
umask 022
assert_eq "packages" 4 "${#debs[@]}"
for deb in "${debs[@]}"; do
	assert_eq "reproducible: ${deb##*/}" "$(sha256sum <"$deb")" "$(sha256sum <"$there/${deb##*/}")"
done
assert_eq "reproducible: source" "$(sha256sum <"$(echo "$B"/deb/iotraced_*.tar.xz)")" \
	"$(sha256sum <"$(echo "$there"/iotraced_*.tar.xz)")"
tap_end
