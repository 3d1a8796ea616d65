#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The spec file builds, twice in different places to the same contents, and the packages have what is installed. On Debian, so
# with its libraries and without rpm's look at what is installed.
#
# timeout: 1500
cd "$(dirname "$0")/../.." || exit 2
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
B=${B:-build}
command -v rpmbuild >/dev/null || { echo "skip rpm: no rpmbuild; run: tests/lib/install-deps.sh deb-check"; exit 77; }
rm -rf "$B/rpm"
packaging/build-rpm.sh "$B/rpm" || bail "rpmbuild" "see $B/rpm/build.log"
daemon=$(echo "$B"/rpm/iotraced-0*.x86_64.rpm) tools=$(echo "$B"/rpm/iotraced-tools-0*.x86_64.rpm)
assert_eq "the tools need these libraries" "libc.so.6 libjson-c.so.5 liblz4.so.1 libm.so.6 libmd.so.0 libxxhash.so.0" \
	"$(rpm -qpR "$tools" | grep -oE '^lib[a-z0-9-]+\.so\.[0-9]+' | sort -u | xargs)"
assert_eq "configuration" "/etc/iotraced/archive.conf /etc/iotraced/iotraced.yaml" "$(rpm -qpc "$daemon" | xargs)"
# Whether they are compressed is the distribution's macros' business.
assert_eq "the daemon's manual pages" "/usr/share/man/man5/iotraced.yaml.5 /usr/share/man/man8/iotraced.8" \
	"$(rpm -qpd "$daemon" | grep /man/ | sed 's/\.gz$//' | xargs)"
assert_eq "the tools' program" /usr/bin/iotracectl "$(rpm -qpl "$tools" | grep /bin/)"

there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
(umask 077 && TZ=Asia/Kathmandu LC_ALL=C.UTF-8 TMPDIR=$there packaging/build-rpm.sh "$there/out") >/dev/null || bail "rpmbuild elsewhere" "see above"
# Not the whole file: rpm puts the spec file as it was expanded, with the place, into the source package, and that one's digest
# into the others.
contents() { rpm -qp --qf '[%{PAYLOADDIGEST}]\n' "$1" && rpm -qp --dump --scripts --requires --provides "$1"; }
for rpm in "$daemon" "$tools"; do
	assert_num "contents: ${rpm##*/}" "$(contents "$rpm" | wc -l)" -ge 8
	assert_eq "reproducible: ${rpm##*/}" "$(contents "$rpm")" "$(contents "$there/out/${rpm##*/}")"
done
tap_end
