#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Installs what a step needs from Debian's own packages, and only what is missing:
#   install-deps.sh build | check | systemd | archive | deb | deb-check | browser | bench
set -eu

build=(gcc make clang llvm bpftool pkg-config git libc6-dev libbpf-dev libelf-dev zlib1g-dev libsystemd-dev liblz4-dev
	libxxhash-dev libyaml-dev libjson-c-dev libmd-dev libpcap-dev)
run=(fio util-linux)
check=("${build[@]}" "${run[@]}" libcmocka-dev lz4 jq blktrace qemu-system-x86 busybox-static cpio xz-utils
	rclone kmod e2fsprogs xfsprogs btrfs-progs dmsetup strace libcap2-bin tshark stress-ng nftables zsh tmux python3-prometheus-client)
lint=(clang-format clang-tidy cppcheck shellcheck valgrind libclang-rt-14-dev)
deb=("${build[@]}" dpkg-dev debhelper fakeroot)
bench=("${build[@]}" "${run[@]}" lz4 jq linux-perf bpftrace blktrace)

case "${1:-build}" in
build) want=("${build[@]}" "${run[@]}") ;;
check) want=("${check[@]}" "${lint[@]}") ;;
systemd) want=("${check[@]}" "${deb[@]}" debootstrap) ;;
deb) want=("${deb[@]}") ;;
archive) want=("${build[@]}" rclone openssh-server openssh-client jq procps
	swift-account swift-container swift-object swift-proxy clickhouse-server clickhouse-client) ;;
deb-check) want=("${deb[@]}" lintian rpm jq prometheus) ;;
browser) want=("${build[@]}" jq chromium fonts-dejavu-core) ;;
bench) want=("${bench[@]}") ;;
*) echo "usage: $0 build|check|systemd|archive|deb|deb-check|browser|bench" >&2; exit 64 ;;
esac

missing=()
for p in "${want[@]}"; do
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
done
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" -ne 0 ]; then
	echo "missing packages: ${missing[*]}" >&2
	echo "install them as root: apt-get install ${missing[*]}" >&2
	exit 77
fi
echo "installing ${#missing[@]} missing packages: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# A machine that just came up may be installing something itself.
lock=(-o DPkg::Lock::Timeout=300)
if ! { apt-get -q update && apt-get -q -y "${lock[@]}" --no-install-recommends install "${missing[@]}"; } >"$log" 2>&1; then
	tail -n 30 "$log" >&2
	echo "apt-get could not install: ${missing[*]}" >&2
	exit 1
fi
