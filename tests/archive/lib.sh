# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2154 # work is the script's
#
# What the tests of remotes share: segments to ship, a remote that fails, and what has to have become of it.

# What this host says about other servers does not concern the ones of the tests.
unset AWS_CA_BUNDLE http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY

# make_segments DIRECTORY	all of golden/v1 that are sealed, under names of the daemon's
make_segments() {
	local file n=0
	mkdir -p "$1"
	for file in tests/golden/v1/*.iot tests/golden/v1-packet/*.iot; do
		n=$((n + 1))
		cp "$file" "$1/block-$(printf '%032x' "$n")-0000000001.iot"
	done
}
sums() { (cd "$1" && find . -name '*.iot' -exec md5sum {} + | sed 's|\./.*/||; s|\./||' | sort); }
# Makes `rclone` one that fails.
make_flaky() {
	mkdir -p "$work/bin"
	cp tests/archive/flaky-rclone.sh "$work/bin/rclone"
	FLAKY_LOG=$work/fates FLAKY_RCLONE=$(command -v rclone)
	: >"$FLAKY_LOG"
	export FLAKY_LOG FLAKY_RCLONE
}
# check_arrived SOURCE DOWNLOADED NOTE	everything arrived, once, unchanged, and is noted
check_arrived() {
	assert_eq "everything arrived, once, as it was" "$(sums "$1")" "$(sums "$2")"
	assert_eq "nothing else is there" "" "$(find "$2" -type f ! -name '*.iot')"
	assert_eq "all of it is noted" "$(find "$1" -name '*.iot' | wc -l)" "$(tail -n +2 "$3" | cut -d' ' -f1 | sort -u | wc -l)"
	assert_eq "it verifies as the source does" "$("$IOTRACECTL" verify "$1" >/dev/null 2>&1; echo $?)" \
		"$("$IOTRACECTL" verify "$2" >/dev/null 2>&1; echo $?)"
}
# The faults were there.
check_fates() {
	local kind
	note "$(wc -l <"$FLAKY_LOG") runs of rclone: $(cut -d' ' -f2 "$FLAKY_LOG" | sort | uniq -c | xargs)"
	for kind in refused answer-lost corrupted killed shortened; do
		assert_num "the remote was $kind" "$(grep -c " $kind\$" "$FLAKY_LOG")" -ge 1
	done
}
