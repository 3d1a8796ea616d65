#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Debian packages from what is checked out, built in a directory of their own: the tree stays as it is.
#
# usage: build-deb.sh DIRECTORY	leaves there *.deb, *.dsc, *.changes, *.buildinfo and the source
# DEB_BUILD_OPTIONS as in Debian's policy; default: parallel, and nocheck, as `make check` has tested more than a
# package's build can. VERSION_SUFFIX=~1 makes another version of it (tests of an upgrade).

set -eu -o pipefail
cd "$(dirname "$0")/.."
[ $# = 1 ] || { sed -n '4,9s/^# \{0,1\}//p' "$0" >&2; exit 64; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
export DEB_BUILD_OPTIONS=${DEB_BUILD_OPTIONS-"nocheck parallel=$(nproc)"}
# Only what dpkg-buildflags and debian/rules say.
unset CFLAGS CPPFLAGS LDFLAGS MAKEFLAGS MAKEOVERRIDES MFLAGS B V T KIND LOGS

version=$(sed -n 's/^VERSION := //p' Makefile)
source=$out/iotraced-$version
# Only directories that are ours are removed.
if [ -e "$source" ] && [ ! -e "$source/debian/changelog" ]; then
	echo "$source is in the way" >&2
	exit 1
fi
rm -rf "$source"
mkdir "$source"
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
	git ls-files -z | while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done
else
	find . -path ./build -prune -o -type f -printf '%P\0'
fi | tar --null -T - -cf - | tar -C "$source" -xf -
cp -r packaging/debian "$source/debian"
[ -z "${VERSION_SUFFIX:-}" ] || sed -i "1s/(\([^)]*\))/(\1$VERSION_SUFFIX)/" "$source/debian/changelog"
# Clocks and umasks of the machine are no part of it.
chmod -R u=rwX,go=rX "$source"
log=$out/build.log
if ! (cd "$source" && dpkg-buildpackage -us -uc) >"$log" 2>&1; then
	tail -n 40 "$log" >&2
	echo "the packages could not be built; all of it: $log" >&2
	exit 1
fi
rm -rf "$source"
(cd "$out" && ls -1 ./*.deb) | sed "s|^\./|$1/|"
