#!/usr/bin/env bash
# Runs the examples as their users do, and holds the RESULT line of each to what
# is promised of it.
#
#   scripts/examples.sh embedded         on what they bring along
#   scripts/examples.sh real             on the services that are named or up
#   scripts/examples.sh embedded ledger  only this one
#
# LEDGER are flags of the ledger, which takes a minute of its own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../examples"
export GOWORK=off

# What each RESULT line counts, in this order. What must be none is in capitals.
declare -A keys=(
	[payments]='produced distinct handled duplicates dead LOST DOUBLED forged_refused superseded shipped invoiced'
	[einvoice]='orders invoices MISSING LOST DOUBLED dead ATTEMPTS_IN_OUTAGE'
	[merchants]='approvals p99_ms broker_down_s published configs indexed LOST DOUBLED'
	[orders]='interchanges accepted refused orders erp warehouse notified LOST DOUBLED'
	[edihub]='posts messages mdn events transformed archived LOST DOUBLED'
	[ledger]='offered achieved send_success SEND_FAIL lag_p99_ms LOST DOUBLED'
)

# check says what is wrong with line $2 of example $1, and nothing if it is well.
check() {
	local pattern=RESULT key
	for key in ${keys[$1]}; do
		case $key in
		[A-Z]*) pattern+=" ${key,,}=0" ;;
		*) pattern+=" $key=[1-9][0-9]*" ;;
		esac
	done
	[[ $2 =~ ^$pattern$ ]] || echo "want $pattern"
}

# one runs example $1 and prints a line about it.
one() {
	local began=$SECONDS status=0 flags=() result wrong
	[ "$1" != ledger ] || read -ra flags <<<"${LEDGER:-}"
	"$bin/$1" "${flags[@]}" >"$bin/$1.out" 2>&1 || status=$?
	result=$(tail -n 1 "$bin/$1.out")
	wrong=$(check "$1" "$result")
	if [ "$status" != 0 ] || [ -n "$wrong" ]; then
		sed "s/^/$1: /" "$bin/$1.out" >&2
		printf '%-8s  %-9s  FAILED after %d s, exit status %d  %s\n' "$where" "$1" $((SECONDS - began)) "$status" "$wrong"
		return 1
	fi
	printf '%-8s  %-9s  %3d s  %s\n' "$where" "$1" $((SECONDS - began)) "$result"
}

where=${1:?embedded or real}
shift
[ $# -gt 0 ] || set -- payments einvoice merchants orders edihub ledger
case $where in
embedded) unset DATABASE_URL KAFKA_BROKERS AMQP_URL ;;
real) : "${DATABASE_URL:?names no PostgreSQL}" "${KAFKA_BROKERS:?names no Kafka}" ;;
*) echo "examples: $where is neither embedded nor real" >&2 && exit 2 ;;
esac
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
for name in "$@"; do
	[ -n "${keys[$name]:-}" ] || { echo "examples: there is no example $name" >&2 && exit 2; }
	go build -o "$bin/$name" "./$name"
done

# Ctrl-C does not reach what runs in the background.
trap 'trap "" TERM; kill 0; wait; exit 130' INT TERM
# Two at a time, since they wait a lot; but the ledger takes all there is.
failed=0
running=()
for name in "$@"; do
	if [ "$name" = ledger ] || [ ${#running[@]} = 2 ]; then
		for pid in "${running[@]}"; do wait "$pid" || failed=1; done
		running=()
	fi
	one "$name" &
	running+=($!)
done
for pid in "${running[@]}"; do wait "$pid" || failed=1; done
exit "$failed"
