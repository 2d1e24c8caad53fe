#!/usr/bin/env bash
# A RabbitMQ node that a test may kill, beside the one that all tests share.
#
#   scripts/services/node.sh run DIR OWNER [management]    become a node with its data in DIR/rabbitmq
#   scripts/services/node.sh end DIR                       end its name server
#   scripts/services/node.sh ctl DIR ...                   run rabbitmqctl on it
#
# DIR/rabbitmq/url has its address, DIR/rabbitmq/management that of its management
# API, if it is to have one. Both are the same each time DIR is run. The node is
# killed when the process OWNER has gone. With .services as DIR, ctl works on the
# shared node.
set -euo pipefail

command=$1 state=$2
shift 2
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
for file in process rabbitmq; do
	# shellcheck source=/dev/null
	. "$scripts/$file.sh"
done
dir=$state/rabbitmq

run() {
	local port
	umask 077
	mkdir -p "$dir"
	if [ ! -s "$dir/port" ]; then
		# At random, because others choose at the same moment.
		choose_port rabbitmq $((20000 + RANDOM % 1100 * 10)) 10 >"$dir/port.new"
		mv "$dir/port.new" "$dir/port"
		echo "amqp://guest:guest@127.0.0.1:$(cat "$dir/port")/" >"$dir/url"
	fi
	port=$(cat "$dir/port")
	if [ "${2:-}" = management ]; then
		echo "http://guest:guest@127.0.0.1:$((port + 9))" >"$dir/management"
		rabbitmq_config "$dir" $((port + 9))
	else
		rabbitmq_config "$dir"
	fi
	rabbitmq_env "$port"
	watch "$1" $$ >/dev/null 2>&1 </dev/null &
	# With ALLOW_INPUT the script becomes the server: its pid is the node's.
	export RABBITMQ_ALLOW_INPUT=1 RABBITMQ_SERVER_START_ARGS="-noinput +S 2:2"
	exec "$rabbitmq_server"
}

# watch kills process $2, and ends its name server, when process $1 has gone.
watch() {
	while kill -0 "$2"; do
		kill -0 "$1" || kill -s KILL "$2"
		sleep 1
	done
	kill -0 "$1" || rabbitmq_end_names
}

case $command in
run) run "$@" ;;
end) rabbitmq_end_names ;;
ctl)
	rabbitmq_env "$(cat "$dir/port")"
	exec "${rabbitmq_server%/*}/rabbitmqctl" --quiet "$@"
	;;
esac
