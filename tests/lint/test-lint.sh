#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 900
#
# `make lint` as part of `make check`, one result a part; and that the checks of our own find what they are for.
cd "$(dirname "$0")/../.." || exit 2
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh

for part in format includes rules links shellcheck cppcheck tidy; do
	assert_status "lint $part" 0 tests/lint/run.sh "$part"
done

# A file of each kind of sin, in a tree of its own: the scripts look at paths relative to their tree.
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/tests" "$tree/format" "$tree/daemon/ctl"
cp -r tests/lint "$tree/tests/"

# sin NAME SCRIPT FILE MESSAGE TEXT
sin() {
	printf '%b' "$5" >"$tree/$3"
	if "$tree/tests/lint/$2" "$3" >"$tree/out" 2>&1; then
		not_ok "finds $1" "$2 was content with it"
	elif grep -qF "$4" "$tree/out"; then
		ok "finds $1"
	else
		not_ok "finds $1" "$(head -n 1 "$tree/out")"
	fi
}
spdx='// SPDX-License-Identifier: BSD-2-Clause\n'

sin "format using config" includes.sh format/a.c 'a.c:2: may not include config/config.h' \
	"$spdx#include \"config/config.h\"\n"
sin "format using json-c" includes.sh format/a.c 'may not include <json-c/json.h>' "#include <json-c/json.h>\n"
sin "ctl using the daemon" includes.sh daemon/ctl/a.c 'may not include daemon/store.h' "#include \"daemon/store.h\"\n"
sin "daemon using ctl" includes.sh daemon/a.c 'may not include daemon/ctl/ctl.h' "#include \"daemon/ctl/ctl.h\"\n"
sin "libbpf outside probes" includes.sh daemon/a.c 'may not include <bpf/libbpf.h>' "#  include <bpf/libbpf.h>\n"
sin "a folder without a rule" includes.sh tests.c 'no line of' "\n"
sin "a missing licence" rules.sh format/a.c 'no line' "int a;\n"
sin "a long file" rules.sh format/a.c 'more than 600 lines' "$spdx$(printf '%600s' '' | sed 's/ /\\n/g')"
sin "a mark" rules.sh format/a.c 'unfinished' "$spdx/* T""ODO: */\n"
sin "atoi" rules.sh format/a.c 'a.c:2: parses' "${spdx}a = atoi(b);\n"
sin "strcpy over two lines" rules.sh format/a.c 'a.c:3: writes' "$spdx/* fine: strcat(x) */\nif (a ||\n strcpy(a, b))\n;\n"
sin "open without CLOEXEC" rules.sh format/a.c 'a.c:2: descriptor' "${spdx}fd = open(a,\n O_RDONLY);\n"
sin "fopen without e" rules.sh format/a.c 'a.c:2: stream' "${spdx}f = fopen(a, \"r\");\n"
sin "dup" rules.sh format/a.c 'a.c:2: cannot' "${spdx}fd = dup(1);\n"

printf '%b' "${spdx}#include <stdio.h>\n#include \"format/b.h\"\nfd = open(a,\n O_CLOEXEC);\nf = fopen(a, \"re\"); /* atoi(x) */\n" \
	>"$tree/format/a.c"
printf '%b' "x = store_open(a); s = \"atoi(1)\"; y = p->open(1);\nz = dup(1); /* lint-ok: the pager's end */\n" \
	>>"$tree/format/a.c"
assert_status "accepts good calls" 0 "$tree/tests/lint/rules.sh" format/a.c
assert_status "accepts good includes" 0 "$tree/tests/lint/includes.sh" format/a.c

tap_end
