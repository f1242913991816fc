# SPDX-License-Identifier: Apache-2.0
# A thin front of meson: `make help` lists what there is.
PYTHON := /usr/bin/python3
BUILD  := build
BIN    := $(BUILD)/bin
PREFIX ?= /usr/local
HOT    := atoll atoll-init atoll-request
HOST   := atoll-desk atoll-egress atoll-files atoll-front atoll-function atoll-judge atoll-learn atoll-notify atoll-oci atoll-policy atoll-log atoll-stage atoll-secret atoll-template atoll-token atoll-top atoll-verify atolld

.PHONY: all help run demo check check-unit check-compat check-vm check-vm-systemd check-bare fuzz bench install uninstall clean check-agents check-fault packages check-packages bench-packages report-verify

all: packages $(BUILD)/musl/build.ninja $(BUILD)/host/build.ninja ## build; the programs are in build/bin
	@ninja -C $(BUILD)/musl --quiet
	@ninja -C $(BUILD)/host --quiet programs
	@tools/link-programs $(BUILD)

$(BUILD)/musl/build.ninja: | packages
	@mkdir -p $(BUILD)
	@meson setup $(BUILD)/musl --native-file tools/musl.ini -Dprograms=hot $(WERROR) >$(BUILD)/setup-musl.log || { cat $(BUILD)/setup-musl.log; exit 1; }

$(BUILD)/host/build.ninja: | packages
	@mkdir -p $(BUILD)
	@meson setup $(BUILD)/host -Dprograms=host $(WERROR) >$(BUILD)/setup-host.log || { cat $(BUILD)/setup-host.log; exit 1; }

packages:
	@tools/install-packages build
	@tools/fetch-grammars

check-packages:
	@tools/install-packages build check
	@tools/fetch-grammars

bench-packages:
	@tools/install-packages build check bench || true

run: all ## build a real project inside the default boundary, then let a hostile script try to get out
	@tools/prove $(BIN)/atoll

demo: all ## a minute with atoll: what an agent did, review, apply, undo
	@tools/demo $(BIN)/atoll

# A build that begins here is the one that tolerates no warning, so that tools/check need not make another.
check: WERROR := -Dwerror=true
check: check-packages all ## every suite, or SUITE=NAME…; a quarter of an hour on two processors
	@tools/check $(BUILD) $(SUITE)

check-unit: WERROR := -Dwerror=true
check-unit: check-packages all ## the unit tests alone, in a minute
	@tools/check $(BUILD) tests unit

check-vm: check-packages all ## limits and whole sandboxes on a cgroup v2 machine: Debian's kernel in software emulation
	@tools/install-packages vm
	@tools/check-vm $(BUILD)

check-vm-systemd: check-packages all ## the same for a user who needs a scope from systemd (root; uses debootstrap)
	@tools/install-packages vm
	@tools/check-vm $(BUILD) --systemd

check-bare: ## the README's blocks, `make run` and every suite on a bare Debian 12 (root; needs debootstrap)
	@tools/bare-debian run readme check

check-agents: check-packages all ## the real agents, and Chromium, work under their policies (npm registry, a gigabyte)
	@tools/install-packages agents
	@ATOLL_BIN=$(BIN) ATOLL_TESTS_AGENTS=1 $(PYTHON) -m pytest -q tests/integration/test_agents.py tests/integration/test_own_sandboxes.py \
		tests/integration/test_service_clients.py

check-compat: check-packages all ## CPython's, git's and stress-ng's own tests, inside against outside (root; an hour; apt-get source)
	@tools/install-packages compat
	@tests=$$(tools/fetch-git-tests $(BUILD)) && ATOLL_BIN=$(BIN) ATOLL_COMPAT_GIT=$$tests $(PYTHON) -m pytest -q tests/compat -n 2; \
		status=$$?; rm -rf "$$tests"; exit $$status

check-fault: check-packages all ## every system call of the start fails once (long)
	@ATOLL_BIN=$(BIN) ATOLL_FAULT_FULL=1 $(PYTHON) -m pytest -q tests/fault

fuzz: check-packages ## fuzz every target for a minute (tools/fuzz BUILD SECONDS TARGET… for more)
	@tools/fuzz $(BUILD)

bench: bench-packages all ## atoll beside its peers, as ratios
	@$(PYTHON) tests/bench/bench.py --build $(BUILD)

report-verify: all ## what atoll verify finds in tests/corpus or CORPUS=FILE and how often it is wrong (MISSES=develop lists them)
	@tools/report-verify --atoll $(BIN)/atoll $(if $(MISSES),--misses '$(MISSES)') $(if $(CORPUS),'$(CORPUS)')

install: all ## install below PREFIX (default /usr/local)
	@PREFIX='$(PREFIX)' tools/install-files $(BUILD) '$(DESTDIR)$(PREFIX)'

uninstall: ## remove what install put there
	@tools/install-files --remove $(BUILD) '$(DESTDIR)$(PREFIX)'

clean: ## remove build/
	@rm -rf $(BUILD)

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile
