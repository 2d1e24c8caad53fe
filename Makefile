# "make" lists the targets. What CI runs is in .ci/run.

SHELL := bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Tests wait for disks and brokers more than they compute, so a few packages
# run at once even on two cores.
PACKAGES ?= 4
PARALLEL ?= 8
TIMEOUT  ?= 10m

# RUN and PKG narrow make test: make test PKG=./inbox/... RUN=TestRun_Drain
PKG ?= ./...
RUN ?=

# What narrows make test-versions.
VERSIONS ?=

# N counted kills of consumers, EVENTS that are published while relays are
# killed, and what narrows both, for make chaos. 0 leaves the ones or the others
# out.
N      ?= 300
EVENTS ?= 100000
POINT  ?=
BROKER ?=
PLANT  ?=

# How many pairs of rounds, and how long a round, for make bench.
ROUNDS ?= 5
FOR    ?= 5s

# How long make soak soaks, and how many messages a second it sends to each broker.
SOAK_FOR  ?= 1h
SOAK_RATE ?= 300

# Where make examples runs them, and flags of the ledger, which takes a minute
# of its own.
WHERE  ?= embedded real
LEDGER ?=

# How long make fuzz feeds each target, and what narrows it.
FUZZ_FOR ?= 1m
NAME     ?=

# Each module is held to its own go.mod; go.work is for people.
export GOWORK := off

# with_services runs a command with the addresses of the test services.
with_services = set -a && . ./.services/env && set +a && SEMEL_SERVICES=required

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: test
test: services-up ## run all tests against real services, with -race, and the examples
	@scripts/compiler.sh
	@scripts/pgbouncer.sh
	@scripts/psycopg.sh
	@$(with_services) scripts/gotest.sh '$(PKG)' -race -count=1 -timeout $(TIMEOUT) -p $(PACKAGES) -parallel $(PARALLEL) -run '$(RUN)'
	@echo "examples"
	@go -C examples vet ./...
	@cd examples && ../scripts/gotest.sh ./... -count=1 -timeout $(TIMEOUT)
	@echo "bench"
	@go -C bench vet ./...
	@$(with_services) bash -c 'cd bench && ../scripts/gotest.sh ./... -count=1 -timeout $(TIMEOUT)'

.PHONY: examples
examples: $(if $(filter real,$(WHERE)),services-up) ## run the six examples on what they bring along, then on real services (WHERE=embedded LEDGER='-for 15s')
	@$(if $(filter embedded,$(WHERE)),LEDGER='$(LEDGER)' scripts/examples.sh embedded)
	@$(if $(filter real,$(WHERE)),$(with_services) LEDGER='$(LEDGER)' scripts/examples.sh real)

.PHONY: test-versions
test-versions: ## run the tests of all that speaks SQL on PostgreSQL 14 to 18 (VERSIONS="14 18")
	@scripts/versions.sh $(VERSIONS)

.PHONY: lint
lint: tools ## check style, the floors of the house, and go.mod
	@bin/golangci-lint run --allow-parallel-runners ./...
	@cd examples && ../bin/golangci-lint run --allow-parallel-runners ./...
	@cd bench && ../bin/golangci-lint run --allow-parallel-runners ./...
	@go mod tidy -diff
	@go -C examples mod tidy -diff
	@go -C bench mod tidy -diff

.PHONY: fmt
fmt: tools ## format all Go files
	@bin/golangci-lint fmt
	@cd examples && ../bin/golangci-lint fmt
	@cd bench && ../bin/golangci-lint fmt

.PHONY: plants
plants: services-up ## plant known bugs one by one; fail unless a test catches each
	@$(with_services) go run ./internal/plants

.PHONY: chaos
chaos: services-up ## kill consumers, callers, archivers and relays at every crash point (N=300 EVENTS=100000 POINT= BROKER= PLANT=)
	@$(with_services) go run ./internal/chaos -n '$(N)' -relay-events '$(EVENTS)' -point '$(POINT)' -broker '$(BROKER)' -plant '$(PLANT)'

.PHONY: bench
bench: services-up ## measure what it costs, as ratios (RUN= ROUNDS=5 FOR=5s; bench/README.md says what is what)
	@$(with_services) go -C bench run . -run '$(RUN)' -rounds $(ROUNDS) -for $(FOR)

.PHONY: fuzz
fuzz: ## feed every fuzz target with new input for a minute each (NAME= FUZZ_FOR=1m)
	@FUZZ_FOR='$(FUZZ_FOR)' scripts/fuzz.sh '$(NAME)'

# First the cases that make test scales down, at full length.
.PHONY: soak
soak: services-up ## run under load and disturbances for an hour; fail if it loses, doubles or grows (SOAK_FOR=1h)
	@$(with_services) SEMEL_TEST_OUTAGE=60s SEMEL_TEST_CHURN=2m go test -count=1 -timeout 1h -run '^(TestOutage_|TestChurn_)' ./internal/systemtest
	@$(with_services) SEMEL_TEST_PUBLISHED=5000000 go test -count=1 -timeout 1h -run '^TestPlans_' ./outbox
	@$(with_services) SEMEL_TEST_WAITING=1000000 SEMEL_TEST_BEHIND=10000 go test -count=1 -timeout 1h -run '^(TestPlans_BesideWaitingRows|TestWork_ManyWaitForTheirNextAttempt|TestStrict_ManyBehind)$$' ./inbox
	@$(with_services) SEMEL_TEST_MODEL=300 go test -count=1 -timeout 1h -run '^TestModel$$' ./inbox
	@$(with_services) go run ./internal/soak -for '$(SOAK_FOR)' -rate '$(SOAK_RATE)' -plant '$(PLANT)'

.PHONY: services-up
services-up: ## start PostgreSQL, Kafka and RabbitMQ, unless they run or are named
	@scripts/services.sh up

.PHONY: services-down
services-down: ## stop what services-up has started
	@scripts/services.sh down

.PHONY: tools
tools: ## install the tools of make lint into bin
	@scripts/tools.sh
