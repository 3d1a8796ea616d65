#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Restarts that cannot go on with a capture, under this Debian's systemd in a virtual machine: with a wrong configuration,
# into a program with another layout, and back. The captures end complete.
#
# timeout: 500

cd "$(dirname "$0")/../.." || exit 1
exec tests/systemd/run.sh --timeout 390 --log "${LOGS:-${B:-build}/test-logs}/systemd-upgrade.console" tests/systemd/guest-upgrade.sh \
	"${B:-build}/tests/tools/iotraced-other-layout"
