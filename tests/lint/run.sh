#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# `make lint`: everything that can be said about the sources without running them.
#
#	run.sh [PART...]	format tidy cppcheck shellcheck includes rules links; default: all
#
# Looks at tracked files only, so that a scratch file fails nobody. Prints what is wrong and one line a part;
# exits 1 if anything was. The compiler's flags come from $B/flags, which make writes: the analysers see what
# the compiler sees.
set -u -o pipefail
cd "$(dirname "$0")/../.." || exit 2

export B=${B:-build}
jobs=$(nproc)

mapfile -t tracked < <(git ls-files)
if [ ${#tracked[@]} -eq 0 ]; then
	echo "lint: no tracked files; run it in a git checkout" >&2
	exit 2
fi

# files PATTERN...	tracked files that still exist and match a shell pattern ("*" matches "/")
files() {
	local file pattern
	for file in "${tracked[@]}"; do
		[ -f "$file" ] || continue
		for pattern in "$@"; do
			# shellcheck disable=SC2053 # a pattern on purpose
			[[ $file == $pattern ]] || continue
			echo "$file"
			break
		done
	done
}

need() {
	command -v "$1" >/dev/null && return 0
	echo "lint: $1 is not installed; run: make deps" >&2
	return 1
}

# The preprocessor's part of the compiler's command line, one argument a line. The rest (-W, -O, -f) is gcc's.
preprocessor_flags() {
	local words word
	read -ra words <"$B/flags"
	for word in "${words[@]}"; do
		case $word in
		# The file holds the words without the quotes of the shell.
		-DIOTRACED_VERSION=*) echo '-DIOTRACED_VERSION="lint"' ;;
		-I* | -D* | -U*) echo "$word" ;;
		esac
	done
}

part_format() {
	need clang-format || return 1
	files '*.c' '*.h' | xargs -r clang-format --dry-run -Werror
}

# BPF sources are compiled for another machine by clang itself, with -Wall -Wextra -Werror.
part_tidy() {
	local flags
	need clang-tidy || return 1
	mapfile -t flags < <(preprocessor_flags)
	# One file a run: version 14 carries a va_list check's state into the next file.
	files 'format/*.c' 'config/*.c' 'daemon/*.c' 'tests/*.c' |
		xargs -r -P "$jobs" -n 1 tests/lint/tidy.sh "${flags[@]}" -std=gnu11 --
}

part_cppcheck() {
	local flags
	need cppcheck || return 1
	# Without the skeletons: cppcheck takes minutes over their byte arrays.
	mapfile -t flags < <(preprocessor_flags | grep -v -- '/gen$')
	files 'format/*.c' 'config/*.c' 'daemon/*.c' |
		cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 -j "$jobs" \
			--enable=warning,performance,portability --suppressions-list=tests/lint/cppcheck.txt \
			"${flags[@]}" --file-list=-
}

# SC2317: takes functions that a trap or a name in a variable calls for unreachable.
part_shellcheck() {
	need shellcheck || return 1
	files '*.sh' '*.bash' '.ci/run' 'packaging/debian/*.postrm' 'packaging/debian/tests/re*' | xargs -r shellcheck -e SC2317 -x -P SCRIPTDIR
}

part_includes() {
	files '*.c' '*.h' | xargs -r tests/lint/includes.sh
}

part_rules() {
	files '*' | xargs -r tests/lint/rules.sh
}

# A segment is readable on a laptop: iotracectl needs none of the daemon's libraries.
part_links() {
	local found
	[ -x "$B/iotracectl" ] || {
		echo "lint: $B/iotracectl is not built" >&2
		return 1
	}
	found=$(ldd "$B/iotracectl" | grep -E 'lib(bpf|systemd|yaml|elf|cap)[-.]') || return 0
	echo "$B/iotracectl must not need:"
	echo "$found"
	return 1
}

parts=(format includes rules links shellcheck cppcheck tidy)
[ $# -gt 0 ] || set -- "${parts[@]}"
status=0
for part in "$@"; do
	if [[ " ${parts[*]} " != *" $part "* ]]; then
		echo "lint: unknown part '$part' (${parts[*]})" >&2
		exit 2
	fi
	begin=$SECONDS
	if "part_$part"; then
		printf '  %-8s %-12s %3d s\n' LINT "$part" $((SECONDS - begin))
	else
		printf '  %-8s %-12s %3d s  FAILED\n' LINT "$part" $((SECONDS - begin))
		status=1
	fi
done
exit $status
