#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Ids of packets against ftrace's account of the same packets' memory; see test-packet-identity.sh.
#
# The two records know each other by this alone: the n-th sighting of a processor at a tracepoint is the same in both,
# since both programs run in each. So an id has addresses, and an address has lives, each beginning with an allocation.
# A second sk_buff that is allocated together with a first one (TCP's, whose data is sent as such a clone) has no
# allocation of its own: it may live several times, each of which is sent once.
#
# usage: check-packet-identity.sh RESULTS-DIRECTORY

set -u
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib/tap.sh
. "$here/../lib/tap.sh"
read -r one _ <"$1/sizes" || bail "packet-identity" "the guest left nothing"

# sightings NAME	"CPU PROBE ID MERGED ADDRESS LIFE SENT", ADDRESS with a + for the second of two, LIFE 0 without an allocation
sightings() {
	awk -v one="$one" '
		# 0xffff888003d6e800 as two numbers, and back: too long for one.
		function low(a) { return hex(substr(a, length(a) - 5)) }
		function high(a) { return substr(a, 1, length(a) - 6) }
		function hex(s,  i, n) { n = 0; for (i = 1; i <= length(s); i++) n = n * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1; return n }
		function field(name,  i) { for (i = 1; i <= NF; i++) if (index($i, name "=") == 1) return substr($i, length(name) + 2); return "" }
		{ cpu = ""; for (i = 1; i <= NF; i++) if ($i ~ /^\[[0-9]+\]$/) { cpu = substr($i, 2, length($i) - 2) + 0; break } }
		/ kmem_cache_alloc: / {
			a = field("ptr"); sub(/^0x/, "", a); life[a]++; size[a] = field("bytes_req"); next
		}
		{
			probe = / net_dev_queue: / ? 66 : 64
			a = field("skbaddr"); sub(/^0x/, "", a)
			dev = field("dev")
			second = ""
			n = life[a] + 0
			if (!n) {
				# The first one of the two, if this is a second one; addresses differ in their last digits.
				first = sprintf("%s%06x", high(a), low(a) - one)
				if (!(first in life)) first = sprintf("%s%06x", high(a), low(a) - one - (64 - one % 64) % 64)
				if ((first in life) && size[first] > one) { second = "+"; n = life[first] }
			}
			print cpu, probe, ++seen[cpu, probe], a second, n, probe == 66 && dev ~ /^v[ab]$/ ? 1 : 0
		}' "$1/trace" | sort -k1,1n -k2,2n -k3,3n >"$1/theirs"
	sed -n 's/^record ts=\([0-9]*\) id=\([0-9]*\) .* probe=\([0-9]*\) cpu=\([0-9]*\) .* flags=\(0x\|\)\([0-9a-f]*\) .*/\4 \3 \1 \2 \6/p' "$1/records" |
		sort -k1,1n -k2,2n -k3,3n >"$1/ours"
}

# Records from the time of the trace: before it began and after it ended nothing moved for long enough.
in_its_time() {
	awk 'NR == FNR { if (!n++) first = $1; last = $1; next }
		$3 / 1e9 >= first - 0.5 && $3 / 1e9 <= last + 0.5' \
		<(grep -oE ' [0-9]+\.[0-9]+: ' "$1/trace" | tr -d ' :' | sort -n) "$1/ours" |
		awk '{ k = $1 " " $2; print $1, $2, ++n[k], $4, $5 }'
}

# judge NAME	prints figures, and "bad ..." lines
judge() {
	join -j 1 <(awk '{ print $1 ":" $2 ":" $3, $4, $5 }' "$1/ours.numbered" | sort -k1,1) \
		<(awk '{ print $1 ":" $2 ":" $3, $4, $5, $6 }' "$1/theirs" | sort -k1,1) |
		awk '
			# key id flags address life sent
			$5 == 0 { older++; next }
			{
				sighted++
				key = $4 "/" $5
				if ($3 ~ /[89a-f]$/) says[$2] = 1
				if (!((key, $2) in pair)) {
					pair[key, $2] = 1
					ids[key]++
					lives[$2]++
					list[$2] = list[$2] " " key
				}
				sent[key] += $6
				if (!(key in known)) { known[key] = 1; n_lives++ }
				if (!($2 in named)) { named[$2] = 1; n_ids++ }
			}
			END {
				for (key in ids) {
					if (key ~ /\+/) {
						n_seconds++
						want = sent[key] > 1 ? sent[key] : 1
						if (ids[key] > want) { split_++; print "bad split: " key " has " ids[key] " ids, sent " want }
						if (ids[key] < want) short_ += want - ids[key]
					} else if (ids[key] > 1) { split_++; print "bad split: " key " has " ids[key] " ids" }
				}
				for (id in lives) {
					if (lives[id] == 1) continue
					merged++
					if (!(id in says)) { unsaid++; print "bad merged without a word: " id " is" list[id] }
				}
				printf "figures sightings=%d older=%d lives=%d seconds=%d ids=%d split=%d merged=%d unsaid=%d short=%d\n", \
					sighted, older, n_lives, n_seconds, n_ids, split_, merged, unsaid, short_
			}'
}

for name in functions tracepoints; do
	dir=$1/$name
	sightings "$dir"
	in_its_time "$dir" >"$dir/ours.numbered"
	assert_eq "$name: sightings, by processor and tracepoint" \
		"$(cut -d ' ' -f 1,2 "$dir/theirs" | uniq -c | tr -s '\n ' ' ')" \
		"$(cut -d ' ' -f 1,2 "$dir/ours.numbered" | uniq -c | tr -s '\n ' ' ')"
	judge "$dir" >"$dir/judged"
	grep '^bad' "$dir/judged" | head -n 5 | sed 's/^/# /'
	figure() { sed -n "s/^figures .*\b$1=\([0-9]*\).*/\1/p" "$dir/judged"; }
	sed -n "s/^figures/# $name:/p" "$dir/judged"
	assert_num "$name: sightings whose packet's allocation was seen" "$(figure sightings)" -gt 500
	assert_eq "$name: packets with more than one id" 0 "$(figure split)"
	assert_eq "$name: ids of more than one packet that do not say so" 0 "$(figure unsaid)"
	[ "$name" = functions ] || continue
	assert_eq "$name: identity" "identity exact" "$(grep '^identity' "$dir/out")"
	assert_eq "$name: ids of more than one packet" "0 0" "$(figure merged) $(figure short)"
done
tap_end
