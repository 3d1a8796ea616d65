#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 300
#
# export --anonymize: nothing of the names and addresses that were recorded is left in any format, what is not a name
# stays as it was, equal names stay equal, and rewritten segments prove what the originals did. No root, no daemon.

set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib/tap.sh
. "$here/../lib/tap.sh"
# shellcheck source=tests/lib/ctl.sh
. "$here/../lib/ctl.sh"
ctl_setup anonymize make-segment make-packets segment-dump
make=$tools/make-segment

"$make" lossy segments=3 requests=3000 lost=21 machine=77 >/dev/null || bail anonymize "cannot make segments"
"$make" hostile segments=1 requests=200 hostile machine=78 >/dev/null
"$make" doubt segments=2 requests=100 lost=2 unattributed=5 machine=79 unselected=3 selection="include acme*" >/dev/null
"$make" unsealed segments=2 requests=300 open machine=80 >/dev/null
packets=(clean lost torn sampled)
packets=("${packets[@]/#/pk-}")
for d in "${packets[@]}"; do
	mkdir "$d"
	"$tools/make-packets" "$d" "${d#pk-}" || bail anonymize "cannot make $d"
done
(umask 077 && head -c 32 /dev/urandom >key && head -c 32 /dev/urandom >other.key)

dumps() { for f; do "$tools/segment-dump" "$f" 2>/dev/null; done; }

# What must not be left: names and addresses, one a line, of all that was recorded.
{
	for d in lossy hostile doubt unsealed "${packets[@]}"; do
		"$ctl" cat --json "$d" 2>/dev/null | jq -r '.comm // empty, .iface // empty'
		"$ctl" cat --json "$d" 2>/dev/null | grep -oE '\b10\.[0-9]+\.[0-9]+\.[0-9]+\b'
		dumps "$d"/* | awk '$1 == "machine" || $1 == "boot" { print $2 }'
		dumps "$d"/* | grep -oE '/(system|user)\.slice|app\.service'
		"$ctl" --json segments "$d" | jq -r '.[].host'
	done
	printf '%s\n' 'acme*' app.service system.slice onerror
} | awk 'length > 2 && $0 != "host" && !seen[$0]++' >names
assert_eq "there are names to look for" true "$([ "$(wc -l <names)" -ge 10 ] && grep -q '^10\.' names && grep -qx fio names &&
	grep -qx host77 names && grep -qx veth0 names && echo true)"
assert_eq "and they are found where nothing was replaced" true \
	"$("$ctl" cat --json lossy 2>/dev/null | grep -qaFf names && "$ctl" cat pk-lost 2>/dev/null | grep -qaFf names && echo true)"

# left FILE...	how many lines of them still hold a name
left() { cat -- "$@" | LC_ALL=C grep -caFf names; }

# ---- formats ----------------------------------------------------------------------------------------------

mapfile -t formats < <(ctl_formats blktrace pcapng openmetrics prometheus segment)
assert_eq "formats of requests are those of the help" true "$([[ " ${formats[*]} " == *' csv jsonl fio '* ]] && echo true)"
for format in "${formats[@]}"; do
	for d in lossy hostile; do
		assert_status "$format of $d" 0 "$ctl" export --format="$format" --anonymize=key -o "$d.$format" "$d"
		# fio is the name of a process here, and of a format.
		assert_eq "$format of $d: no name is left" 0 "$(left <(sed '1s/^fio version//' "$d.$format") \
			<(sed '1s/"format":"fio"//' "$d.$format.loss.json"))"
	done
done
for format in csv jsonl pcapng; do
	for d in "${packets[@]}"; do
		"$ctl" export --format=$format --anonymize=key -o "$d.$format" "$d" 2>/dev/null
		assert_eq "$format of $d: no name is left" "0 true" \
			"$(left "$d.$format" "$d.$format.loss.json") $([ -s "$d.$format" ] && echo true)"
	done
done
assert_status "blktrace" 0 "$ctl" export --format=blktrace --anonymize=key -o lossy.bt lossy
assert_eq "blktrace: no name is left" 0 "$(left lossy.bt/* lossy.bt.loss.json)"
assert_eq "the sidecar says so" "HMAC-SHA-256" "$(jq -r '.anonymized | split(",")[0]' lossy.csv.loss.json)"
"$ctl" export --format=csv -o plain.csv lossy
assert_eq "and that of another export does not" null "$(jq .anonymized plain.csv.loss.json)"
# A file that cannot be read is a reason, without its name.
mkdir "my acme files"
cp lossy/*-00000001.iot "my acme files/a.iot"
echo junk >"my acme files/acme notes.iot"
"$ctl" export --format=csv --anonymize=key -o acme.csv "my acme files" 2>/dev/null
assert_eq "nor is that of a file that could not be read" "0 true" \
	"$(grep -c acme acme.csv.loss.json) $(jq '.record.reasons | any(contains("(file)"))' acme.csv.loss.json)"

# ---- what stays -------------------------------------------------------------------------------------------

"$ctl" cat --json lossy 2>/dev/null >lossy.json
assert_eq "all but the names is as it was" "" \
	"$(cmp <(jq -c 'del(.comm)' lossy.json) <(jq -c 'del(.comm)' lossy.jsonl) 2>&1)"
pairs() { paste -d ' ' <(jq -c .comm lossy.json) <(jq -c .comm "$1") | sort -u; }
assert_eq "a name for a name, both ways" "$(jq -c .comm lossy.json | sort -u | wc -l) 0 0" \
	"$(pairs lossy.jsonl | wc -l) $(pairs lossy.jsonl | awk '{ print $1 }' | uniq -d | wc -l) \
$(pairs lossy.jsonl | awk '{ print $NF }' | sort | uniq -d | wc -l)"
"$ctl" export --format=jsonl --anonymize=key -o again.jsonl lossy
"$ctl" export --format=jsonl --anonymize=other.key -o other.jsonl lossy
assert_eq "the same key gives the same" "" "$(cmp lossy.jsonl again.jsonl 2>&1)"
assert_eq "another key gives others: no name is the same" "" \
	"$(comm -12 <(jq -r .comm lossy.jsonl | sort -u) <(jq -r .comm other.jsonl | sort -u))"
assert_eq "a filter by name finds what it would have found" "$("$ctl" cat --json --comm fio lossy 2>/dev/null | jq -r .id | cksum)" \
	"$("$ctl" export --format=jsonl --anonymize=key --comm fio lossy 2>/dev/null | jq -r .id | cksum)"
assert_eq "and by flow" "$("$ctl" cat --json --flow '10.0.0.1 > :53' pk-clean 2>/dev/null | wc -l)" \
	"$("$ctl" export --format=jsonl --anonymize=key --flow '10.0.0.1 > :53' pk-clean 2>/dev/null | wc -l)"
assert_eq "and by interface" "$("$ctl" cat --json --dev veth0 pk-clean 2>/dev/null | wc -l)" \
	"$("$ctl" export --format=jsonl --anonymize=key --dev veth0 pk-clean 2>/dev/null | wc -l)"

# ---- segments ---------------------------------------------------------------------------------------------

# verdict DIR	what verify says, but for paths
verdict() { "$ctl" verify --json "$1" 2>/dev/null | jq -cS 'walk(if type == "object" then del(.path, .name) else . end)'; }

for d in lossy hostile doubt unsealed "${packets[@]}"; do
	assert_status "segments of $d" 0 "$ctl" export --format=segment --anonymize=key -o "seg-$d" "$d"
	assert_eq "segments of $d: verify says the same" "$(verdict "$d")" "$(verdict "seg-$d")"
	assert_eq "segments of $d: none is bigger by much" "" \
		"$(paste <(cd "$d" && stat -c %s -- *) <(cd "seg-$d" && stat -c %s -- *) | awk '$2 > $1 * 1.2 + 400')"
	assert_eq "segments of $d: no name is left" 0 "$(left <(cat "seg-$d"/*) <(dumps "seg-$d"/*) \
		<("$ctl" cat --json "seg-$d" 2>/dev/null) <("$ctl" --json segments "seg-$d" | jq 'map(del(.path))') "seg-$d.loss.json")"
	assert_eq "segments of $d: marked" "$(jq -r .anonymized lossy.csv.loss.json)" \
		"$("$ctl" --json segments "seg-$d" | jq -r '.[].anonymized' | sort -u)"
	assert_eq "segments of $d: the same as an export of the originals" "" \
		"$(cmp <("$ctl" export --format=csv --anonymize=key "$d" 2>/dev/null) <("$ctl" export --format=csv "seg-$d" 2>/dev/null) 2>&1)"
done
books() { dumps "$@" | grep '^books' | tee books.txt; }
assert_eq "books are as they were" "$(books doubt/*)" "$(books seg-doubt/*)"
assert_eq "and there are some" true "$([ -s books.txt ] && echo true)"
assert_eq "the report's numbers, too" "" "$(diff <("$ctl" report --json lossy | jq 'walk(if type == "object" then del(.host, .file_bytes) else . end)') \
	<("$ctl" report --json seg-lossy | jq 'walk(if type == "object" then del(.host, .file_bytes) else . end)'))"
assert_eq "two of one capture, apart, by one key: names agree" "$(jq -r .comm lossy.jsonl | sort -u)" \
	"$(for f in lossy/*; do "$ctl" export --format=jsonl --anonymize=key "$f" 2>/dev/null; done | jq -r .comm | sort -u)"
assert_eq "a packet is judged as it was" \
	"$("$ctl" --json replay pk-lost 2>/dev/null | jq -c '.captures[0].verdicts')" \
	"$("$ctl" --json replay seg-pk-lost 2>/dev/null | jq -c '.captures[0].verdicts')"
mkdir late
cp lossy/*-00000003.iot late
"$ctl" export --format=segment --anonymize=key -o seg-late late
assert_eq "without the segment before there is no link to it" "$(verdict late)" "$(verdict seg-late)"

# Damage is not covered up.
mkdir damaged
cp lossy/*-00000001.iot damaged/d.iot
printf 'X' | dd of=damaged/d.iot bs=1 seek=20000 conv=notrunc status=none
"$ctl" export --format=segment --anonymize=key -o seg-damaged damaged 2>err
assert_eq "a damaged segment is refused, with the way out" "1 1 no" \
	"$? $(grep -c "iotracectl recover" err) $([ -e seg-damaged ] && echo yes || echo no)"
for kind in junk empty aside; do
	mkdir "with-$kind"
	cp lossy/*-00000001.iot "with-$kind/a.iot"
	case $kind in
	junk) (printf JUNK && tail -c +5 "$(echo lossy/*-00000002.iot)") >with-junk/b.iot ;;
	empty) : >with-empty/b.iot ;;
	aside) echo JUNK >with-aside/block-0a-0000000002.bad ;;
	esac
	"$ctl" export --format=segment --anonymize=key -o "seg-with-$kind" "with-$kind" 2>err
	assert_eq "beside a file that cannot be copied ($kind) none is" "1 1 no" \
		"$? $(grep -cE 'with-[a-z]+/b[a-z0-9-]*.(iot|bad)' err) $(ls -d seg-with-$kind* >/dev/null 2>&1 && echo yes || echo no)"
done
"$ctl" recover --output=recovered.iot damaged/d.iot >/dev/null 2>&1
"$ctl" export --format=segment --anonymize=key -o seg-recovered recovered.iot
assert_eq "which works: doubt stays doubt" "$("$ctl" verify recovered.iot >/dev/null 2>&1; echo $?)" \
	"$("$ctl" verify seg-recovered >/dev/null 2>&1; echo $?)"

# ---- refusals ---------------------------------------------------------------------------------------------

refused() { # NAME STATUS TEXT OPTION...
	local name=$1 want=$2 text=$3 code
	shift 3
	timeout 20 "$ctl" export "$@" lossy >/dev/null 2>err
	code=$?
	assert_eq "$name" "$want 1" "$code $(grep -cF -- "$text" err)"
}
cp key shared.key && chmod 644 shared.key
head -c 16 /dev/urandom >short.key && chmod 600 short.key
refused "segments without a key" 2 "--format=segment is for --anonymize" --format=segment -o no
refused "part of a segment" 2 "takes whole segments" --format=segment --anonymize=key --op read -o no
refused "segments to standard output" 2 "name a directory" --format=segment --anonymize=key
refused "a key that others can read" 1 "(mode 0644): chmod 600" --format=csv --anonymize=shared.key
refused "a key that is too short" 1 "a key of 16 bytes can be guessed" --format=csv --anonymize=short.key
refused "no key" 1 "missing.key: No such file" --format=csv --anonymize=missing.key
refused "a directory" 1 "is no file" --format=csv --anonymize=lossy
mkfifo -m 600 fifo.key
refused "a FIFO that nobody writes to" 1 "fifo.key: is no file but a FIFO" --format=csv --anonymize=fifo.key
"$ctl" export --format=csv --anonymize=other.key seg-lossy >/dev/null 2>err
assert_eq "anonymized ones once more" "1 1" "$? $(grep -c 'is anonymized already (HMAC-SHA-256, key' err)"
assert_eq "the key from a pipe" "" "$(cmp <("$ctl" export --format=csv --anonymize=<(cat key) lossy 2>/dev/null) lossy.csv 2>&1)"
"$ctl" cat --anonymize=key lossy >/dev/null 2>err
assert_eq "only export takes it" "2" $?
assert_eq "nothing is left behind" "" "$(find . -name 'no*' -name '*.tmp*' -o -name 'no' | head -n 1)"

tap_end
