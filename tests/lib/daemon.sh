# shellcheck shell=sh
# SPDX-License-Identifier: BSD-2-Clause
#
# An iotraced of the test's own: started on a private state directory and socket, waited for, stopped by
# its process id. Used on the host and in the virtual machines alike.
#
#	IOTRACED, IOTRACECTL	the programs (default: of the path)
#	iot_dir			the test's directory; holds state/, sock, config.yaml, daemon.log

IOTRACED=${IOTRACED:-iotraced}
IOTRACECTL=${IOTRACECTL:-iotracectl}
iot_pid=

# iot_setup DIRECTORY
iot_setup() {
	iot_dir=$1
	iot_state=$iot_dir/state
	iot_sock=$iot_dir/sock
	iot_log=$iot_dir/daemon.log
	mkdir -p "$iot_state"
}

ctl() { "$IOTRACECTL" --socket "$iot_sock" "$@"; }

# iot_start [ARGUMENT...]	extra arguments go to the daemon; uses $iot_dir/config.yaml where there is one
iot_start() {
	if [ -f "$iot_dir/config.yaml" ]; then
		set -- --config "$iot_dir/config.yaml" "$@"
	fi
	"$IOTRACED" --state-dir "$iot_state" --socket "$iot_sock" "$@" >>"$iot_log" 2>&1 </dev/null &
	iot_pid=$!
	_iot_tries=300
	until ctl status >/dev/null 2>&1; do
		_iot_tries=$((_iot_tries - 1))
		if [ "$_iot_tries" -le 0 ] || ! kill -0 "$iot_pid" 2>/dev/null; then
			note "the daemon did not become ready:"
			tail -n 30 "$iot_log" | sed 's/^/# /'
			return 1
		fi
		sleep 0.1
	done
}

# iot_stop [SIGNAL]	by default SIGTERM: seals and ends; returns the daemon's exit status
iot_stop() {
	[ -n "$iot_pid" ] || return 0
	kill "-${1:-TERM}" "$iot_pid" 2>/dev/null
	_iot_tries=300
	while kill -0 "$iot_pid" 2>/dev/null; do
		_iot_tries=$((_iot_tries - 1))
		if [ "$_iot_tries" -le 0 ]; then
			note "the daemon did not end within 30 s: killed"
			kill -KILL "$iot_pid" 2>/dev/null
			break
		fi
		sleep 0.1
	done
	wait "$iot_pid"
	_iot_status=$?
	iot_pid=
	return "$_iot_status"
}

# iot_proved STATE	verify says that all is there, or that nothing is missing but what the kernel did not show
# (cause `unseen`, see tests/live/test-exact.sh): on such a host that is the truth. For tests of other things.
iot_proved() {
	"$IOTRACECTL" verify "$1" >"$iot_dir/proved.txt" 2>&1
	_iot_status=$?
	if [ "$_iot_status" = 10 ]; then
		rm -f "$iot_dir"/proved.csv*
		"$IOTRACECTL" export --format=csv --output "$iot_dir/proved.csv" "$1" >/dev/null 2>&1
		if jq -e '[.losses[].cause] | length > 0 and all(. == "unseen")' "$iot_dir/proved.csv.loss.json" >/dev/null; then
			note "$(jq '.losses | length' "$iot_dir/proved.csv.loss.json") completions were not shown to any program"
			return 0
		fi
	fi
	[ "$_iot_status" = 0 ] || sed 's/^/# /' "$iot_dir/proved.txt"
	return "$_iot_status"
}

# All sealed segments' block records as JSON lines
iot_cat() { "$IOTRACECTL" --json cat "$iot_state"; }
