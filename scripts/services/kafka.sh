# Apache Kafka, one KRaft node, its jars fetched by Maven.

kafka_packages() {
	command -v java >/dev/null || echo default-jre-headless
	# Maven is only for fetching.
	[ -d "$state/kafka/jars" ] || command -v mvn >/dev/null || echo maven
}

# kafka_jars fetches into a folder aside, so that a broken download is never
# taken for a whole one.
kafka_jars() {
	local dir=$state/kafka
	[ ! -d "$dir/jars" ] || return 0
	rm -rf "$dir/jars.new"
	maven -f "$scripts/kafka.xml" dependency:copy-dependencies \
		-DoutputDirectory="$dir/jars.new" >"$dir/out" 2>&1 ||
		{ tail -n 20 "$dir/out" >&2; fail "cannot fetch the jars of Kafka; to use a broker of your own set KAFKA_BROKERS"; }
	mv "$dir/jars.new" "$dir/jars"
}

kafka_properties() {
	cat <<-END
		process.roles=broker,controller
		node.id=1
		controller.quorum.voters=1@127.0.0.1:$(($1 + 1))
		listeners=PLAINTEXT://127.0.0.1:$1,CONTROLLER://127.0.0.1:$(($1 + 1))
		advertised.listeners=PLAINTEXT://127.0.0.1:$1
		listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
		controller.listener.names=CONTROLLER
		log.dirs=$state/kafka/logs

		# One node keeps one copy of everything.
		offsets.topic.replication.factor=1
		offsets.topic.num.partitions=5
		transaction.state.log.replication.factor=1
		transaction.state.log.min.isr=1
		transaction.state.log.num.partitions=5
		share.coordinator.state.topic.replication.factor=1
		share.coordinator.state.topic.min.isr=1
		share.coordinator.state.topic.num.partitions=5

		# A killed member, or a killed broker, is noticed soon.
		group.initial.rebalance.delay.ms=0
		group.min.session.timeout.ms=500
		group.consumer.min.session.timeout.ms=500
		group.consumer.min.heartbeat.interval.ms=100
		broker.session.timeout.ms=3000
		broker.heartbeat.interval.ms=500

		# A payload of 10 MB passes, with room for its headers.
		message.max.bytes=16777216
		replica.fetch.max.bytes=16777216

		# A mistyped topic is an error, and a record dated long ago stays.
		auto.create.topics.enable=false
		log.retention.ms=-1

		# Many small topics on a small machine.
		log.segment.bytes=67108864
		log.index.size.max.bytes=1048576
		log.cleaner.dedupe.buffer.size=16777216
		num.network.threads=2
		num.io.threads=2
	END
}

kafka_start() {
	local dir=$state/kafka port
	local java=(java -Xms64m -Xmx384m -XX:+UseSerialGC -XX:TieredStopAtLevel=1
		-XX:-UsePerfData -Djava.awt.headless=true
		-Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$dir/jars/*")
	kafka_jars
	port=$(choose_port kafka 19391 2)
	echo "$port" >"$dir/port"
	echo "127.0.0.1:$port" >"$dir/url"
	kafka_properties "$port" >"$dir/server.properties"
	if [ ! -f "$dir/logs/meta.properties" ]; then
		"${java[@]}" kafka.tools.StorageTool format -t semelTestClusterAAAAAA \
			-c "$dir/server.properties" >"$dir/out" 2>&1 9>&- ||
			{ tail -n 20 "$dir/out" >&2; fail "cannot format the data folder of Kafka"; }
	fi
	setsid "${java[@]}" kafka.Kafka "$dir/server.properties" >>"$dir/out" 2>&1 </dev/null 9>&- &
	remember kafka $!
	wait_until kafka accepts "$port"
}

kafka_stop() { stop kafka TERM; }
