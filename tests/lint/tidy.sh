#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# clang-tidy on some files: tidy.sh FLAG... -- FILE...; prints findings only (clang-tidy also counts aloud what
# it does not show).
set -u
flags=()
while [ "$1" != -- ]; do
	flags+=("$1")
	shift
done
shift
out=$(clang-tidy --quiet "$@" -- "${flags[@]}" 2>&1)
status=$?
grep -vE '^[0-9]+ warnings? (and [0-9]+ errors? )?generated\.$|^Suppressed [0-9]+ warnings|^Use -header-filter' <<<"$out" |
	sed '/^$/d'
exit $status
