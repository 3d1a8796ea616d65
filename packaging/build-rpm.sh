#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# RPMs from what is checked out. Where rpm's database does not know the libraries that are installed (Debian),
# what the spec file wants for building is not looked up.
#
# usage: build-rpm.sh DIRECTORY	leaves there *.rpm

set -eu -o pipefail
cd "$(dirname "$0")/.."
[ $# = 1 ] || { sed -n '4,7s/^# \{0,1\}//p' "$0" >&2; exit 64; }
command -v rpmbuild >/dev/null || { echo "no rpmbuild on this machine" >&2; exit 77; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
# The source package has the mode of what it is made of.
umask 022
unset CFLAGS CPPFLAGS LDFLAGS MAKEFLAGS MAKEOVERRIDES MFLAGS B V T KIND LOGS

version=$(sed -n 's/^VERSION := //p' Makefile)
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
mkdir "$top/SOURCES"
git ls-files -z | while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
	tar --null -T - --transform "s|^|iotraced-$version/|" --sort=name --owner=0 --group=0 --mode=u=rwX,go=rX --mtime=@0 -cf - |
	gzip -n >"$top/SOURCES/iotraced-$version.tar.gz"
# The same bytes wherever and whenever it is built: times are those of the spec file's log.
flags=(--define "source_date_epoch_from_changelog 1" --define "use_source_date_epoch_as_buildtime 1"
	--define "clamp_mtime_to_source_date_epoch 1" --define "_buildhost localhost")
[ ! -e /etc/debian_version ] || flags+=(--nodeps)
if ! rpmbuild -ba "${flags[@]}" --define "_topdir $top" packaging/iotraced.spec >"$out/build.log" 2>&1; then
	tail -n 40 "$out/build.log" >&2
	exit 1
fi
find "$top/RPMS" "$top/SRPMS" -name '*.rpm' -exec mv -t "$out" {} +
(cd "$out" && ls -1 ./*.rpm) | sed "s|^\./|$1/|"
