#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The archive by SFTP, to a real sshd on the loopback interface: with a remote that fails more than half of the time, copies
# that are corrupted on the way, and a connection that is cut.
#
# timeout: 900
cd "$(dirname "$0")/../.." || exit 2
# shellcheck source=tests/archive/lib.sh
. tests/archive/lib.sh
need rclone sshd ssh-keygen jq

sshd_pid=''
cleanup_more() { [ -z "$sshd_pid" ] || kill "$sshd_pid" 2>/dev/null; }
[ "$(id -u)" != 0 ] || mkdir -p /run/sshd
for key in host key; do
	ssh-keygen -q -t ed25519 -N '' -f "$work/$key" || bail "keys" "ssh-keygen failed"
done
port=$((20000 + RANDOM % 20000))
mkdir "$work/remote"
cat >"$work/sshd_config" <<-END
	ListenAddress 127.0.0.1
	Port $port
	HostKey $work/host
	AuthorizedKeysFile $work/key.pub
	PidFile none
	StrictModes no
	UsePAM no
	PasswordAuthentication no
	PermitRootLogin yes
	Subsystem sftp internal-sftp
END
start_sshd() {
	/usr/sbin/sshd -D -e -f "$work/sshd_config" 2>>"$work/sshd.log" &
	sshd_pid=$!
}
cat >"$RCLONE_CONFIG" <<-END
	[far]
	type = sftp
	host = 127.0.0.1
	port = $port
	user = $(id -un)
	key_file = $work/key
	shell_type = none
	md5sum_command = none
	sha1sum_command = none
END
make_segments
destination=far:$work/remote

# ---- nobody there ----------------------------------------------------------------------------------------------------

archive --once >"$work/said" 2>&1
assert_eq "without a server nothing is shipped" "1 $destination: 0 segments (0B) shipped, $n_segments failed" \
	"$? $(grep '^far' "$work/said")"

# ---- a remote that fails -----------------------------------------------------------------------------------------------

start_sshd
# The server and the connections that it has.
cut_off() {
	pkill -KILL -P "$sshd_pid"
	kill -KILL "$sshd_pid"
	wait "$sshd_pid" 2>/dev/null
	sleep 2
	start_sshd
}
archive_while_cut cut_off
check_arrived "$work/remote"
assert_eq "and once more there is nothing to do" "0 0" "$(archive --json | jq -r '"\(.shipped) \(.failed)"')"

# ---- one that was damaged there since ------------------------------------------------------------------------------------

victim=$(find "$work/remote" -name '*.iot' | sort | head -n 1)
printf 'x' | dd of="$victim" bs=1 seek=100 conv=notrunc 2>/dev/null
sed -i "/${victim##*/}/d" "$work/note"
assert_eq "what is not noted replaces what is damaged there" 1 "$(archive --json | jq .shipped)"
check_arrived "$work/remote"
tap_end
