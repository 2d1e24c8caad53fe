#!/usr/bin/env bash
# Runs "go test" with the given flags on the given packages, and a test that
# fails beside all the others once more, alone: many at once on few cores make
# each other late. docs/adr/0017-a-second-run-of-a-failed-test.md says what this does not excuse.
#
#   scripts/gotest.sh "./..." -race -count=1
set -euo pipefail

packages=$1
shift
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
"$root/scripts/tools.sh" gotestsum
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

status=0
"$root/bin/gotestsum" --format pkgname-and-test-fails --hide-summary skipped --no-color \
	--rerun-fails=1 --rerun-fails-max-failures=8 --rerun-fails-run-root-test --rerun-fails-abort-on-data-race \
	--rerun-fails-report "$work/again" --jsonfile "$work/events" --packages "$packages" -- "$@" || status=$?

# failed prints the packages of the events that end with "fail", those of tests
# (-E) or of whole packages (-vE).
failed() { grep '"Action":"fail"' "$work/events" | grep "$1" '"Test":' | sed -E 's/.*"Package":"([^"]*)".*/\1/' | sort -u; }

excuse() {
	if grep -q 'PROMISE BROKEN' "$work/events"; then
		echo "a promise was broken, though not when tried again: above is what the test said" >&2
		return 1
	fi
	local package
	for package in $(comm -23 <(failed -vE) <(failed -E)); do
		echo "$package failed, and no test of it: a goroutine was left over, or the program ended" >&2
		grep -F "\"Package\":\"$package\"" "$work/events" | grep '"Action":"output"' | grep -v '"Test":' >&2
		return 1
	done
}
[ "$status" != 0 ] || excuse || status=1
[ ! -s "$work/again" ] || sed 's/^/FLAKY /' "$work/again"
exit "$status"
