#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# In rclone's place: of four runs one fails, in one of five ways, one after the other. Each run and its fate is a line
# of $FLAKY_LOG. An upload, a rename and a read have to succeed for a segment, so more than half of the attempts fail.

set -u
n=$(wc -l <"$FLAKY_LOG")
verb='' source='' args=("$@")
for ((i = 0; i < $#; i++)); do
	case ${args[i]} in
	-*) ;;
	*)
		[ -z "$verb" ] || { source=$i && break; }
		verb=${args[i]}
		;;
	esac
done
digit=$(printf '%s' "seed $n" | md5sum | cut -c1)
# Whether a bad copy is noticed shows only if the rename and the read behind it are let through.
! tail -n 2 "$FLAKY_LOG" | grep -qE ' (corrupted|shortened)$' || digit=f
if [[ ! $digit =~ [0-3] ]]; then
	echo "$verb ok" >>"$FLAKY_LOG"
	exec "$FLAKY_RCLONE" "$@"
fi
kinds=(corrupted refused shortened answer-lost killed)
[ "$verb" = copyto ] || kinds=(refused answer-lost killed)
kind=${kinds[$(grep "^$verb " "$FLAKY_LOG" | grep -cv ' ok$') % ${#kinds[@]}]}
echo "$verb $kind" >>"$FLAKY_LOG"
case $kind in
refused) exit 1 ;;
answer-lost)
	"$FLAKY_RCLONE" "$@" >/dev/null
	exit 1
	;;
killed) timeout -s KILL 0.2 "$FLAKY_RCLONE" "$@" ;;
corrupted | shortened)
	# The same name, time and, of what is corrupted, size: nothing but the content tells.
	bad=$(mktemp)
	trap 'rm -f "$bad"' EXIT
	cp "${args[source]}" "$bad"
	if [ "$kind" = corrupted ]; then
		printf '\377\376' | dd of="$bad" bs=1 seek=$(($(stat -c %s "$bad") / 2)) conv=notrunc 2>/dev/null
	else
		truncate -s -100 "$bad"
	fi
	touch -r "${args[source]}" "$bad"
	args[source]=$bad
	"$FLAKY_RCLONE" "${args[@]}"
	exit 0
	;;
esac
exit 1
