#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 120
#
# The examples of the man pages, run as they are printed: commands one after the other, configurations by --check-config.
# What they write to stands for them: $dir/trace for /tmp/trace, and of a minute's recording two seconds. In a mount
# namespace of its own where /var/lib/iotraced has segments with known contents, and /srv a file.

if [ "${1:-}" != inside ]; then
	cd "$(dirname "$0")/../.." || exit 2
	# shellcheck source=tests/lib/tap.sh
	. tests/lib/tap.sh
	[ "$(id -u)" = 0 ] || { skip "examples of the man pages" "needs root"; tap_end; }
	exec unshare --mount --propagation private "$0" inside
fi
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib/tap.sh
. "$here/../lib/tap.sh"
# shellcheck source=tests/lib/ctl.sh
. "$here/../lib/ctl.sh"
pages=$here/../../packaging/man
ctl_setup man-examples make-segment make-packets
PATH=$(dirname "$ctl"):$PATH
export NO_COLOR=1

if ! { mount -t tmpfs iot-test /var/lib && mkdir /var/lib/iotraced && mount -t tmpfs iot-test /srv; }; then
	bail "namespace" "nothing could be mounted"
fi
if ! { "$tools/make-segment" /var/lib/iotraced segments=2 requests=500 && "$tools/make-packets" /var/lib/iotraced clean; } >/dev/null; then
	bail "segments" "they could not be made"
fi
dd if=/dev/zero of=/srv/file bs=64k count=1 2>/dev/null
# And a daemon at the usual socket, for those that ask one.
if ! { mkdir -p /var/lib/prometheus/node-exporter && mount -t tmpfs iot-test /run && mkdir /run/iotraced; }; then
	bail "namespace" "no /run"
fi
"$(dirname "$ctl")/iotraced" --state-dir "$dir/live" --socket /run/iotraced/control.sock 2>daemon.log </dev/null &
daemon=$!
trap 'kill "$daemon" 2>/dev/null; wait "$daemon"; rm -rf "$dir"' EXIT
for _ in {1..300}; do
	"$ctl" status >/dev/null 2>&1 && break
	sleep 0.1
done

# literals PAGE	the displays of a page, each after a line "@@ SECTION", as a reader sees them
literals() {
	awk '/^\.Sh / { section = substr($0, 5) }
		/^\.Ed/ { on = 0 }
		on { gsub(/\\e/, "\\"); gsub(/\\\(aq/, "\047"); gsub(/\\\(dq/, "\""); gsub(/\\-/, "-"); gsub(/\\&/, ""); print }
		/^\.Bd -literal/ { on = 1; print "@@ " section }' "$1"
}
# Its commands, one a line, as they are run here.
commands() {
	literals "$1" | sed -e ':join' -e '/\\$/ { N; s/ *\\\n */ /; b join' -e '}' |
		sed -n 's/^[$#] //p' | sed -e "s|/tmp/trace|$dir/trace|g" -e 's/--duration 1m/--duration 2s/'
}

# What these say of a record is in the exit code; others succeed.
may_end_with() {
	case $1 in
	*" verify "*) echo "0 10 11" ;;
	*" explain "*) echo "0 10 11 12" ;;
	*) echo 0 ;;
	esac
}
n=0
for page in iotraced.8 iotracectl.1; do
	commands "$pages/$page" >list
	assert_num "examples of $page" "$(wc -l <list)" -ge 3
	while IFS= read -r command; do
		n=$((n + 1))
		load=
		case $command in
		*--duration*) (while [ ! -e stop ]; do dd if=/dev/zero of=here bs=64k count=4 oflag=direct conv=notrunc 2>/dev/null; sleep 0.1; done) & load=$! ;;
		esac
		timeout 60 bash -c "$command" >said 2>err </dev/null
		status=$?
		touch stop
		[ -z "$load" ] || wait "$load"
		if [[ " $(may_end_with "$command") " == *" $status "* ]]; then
			ok "$command"
		else
			not_ok "$command" "exit status $status: $(tail -n 2 err | xargs -0)"
		fi
		case $command in
		*report*) assert_grep "$command: says something" '[0-9]' said ;;
		esac
	done <list
done
note "$n commands"
assert_num "of the export there are files" "$(find out -type f | wc -l)" -ge 4

# Configurations: each display of the page is one.
literals "$pages/iotraced.yaml.5" | csplit -s -z -f config. - '/^@@/' '{*}'
assert_num "configurations" "$(find . -name 'config.*' | wc -l)" -ge 2
mkdir -p /srv/iotrace
for file in config.*; do
	sed -i 1d "$file"
	assert_status "$(head -n 1 "$file") ..." 0 "$(dirname "$ctl")/iotraced" --config "$file" --check-config
done
tap_end
