#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The Debian packages, built: without a word of lintian's, and iotraced-tools unpacked alone reads a segment.
# tests/systemd/test-package.sh installs them, test-reproducible.sh builds them once more.
#
# timeout: 900
cd "$(dirname "$0")/../.." || exit 2
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
B=${B:-build}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for tool in dpkg-buildpackage dh lintian; do
	command -v "$tool" >/dev/null || { echo "skip packages: no $tool; run: tests/lib/install-deps.sh deb-check"; exit 77; }
done

# ---- built ------------------------------------------------------------------------------------------------------

out=$B/deb
packaging/build-deb.sh "$out" >"$work/first" || bail "build" "see $out/build.log"
mapfile -t debs <"$work/first"
assert_eq "packages" "iotraced iotraced-dbgsym iotraced-tools iotraced-tools-dbgsym" \
	"$(printf '%s\n' "${debs[@]##*/}" | cut -d_ -f1 | LC_ALL=C sort | xargs)"

# ---- lintian ----------------------------------------------------------------------------------------------------

assert_eq "lintian at pedantic" "" \
	"$(lintian --allow-root --no-cfg --pedantic --display-info "$out"/iotraced_*.changes 2>&1)"

# ---- what is in them --------------------------------------------------------------------------------------------

iotraced=$(printf '%s\n' "${debs[@]}" | grep '/iotraced_') tools=$(printf '%s\n' "${debs[@]}" | grep '/iotraced-tools_')
dpkg-deb -R "$tools" "$work/tools" || bail "unpack" "$tools"
dpkg-deb -R "$iotraced" "$work/iotraced" || bail "unpack" "$iotraced"
assert_eq "the tools need these libraries" "libc6 libjson-c5 liblz4-1 libmd0 libxxhash0" \
	"$(dpkg-deb -f "$tools" Depends | tr , '\n' | awk '{print $1}' | sort | xargs)"
assert_eq "and run nothing when they are installed" "control md5sums" \
	"$(find "$work/tools/DEBIAN" -type f -printf '%f\n' | sort | xargs)"
assert_eq "iotraced-tools alone verifies a segment" 0 \
	"$("$work/tools/usr/bin/iotracectl" verify tests/golden/v1/random.iot >/dev/null; echo $?)"
assert_status "autopkgtest of the reader" 0 env PATH="$work/tools/usr/bin:$PATH" packaging/debian/tests/reader
assert_eq "autopkgtests that are there" "$(sed -n 's/^Tests: //p' packaging/debian/tests/control | sort | xargs)" \
	"$(find packaging/debian/tests -type f -perm -1 -printf '%f\n' | sort | xargs)"
assert_eq "the configuration is a conffile" "/etc/iotraced/archive.conf /etc/iotraced/iotraced.yaml" \
	"$(sort "$work/iotraced/DEBIAN/conffiles" | xargs)"
# What these do is seen in the machine (tests/systemd/guest-package.sh); here that they are there at all.
assert_num "an upgrade restarts" "$(grep -c '_dh_action=restart' "$work/iotraced/DEBIAN/postinst")" -ge 1
assert_num "a removal stops" "$(grep -c 'deb-systemd-invoke stop .*iotraced.service' "$work/iotraced/DEBIAN/prerm")" -ge 1
assert_eq "the unit starts the packaged program" "ExecStart=/usr/sbin/iotraced" \
	"$(grep ^ExecStart= "$work/iotraced/lib/systemd/system/iotraced.service")"
tap_end
