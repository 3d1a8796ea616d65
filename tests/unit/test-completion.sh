#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What bash and zsh offer is what the programs' help says: every verb, each with its options and no other, and the
# words that options take.
cd "$(dirname "$0")/../.." || exit 2
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
IOTRACED=${IOTRACED:-${B:-build}/iotraced} IOTRACECTL=${IOTRACECTL:-${B:-build}/iotracectl}

complete() { :; } # we call the functions ourselves
# shellcheck source=packaging/completion/iotracectl.bash
. packaging/completion/iotracectl.bash

# offered SHELL WORD...	for the last word, one a line, sorted
offered() {
	local shell=$1
	shift
	if [ "$shell" = bash ]; then
		# shellcheck disable=SC2034 # read by the function
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
		"_${1##*/}"
		printf '%s\n' "${COMPREPLY[@]}"
	else
		# In compsys' place: what says what is offered, and the variables that it sets.
		zsh -f -c 'compadd() { shift; print -l -- "$@" }
			_files() { print FILES }
			compset() { return 1 }
			words=("$@") CURRENT=$# PREFIX=${@[-1]}
			. packaging/completion/_iotracectl' zsh "$@"
	fi | sort -u
}
long_options() { grep -oE -- '--[a-z][a-z-]+' | sort -u; }
# Of the parts of a help that list options, the beginnings of their lines.
listed() { grep -E '^ +(-[a-z],? +)?--' | sed -E 's/(--[a-z-]+ ?[A-Z]*, )?(--[a-z-]+).*/\1\2/' | long_options; }
choices() { sed -nE 's/.* is (not one of|neither) //p' | sed 's/ (did.*//; s/ nor / /; s/,//g' | xargs -n 1 | sort -u; }

shells=bash
if command -v zsh >/dev/null; then shells='bash zsh'; else skip "zsh" "not installed"; fi
help=$("$IOTRACECTL" --help) || bail "iotracectl --help"
verbs=$(sed -n '/^Verbs/,/^Options/p' <<<"$help" | sed -nE 's/^  ([a-z]+)( .*)?$/\1/p')
for shell in $shells; do
	assert_eq "$shell: verbs" "$(printf '%s\n' "$verbs" help | sort)" "$(offered "$shell" iotracectl '')"
	assert_eq "$shell: all options before a verb" \
		"$(sed -n '/^Options (before/,/^Filters/p' <<<"$help" | listed)" "$(offered "$shell" iotracectl -)"
	for verb in $verbs; do
		assert_eq "$shell: options of $verb" "$("$IOTRACECTL" help "$verb" | listed)" \
			"$(offered "$shell" iotracectl "$verb" -)"
	done
	assert_eq "$shell: --format" \
		"$(sed -n '/^Formats of export: /,/^Exit/{/^Exit/d; s/^Formats of export: //p; s/^  //p}' <<<"$help" | tr -s '\n' ' ' | sed 's/ or /, /' | tr -d ' ' | tr , '\n' | sort)" \
		"$(offered "$shell" iotracectl export --format '')"
	assert_eq "$shell: --op" "$(sed -n '/^static const char \*const op_names/,/^};/p' format/record.c |
		grep -oE '"[a-z_]+"' | tr -d '"' | sort)" "$(offered "$shell" iotracectl cat --op '')"
	for option in by:report swap:cat stream:follow color:cat; do
		assert_eq "$shell: --${option%:*}" "$("$IOTRACECTL" "${option#*:}" "--${option%:*}" x 2>&1 | choices)" \
			"$(offered "$shell" iotracectl "${option#*:}" "--${option%:*}" '')"
	done
	assert_eq "$shell: options of iotraced" "$("$IOTRACED" --help | sed '/^example/,$d' | long_options)" \
		"$(offered "$shell" iotraced -)"
done
assert_eq "bash: behind an equals sign" csv "$(offered bash iotracectl export --format = cs)"
assert_eq "bash: files for a verb that reads them" packaging/debian/rules \
	"$(offered bash iotracectl verify packaging/debian/ru)"
assert_eq "both shells know the same" \
	"$(sed -n '/^_iotracectl_verbs()/,/^_iotracectl()/p' packaging/completion/iotracectl.bash | sed '$d')" \
	"$(sed -n '/^_iotracectl_verbs()/,/^_iotraced_options/p' packaging/completion/_iotracectl | sed '$d')"
tap_end
