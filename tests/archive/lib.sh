# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What the tests of remotes share: segments to ship, a remote that fails and is cut off, and what has to have become of
# it. Sourced at the top of the tree; $work is a directory to work in, `cleanup_more` what a script has to end.

# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
IOTRACECTL=$(realpath "${IOTRACECTL:-${B:-build}/iotracectl}")
# sshd is no user's program.
PATH=$PATH:/usr/sbin
work=$(mktemp -d) || exit 1
cleanup_more() { :; }
trap 'cleanup_more; rm -rf "$work"' EXIT
# What this host says about other servers does not concern the ones of the tests.
unset AWS_CA_BUNDLE http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY
export RCLONE_CONFIG=$work/rclone.conf

# need TOOL...
need() {
	local tool
	for tool; do
		command -v "$tool" >/dev/null || { echo "skip archive: no $tool; run: tests/lib/install-deps.sh archive"; exit 77; }
	done
}
# make_segments	in $work/state all of golden/v1 that are sealed and whole (others are refused), under names of the daemon's
make_segments() {
	local file
	n_segments=0
	mkdir -p "$work/state"
	for file in tests/golden/v1/*.iot tests/golden/v1-packet/*.iot; do
		"$IOTRACECTL" verify "$file" >/dev/null 2>&1
		[ $? -lt 20 ] || continue
		n_segments=$((n_segments + 1))
		cp "$file" "$work/state/block-$(printf '%032x' "$n_segments")-0000000001.iot"
	done
}
# archive [OPTION...]	to $destination, which is the script's
# shellcheck disable=SC2120,SC2154
archive() { timeout 600 "$IOTRACECTL" archive --state "$work/note" "$@" "$destination" "$work/state"; }
# archive_while_cut CUT	by a remote that fails, which CUT cuts off twice meanwhile
archive_while_cut() {
	local archiver fates kind
	mkdir -p "$work/bin"
	cp tests/archive/flaky-rclone.sh "$work/bin/rclone"
	FLAKY_LOG=$work/fates FLAKY_RCLONE=$(command -v rclone)
	: >"$FLAKY_LOG"
	export FLAKY_LOG FLAKY_RCLONE
	# shellcheck disable=SC2119
	PATH=$work/bin:$PATH archive >"$work/said" 2>"$work/errors" &
	archiver=$!
	for _ in 1 2; do
		fates=$(wc -l <"$FLAKY_LOG")
		for _ in $(seq 600); do
			[ "$(wc -l <"$FLAKY_LOG")" -lt $((fates + 12)) ] || break
			sleep 0.1
		done
		"$1"
	done
	wait "$archiver"
	assert_eq "it ends when all has arrived" "0 $destination: $n_segments segments" "$? $(sed 's/ (.*//' "$work/said")"
	note "$(wc -l <"$FLAKY_LOG") runs of rclone for $n_segments segments: $(cut -d' ' -f2 "$FLAKY_LOG" | sort | uniq -c | xargs)"
	# The faults were there.
	for kind in refused answer-lost corrupted killed shortened; do
		assert_num "the remote was $kind" "$(grep -c " $kind\$" "$FLAKY_LOG")" -ge 1
	done
	assert_num "a copy that differs was seen" "$(grep -c 'read back differs' "$work/errors")" -ge 1
}
sums() { (cd "$1" && find . -name '*.iot' -exec md5sum {} + | sed 's|\./.*/||; s|\./||' | sort); }
# check_arrived DOWNLOADED	everything arrived, once, unchanged, and is noted
check_arrived() {
	assert_eq "everything arrived, once, as it was" "$(sums "$work/state")" "$(sums "$1")"
	assert_eq "nothing else is there" "" "$(find "$1" -type f ! -name '*.iot')"
	assert_eq "all of it is noted" "$n_segments" "$(tail -n +2 "$work/note" | cut -d' ' -f1 | sort -u | wc -l)"
	assert_eq "it verifies as the source does" "$("$IOTRACECTL" verify "$work/state" >/dev/null 2>&1; echo $?)" \
		"$("$IOTRACECTL" verify "$1" >/dev/null 2>&1; echo $?)"
}
