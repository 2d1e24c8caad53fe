#!/usr/bin/env bash
# Sees to it that there is a PgBouncer: some tests start one of their own.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
state=$root/.services
for file in process install; do
	# shellcheck source=/dev/null
	. "$root/scripts/services/$file.sh"
done

if ! PATH=$PATH:/usr/sbin command -v pgbouncer >/dev/null; then
	mkdir -p "$state"
	install "install PgBouncer yourself" pgbouncer
fi
