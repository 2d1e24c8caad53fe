#!/usr/bin/env bash
# The services our tests run against: PostgreSQL, Apache Kafka, RabbitMQ.
#
#   scripts/services.sh up      start what is missing, write .services/env
#   scripts/services.sh down    stop what up has started
#   scripts/services.sh env     print .services/env
#   scripts/services.sh status  one line for each service
#
# They listen on loopback, on ports of their own, and keep their data in the
# ignored folder .services. A service named by DATABASE_URL, KAFKA_BROKERS or
# AMQP_URL is used as it is: up only checks that it answers, down leaves it be.
set -euo pipefail

if ((BASH_VERSINFO[0] < 5)); then
	echo "services: needs bash 5; this is $BASH_VERSION" >&2
	exit 1
fi

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
state=$root/.services
scripts=$root/scripts/services
for file in process install postgres kafka rabbitmq; do
	# shellcheck source=/dev/null
	. "$scripts/$file.sh"
done

services=(postgres kafka rabbitmq)
declare -A variable=([postgres]=DATABASE_URL [kafka]=KAFKA_BROKERS [rabbitmq]=AMQP_URL)

# named tells whether the environment names a service that is not ours. Our
# own address, from a shell that has read .services/env, does not count.
named() {
	local value=${!variable[$1]:-}
	[ -n "$value" ] && [ "$value" != "$(cat "$state/$1/url" 2>/dev/null)" ]
}

# url prints the address that tests use for service $1.
url() {
	if named "$1"; then printf '%s' "${!variable[$1]}"; else cat "$state/$1/url"; fi
}

up() {
	local name ours=() foreign=() jobs=() job failed=0
	for name in "${services[@]}"; do
		if named "$name"; then foreign+=("${variable[$name]}"); else ours+=("$name"); fi
	done

	if [ ${#foreign[@]} -gt 0 ]; then
		(cd "$root" && go run ./internal/services/ping "${foreign[@]}")
	fi
	if [ ${#ours[@]} -gt 0 ]; then
		install_for "${ours[@]}"
	fi
	for name in "${ours[@]}"; do
		begin "$name" &
		jobs+=($!)
	done
	for job in "${jobs[@]}"; do
		wait "$job" || failed=1
	done
	[ "$failed" = 0 ] || fail "not every service is up; what it said is in $state/*/out"
	write_env
}

# begin starts one service of ours, unless it runs, and waits until it answers.
begin() {
	if alive "$1"; then
		wait_until "$1" accepts "$(cat "$state/$1/port")"
		say "$1" "is up on port $(cat "$state/$1/port")"
		return
	fi
	mkdir -p "$state/$1"
	local began=$SECONDS
	"$1_start"
	say "$1" "started on port $(cat "$state/$1/port") in $((SECONDS - began)) s"
}

# write_env replaces .services/env in one step, for those who read it meanwhile.
write_env() {
	local name value
	for name in "${services[@]}"; do
		value=$(url "$name")
		printf "%s='%s'\n" "${variable[$name]}" "${value//\'/\'\\\'\'}"
	done >"$state/env.new"
	mv "$state/env.new" "$state/env"
}

down() {
	local name
	for name in "${services[@]}"; do
		if alive "$name"; then
			"${name}_stop"
			say "$name" "stopped"
		fi
	done
	rm -f "$state/env"
}

status() {
	local name
	for name in "${services[@]}"; do
		if named "$name"; then
			say "$name" "is named by ${variable[$name]}"
		elif alive "$name"; then
			say "$name" "is up on port $(cat "$state/$name/port")"
		else
			say "$name" "is down"
		fi
	done
}

usage() {
	sed -n '2,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

case ${1:-} in
up | down)
	umask 077
	mkdir -p "$state"
	[ -w "$state" ] || fail "$state belongs to another user: remove it, or work in a checkout of your own"
	chmod 755 "$state" # the database's own user passes through it
	lock
	"$1"
	;;
env)
	[ -f "$state/env" ] || fail "the services are down: run scripts/services.sh up"
	cat "$state/env"
	;;
status) status ;;
help | -h | --help) usage ;;
*)
	usage >&2
	exit 2
	;;
esac
