# `make demo` and `make test` are all a newcomer needs; both install what is missing (as root) or say what to install.
# `make check` is what a change needs before it is committed. What the tiers run: `cargo xtask test --list`.

export CARGO ?= $(CURDIR)/scripts/cargo
export PATH := $(PATH):$(HOME)/.cargo/bin

.PHONY: demo check test nightly test-dist bench lab prove faults soak fuzz build dist docs clean

build:
	@scripts/setup build
	$(CARGO) build --release --locked -p onetrip

demo:
	@scripts/demo

# Format, lints, licences, types, links and prose of documents, and the tests that need no server.
check:
	@scripts/setup check
	@$(CARGO) xtask check

# What CI runs, in steps with a budget each. Some of them: `cargo xtask test build rust`. What only a debugger reads is not
# built, nor what only a second build would use.
test: export CARGO_INCREMENTAL := 0
test: export CARGO_PROFILE_DEV_DEBUG := 0
test: export CARGO_PROFILE_TEST_DEBUG := 0
test:
	@scripts/setup test
	@$(CARGO) xtask test

# What takes hours: stacks that are slow to start, long generated programs, other versions of Python, Spark, faults, the soak, fuzzing,
# and packages on a bare Debian (as root).
nightly:
	@scripts/setup test
	@$(CARGO) xtask nightly

# Everything of docs/benchmarks.md but Python, whose benches run in an environment that has the packages (bench/README.md).
bench: build
	@scripts/setup test
	bench/run gateway forecasts reports embedded remedies loops client

# Every workload of the lab with its page in docs/lab: up to half an hour.
lab: build
	scripts/lab

# What shows that remedies change nothing: each rule left out once, and programs by the ten thousand. It takes hours, may be
# stopped, and goes on where it was.
prove:
	@scripts/setup test
	@$(CARGO) xtask prove

# What happens when something around the gateway fails: the table of docs/faults.md, the tests that it lists, and those of
# budgets. `scripts/faults --write` writes the table.
faults:
	@scripts/setup test
	$(CARGO) test --locked -p onetrip-session --test bounds
	$(CARGO) test --locked -p onetrip-gateway --lib --test outages --test bad_input --test faults --test back_pressure --test kinds --test idle
	$(CARGO) test --locked -p onetrip-ledger --test trace
	$(CARGO) test --locked -p onetrip --test run verdicts
	scripts/faults

# Clients of several kinds on one gateway with remedies on: nothing is lost, nothing grows. SOAK_SECONDS=300 for less.
SOAK_SECONDS ?= 600
soak: build
	@scripts/setup test
	@scripts/test-python --collect-only -q >/dev/null
	"$${CARGO_TARGET_DIR:-target}/python-venv/bin/python" scripts/soak --seconds $(SOAK_SECONDS) --onetrip "$${CARGO_TARGET_DIR:-target}/release/onetrip"

# What need not be built by who installs it, into dist/: binaries, packages, wheels, images.
dist:
	scripts/dist

# Each of these, installed and used on a Debian that has no compiler; needs root, and what `make dist` made.
test-dist:
	scripts/test-dist

# The documents as a book with search, by mdBook, which is compiled the first time: target/book/html/index.html.
docs:
	@scripts/setup build
	@scripts/book

# Each target for a minute.
fuzz:
	@scripts/setup build
	@$(CARGO) xtask fuzz --seconds 60

clean:
	$(CARGO) clean
	rm -rf dist .venv clients/node/node_modules clients/java/target clients/go/go-client
