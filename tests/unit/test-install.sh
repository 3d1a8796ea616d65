#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# make install puts exactly what it should below DESTDIR, and make uninstall takes all of it but the configuration.
cd "$(dirname "$0")/../.." || exit 2
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh

# The same spelling as in `make`: another one is another set of flags, hence another build.
B=${B:-build}
B=${B#"$PWD"/}
dest=$(mktemp -d)
trap 'rm -rf "$dest"' EXIT

files() { (cd "$dest" && find . -type f | sort); }
run() { make -s B="$B" DESTDIR="$dest" prefix=/usr "$@"; }

assert_status "make install" 0 run install
# Without -s, which would hide the commands by itself.
said=$(make --no-print-directory B="$B" DESTDIR="$dest" prefix=/usr install)
assert_eq "says what, not how" "" "$(grep -vE '^  (CC|LD|AR|BPF|SKEL|INSTALL) ' <<<"$said")"
assert_ne "and says it" "" "$(grep '^  INSTALL ' <<<"$said")"
assert_ne "V=1 says how" "" "$(make V=1 B="$B" DESTDIR="$dest" prefix=/usr install | grep '^install -D -m 0755 ')"
assert_eq "installed files" "\
./etc/iotraced/archive.conf
./etc/iotraced/iotraced.yaml
./usr/bin/iotracectl
./usr/lib/systemd/catalog/iotraced.catalog
./usr/lib/systemd/system/iotraced-archive.path
./usr/lib/systemd/system/iotraced-archive.service
./usr/lib/systemd/system/iotraced-archive.timer
./usr/lib/systemd/system/iotraced-metrics-http.socket
./usr/lib/systemd/system/iotraced-metrics-http@.service
./usr/lib/systemd/system/iotraced-metrics.service
./usr/lib/systemd/system/iotraced-metrics.timer
./usr/lib/systemd/system/iotraced.service
./usr/lib/sysusers.d/iotraced.conf
./usr/libexec/iotraced/metrics-http
./usr/sbin/iotraced
./usr/share/bash-completion/completions/iotracectl
./usr/share/man/man1/iotracectl.1
./usr/share/man/man5/iotraced.yaml.5
./usr/share/man/man8/iotraced.8
./usr/share/zsh/site-functions/_iotracectl" "$(files)"
assert_eq "conf.d" drwxr-xr-x "$(stat -c %A "$dest/etc/iotraced/conf.d")"
assert_eq "place of the daemon in the unit" "ExecStart=/usr/sbin/iotraced" \
	"$(grep '^ExecStart=' "$dest/usr/lib/systemd/system/iotraced.service")"
assert_eq "nothing left to put in" "" "$(grep -hv '^#' "$dest"/usr/lib/systemd/system/* | grep -E '@[a-z]+@')"
assert_status "the installed configuration is good" 0 \
	"$dest/usr/sbin/iotraced" --config "$dest/etc/iotraced/iotraced.yaml" --check-config
assert_status "make install again" 0 run install
assert_eq "make uninstall says what" "0 " "$(run uninstall >"$dest.out"; echo "$? $(grep -v '^  REMOVE ' "$dest.out")"; rm "$dest.out")"
assert_eq "what stays" "./etc/iotraced/archive.conf ./etc/iotraced/iotraced.yaml" "$(files | xargs)"
tap_end
