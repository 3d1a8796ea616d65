# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The opening of a test of iotracectl without a daemon: it works in a folder of its own, on segments that tools make.
#
#	ctl_setup NAME TOOL...	sets ctl and dir (the working directory from here on; it goes with the script); the tools
#				are in $tools and must have been built
#
# Expects tap.sh. What such a test prints does not depend on who runs it: UTF-8, UTC.

ctl_setup() {
	local name=$1 tool
	shift
	B=${B:-build}
	case $B in /*) ;; *) B=$(cd "$(dirname "$0")/../.." && pwd)/$B ;; esac
	ctl=${IOTRACECTL:-$B/iotracectl}
	tools=$B/tests/tools
	for tool in "$ctl" "${@/#/$tools/}"; do
		[ -x "$tool" ] || bail "$name" "no $tool: run make all tests-bin"
	done
	command -v jq >/dev/null || {
		skip "$name" "needs jq"
		tap_end
	}
	export LC_ALL=C.UTF-8 TZ=UTC
	dir=$(mktemp -d "/tmp/iotraced-$name.XXXXXX") || bail "$name" "no temporary directory"
	trap 'rm -rf "$dir"' EXIT
	trap 'trap "" INT TERM HUP; exit 143' INT TERM HUP # a second one must not stop the cleanup
	cd "$dir" || bail "$name" "no temporary directory"
}

# ctl_formats FORMAT...	the formats that the help of export has, each on a line, without these
ctl_formats() {
	"$ctl" export --help | sed -n '/^FORMAT: /,/^[A-Z]*: [^c]/p' | sed '/^FORMAT: /!{/^  /!d}; s/^FORMAT: //; s/ or /,/' |
		sed 's/[, ][, ]*/\n/g' | grep . | grep -vxF -f <(printf '%s\n' "$@")
}
