#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# clang-tidy on one file: tidy.sh FLAG... -- FILE; prints findings only (clang-tidy also counts aloud what it does
# not show).
#
# A file that was found good is not looked at again while nothing has changed that its verdict depends on: the
# text with all its headers and comments, the flags, the checks, the program. A stamp for each is kept beside the
# kernels (IOTRACED_CACHE, /var/cache/iotraced), where another checkout finds it; in $B/lint of who may not write there.
set -u -o pipefail
flags=()
while [ "$1" != -- ]; do
	flags+=("$1")
	shift
done
file=$2
stamps=${IOTRACED_CACHE:-/var/cache/iotraced}/lint
mkdir -p "$stamps" 2>/dev/null && [ -w "$stamps" ] || stamps=${B:-build}/lint
# Bounds the exploration of a function: less than half of the default halves the time, and those findings that were
# tried again under it were all still made.
explorer=(-Xclang -analyzer-config -Xclang max-nodes=100000)

# Line markers are dropped: they hold no text.
key=$({
	clang-tidy --version
	cat .clang-tidy tests/.clang-tidy
	printf '%s\n' "${flags[@]}" "${explorer[@]}" "$file"
	${CC:-cc} -E -C -P "${flags[@]}" "$file"
} 2>/dev/null | sha256sum) && key=${key%% *} || key=
[ -n "$key" ] && [ -e "$stamps/$key" ] && exit 0

out=$(clang-tidy --quiet "$file" -- "${flags[@]}" "${explorer[@]}" 2>&1)
status=$?
grep -vE '^[0-9]+ warnings? (and [0-9]+ errors? )?generated\.$|^Suppressed [0-9]+ warnings|^Use -header-filter' <<<"$out" |
	sed '/^$/d'
if [ "$status" = 0 ] && [ -n "$key" ]; then
	mkdir -p "$stamps" && : >"$stamps/$key"
fi
exit $status
