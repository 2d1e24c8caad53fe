# PostgreSQL, from PATH or the distribution. It refuses to run as root, so
# under root the server is the user nobody.

postgres_bin() {
	local dir
	for dir in "$(dirname "$(readlink -f "$(command -v initdb || echo /none/initdb)")")" $(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -rV); do
		if [ -x "$dir/initdb" ] && [ -x "$dir/postgres" ]; then
			echo "$dir"
			return
		fi
	done
	return 1
}

postgres_packages() {
	postgres_bin >/dev/null || echo postgresql
}

# become turns this shell into a command of the database's user, away from
# folders that are closed to it and from settings that are not ours.
become() {
	local as=()
	[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	cd /
	exec 9>&-
	exec "${as[@]}" env -i PATH="$PATH" HOME=/nonexistent LC_ALL=C TZ=UTC "$@"
}

unprivileged() { (become "$@"); }

# within_reach prints folder $1, making it if it is missing: ours, or, where the
# database's user cannot pass to it, one under /tmp that ours is a link to.
within_reach() {
	if [ ! -d "$1" ]; then
		rm -f "$1" # a link whose folder is gone
		chmod 755 "${1%/*}"
		if unprivileged test -x "${1%/*}"; then
			mkdir "$1"
		else
			ln -s "$(mktemp -d /tmp/semel-postgres.XXXXXX)" "$1"
		fi
		[ "$(id -u)" != 0 ] || chown 65534:65534 "$(readlink -f "$1")"
	fi
	readlink -f "$1"
}

# postgres_create makes the cluster in folder $1, with a password of its own.
postgres_create() {
	local bin=$2 password=$state/postgres/password file
	find "$1" -mindepth 1 -delete
	od -An -N12 -tx1 /dev/urandom | tr -d ' \n' >"$password"
	file=$(mktemp)
	cp "$password" "$file"
	[ "$(id -u)" != 0 ] || chown 65534 "$file"
	unprivileged "$bin/initdb" -D "$1" -U semel --encoding=UTF8 --locale=C \
		--auth=scram-sha-256 --pwfile="$file" >"$state/postgres/out" 2>&1 ||
		{ tail -n 20 "$state/postgres/out" >&2; rm -f "$file"; fail "cannot create a database in $1"; }
	rm -f "$file"
}

# postgres_clear removes what a killed server leaves: children at work, and a
# pid file that keeps the next one from starting while the pid is a zombie.
postgres_clear() {
	local cwd pid
	for cwd in /proc/[0-9]*/cwd; do
		pid=${cwd#/proc/}
		[ "$(readlink "$cwd" 2>/dev/null)" != "$1" ] || kill -s KILL "${pid%/cwd}" 2>/dev/null || true
	done
	rm -f "$1/postmaster.pid"
}

postgres_start() {
	local bin data port dir=$state/postgres
	bin=$(postgres_bin)
	data=$(within_reach "$dir/data")
	[ -s "$data/PG_VERSION" ] && [ -s "$dir/password" ] || postgres_create "$data" "$bin"
	postgres_clear "$data"
	port=$(choose_port postgres 15499 1)
	echo "$port" >"$dir/port"
	echo "postgres://semel:$(cat "$dir/password")@127.0.0.1:$port/postgres?sslmode=disable" >"$dir/url"
	# Sized for a small test machine. fsync stays on: the crash tests need it.
	become setsid "$bin/postgres" -D "$data" -p "$port" \
		-c listen_addresses=127.0.0.1 -c unix_socket_directories= \
		-c max_connections=500 -c shared_buffers=256MB -c max_wal_size=2GB -c wal_level=logical \
		-c log_checkpoints=off -c log_min_error_statement=panic \
		>>"$dir/out" 2>&1 </dev/null &
	remember postgres $!
	wait_until postgres postgres_ready "$data"
}

# postgres_ready reads what pg_ctl reads; not every package has pg_isready.
postgres_ready() { [[ $(sed -n 8p "$1/postmaster.pid" 2>/dev/null) == ready* ]]; }

# INT is the fast shutdown: it does not wait for clients.
postgres_stop() { stop postgres INT; }
