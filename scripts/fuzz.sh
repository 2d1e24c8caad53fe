#!/usr/bin/env bash
# Runs every fuzz target of this module and of the examples, one after the other: Go
# takes one target of one package at a time.
#
#   scripts/fuzz.sh                     each for a minute
#   FUZZ_FOR=10m scripts/fuzz.sh Stripe those whose name has Stripe in it
#
# An input that breaks a test is kept in testdata/fuzz of its package: commit it with
# the fix, and it is run with the other tests from then on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for_each=${FUZZ_FOR:-1m}
wanted=${1:-}

mapfile -t targets < <(
	git grep --untracked -E '^func Fuzz\w+\(' -- '*_test.go' | grep -v '^bench/' |
		sed -E 's|^(.*)/[^/]+:func (Fuzz\w+)\(.*|./\1 \2|' | sort
)
chosen=()
for target in "${targets[@]}"; do
	[[ ${target#* } != *"$wanted"* ]] || chosen+=("$target")
done
[ ${#chosen[@]} -gt 0 ] || { echo "no fuzz target has $wanted in its name" >&2; exit 1; }

failed=()
for i in "${!chosen[@]}"; do
	read -r package name <<<"${chosen[i]}"
	echo "== $((i + 1)) of ${#chosen[@]}: $name in $package, for $for_each"
	module=.
	[[ $package != ./examples/* ]] || module=./examples package=./${package#./examples/} # a module of its own
	go -C "$module" test -run '^$' -fuzz "^$name\$" -fuzztime "$for_each" "$package" || failed+=("$name in $package")
done
[ ${#failed[@]} = 0 ] || { printf 'FAILED: %s\n' "${failed[@]}" >&2; exit 1; }
echo "== all ${#chosen[@]} passed"
