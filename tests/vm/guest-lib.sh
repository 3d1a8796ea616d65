# shellcheck shell=sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Helpers for scripts inside a test machine. Sources the check and daemon helpers of tests/lib as well, so
# a guest script starts with this one line: . /tests/lib/guest-lib.sh

for _lib in tap diskstats daemon; do
	# shellcheck source=/dev/null
	. "/tests/lib/$_lib.sh"
done

# vm_disk SERIAL	name of the NVMe disk with that serial number; enumeration order varies between boots
vm_disk() {
	_vm_tries=100
	while [ "$_vm_tries" -gt 0 ]; do
		for _vm_dir in /sys/block/nvme*n1; do
			[ -e "$_vm_dir/device/serial" ] || continue
			read -r _vm_serial <"$_vm_dir/device/serial"
			if [ "$_vm_serial" = "$1" ]; then
				echo "${_vm_dir##*/}"
				return 0
			fi
		done
		_vm_tries=$((_vm_tries - 1))
		sleep 0.1
	done
	echo "vm_disk: no NVMe disk with serial $1" >&2
	return 1
}

# vm_modprobe MODULE [PARAMETER=VALUE...]	built in counts as loaded
vm_modprobe() {
	modprobe "$@" && return 0
	grep -q "/$(echo "$1" | sed 's/[_-]/[_-]/g')\.ko" "/lib/modules/$(uname -r)/modules.builtin" 2>/dev/null
}

# vm_has_module MODULE
vm_has_module() { modprobe -n "$1" >/dev/null 2>&1; }

# vm_scheduler DISK NAME	0: set, 1: the kernel does not have it
vm_scheduler() {
	case $2 in
	none) ;;
	bfq) modprobe bfq 2>/dev/null ;;
	*) modprobe "$2" 2>/dev/null || modprobe "$2-iosched" 2>/dev/null ;;
	esac
	echo "$2" >"/sys/block/$1/queue/scheduler" 2>/dev/null || return 1
	grep -q "\[$2\]" "/sys/block/$1/queue/scheduler"
}

# vm_kernel_ge MAJOR MINOR
vm_kernel_ge() {
	_vm_release=$(uname -r)
	_vm_major=${_vm_release%%.*}
	_vm_minor=${_vm_release#*.}
	_vm_minor=${_vm_minor%%[!0-9]*}
	[ "$_vm_major" -gt "$1" ] || { [ "$_vm_major" -eq "$1" ] && [ "$_vm_minor" -ge "$2" ]; }
}
