# shellcheck shell=sh
# SPDX-License-Identifier: BSD-2-Clause
#
# What a verdict may be where the kernel itself leaves gaps. POSIX shell, for busybox.

# iot_complete_or_missed IOTRACECTL STATE	verify's exit status, but 0 for unknown by missed runs alone on 7.x: tracing
# programs can be preempted there, and the recursion guard skips what runs in between, which verify must call unknown.
iot_complete_or_missed() {
	_iot_json=$("$1" --json verify "$2" 2>/dev/null)
	_iot_status=$?
	[ "$_iot_status" = 11 ] || return "$_iot_status"
	case $("$1" --json segments "$2" | jq -r '.[0].kernel') in
	7.*) ;;
	*) return 11 ;;
	esac
	printf '%s\n' "$_iot_json" | jq -e '.whole | .lost == 0 and .unattributed == 0 and .books_unbalanced == 0 and
		.missed > 0 and .reasons_dropped == 0 and all(.reasons[]; test("the kernel skipped [0-9]+ runs?"))' >/dev/null || return 11
	note "$(printf '%s\n' "$_iot_json" | jq .whole.missed) runs were skipped by the kernel's recursion guard"
}
