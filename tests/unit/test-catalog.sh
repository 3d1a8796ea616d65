#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Each message id of the daemon is used once in the code and has an entry in the journal's catalog, which has no other;
# the entries' variables are fields that the daemon sends; journalctl takes the catalog.
cd "$(dirname "$0")/../.." || exit 2
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh

ids=$(sed -nE 's/^#define LOG_ID_[A-Z_]+ "([0-9a-f]{32})"$/\1/p' daemon/log-ids.h | sort)
assert_eq "every id is a line of its own" "$(grep -c '^#define' daemon/log-ids.h)" "$(sort -u <<<"$ids" | wc -l)"
assert_eq "ids of the catalog" "$ids" "$(sed -nE 's/^-- ([0-9a-f]{32})$/\1/p' units/iotraced.catalog | sort)"
unused=''
while read -r name; do
	grep -q "$name\>" daemon/*.c || unused+=" $name"
done < <(sed -nE 's/^#define (LOG_ID_[A-Z_]+) .*/\1/p' daemon/log-ids.h)
assert_eq "every id is used" "" "$unused"
unknown=''
for field in $(grep -oE '@[A-Z_]+@' units/iotraced.catalog | tr -d @ | sort -u); do
	grep -q "add_field(&o, \"$field\"" daemon/log.c || unknown+=" $field"
done
assert_eq "every variable of the catalog is a field" "" "$unknown"
if command -v journalctl >/dev/null; then
	root=$(mktemp -d)
	mkdir -p "$root/usr/lib/systemd/catalog" "$root/var/lib/systemd/catalog"
	cp units/iotraced.catalog "$root/usr/lib/systemd/catalog/"
	said=$(journalctl --root="$root" --update-catalog 2>&1)
	assert_eq "journalctl takes the catalog" "0 " "$? $said"
	assert_eq "and has all of it" "$(wc -l <<<"$ids")" "$(journalctl --root="$root" --list-catalog 2>/dev/null | grep -c iotraced)"
	rm -rf "$root"
else
	skip "journalctl takes the catalog" "not installed"
fi
tap_end
