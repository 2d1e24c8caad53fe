# Processes and ports. A service keeps in .services/NAME: pid (and when that
# process was born), port, url, and out, what it printed.

say() { printf '%-9s %s\n' "$1" "$2"; }

fail() {
	printf 'services: %s\n' "$*" >&2
	exit 1
}

# lock lets one up or down run at a time, of all checkouts of this user, so
# that no two choose the same port. Servers are started with 9>&-, or they
# would hold the lock for as long as they live.
lock() {
	command -v flock >/dev/null || return 0 # not Linux: nothing is started
	exec 9>"${TMPDIR:-/tmp}/semel-services-$(id -u).lock"
	flock -w 600 9 || fail "another services.sh has been busy for ten minutes"
}

# birth prints when process $1 began, in ticks since boot. It fails for one
# that is gone, and for a zombie: nobody may be there to reap it.
birth() {
	local stat
	stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
	# shellcheck disable=SC2086 # the fields after the command's name, split
	set -- ${stat##*) }
	[ "$1" != Z ] && echo "${20}"
}

# remember notes that process $2 is service $1.
remember() { echo "$2 $(birth "$2")" >"$state/$1/pid"; }

# alive tells whether the process we started as service $1 still runs. A pid
# alone would not do: after a reboot it may be anybody's.
alive() {
	local pid born
	read -r pid born 2>/dev/null <"$state/$1/pid" && [ "$(birth "$pid")" = "$born" ]
}

accepts() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# choose_port prints the first base from $2 up, in steps of 10, at which all
# $3 ports in a row are free. It begins with the one service $1 had before.
choose_port() {
	local base=$2 i
	[ -s "$state/$1/port" ] && base=$(cat "$state/$1/port")
	while :; do
		for ((i = 0; i < $3; i++)); do
			accepts $((base + i)) && break
		done
		[ "$i" = "$3" ] && break
		base=$((base + 10))
		[ "$base" -lt 32000 ] || fail "$1: no free port from $2 up"
	done
	echo "$base"
}

# wait_until runs the check $2... until it holds, for at most 60 s; it gives
# up at once when service $1 has died.
wait_until() {
	local name=$1 deadline=$((SECONDS + 60))
	shift
	until "$@"; do
		if ! alive "$name" || [ "$SECONDS" -ge "$deadline" ]; then
			tail -n 20 "$state/$name/out" >&2
			fail "$name did not come up; above is the end of $state/$name/out"
		fi
		sleep 0.05
	done
}

# stop sends signal $2 to service $1 and waits until it is gone.
stop() {
	local pid deadline=$((SECONDS + 30))
	pid=$(cut -d ' ' -f 1 "$state/$1/pid")
	kill -s "$2" "$pid"
	while alive "$1"; do
		[ "$SECONDS" -lt "$deadline" ] || kill -s KILL "$pid" 2>/dev/null || true
		sleep 0.05
	done
	rm -f "$state/$1/pid"
}
