#!/usr/bin/env bash
# Sees to it that there is Psycopg: a test writes to the outbox from Python.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
state=$root/.services
for file in process install; do
	# shellcheck source=/dev/null
	. "$root/scripts/services/$file.sh"
done

# The package is one of the system's Python, which may not be the first on the PATH.
if ! /usr/bin/python3 -c 'import psycopg2' 2>/dev/null && ! python3 -c 'import psycopg2' 2>/dev/null; then
	mkdir -p "$state"
	install "install Python 3 and Psycopg 2 yourself" python3-psycopg2
fi
