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
if [[ ! $digit =~ [0-3] ]]; then
	echo "$verb ok" >>"$FLAKY_LOG"
	exec "$FLAKY_RCLONE" "$@"
fi
kinds=(refused answer-lost corrupted killed shortened)
kind=${kinds[$(grep -cv ' ok$' "$FLAKY_LOG") % 5]}
# What an upload can suffer from, it alone can.
[ "$verb" = copyto ] || [ "$kind" = answer-lost ] || [ "$kind" = killed ] || kind=refused
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
