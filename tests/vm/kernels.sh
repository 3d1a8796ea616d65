#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Debian "cloud-amd64" kernels for the virtual machine tests, unpacked into a cache outside the tree:
#
#	${IOTRACED_CACHE:-/var/cache/iotraced}/kernels/LABEL/{vmlinuz,release,stamp,lib/modules/RELEASE}
#
# usage: kernels.sh [--refresh] [--list] [LABEL...]	labels: 5.10 6.1 6.12 7 (default: all)
#
# Prints "LABEL DIRECTORY RELEASE" for every kernel at hand. A cached kernel is used as it is, without
# the network; --refresh looks for a newer one. Packages come by `apt-get download` with lists and cache
# of our own and the mirror that the host's own apt sources use for the Debian main archive, so the
# signatures are checked by apt and no host name is written here. The newest version wins, chosen by
# name pattern and version order, since Debian's abi numbers move with each security update.
#
# Nothing half done is ever visible: a kernel is unpacked beside its place and renamed into it, under
# a lock that serialises concurrent runs.
#
# Exit: 0 all there, 77 some could not be had (with a count), 1 the same where CI=true, 2 usage.

set -u -o pipefail

cache=${IOTRACED_CACHE:-/var/cache/iotraced}
kernels=$cache/kernels
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
all_labels="5.10 6.1 6.12 7"
refresh=

say() { printf 'kernels: %s\n' "$*" >&2; }

# label -> "suites|package patterns", one pattern per package that is needed
recipe() {
	case $1 in
	5.10) echo "bullseye bullseye-security|^linux-image-5\.10\.[0-9.]+(-[0-9]+)?-cloud-amd64$" ;;
	6.1) echo "bookworm bookworm-security|^linux-image-6\.1\.[0-9.]+(-[0-9]+)?-cloud-amd64$" ;;
	6.12) echo "trixie trixie-security|^linux-image-6\.12\.[0-9.]+(\+deb13)?(-[0-9]+)?-cloud-amd64$" ;;
	7) echo "sid|^linux-binary-7\.[0-9.]+(\+deb[0-9]+)?(-[0-9]+)?-cloud-amd64$ ^linux-modules-7\.[0-9.]+(\+deb[0-9]+)?(-[0-9]+)?-cloud-amd64$" ;;
	*) return 1 ;;
	esac
}

# shellcheck source=tests/lib/mirror.sh
. "$(dirname "$0")/../lib/mirror.sh"

apt_private() {
	local tool=$1 dir=$2
	shift 2
	"$tool" -o "Dir::Etc::sourcelist=$dir/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
		-o "Dir::State::lists=$dir/lists" -o "Dir::Cache=$dir/cache" \
		-o "Dir::Cache::archives=$dir/archives" -o Dir::State::status=/dev/null \
		-o APT::Architecture=amd64 -o APT::Architectures=amd64 -o Acquire::Retries=3 \
		-o Acquire::Languages=none -o Acquire::http::Timeout=60 -o APT::Sandbox::User=root \
		-o pkgCacheFile::Essential=none "$@"
}

# Three tries, for mirrors that have a bad moment.
retry() {
	local i
	for i in 1 2 3; do
		"$@" && return 0
		[ "$i" = 3 ] || sleep $((i * 5))
	done
	return 1
}

update_lists() {
	local dir=$1 suites=$2 main security suite uri
	main=$(mirror '^(stable|oldstable|oldoldstable|testing|unstable|sid|bullseye|bookworm|trixie|forky|duke)$')
	security=$(mirror '^(stable|oldstable|oldoldstable|testing|bullseye|bookworm|trixie|forky)-security$')
	if [ -z "$main" ]; then
		say "no Debian main archive among this host's apt sources"
		return 1
	fi
	mkdir -p "$dir/lists/partial" "$dir/cache" "$dir/archives/partial" || return 1
	: >"$dir/sources.list"
	for suite in $suites; do
		uri=$main
		case $suite in *-security) uri=$security ;; esac
		[ -n "$uri" ] || continue
		echo "deb [signed-by=$keyring] $uri $suite main" >>"$dir/sources.list"
	done
	retry apt_private apt-get "$dir" -q -o APT::Update::Error-Mode=any update >"$dir/update.log" 2>&1 && return 0
	# A security suite may be missing (archived, not mirrored): the main suite alone is good enough.
	sed -i '/-security main$/d' "$dir/sources.list"
	retry apt_private apt-get "$dir" -q -o APT::Update::Error-Mode=any update >"$dir/update.log" 2>&1 && return 0
	say "cannot read the package lists of $suites: $(grep -m1 '^[EW]:' "$dir/update.log")"
	return 1
}

# Newest package whose name matches: prints name=version.
newest() {
	apt_private apt-cache "$1" pkgnames | grep -E "$2" | sort -V | tail -n 1 | while read -r name; do
		version=$(apt_private apt-cache "$1" show --no-all-versions "$name" | sed -n 's/^Version: //p' | head -n 1)
		[ -n "$version" ] && echo "$name=$version"
	done
}

# shellcheck disable=SC2317 # called by way of retry
download() (
	cd "$1" && apt_private apt-get "$2" -q download "$3" >>"$2/download.log" 2>&1
)

# Unpack all of $dir/archives into $new in the cached layout.
unpack() {
	local dir=$1 new=$2 deb image release
	mkdir -p "$new/tree" || return 1
	for deb in "$dir"/archives/*.deb; do
		dpkg -x "$deb" "$new/tree" || return 1
	done
	image=$(find "$new/tree" -name 'vmlinuz*' -type f | head -n 1)
	release=$(find "$new/tree" -path '*/lib/modules/*' -prune -type d -printf '%f\n' | head -n 1)
	if [ -z "$image" ] || [ -z "$release" ]; then
		say "no kernel image or modules in $(basename -a "$dir"/archives/*.deb | tr '\n' ' ')"
		return 1
	fi
	mkdir -p "$new/lib/modules" || return 1
	mv "$image" "$new/vmlinuz" || return 1
	mv "$(find "$new/tree" -path "*/lib/modules/$release" -prune -type d)" "$new/lib/modules/" || return 1
	config=$(find "$new/tree" -name 'config-*' -type f | head -n 1)
	[ -z "$config" ] || mv "$config" "$new/config" || return 1
	rm -rf "$new/tree"
	# busybox modprobe in the guest reads plain modules, and depmod's index is made at installation.
	find "$new/lib/modules" -name '*.ko.xz' -exec xz -d -T1 {} + || return 1
	find "$new/lib/modules" -name '*.ko.zst' -exec zstd -q -d --rm {} + || return 1
	busybox depmod -b "$new" "$release" || return 1
	echo "$release" >"$new/release"
}

cached() {
	[ -s "$kernels/$1/stamp" ] && [ -s "$kernels/$1/vmlinuz" ] && [ -s "$kernels/$1/release" ]
}

provide() {
	local label=$1 spec suites patterns pattern dir new pkg want=
	spec=$(recipe "$label") || return 2
	if cached "$label" && [ -z "$refresh" ]; then
		return 0
	fi
	suites=${spec%%|*}
	patterns=${spec#*|}
	dir=$kernels/.apt-$label
	new=$kernels/.new-$label
	rm -rf "$new"
	say "$label: reading the lists of $suites"
	update_lists "$dir" "$suites" || return 1
	for pattern in $patterns; do
		pkg=$(newest "$dir" "$pattern")
		if [ -z "$pkg" ]; then
			say "$label: no package matches $pattern in $suites"
			return 1
		fi
		want="$want$pkg
"
	done
	if cached "$label" && [ "$(cat "$kernels/$label/stamp")" = "${want%?}" ]; then
		return 0
	fi
	rm -f "$dir"/archives/*.deb "$dir/download.log"
	for pkg in $want; do
		say "$label: downloading $pkg"
		if ! retry download "$dir/archives" "$dir" "$pkg"; then
			say "$label: download failed: $(grep -m1 '^E:' "$dir/download.log")"
			return 1
		fi
	done
	unpack "$dir" "$new" || return 1
	printf '%s' "$want" >"$new/stamp"
	rm -rf "$kernels/.old-$label"
	if [ -e "$kernels/$label" ]; then
		mv "$kernels/$label" "$kernels/.old-$label" || return 1
	fi
	mv "$new" "$kernels/$label" || return 1
	rm -rf "$kernels/.old-$label" "$dir"
	say "$label: $(cat "$kernels/$label/release")"
}

labels=
while [ $# -gt 0 ]; do
	case $1 in
	--refresh) refresh=1 ;;
	--list)
		echo "$all_labels"
		exit 0
		;;
	-*)
		sed -n 's/^# usage: /usage: /p' "$0" >&2
		exit 2
		;;
	*)
		if ! recipe "$1" >/dev/null; then
			say "unknown kernel label '$1' (known: $all_labels)"
			exit 2
		fi
		labels="$labels $1"
		;;
	esac
	shift
done
labels=${labels:-$all_labels}

mkdir -p "$kernels" || exit 1
n_missing=0
for label in $labels; do
	# One lock per label: two runs may fetch different kernels, never the same one twice.
	exec 9>"$kernels/.lock-$label" || exit 1
	flock 9
	if provide "$label" || cached "$label"; then
		echo "$label $kernels/$label $(cat "$kernels/$label/release")"
	else
		n_missing=$((n_missing + 1))
	fi
	exec 9>&-
done
if [ "$n_missing" -gt 0 ]; then
	say "$n_missing kernels could not be had"
	[ "${CI:-}" = true ] && exit 1
	exit 77
fi
exit 0
