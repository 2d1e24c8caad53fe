# Packages. On Debian and its kin what is missing is installed; elsewhere we
# say what to do.

# install_for installs what the services named need and lack.
install_for() {
	local name packages=()
	local otherwise="start PostgreSQL, Kafka and RabbitMQ yourself and set DATABASE_URL, KAFKA_BROKERS and AMQP_URL"
	[ "$(uname -s)" = Linux ] || fail "can start services on Linux only: $otherwise"
	for name in "$@"; do
		mapfile -t -O ${#packages[@]} packages < <("${name}_packages")
	done
	[ ${#packages[@]} -gt 0 ] || return 0
	no_default_cluster
	install "$otherwise" "${packages[@]}"
}

# install OTHERWISE PACKAGE... installs packages; OTHERWISE says what a person
# can do where that is impossible.
install() {
	local otherwise=$1 out=$state/install.out
	shift
	command -v apt-get >/dev/null || fail "this system has no apt-get to install $* with: $otherwise"
	say install "$*"
	if ! { apt_get update && apt_get install --no-install-recommends "$@"; } >"$out" 2>&1; then
		tail -n 20 "$out" >&2
		fail "cannot install $*; above is the end of $out. Run as root, or install them by hand, or $otherwise"
	fi
}

# apt_get runs as root, by sudo where that asks nothing. RUNLEVEL=1 keeps
# packages from starting a server of their own where there is no systemd.
apt_get() {
	local sudo=()
	[ "$(id -u)" = 0 ] || sudo=(sudo -n)
	"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
		apt-get -y -q -o DPkg::Lock::Timeout=600 "$@" 9>&-
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

# maven runs Maven. It caches in the home that the system has for this user, if
# there is one.
maven() {
	local cache=()
	[ -w "$(getent passwd "$(id -u)" | cut -d : -f 6)" ] || cache=(-Dmaven.repo.local="$state/maven")
	mvn -q -B "${cache[@]}" "$@" 9>&-
}
