#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Boots a test machine with one of the kernels of kernels.sh and runs one script in it.
#
# usage: run.sh [OPTION...] LABEL SCRIPT [ARGUMENT...]
#	--cpus N		processors (2)
#	--memory MIB		memory (1024)
#	--timeout SEC		the machine is killed this long after its script has started (240)
#	--disk SERIAL=SIZE[,PROPERTY...]	an empty NVMe disk; properties go to qemu's nvme device
#	--disk-file SERIAL=FILE[,PROPERTY...]	the same on a raw image of the caller's, kept
#	--module NAME		kernel module to have at hand, with what it depends on (repeatable)
#	--tool NAME|PATH	program of this host to have at hand, with its shared libraries (repeatable)
#	--built PATH		the same for a program or an object that was built, below ${B:-build} (repeatable)
#	--file SRC[:DST]	any other file (repeatable)
#	--append ARGS		more kernel command line
#	--qemu ARG		one more argument for qemu (repeatable)
#	--results DIR		where to unpack what the script left in /results
#	--check SCRIPT		run on this host afterwards with the results' directory as its argument; beside run.sh
#	--log FILE		the kernel's console
#
# Options may also stand in SCRIPT itself, in comment lines that begin with "# vm: "; the command line
# comes after them, so it wins.
#
# The machine is the kernel with an initramfs made of busybox and the files asked for; qemu emulates
# (`-accel tcg`: kvm is not to be had on build machines, and hangs with these kernels where it is). The
# script's output comes back on a serial line of its own, between a start and an end marker with a nonce.
#
# A boot that dies before the start marker (7.x under tcg does, one time in ten, while it patches its own
# code) is tried again at most twice, and that is printed. Once a script has started, nothing is repeated:
# its outcome is the test's outcome.
#
# Exit: the script's own status (the check's, if that is the one that fails), or 124 timeout, 125 the machine did not start or could not be made,
# 126 it died while the script ran, 2 usage. 77 (skip) where the kernel could not be had.

set -u -o pipefail

here=$(cd "$(dirname "$0")" && pwd)
lib=$here/../lib
cpus=2 memory=1024 timeout=240 boot_timeout=120 append='' results='' log='' check=''
disks=() modules=() tools=() files=() qemu_args=()

say() { printf '# vm: %s\n' "$*"; }
die() {
	printf '# vm: %s\n' "$*" >&2
	exit "${status:-125}"
}
usage() {
	sed -n '/^# usage:/,/^#	--log/s/^# \{0,1\}//p' "$0" >&2
	exit 2
}

# Takes options off "$@" until the first word that is none; sets n_taken.
take_options() {
	n_taken=0
	while [ $# -gt 0 ]; do
		case $1 in
		--cpus | --memory | --timeout | --disk | --disk-file | --module | --tool | --built | --file | --append | --qemu | \
			--results | --check | --log)
			[ $# -ge 2 ] || usage
			;;
		--help | -*) usage ;;
		*) return 0 ;;
		esac
		case $1 in
		--cpus) cpus=$2 ;;
		--memory) memory=$2 ;;
		--timeout) timeout=$2 ;;
		--disk) disks+=("new:$2") ;;
		--disk-file) disks+=("file:$2") ;;
		--module) modules+=("$2") ;;
		--tool) tools+=("$2") ;;
		--built) tools+=("${B:-build}/$2") ;;
		--file) files+=("$2") ;;
		--append) append="$append $2" ;;
		--qemu) qemu_args+=("$2") ;;
		--results) results=$2 ;;
		--check) check=$2 ;;
		--log) log=$2 ;;
		esac
		shift 2
		n_taken=$((n_taken + 2))
	done
}

command_line=("$@")
take_options "$@"
shift "$n_taken"
[ $# -ge 2 ] || usage
label=$1 script=$2
shift 2
[ -f "$script" ] || die "no script $script"
# The script's own options first, then the command line's again on top of them.
disks=() modules=() tools=() files=() qemu_args=() append=''
while read -r -a words; do
	take_options "${words[@]}"
	[ "$n_taken" = "${#words[@]}" ] || die "$script: bad '# vm:' line: ${words[*]}"
done < <(sed -n 's/^# vm: //p' "$script")
take_options "${command_line[@]}"

work=$(mktemp -d "${TMPDIR:-/tmp}/iotraced-vm.XXXXXX") || exit 125
qemu_pid=
# shellcheck disable=SC2317 # called by the trap
cleanup() {
	if [ -n "$qemu_pid" ]; then
		kill -KILL "$qemu_pid" 2>/dev/null
		wait "$qemu_pid" 2>/dev/null
	fi
	rm -rf "$work"
}
trap cleanup EXIT
trap 'trap "" INT TERM HUP; exit 143' INT TERM HUP # a second one must not stop the cleanup

kernel_line=$("$here/kernels.sh" "$label") || exit $?
read -r _ kernel_dir release <<<"$kernel_line"

# --- the initramfs ---

root=$work/root

copy_libraries() {
	local path paths
	# Static programs and scripts have none.
	paths=$(ldd "$1" 2>/dev/null | grep -Eo '/[^ )]+')
	for path in $paths; do
		[ -e "$root$path" ] && continue
		mkdir -p "$root${path%/*}" && cp -L "$path" "$root$path" || return 1
	done
	return 0
}

add_tool() {
	local path
	path=$1
	[ -f "$path" ] || path=$(PATH=$PATH:/usr/sbin:/sbin command -v "$1") || die "no program $1 on this host (build or install it first)"
	cp -L "$path" "$root/usr/local/bin/${path##*/}" || exit 125
	copy_libraries "$path" || die "cannot copy the libraries of $path"
}

add_module() {
	local dir=lib/modules/$release name path dep
	name=$(echo "$1" | tr - _)
	path=$(awk -F: -v want="$name" '{
			n = $1; sub(/.*\//, "", n); sub(/\.ko$/, "", n); gsub(/-/, "_", n)
			if (n == want) { print; exit }
		}' "$kernel_dir/$dir/modules.dep")
	# Built in, or not in this kernel: the script finds out with modprobe.
	for dep in ${path//:/}; do
		[ -e "$root/$dir/$dep" ] && continue
		mkdir -p "$root/$dir/${dep%/*}" && cp "$kernel_dir/$dir/$dep" "$root/$dir/$dep" || exit 125
	done
}

busybox=$(command -v busybox) || die "no busybox on this host (package busybox-static)"
mkdir -p "$root"/{bin,dev,proc,sys,root,etc} "$root"/usr/{bin,sbin,local/bin} "$root"/tests/lib "$root/lib/modules/$release" ||
	exit 125
ln -s bin "$root/sbin"
cp -L "$busybox" "$root/bin/busybox" && copy_libraries "$busybox"
for applet in $(busybox --list); do
	[ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"
done
echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
echo 'root:x:0:' >"$root/etc/group"
cp "$kernel_dir/lib/modules/$release"/modules.{dep,alias,symbols,builtin} "$root/lib/modules/$release/" 2>/dev/null
for word in ${modules[@]+"${modules[@]}"}; do add_module "$word"; done
for word in ${tools[@]+"${tools[@]}"}; do add_tool "$word"; done
for word in ${files[@]+"${files[@]}"}; do
	src=${word%%:*} dst=${word#*:}
	mkdir -p "$root/$(dirname "$dst")"
	cp -L "$src" "$root/$dst" || die "cannot copy $src"
done
cp "$lib"/*.sh "$here"/guest-*.sh "$here"/*.jq "$root/tests/lib/" || exit 125
cp "$script" "$root/tests/script" && cp "$here/guest-init.sh" "$root/init" && chmod 755 "$root/init" || exit 125
nonce=$$.$RANDOM$RANDOM
{
	echo "vm_nonce=$nonce"
	echo "vm_label=$label"
	printf 'vm_args="%s"\n' "$*"
	echo "vm_long=${LONG:+yes}"
	echo 'export vm_label vm_long'
} >"$root/tests/env"
(cd "$root" && find . | cpio --quiet -o -H newc -R 0:0) >"$work/initrd" || die "cannot make the initramfs"
rm -rf "$root"

# --- the machine ---

[ -z "$check" ] || results=${results:-$work/results}
# What an earlier run has left there would be judged as this one's.
[ -z "$(ls -A "$results" 2>/dev/null)" ] || die "the results' directory $results is not empty"
[ -z "$results" ] || disks+=("new:iot-results=512M")
disk_args=()
n_disks=0
for word in ${disks[@]+"${disks[@]}"}; do
	how=${word%%:*} spec=${word#*:}
	serial=${spec%%=*} rest=${spec#*=}
	image=${rest%%,*} properties=${rest#"$image"}
	if [ "$how" = new ]; then
		truncate -s "$image" "$work/$serial.img" || die "cannot make disk $serial"
		image=$work/$serial.img
	fi
	disk_args+=(-drive "if=none,id=d$n_disks,file=$image,format=raw,cache=unsafe,discard=unmap"
		-device "nvme,drive=d$n_disks,serial=$serial$properties")
	n_disks=$((n_disks + 1))
done

start_machine() {
	: >"$work/output"
	: >"$work/console"
	qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot \
		-machine q35 -accel tcg,thread=multi -cpu max -smp "$cpus" -m "$memory" \
		-kernel "$kernel_dir/vmlinuz" -initrd "$work/initrd" \
		-append "console=ttyS0 panic=-1 oops=panic mitigations=off loglevel=5 $append" \
		-serial "file:$work/console" -serial "file:$work/output" \
		${disk_args[@]+"${disk_args[@]}"} ${qemu_args[@]+"${qemu_args[@]}"} >"$work/qemu.log" 2>&1 </dev/null &
	qemu_pid=$!
}

stop_machine() {
	kill -KILL "$qemu_pid" 2>/dev/null
	wait "$qemu_pid" 2>/dev/null
	qemu_pid=
}

# Waits for the start marker: 0 started, 1 died or hung before.
wait_start() {
	local deadline=$((SECONDS + boot_timeout))
	while [ "$SECONDS" -lt "$deadline" ]; do
		grep -q "^@@start $nonce" "$work/output" && return 0
		kill -0 "$qemu_pid" 2>/dev/null || {
			grep -q "^@@start $nonce" "$work/output"
			return
		}
		sleep 0.2
	done
	return 1
}

started=
for attempt in 1 2 3; do
	start_machine
	if wait_start; then
		started=1
		break
	fi
	stop_machine
	reason=$(cat "$work/qemu.log" "$work/console" | tr -d '\r' | grep -aE 'panic|BUG|Oops|qemu' | head -n 1)
	say "boot $attempt of $label died before the script started: ${reason:-no reason on its console}"
done
[ -z "$log" ] || cp "$work/console" "$log"
[ -n "$started" ] || die "$label does not start"

deadline=$((SECONDS + timeout))
timed_out=
while kill -0 "$qemu_pid" 2>/dev/null; do
	if [ "$SECONDS" -ge "$deadline" ]; then
		timed_out=1
		break
	fi
	sleep 0.2
done
stop_machine
[ -z "$log" ] || cp "$work/console" "$log"
grep -av '^@@' "$work/output"
status=$(sed -n "s/^@@end $nonce \([0-9]*\).*/\1/p" "$work/output" | tail -n 1)
if [ -z "$status" ]; then
	tail -n 40 "$work/console" | tr -d '\r' | sed 's/^/# console: /'
	if [ -n "$timed_out" ]; then
		say "killed after $timeout s"
		exit 124
	fi
	say "the machine died while the script ran"
	exit 126
fi
if [ -n "$results" ]; then
	mkdir -p "$results"
	# A script that left nothing has written no archive.
	if [ "$(head -c 512 "$work/iot-results.img" | tr -d '\0' | wc -c)" -gt 0 ]; then
		tar -C "$results" -xf "$work/iot-results.img" || die "cannot unpack the results"
	fi
fi
if [ -n "$check" ]; then
	"$here/$check" "$results" || status=1
fi
exit "$status"
