#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The man pages have every option, verb, export format and exit code that --help has, and no other; and the
# fields of a request that cat --json prints, in its order.
cd "$(dirname "$0")/../.." || exit 2
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
IOTRACED=${IOTRACED:-${B:-build}/iotraced} IOTRACECTL=${IOTRACECTL:-${B:-build}/iotracectl}

# Long options in a text, sorted: of --help, of the ".It" lines of a page.
options_of_help() { grep -oE -- '--[a-z][a-z-]+' | sort -u; }
options_of_page() { sed -n 's/^\.It //p' "$1" | grep -oE 'Fl -[a-z][a-z-]+' | sed 's/^Fl -/--/' | sort -u; }

help=$("$IOTRACED" --help) || bail "iotraced --help"
assert_eq "options of iotraced(8)" "$(options_of_help <<<"$help")" "$(options_of_page packaging/man/iotraced.8)"
assert_eq "exit codes of iotraced(8)" \
	"$(sed -n '/^exit codes:/,$p' <<<"$help" | grep -oE '\b(0|[67][0-9])\b' | sort -u)" \
	"$(grep -oE '^\.It [0-9]+$' packaging/man/iotraced.8 | cut -d' ' -f2 | sort -u)"

help=$("$IOTRACECTL" --help) || bail "iotracectl --help"
assert_eq "options of iotracectl(1)" "$(options_of_help <<<"$help")" "$(options_of_page packaging/man/iotracectl.1)"
assert_eq "verbs of iotracectl(1)" \
	"$(sed -n '/^Verbs/,/^Options/p' <<<"$help" | sed -nE 's/^  ([a-z]+) .*/\1/p' | sort)" \
	"$(sed -nE 's/^\.It Cm ([a-z]+).*/\1/p' packaging/man/iotracectl.1 | sort)"
assert_eq "exit codes of iotracectl(1)" \
	"$(sed -n '/^Exit codes:/,$p' <<<"$help" | grep -oE '\b[0-9]+\b' | sort -u)" \
	"$(grep -oE '^\.It [0-9]+$' packaging/man/iotracectl.1 | cut -d' ' -f2 | sort -u)"

# items_of_section NAME	the words of the ".It Li" lines, one a line
items_of_section() {
	sed -n "/^\.Sh $1\$/,/^\.El\$/p" packaging/man/iotracectl.1 | sed -n 's/^\.It Li //p' | tr -s ' ,' '\n'
}
assert_eq "export formats of iotracectl(1)" \
	"$(sed -n '/^Formats of export: /,/^Exit/{/^Exit/d; s/^Formats of export: //p; s/^  //p}' <<<"$help" | tr -s '\n' ' ' | sed 's/ or /, /' | tr -s ' ,' '\n')" \
	"$(items_of_section 'EXPORT FORMATS')"
assert_eq "fields of a request in iotracectl(1)" \
	"$("$IOTRACECTL" --json cat tests/golden/v1/random.iot | head -n 1 | grep -oE '"[a-z_]+":' | tr -d '":')" \
	"$(items_of_section 'FIELDS OF A REQUEST')"

tap_end
