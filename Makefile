# One target a job; CI runs the same ones. `make` shows what there is.

.DEFAULT_GOAL := help
.PHONY: help run test check fmt fmt-check lint doc rooms package peers conformance tool-docs public-api limits bench count

ROOMS := accounts browser builtin documents egress hooks host http mcp mcp-stdio models sandbox schema-validation services shell-analysis sqlite upstream-auth web
# Tests through the binaries wait for other programs: with two threads per processor another test uses that time.
TEST_THREADS ?= $(shell expr 2 '*' $$(nproc))
RS := git ls-files --cached --others --exclude-standard --deduplicate '*.rs'

help:           ## shows this list
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

run:            ## builds and starts the server on embedded defaults; prints its address and how to connect
	cargo build --profile quick --locked --bins
	cargo run --profile quick --locked --quiet --bin toolstead-server

test: peers     ## installs the real peers and runs every test
	cargo test --workspace --locked --tests --no-run
	cargo test --workspace --locked --lib
	RUST_TEST_THREADS=$(TEST_THREADS) cargo test --workspace --locked --test '*' --bench counts
	cargo test --workspace --locked --doc

check: fmt-check lint doc  ## formatting, lints and documentation, warnings as errors

fmt:            ## formats every Rust file
	$(RS) | xargs rustfmt

fmt-check:      # by file: `cargo fmt` misses files that a macro declares
	$(RS) | xargs rustfmt --check

lint:           # clippy is also the check; the same features and targets as the tests, so that nothing is built twice
	cargo clippy --workspace --all-targets --locked -- -D warnings

rooms:          ## checks each room of infrastructure alone, with its example; prints what it uses and brings along
	for room in $(ROOMS); do \
	  cargo clippy --locked -p toolstead-infrastructure --no-default-features --features $$room --lib --examples -- -D warnings || exit 1; \
	done
	cargo clippy --locked -p toolstead-infrastructure --no-default-features --features services,sandbox --example services -- -D warnings
	cargo clippy --locked -p toolstead-domain --no-default-features --lib -- -D warnings
	cargo test --workspace --locked --test it module_dependencies:: -- --nocapture --test-threads 1

package:        ## packs each crate, and checks all of them from what was packed
	.ci/package

doc:            # broken links in documentation are errors
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --locked

peers:          # the official conformance suite, SDK clients and reference servers, pinned; does nothing when they are there
	tests/peers/setup.sh

conformance: peers  ## runs the official MCP conformance suite against the server, through it, and against the client; writes docs/internals/conformance.md
	PATH="$(CURDIR)/tests/peers/node_modules/.bin:$$PATH" node tests/peers/page.mjs > docs/internals/conformance.md
	cargo test --workspace --locked --test it conformance -- --nocapture

tool-docs:      ## writes docs/reference/tools/ and the table of docs/reference/dialects.md anew
	TOOLSTEAD_WRITE_DOCS=1 cargo test --workspace --locked --test it -- tool_docs dialect_cost

public-api:     ## writes docs/public-api/ anew; what was removed or changed must be in the section "Upgrading" of CHANGELOG.md
	TOOLSTEAD_WRITE_API=1 cargo test --workspace --locked --test it -- public_api

limits:         ## lowers the limits of the language gate to today's counts
	TOOLSTEAD_WRITE_LIMITS=1 cargo test --workspace --locked --test it language:: -- --nocapture

bench: peers    ## measures against references in the same run and prints the ratios
	cargo bench --locked --workspace --bench budgets

count:          ## counts what a call costs: system calls (with strace), switches of threads, allocations
	cargo bench --locked --workspace --bench counts
