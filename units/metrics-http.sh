#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# One answer by HTTP on standard output to the request on standard input: the daemon's numbers, as OpenMetrics. A process a
# connection, by iotraced-metrics-http.socket, so that the daemon itself needs no network.
#
# usage: metrics-http IOTRACECTL [OPTION...]

set -u
# Lengths are those of bytes.
export LC_ALL=C

# answer STATUS TYPE BODY
answer() {
	printf 'HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n' "$1" "$2" "${#3}"
	[ "$method" = HEAD ] || printf '%s' "$3"
	exit 0
}
plain='text/plain; charset=utf-8'
newline='
'

# To the end of its head, or closing the connection resets it under the answer.
cr=$(printf '\r')
IFS=' ' read -r method target protocol || exit 0
while IFS= read -r line && [ "${line%"$cr"}" != '' ]; do :; done

case $protocol in
HTTP/1.[01] | HTTP/1.[01]"$cr") ;;
*) answer '400 Bad Request' "$plain" "This is no request by HTTP/1.$newline" ;;
esac
case $method in
GET | HEAD) ;;
*) answer '405 Method Not Allowed' "$plain" "Only GET and HEAD are answered.$newline" ;;
esac
case ${target%%\?*} in
/metrics) ;;
*) answer '404 Not Found' "$plain" "The numbers are at /metrics.$newline" ;;
esac

# With its last newline, which $() would take away.
body=$("$@" status --format=openmetrics; echo "$?")
status=${body##*"$newline"}
# That no daemon answers (3) is a number, too: iotraced_up 0.
case $status in
0 | 3) answer '200 OK' 'application/openmetrics-text; version=1.0.0; charset=utf-8' "${body%"$status"}" ;;
*) answer '503 Service Unavailable' "$plain" "iotracectl status failed with exit code $status; the journal says why.$newline" ;;
esac
