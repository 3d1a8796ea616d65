#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The quick half of the packages' tests: versions, files and units agree with the Makefile. `make deb-check` builds them.
cd "$(dirname "$0")/../.." || exit 2
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh

# The same spelling as in `make`: another one is another set of flags, hence another build.
B=${B:-build}
B=${B#"$PWD"/}
dest=$(mktemp -d)
trap 'rm -rf "$dest"' EXIT

version=$(sed -n 's/^VERSION := //p' Makefile)
spec=packaging/iotraced.spec
assert_eq "version of the Debian packages" "$version" "$(sed -nE '1s/^iotraced \(([^)]*)\).*/\1/p' packaging/debian/changelog)"
assert_eq "version of the RPMs" "$version" "$(sed -n 's/^Version: //p' $spec)"
assert_eq "version in the RPMs' log" "$version-1" "$(sed -nE 's/^\* .* - //p' $spec | head -n 1)"

# ---- every installed file is in exactly one package -----------------------------------------------------------

make -s B="$B" DESTDIR="$dest" prefix=/usr unitdir=/lib/systemd/system install || bail "make install"
(cd "$dest" && find . \( -type f -o -type l \) -printf '/%P\n') | sort >"$dest.files"
mapfile -t installed <"$dest.files"
rm "$dest.files"

# packages_of FILE PATTERN-FILE...	how many of these lists have it, by a path of its own or a directory's
packages_of() {
	local file=$1 n=0 pattern
	shift
	for list; do
		while read -r pattern; do
			case $file in
			/"$pattern" | /"$pattern"/*)
				n=$((n + 1))
				break
				;;
			esac
		done <"$list"
	done
	echo "$n"
}
wrong=''
for file in "${installed[@]}"; do
	[ "$(packages_of "$file" packaging/debian/*.install)" = 1 ] || wrong+=" $file"
done
assert_num "files that are installed" "${#installed[@]}" -gt 8
assert_eq "each file in one Debian package" "" "$wrong"

# The spec's macros, as rpm would put them in; manual pages are compressed.
spec_files=$(sed -n '/^%files/,/^%changelog/p' $spec | sed -nE 's/^%config\(noreplace\) //; s/\*$//; /^(%\{|\/)/p' |
	sed -e 's|%{_sysconfdir}|/etc|; s|%{_sbindir}|/usr/sbin|; s|%{_bindir}|/usr/bin|; s|%{_libexecdir}|/usr/libexec|; s|%{_mandir}|/usr/share/man|' \
		-e 's|%{_unitdir}|/lib/systemd/system|; s|%{_sysusersdir}|/usr/lib/sysusers.d|' -e 's|%{_journalcatalogdir}|/usr/lib/systemd/catalog|' \
		-e 's|%{bashdir}|/usr/share/bash-completion/completions|; s|%{zshdir}|/usr/share/zsh/site-functions|' | sort)
assert_eq "the spec lists what is installed" "$(printf '%s\n' "${installed[@]}")" "$spec_files"

# ---- units ------------------------------------------------------------------------------------------------------

# By systemd itself, if it is here; it looks at files only. Programs are looked for where they were just installed.
if command -v systemd-analyze >/dev/null; then
	units=("$dest"/lib/systemd/system/iotraced*)
	for unit in "${units[@]}"; do
		sed -i "s|^\(Exec[A-Za-z]*=[-+!]*\)/usr/|\1$dest/usr/|" "$unit"
	done
	# No line at all: a key that this systemd does not know is only a warning.
	said=$(SYSTEMD_UNIT_PATH=$dest/lib/systemd/system: systemd-analyze verify --man=no "${units[@]}" 2>&1)
	assert_eq "systemd-analyze verify" "0 " "$? $said"
else
	skip "systemd-analyze verify" "not installed"
fi
tap_end
