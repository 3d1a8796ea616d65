# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Completion for iotracectl and iotraced. What it offers is held against the programs' own help by
# tests/unit/test-completion.sh; the two functions below are the same in _iotracectl (zsh).

_iotracectl_verbs() {
	echo status top inflight rotate flush probes config segments cat follow report replay explain drops verify recover archive export import
}

# _iotracectl_options VERB	what goes with it, without what goes with all of them ("": that)
_iotracectl_options() {
	local time='--since --until' flow='--flow --probe'
	local filters="$time --dev --op --swap --pid --comm --min-latency --id $flow"
	case $1 in
	'') echo --socket --json --no-pager --color --help --version ;;
	status) echo --format --output ;;
	segments) echo "$time --chain --state" ;;
	archive) echo --once --state ;;
	cat) echo "$filters" ;;
	follow) echo "$filters --stream" ;;
	top) echo "$filters --interval --count" ;;
	report) echo "$filters --by --top --resolve --logical-bytes --cacheability --html" ;;
	explain) echo "$time $flow" ;;
	drops) echo "$time $flow --per-capture" ;;
	verify) echo --verbose ;;
	recover) echo --output ;;
	import) echo --format --output --segment-size ;;
	export) echo "$filters --format --anonymize --output --strict --force" ;;
	esac
}

# _iotracectl_values OPTION	the words that it takes, if these can be told
_iotracectl_values() {
	case $1 in
	--color) echo auto always never ;;
	--swap) echo only without out in ;;
	--stream) echo block packet ;;
	--by) echo file process cgroup device origin ;;
	--format) echo csv jsonl blktrace fio oracleGeneral perfetto pcapng clickhouse openmetrics prometheus segment ;;
	--op) echo read write flush discard secure_erase write_zeroes zone_append zone_open zone_close zone_finish \
		zone_reset zone_reset_all drv_in drv_out other ;;
	esac
}

_iotracectl() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev='' verb='' word i
	((COMP_CWORD == 0)) || prev=${COMP_WORDS[COMP_CWORD - 1]}
	COMPREPLY=()
	# --format=csv is three words to the shell.
	[[ $cur != = ]] || cur=''
	[[ $prev != = ]] || ((COMP_CWORD < 2)) || prev=${COMP_WORDS[COMP_CWORD - 2]}
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if [[ " $(_iotracectl_verbs) " == *" $word "* ]]; then
			verb=$word
			break
		fi
	done
	word=$(_iotracectl_values "$prev")
	if [[ -n $word ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$word" -- "$cur")
		return
	fi
	case $prev in
	--dev)
		mapfile -t COMPREPLY < <(compgen -W "$(printf '%s ' /sys/class/block/* | sed 's|/sys/class/block/||g')" -- "$cur")
		return
		;;
	--since | --until | --pid | --comm | --min-latency | --id | --flow | --probe | --top | --logical-bytes | --interval | --count | --segment-size) return ;;
	--socket | --output | -o | --resolve | --state | --html | --anonymize)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	esac
	if [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_iotracectl_options '') $(_iotracectl_options "$verb")" -- "$cur")
	elif [[ -z $verb ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_iotracectl_verbs) help" -- "$cur")
	elif [[ $verb == rotate ]]; then
		mapfile -t COMPREPLY < <(compgen -W "block packet" -- "$cur")
	elif [[ -n $(_iotracectl_options "$verb") || $verb == replay ]]; then
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	fi
}

_iotraced() {
	local cur=${COMP_WORDS[COMP_CWORD]}
	COMPREPLY=()
	case ${COMP_WORDS[COMP_CWORD - 1]} in
	--config | --state-dir | --socket) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	--duration) ;;
	*) mapfile -t COMPREPLY < <(compgen -W "--config --state-dir --socket --duration --check-config --probe-check --finish \
		--version --help" -- "$cur") ;;
	esac
}

complete -o filenames -F _iotracectl iotracectl
complete -o filenames -F _iotraced iotraced
