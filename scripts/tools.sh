#!/usr/bin/env bash
# Installs the tools of "make lint" into the ignored folder bin, once for each
# version.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

golangci=v2.15.0

if [ ! -x "bin/golangci-lint-$golangci" ]; then
	echo "tools     golangci-lint $golangci, about a minute"
	mkdir -p bin
	GOBIN=$PWD/bin GOWORK=off GOFLAGS= go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$golangci"
	mv bin/golangci-lint "bin/golangci-lint-$golangci"
fi
ln -sf "golangci-lint-$golangci" bin/golangci-lint
