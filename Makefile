# Needs Go, make and, for the race detector, a C compiler. PostgreSQL is found, or
# installed, by the targets that use it.

GO            ?= go
BIN           := $(CURDIR)/.bin
LINT_VERSION  := v2.15.0
LINT          := $(BIN)/golangci-lint-$(LINT_VERSION)
PKG           ?= ./...
# Packages at a time. Those with worker processes and leases load both cores of a
# small machine by themselves.
PARALLEL      ?= 1
TEST_TIMEOUT  ?= 30m
TESTFLAGS     ?=
BENCH         ?= .
BENCHTIME     ?= 1s

# Runs a command beside a throw-away PostgreSQL that all its processes share.
PGRUN         := $(BIN)/pgrun --

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  PKG=./store/...        only these packages"
	@echo "  TESTFLAGS='-run Name'  more flags for go test"
	@echo "  BENCH=Name             only these benchmarks"

.PHONY: test
test: postgres compiler ## all tests with the race detector, on SQLite and PostgreSQL
	@$(GO) build -race ./... # with all cores, unlike the tests
	$(PGRUN) $(GO) test -race -p $(PARALLEL) -timeout $(TEST_TIMEOUT) $(TESTFLAGS) $(PKG)

.PHONY: test-quick
test-quick: postgres ## without the race detector and what -short leaves out
	$(PGRUN) $(GO) test -short -p $(PARALLEL) -timeout $(TEST_TIMEOUT) $(TESTFLAGS) $(PKG)

.PHONY: cover
cover: postgres ## test coverage, in coverage.out and coverage.html
	$(PGRUN) $(GO) test -short -p $(PARALLEL) -timeout $(TEST_TIMEOUT) -coverpkg=./... -coverprofile=coverage.out $(TESTFLAGS) $(PKG)
	$(GO) tool cover -html=coverage.out -o coverage.html
	$(GO) tool cover -func=coverage.out | tail -n 1

.PHONY: bench
bench: postgres ## benchmarks, one package at a time
	$(PGRUN) $(GO) test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem -p 1 -timeout $(TEST_TIMEOUT) $(TESTFLAGS) $(PKG)

.PHONY: million
million: postgres ## what a million waiting workflows cost those that work, on PostgreSQL
	$(PGRUN) $(GO) test -timeout $(TEST_TIMEOUT) -run TestAMillionWaiting -v ./engine

.PHONY: lint
lint: $(LINT) ## gofmt, go vet and golangci-lint
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then \
		echo "not formatted (make fmt):"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(LINT) run ./...

.PHONY: fmt
fmt: ## format all Go files
	gofmt -w -s .

.PHONY: clean
clean: ## remove what these targets have made
	rm -rf $(BIN) coverage.out coverage.html

# Finds PostgreSQL, or installs it, and builds the program that starts it.
.PHONY: postgres
postgres:
	@mkdir -p $(BIN)
	@$(GO) build -buildvcs=false -o $(BIN)/ ./internal/pgtest/cmd/...
	@$(BIN)/pginstall

.PHONY: compiler
compiler:
	@$$($(GO) env CC) --version >/dev/null 2>&1 || { \
		echo "the race detector needs a C compiler ($$($(GO) env CC)); make test-quick does without" >&2; exit 1; }

# Built once; a new version has a new name.
$(LINT):
	@mkdir -p $(BIN)/tmp
	GOBIN=$(BIN)/tmp GOFLAGS=-buildvcs=false $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	@mv $(BIN)/tmp/golangci-lint $@
