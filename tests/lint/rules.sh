#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The rules of CONTRIBUTING.md that no tool knows: rules.sh FILE... prints "FILE:LINE: what is wrong" and exits 1.
#
#	licence line, length of files, marks of unfinished work
#	in format/, config/ and daemon/: calls that cut, overflow or accept rubbish silently, and descriptors
#	that a child would inherit
#	in daemon/ctl/page/: what would take text for HTML or code, or ask a network for something
#
# A place that has to break a rule of the last kind says so on its line: "lint-ok: REASON".
set -u
cd "$(dirname "$0")/../.." || exit 2

max_lines=600

# Each check prints its findings; nothing printed, nothing found.

check_licence() {
	[ $# -gt 0 ] || return 0
	awk -v bsd='SPDX-License-Identifier: BSD-2-Clause' -v dual='SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause' '
		function verdict() { if (file != "" && !seen) printf "%s:1: no line \"%s\" in the first three\n", file, want }
		FNR == 1 { verdict(); file = FILENAME; seen = 0; want = file ~ /^bpf\// ? dual : bsd }
		FNR <= 3 && index($0, want) { seen = 1 }
		FNR > 3 { nextfile }
		END { verdict() }' "$@"
}

check_length() {
	[ $# -gt 0 ] || return 0
	awk -v max="$max_lines" '
		FNR == max + 1 { printf "%s:%d: more than %d lines; split it by room\n", FILENAME, FNR, max }' "$@"
}

# Spelt so that this file does not match.
marks="\\<(T[O]DO|F[I]XME|X[X]X|H[A]CK)\\>|not (yet )?[i]mplemented"

check_marks() {
	[ $# -gt 0 ] || return 0
	grep -HnE "$marks" "$@" | sed -E 's/^([^:]*:[0-9]*):/\1: mark of unfinished work: /'
}

# Comments are blanked (lines are kept), a statement is joined to its semicolon or brace.
check_calls() {
	[ $# -gt 0 ] || return 0
	awk '
	function blank_comments(s,    out, i) {
		out = ""
		while (length(s)) {
			if (in_comment) {
				i = index(s, "*/")
				if (!i) return out
				s = substr(s, i + 2)
				in_comment = 0
			} else if (match(s, /"([^"\\]|\\.)*"|\/\*|\/\//)) {
				if (substr(s, RSTART, 2) == "//") return out substr(s, 1, RSTART - 1)
				if (substr(s, RSTART, 2) == "/*") {
					out = out substr(s, 1, RSTART - 1)
					in_comment = 1
				} else {
					out = out substr(s, 1, RSTART + RLENGTH - 1)
				}
				s = substr(s, RSTART + RLENGTH)
			} else {
				return out s
			}
		}
		return out
	}
	function say(what) { printf "%s:%d: %s\n", FILENAME, first, what }
	# Whether name is called in the statement: not declared, not the end of a longer name, not a member.
	function calls(name) { return bare ~ ("(^[ \t]*|[^A-Za-z0-9_>. \t*][ \t]*|return[ \t]+)" name "[ \t]*\\(") }
	function check() {
		if (ok) return
		bare = statement
		gsub(/"([^"\\]|\\.)*"/, "\"\"", bare)
		if (calls("(atoi|atol|atoll|atof|strtol|strtoll|strtoul|strtoull|strtod)"))
			say("parses rubbish silently; use iot_parse_* (format/base.h)")
		if (calls("(sprintf|vsprintf|strcpy|strcat|gets|alloca)"))
			say("writes past the end; use snprintf or memcpy with a length")
		if (calls("(open|openat|openat2|memfd_create|epoll_create1|eventfd|timerfd_create|signalfd|" \
			"socket|socketpair|accept4|pipe2|dup3|inotify_init1|mkostemp|recvmsg)") &&
		    bare !~ /CLOEXEC/)
			say("descriptor without *_CLOEXEC: a child would inherit it")
		# Only daemon/ has sockets; elsewhere accept() is a fine name.
		if ((FILENAME ~ /^daemon/ && calls("accept")) || calls("(pipe|dup|epoll_create|inotify_init|mkstemp|creat)"))
			say("cannot set CLOEXEC; use accept4, pipe2, fcntl(F_DUPFD_CLOEXEC), epoll_create1, " \
				"inotify_init1, mkostemp, open")
		if (calls("(fopen|popen|freopen)") && statement !~ /"[rwa+bm]*e[a-z]*"/)
			say("stream without \"e\" in its mode: a child would inherit it")
	}
	{
		if (FNR == 1) { statement = ""; in_comment = 0 }
		raw = $0
		code = blank_comments(raw)
		if (statement ~ /^[ \t]*$/) { first = FNR; ok = 0; statement = "" }
		if (index(raw, "lint-ok: ")) ok = 1
		statement = statement " " code
		if (code ~ /[;{}][ \t]*$/ || code ~ /^[ \t]*#/ ) { check(); statement = "" }
	}' "$@"
}

# The page of `report --html`: names of a trace are text there, and the file is all there is.
check_page() {
	[ $# -gt 0 ] || return 0
	grep -HnE 'innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|\beval\(|new Function|https?://|src=|@import|url\(|\bfetch\(|XMLHttpRequest|localStorage' "$@" |
		grep -v '"http://www.w3.org/2000/svg"' |
		sed -E 's/^([^:]*:[0-9]*):/\1: takes text for HTML, or asks a network: /'
}

licensed=() sized=() marked=() called=() paged=()
for file in "$@"; do
	case $file in
	*.md | LICENSE | .gitignore | .editorconfig | .clang-format | packaging/debian/changelog | packaging/debian/copyright | packaging/debian/source/format | packaging/pictures/* | tests/fuzz/seeds/* | tests/golden/*) ;;
	*) licensed+=("$file") ;;
	esac
	case $file in
	*.c | *.h | *.sh | *.js | *.css | *.html) sized+=("$file") ;;
	esac
	case $file in
	tests/fuzz/seeds/* | tests/golden/*.iot) ;;
	*) marked+=("$file") ;;
	esac
	case $file in
	format/*.[ch] | config/*.[ch] | daemon/*.[ch]) called+=("$file") ;;
	daemon/ctl/page/*) paged+=("$file") ;;
	esac
done
found=$(
	check_licence "${licensed[@]}"
	check_length "${sized[@]}"
	check_marks "${marked[@]}"
	check_calls "${called[@]}"
	check_page "${paged[@]}"
)
[ -n "$found" ] || exit 0
printf '%s\n' "$found"
exit 1
