#!/usr/bin/env bash
# Sees to it that there is a C compiler: go test -race needs one.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
state=$root/.services
for file in process install; do
	# shellcheck source=/dev/null
	. "$root/scripts/services/$file.sh"
done

if ! command -v "$(go env CC)" >/dev/null; then
	mkdir -p "$state"
	install "install a C compiler yourself" gcc libc6-dev
fi
