#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Every released format version must stay readable: the files of tests/golden/vN/ were written by the
# program of that time and are never edited. Beside NAME lies NAME.txt, what segment-dump read then, to the
# last field; iotracectl must give the verdict's exit code, and lz4 must accept what is sealed and whole.
# A file that is not in the list of checksums, or differs from it, fails the test: golden is golden.

cd "$(dirname "$0")/../.." || exit 1
export LC_ALL=C # the order of names
. tests/lib/tap.sh
B=${B:-build}
dump=$B/tests/tools/segment-dump
ctl=${IOTRACECTL:-$B/iotracectl}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# same NAME EXPECTED GOT
same() {
	if cmp -s "$2" "$3"; then
		ok "$1"
	else
		not_ok "$1" "what is read has changed"
		diff "$2" "$3" | head -n 10 | sed 's/^/# /'
	fi
}

for version in tests/golden/v*; do
	label=${version##*/}
	(cd "$version" && sha256sum -- *.iot *.open) >"$work/sums" 2>&1
	same "$label: files are as released" "$version/SHA256SUMS" "$work/sums"
	for file in "$version"/*.iot "$version"/*.open; do
		name=$label/${file##*/}
		"$dump" "$file" >"$work/dump" 2>&1
		same "$name: read to the last field" "$file.txt" "$work/dump"
		code=$(sed -n 's/^verdict \([0-9]*\) .*/\1/p' "$file.txt")
		assert_status "$name: verify exits $code" "$code" "$ctl" verify "$file"
		case $code in
		0 | 10 | 11) assert_status "$name: lz4 accepts it" 0 lz4 -q -t "$file" ;;
		*)
			rm -f "$work/out.iot"
			assert_status "$name: recovers" 0 "$ctl" --output "$work/out.iot" recover "$file"
			assert_status "$name: recovered is unknown" 11 "$ctl" verify "$work/out.iot"
			;;
		esac
	done
done
tap_end
