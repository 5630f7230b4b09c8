# wakewatt: the two commands of the README are `make doctor` and `make test`.
# Needs git, make and a Rust toolchain; everything else is installed, or named, by scripts/ensure-packages.sh.

SHELL  := /bin/bash
PREFIX ?= /usr/local
CARGO  ?= cargo
ENSURE := scripts/ensure-packages.sh
# One target folder for everything below, so that nothing is built twice.
TARGET := $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)
TRIPLE  = $(shell rustc -vV | sed -n 's/^host: //p')
BINARY  = $(TARGET)/$(TRIPLE)/release/wakewatt
REPORT ?= wakewatt-report.html

.DEFAULT_GOAL := help
.PHONY: packages prove-soak prove-packages prove-reproducible prove-fleet prove-agent prove prove-ansible ansible prove-governors help doctor build test test-busy live fmt lint unit fuzz deny doc reference hosts testbed page bench site dist install uninstall clean needs v3

help: ## this list
	@echo "make TARGET, where TARGET is:"
	@sed -n 's/^\([a-z0-9-]*\):.*## /  \1\t/p' $(MAKEFILE_LIST) | expand -t 14

# Without the shop, Parquet and pictures, which doctor does not use and which are half of what there is to compile.
doctor: needs ## build what doctor needs, then measure and judge this machine; writes wakewatt-report.html
	@test -x $(BINARY) || echo "building wakewatt; the first time this takes some minutes"
	@$(CARGO) build --locked --release --package wakewatt --no-default-features
	$(BINARY) doctor --output $(REPORT) $(DOCTOR)

build: needs ## the static binary with everything, built fast; what packages hold is smaller (make dist)
	@$(CARGO) build --locked --release --package wakewatt
	@echo "built $(BINARY)"

needs:
	@command -v $(CARGO) >/dev/null || { echo "cargo is missing; install Rust: https://rustup.rs" >&2; exit 1; }
	@$(ENSURE) cc=gcc
	@$(ENSURE) --optional clang=clang
	@test -e /usr/include/stdio.h || $(ENSURE) libc-headers=libc6-dev || test -e /usr/include/stdio.h

test: needs ## everything that has to pass before a merge; says at the end what each stage took and what was skipped
	@CARGO="$(CARGO)" MAKE="$(MAKE)" scripts/stages.sh fmt lint unit doc reference deny hosts testbed page ansible

fmt:
	@$(CARGO) fmt --version >/dev/null 2>&1 || { echo "rustfmt is missing; install it: rustup component add rustfmt" >&2; exit 1; }
	$(CARGO) fmt --all --check

lint:
	@$(CARGO) clippy --version >/dev/null 2>&1 || { echo "clippy is missing; install it: rustup component add clippy" >&2; exit 1; }
	$(CARGO) clippy --quiet --locked --workspace --all-targets -- -D warnings
	@# What a newcomer's `make doctor` builds.
	$(CARGO) clippy --quiet --locked --package wakewatt --no-default-features -- -D warnings

unit: needs
	@$(ENSURE) --optional tmux=tmux prometheus=prometheus promtool=prometheus victoria-metrics=victoria-metrics yamllint=yamllint
	@$(ENSURE) --optional strace=strace openssl=openssl cpio=cpio
	@$(ENSURE) --optional sshd=openssh-server
	@# Of a later stage as well: what a test lacked and a later stage installed would count as skipped without need.
	@$(ENSURE) --optional chromium=chromium
	@scripts/ensure-duckdb.sh
	$(CARGO) test --locked --workspace

test-busy: needs ## the unit suites on a machine that has no time for them: thrice beside busy loops, once under nice
	@CARGO="$(CARGO)" scripts/busy.sh

live: needs ## the tests that disturb this machine for minutes, turn its settings and put them back (root)
	@$(ENSURE) --optional bpftool=bpftool setpriv=util-linux
	WAKEWATT_LIVE=1 $(CARGO) test --locked --workspace --test it -- --test-threads=1 live:: ::live_ gone:: trace:: recording:: icmp::

# RUSTFLAGS replaces the flags of .cargo/config.toml, so the static C library is asked for again.
v3: needs ## the system calls' crate built and tested for x86-64-v3, optimised: inline assembly must leave wide registers alone
	@if ! grep -qsw avx2 /proc/cpuinfo || ! grep -qsw fma /proc/cpuinfo; then echo "skipped: this processor is no x86-64-v3 (AVX2, FMA)"; \
	else CARGO_TARGET_DIR=$(TARGET)/v3 RUSTFLAGS="-C target-feature=+crt-static -C target-cpu=x86-64-v3" \
	  CARGO_PROFILE_DEV_OPT_LEVEL=2 $(CARGO) test --locked --package wakewatt-host --lib; fi

fuzz: needs ## every reader fuzzed for FUZZ_SECONDS (60) each; the kept inputs are replayed by make test
	scripts/fuzz.sh $(FUZZ)

# Licences, sources and bans hold without it (cargo xtask licences). cargo-deny takes many minutes to build, so it runs
# where it is, or with DENY=1, which installs it. Its advisories come from the network.
deny:
	@if ! command -v cargo-deny >/dev/null && [ -n "$(DENY)" ]; then $(CARGO) install --quiet --locked cargo-deny; fi
	@if ! command -v cargo-deny >/dev/null; then echo "skipped: cargo deny is not installed (make deny DENY=1 installs it); licences, sources and bans were checked by cargo xtask licences"; \
	else $(CARGO) deny --log-level error --all-features check licenses bans sources && \
	  { $(CARGO) deny --log-level error check advisories || { $(CARGO) deny fetch db >/dev/null 2>&1 && exit 1; \
	    echo "skipped: the advisories could not be fetched"; }; }; fi

doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --quiet --locked --workspace --no-deps

reference:
	$(CARGO) xtask ref --check
	$(CARGO) xtask words --check
	$(CARGO) xtask licences >/dev/null

hosts:
	@if ls fixtures/hosts/*.host >/dev/null 2>&1; then $(CARGO) xtask hosts fixtures/hosts; \
	else echo "skipped: no recorded hosts in fixtures/hosts"; fi

# Real kernels on emulated machines; what cannot be booted here is skipped, aloud.
testbed: needs ## boot emulated machines (testbed/machines), compare the facts found inside, run the reading commands on arm64 and on two memory nodes, prove tune
	@$(ENSURE) --optional qemu-system-x86_64=qemu-system-x86 iasl=acpica-tools qemu-system-aarch64=qemu-system-arm fdtput=device-tree-compiler aarch64-linux-gnu-gcc=gcc-aarch64-linux-gnu
	@if ! command -v apt-get >/dev/null; then echo "skipped: the testbed takes its kernels from Debian packages; no apt-get here"; \
	else $(CARGO) xtask testbed check && $(CARGO) xtask testbed live && \
	  $(CARGO) xtask testbed prove boot-max-cstate deep-idle undo-exact replay-short; fi

prove-governors: needs ## the governors' models against real kernels: recorded, replayed, predicted and run (about half an hour)
	$(CARGO) xtask testbed prove replay-short replay-laptop replay-telephone replay-server replay-laptop-newer replay-telephone-newer \
	  replay-server-newer predict frequency frequency-newer

prove: needs ## all proofs on real kernels, also the long ones: kills, a hostile kernel, the governor study (about 22 minutes)
	$(CARGO) xtask testbed prove

ansible: needs
	@$(ENSURE) --optional sshd=openssh-server ip=iproute2
	@CARGO="$(CARGO)" scripts/prove-ansible.sh short

prove-ansible: needs ## the Ansible collection on three hosts in network namespaces, one of which goes dark in the middle (root; about 3 minutes)
	@$(ENSURE) --optional sshd=openssh-server ip=iproute2
	@CARGO="$(CARGO)" scripts/prove-ansible.sh

packages: needs ## a release's files in dist/packages: .deb, .rpm, container image, tar archive, bill of materials, SHA256SUMS
	$(CARGO) xtask packages dist/packages $(PACKAGES)

prove-packages: needs ## the packages judged, installed, run, scraped, killed and removed on a Debian booted for it (root, some ten minutes; PACKAGES="--bin FILE")
	CARGO="$(CARGO)" scripts/prove-packages.sh $(PACKAGES)

prove-reproducible: needs ## two builds of every package in two folders, with other homes, umasks and time zones: the same bytes, and no folder's name in them (half an hour; BIN=FILE compares the packages of one binary)
	CARGO="$(CARGO)" scripts/prove-reproducible.sh $(if $(BIN),--bin $(BIN))

prove-fleet: needs ## what goes through Kubernetes, in a real cluster on this machine: one node, 200 that are not there (root; 20 CPU minutes the first time)
	CARGO="$(CARGO)" scripts/prove-fleet.sh

# As long as PROVE_S says, in seconds; what came of it is printed.
PROVE_S ?= 3600
prove-agent: needs ## an hour (PROVE_S) of a real Prometheus scraping the agent on this machine under load, either killed again and again: nothing counted twice
	@$(ENSURE) prometheus=prometheus
	WAKEWATT_PROVE_AGENT_S=$(PROVE_S) $(CARGO) test --quiet --locked --workspace --test it -- --nocapture agent_killed::

prove-soak: build ## half an hour (SOAK_S) of the agent with payers in cgroups that come and go (root): no counter falls, memory does not grow
	BIN=$(BINARY) scripts/prove-soak.sh

# The report and the agent's page in a real browser: no request leaves the page, no script error. Skipped, aloud, where none can be had.
page:
	@$(ENSURE) --optional chromium=chromium
	@if ! $(CARGO) xtask help 2>/dev/null | grep -q screenshot; then echo "skipped: no report check in this xtask"; \
	elif ! command -v chromium >/dev/null; then \
	  echo "skipped: the report was not looked at in a browser (Debian package chromium)"; \
	elif ! ls fixtures/hosts/*.host >/dev/null 2>&1; then echo "skipped: no recorded host to make a report of"; \
	else set -e; folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	  $(CARGO) build --quiet --locked --workspace --bin wakewatt; \
	  $(TARGET)/$(TRIPLE)/debug/wakewatt doctor --read-only --host "$$(ls fixtures/hosts/*.host | head -1)" --output "$$folder/report.html" >/dev/null; \
	  $(CARGO) xtask screenshot "$$folder/report.html" "$$folder"; \
	  $(CARGO) xtask agent-page $(TARGET)/$(TRIPLE)/debug/wakewatt "$$folder/agent"; fi

bench: needs ## the promised numbers, beside the peers that are installed
	@$(ENSURE) --optional fio=fio cyclictest=rt-tests sockperf=sockperf likwid-bench=likwid cpupower=linux-cpupower tmux=tmux bpftrace=bpftrace runqlat=libbpf-tools perf=linux-perf bpftool=bpftool prometheus-node-exporter=prometheus-node-exporter
	$(CARGO) xtask bench $(BENCH)

# mdBook is a program for this alone: it is built once into the target folder (two and a half minutes of one CPU).
site: ## the documentation as a site that needs no network: target/site/book/index.html; every link of it is followed
	@test -x $(TARGET)/site-tools/bin/mdbook || $(CARGO) install --quiet --locked --root $(TARGET)/site-tools --no-default-features --features search mdbook@0.5.4
	$(CARGO) xtask site

dist: needs ## binary, man pages and completions in dist/
	$(CARGO) xtask dist dist

install: dist ## into PREFIX (default /usr/local); DESTDIR is honoured
	install -D -m 755 dist/bin/wakewatt $(DESTDIR)$(PREFIX)/bin/wakewatt
	install -d $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 644 dist/man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1/
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	sed 's,/usr/local/bin/,$(PREFIX)/bin/,' packaging/wakewatt-agent.service > $(DESTDIR)$(PREFIX)/lib/systemd/system/wakewatt-agent.service
	install -D -m 644 dist/completions/wakewatt.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/wakewatt
	install -D -m 644 dist/completions/_wakewatt $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_wakewatt
	install -D -m 644 dist/completions/wakewatt.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/wakewatt.fish

uninstall: ## removes what install wrote
	rm -f $(DESTDIR)$(PREFIX)/bin/wakewatt $(DESTDIR)$(PREFIX)/share/man/man1/wakewatt*.1
	rm -f $(DESTDIR)$(PREFIX)/lib/systemd/system/wakewatt-agent.service
	rm -f $(DESTDIR)$(PREFIX)/share/bash-completion/completions/wakewatt
	rm -f $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_wakewatt
	rm -f $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/wakewatt.fish

clean: ## what was built
	$(CARGO) clean
	rm -rf dist
