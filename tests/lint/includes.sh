#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Holds every #include against directions.txt: includes.sh FILE... prints "FILE:LINE: may not include X" and
# exits 1. A file that no line of the table matches is an error too: new folders are decided, not forgotten.
set -u -f
cd "$(dirname "$0")/../.." || exit 2

table=${DIRECTIONS:-tests/lint/directions.txt}
libraries=''
froms=()
tos=()
while IFS= read -r line; do
	case $line in
	'' | '#'*) continue ;;
	libraries:*) libraries=${line#*:} ;;
	*:*)
		froms+=("${line%%:*}")
		tos+=("${line#*:}")
		;;
	*)
		echo "$table: not understood: $line" >&2
		exit 2
		;;
	esac
done <"$table"

# <yaml.h>, <bpf/libbpf.h>, <lz4frame.h> belong to a library; what is left is libc's or the kernel's.
of_library() {
	local name=${1#<} library
	name=${name%>}
	name=${name%%/*}
	name=${name%.h}
	for library in $libraries; do
		[ "$name" = "$library" ] && return 0
	done
	return 1
}

# may_include HEADER PATTERNS
may_include() {
	local header=$1 pattern
	for pattern in $2; do
		# shellcheck disable=SC2254 # patterns on purpose
		case $pattern in
		@libc) [[ $header == '<'* ]] && ! of_library "$header" && return 0 ;;
		!*) case $header in ${pattern#!}) return 1 ;; esac ;;
		*) case $header in $pattern) return 0 ;; esac ;;
		esac
	done
	return 1
}

# The number of the first line of the table that matches, into $row.
row_of() {
	local i
	for i in "${!froms[@]}"; do
		# shellcheck disable=SC2254 # patterns on purpose
		case $1 in ${froms[i]})
			row=$i
			return 0
			;;
		esac
	done
	return 1
}

include='^[[:space:]]*#[[:space:]]*include[[:space:]]*("[^"]*"|<[^>]*>|[^[:space:]]+)'
status=0
for file in "$@"; do
	if ! row_of "$file"; then
		echo "$file:1: no line of $table says what it may include"
		status=1
		continue
	fi
	number=0
	while IFS= read -r line; do
		number=$((number + 1))
		[[ $line =~ $include ]] || continue
		header=${BASH_REMATCH[1]}
		header=${header#\"}
		header=${header%\"}
		if ! may_include "$header" "${tos[row]}"; then
			echo "$file:$number: may not include $header (line \"${froms[row]}\" of $table)"
			status=1
		fi
	done <"$file"
done
exit $status
