#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2154 # variables of the libraries
# timeout: 900
#
# The page of `report --html` in headless Chromium: no console error, and check.js uses it, in several sizes and both
# themes. Pictures of each are left in $LOGS/browser for people to look at. No root.

set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib/tap.sh
. "$here/../lib/tap.sh"

B=${B:-build}
case $B in /*) ;; *) B=$here/../../$B ;; esac
ctl=${IOTRACECTL:-$B/iotracectl}
tools=$B/tests/tools
shots=${LOGS:-$B/test-logs}/browser
[ -x "$ctl" ] || bail browser "no $ctl"
[ -x "$tools/make-segment" ] || bail browser "build with make tests-bin"
command -v chromium >/dev/null || bail browser "no chromium: run tests/lib/install-deps.sh browser"

export TZ=UTC
dir=$(mktemp -d /tmp/iotraced-browser.XXXXXX) || bail browser "no temporary directory"
trap 'rm -rf "$dir"' EXIT
trap 'trap "" INT TERM HUP; exit 143' INT TERM HUP
mkdir -p "$shots"
shots=$(cd "$shots" && pwd)
cd "$dir" || bail browser "no temporary directory"

# browser WIDTH ARGUMENT...	stderr has the console
browser() {
	local width=$1
	shift
	timeout -k 5 120 chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --no-first-run \
		--disable-background-networking --disable-component-update --user-data-dir="$dir/profile" \
		--enable-logging=stderr --virtual-time-budget=20000 --window-size="$width" "$@"
}

# check NAME WIDTH,HEIGHT	the page $dir/NAME.html
check() {
	local name="$1 at $2" page=$1-${2%,*}
	{
		sed '/^<\/body>$/,$d' "$1.html"
		echo '<script>'
		cat "$here/check.js"
		printf '</script>\n</body>\n</html>\n'
	} >"$page.html"
	browser "$2" --dump-dom "file://$dir/$page.html?width=${2%,*}" >"$page.dom" 2>"$page.console"
	sed -n '/<pre id="results">/,/<\/pre>/p' "$page.dom" | grep -E '^(not )?ok ' | sed 's/&lt;/</g; s/&gt;/>/g; s/&amp;/\&/g' >"$page.results"
	assert_num "$name: it was used" "$(grep -c '^ok' "$page.results")" -gt 40
	assert_eq "$name: and all was right" "" "$(grep '^not ok' "$page.results" | head -n 5)"
	assert_eq "$name: no word on the console" "" "$(grep CONSOLE "$page.console")"
	browser "$2" --screenshot="$shots/$page.png" "file://$dir/$1.html" 2>"$page.console" >&2
	assert_num "$name: a picture of it" "$(stat -c %s "$shots/$page.png" 2>/dev/null || echo 0)" -gt 20000
}

segments() { "$tools/make-segment" "$@" >/dev/null || bail browser "cannot make segments"; }
segments lossy segments=3 requests=3000 lost=21
segments two segments=1 requests=500 machine=1
segments doubt segments=2 requests=300 lost=2 unattributed=5
segments open segments=2 requests=300 open
segments hostile segments=1 requests=300 lost=2 hostile
mkdir packets
"$tools/make-packets" packets lost || bail browser "cannot make packets"
page() { "$ctl" report --html "$@" 2>/dev/null || true; }
page both.html lossy packets
page hosts.html lossy two
page doubt.html doubt
page open.html open
page hostile.html hostile
page packets.html packets
page none.html --since '2030-01-01' lossy

# A window of Chromium is not narrower than 500.
for size in 500,3000 820,3000 1280,3600 1920,3000; do
	check both $size
done
for name in hosts doubt open hostile packets; do
	check $name 1280,3000
done
# A recording of one's own, if there is one: make browser PAGE_OF=/var/lib/iotraced
if [ -n "${PAGE_OF:-}" ]; then
	page own.html "$PAGE_OF"
	check own 1280,4200
fi
browser 1280,900 --dump-dom "file://$dir/none.html" >none.dom 2>none.console
assert_eq "nothing selected: no word on the console" "" "$(grep CONSOLE none.console)"
assert_grep "nothing selected: it says so" 'No requests\.' none.dom
note "pictures: $shots"
tap_end
