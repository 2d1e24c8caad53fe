# RabbitMQ, from the distribution's package: a node of our own, with its own
# name server, beside whatever else runs here.

rabbitmq_server=/usr/lib/rabbitmq/bin/rabbitmq-server # the one in PATH changes user and folder

rabbitmq_packages() {
	[ -x "$rabbitmq_server" ] || echo rabbitmq-server
}

# rabbitmq_env sets what the node on port $1 needs: the next port for its
# peers, the one after for its name server, then some for its tools. The tenth is
# for its management API.
rabbitmq_env() {
	local dir=$state/rabbitmq
	export HOME=$dir/home LC_ALL=C.UTF-8
	export ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT=$(($1 + 2))
	export RABBITMQ_NODENAME=semel@localhost
	export RABBITMQ_NODE_IP_ADDRESS=127.0.0.1 RABBITMQ_NODE_PORT=$1 RABBITMQ_DIST_PORT=$(($1 + 1))
	export RABBITMQ_CTL_DIST_PORT_MIN=$(($1 + 3)) RABBITMQ_CTL_DIST_PORT_MAX=$(($1 + 8))
	export RABBITMQ_CONF_ENV_FILE=/dev/null
	export RABBITMQ_CONFIG_FILE=$dir/rabbitmq.conf RABBITMQ_ADVANCED_CONFIG_FILE=$dir/advanced.config
	export RABBITMQ_ENABLED_PLUGINS_FILE=$dir/enabled_plugins RABBITMQ_GENERATED_CONFIG_DIR=$dir/conf
	export RABBITMQ_MNESIA_BASE=$dir/mnesia RABBITMQ_LOG_BASE=$dir/log RABBITMQ_PID_FILE=$dir/beam.pid
	unset RABBITMQ_LOGS
}

# rabbitmq_config writes the configuration of a node into folder $1. Its management
# API listens on port $2, if that is given: it counts every message, so the node
# that all tests and benchmarks share has none.
rabbitmq_config() {
	mkdir -p "$1/home"
	cat >"$1/rabbitmq.conf" <<-END
		loopback_users = none
		log.console = false
		vm_memory_high_watermark.absolute = 2GB
		disk_free_limit.absolute = 50MB
	END
	echo '[].' >"$1/enabled_plugins"
	if [ -n "${2:-}" ]; then
		printf 'management.tcp.ip = 127.0.0.1\nmanagement.tcp.port = %s\n' "$2" >>"$1/rabbitmq.conf"
		echo '[rabbitmq_management].' >"$1/enabled_plugins"
	fi
	echo '[{kernel, [{inet_dist_use_interface, {127,0,0,1}}]}].' >"$1/advanced.config"
}

rabbitmq_start() {
	local dir=$state/rabbitmq port
	rabbitmq_end_names # of a node that was killed; it holds one of our ports
	port=$(choose_port rabbitmq 15791 10)
	echo "$port" >"$dir/port"
	echo "amqp://guest:guest@127.0.0.1:$port/" >"$dir/url"
	rabbitmq_config "$dir"
	(
		rabbitmq_env "$port"
		# With ALLOW_INPUT the script becomes the server: its pid is the node's.
		export RABBITMQ_ALLOW_INPUT=1 RABBITMQ_SERVER_START_ARGS="-noinput +S 2:2"
		exec setsid "$rabbitmq_server" >>"$dir/out" 2>&1 </dev/null 9>&-
	) &
	remember rabbitmq $!
	wait_until rabbitmq accepts "$port"
}

rabbitmq_stop() {
	stop rabbitmq TERM
	rabbitmq_end_names
}

# rabbitmq_end_names ends the name server, which outlives its node. It does
# nothing while a node is left.
rabbitmq_end_names() {
	[ -s "$state/rabbitmq/port" ] || return 0
	(
		rabbitmq_env "$(cat "$state/rabbitmq/port")"
		epmd -kill >/dev/null 2>&1 9>&- || true
	)
}
