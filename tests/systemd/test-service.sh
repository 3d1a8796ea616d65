#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The unit as `make install` puts it, under this Debian's systemd in a virtual machine: enable --now, who may use the
# socket, reload, restart, and twenty kills under numbered I/O, after which every request is in one complete capture.
#
# timeout: 500

cd "$(dirname "$0")/../.." || exit 1
exec tests/systemd/run.sh --timeout 300 --log "${LOGS:-${B:-build}/test-logs}/systemd-service.console" tests/systemd/guest-service.sh
