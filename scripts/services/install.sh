# Packages. On Debian and its kin what is missing is installed; elsewhere we
# say which variables to set.

install_for() {
	local name packages=()
	[ "$(uname -s)" = Linux ] || fail "can start services on Linux only. $(instead)"
	for name in "$@"; do
		mapfile -t -O ${#packages[@]} packages < <("${name}_packages")
	done
	[ ${#packages[@]} -gt 0 ] || return 0

	command -v apt-get >/dev/null || fail "this system has no apt-get to install ${packages[*]} with. $(instead)"
	say install "${packages[*]}"
	no_default_cluster
	if ! { apt_get update && apt_get install --no-install-recommends "${packages[@]}"; } >"$state/install.out" 2>&1; then
		tail -n 20 "$state/install.out" >&2
		fail "cannot install ${packages[*]}; above is the end of $state/install.out. Run as root, install them by hand, or else: $(instead)"
	fi
}

instead() {
	echo "Start PostgreSQL, Kafka and RabbitMQ yourself and set DATABASE_URL, KAFKA_BROKERS and AMQP_URL."
}

# apt_get runs as root, by sudo where that asks nothing. RUNLEVEL=1 keeps
# packages from starting a server of their own where there is no systemd.
apt_get() {
	local sudo=()
	[ "$(id -u)" = 0 ] || sudo=(sudo -n)
	"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
		apt-get -y -q -o DPkg::Lock::Timeout=600 "$@"
}

# no_default_cluster keeps the postgresql package from creating and starting a
# cluster that nobody asked for. A setting that is there already stays.
no_default_cluster() {
	local conf=/etc/postgresql-common/createcluster.conf
	if [ "$(id -u)" = 0 ] && [ ! -e "$conf" ]; then
		mkdir -p "${conf%/*}"
		(umask 022 && echo 'create_main_cluster = false' >"$conf")
	fi
}
