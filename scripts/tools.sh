#!/usr/bin/env bash
# Installs the tools of "make lint" and "make test" into the ignored folder bin,
# once for each version: all of them, or those that are named.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# tool installs $1 at version $2 from module path $3, unless it is there.
tool() {
	if [ ! -x "bin/$1-$2" ]; then
		echo "tools     $1 $2, up to a minute"
		mkdir -p bin
		GOBIN=$PWD/bin GOWORK=off GOFLAGS= go install "$3@$2"
		mv "bin/$1" "bin/$1-$2"
	fi
	ln -sf "$1-$2" "bin/$1"
}

[ $# -gt 0 ] || set -- golangci-lint gotestsum
for name in "$@"; do
	case $name in
	golangci-lint) tool golangci-lint v2.15.0 github.com/golangci/golangci-lint/v2/cmd/golangci-lint ;;
	gotestsum) tool gotestsum v1.13.0 gotest.tools/gotestsum ;;
	*) echo "tools: there is no tool $name" >&2 && exit 2 ;;
	esac
done
