#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The unit as `make install` puts it, under this Debian's systemd in a virtual machine: enable --now, who may use the
# socket, reload, twenty kills and four restarts under numbered I/O, one of them an upgrade, after which every request is in
# one complete capture.
# IOT_ADOPT_KILLS: another number of kills than twenty.
#
# timeout: 500

cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d /dev/shm/iotraced-service.XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT
echo "${IOT_ADOPT_KILLS:-20}" >"$work/kills"
tests/systemd/run.sh --timeout 390 --log "${LOGS:-${B:-build}/test-logs}/systemd-service.console" tests/systemd/guest-service.sh \
	"$work/kills"
