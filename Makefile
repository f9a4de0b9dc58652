# A thin front of Meson. `make help` lists what there is to make.
RELEASE := build/release
CHECK := build/check
PREFIX ?= /usr/local
INSTALL_BUILD := build/install
PYTHON := python3
GUEST ?= tick

.PHONY: all help packages demo demo-api demo-rest demo-storage check check-busy check-long bench fuzz install deb requirements reference format clean

all: $(RELEASE)/build.ninja ## build everything into build/release
	@ninja -C $(RELEASE) --quiet

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | column -t -s '	'

packages:
	@scripts/install-packages

$(RELEASE)/build.ninja: | packages
	@meson setup $(RELEASE) -Dtests=false >/dev/null || { cat $(RELEASE)/meson-logs/meson-log.txt; exit 1; }

# Lines of the stack in a sanitizer's report need no more than -g1, and there are some 200 programs to link.
$(CHECK)/build.ninja: | packages
	@meson setup $(CHECK) -Doptimization=0 -Db_sanitize=address,undefined -Db_lundef=false -Dc_args=-g1 -Dc_link_args=-fuse-ld=gold >/dev/null || { cat $(CHECK)/meson-logs/meson-log.txt; exit 1; }

demo: root all ## a cluster that loses a node and mends itself, live; GUEST=linux: a node emptied under ping
	@$(PYTHON) scripts/demo --build $(RELEASE) --guest $(GUEST)

demo-storage: root all ## volume services that die or stand still in mid-work, and what cleans up after them, live
	@$(PYTHON) scripts/demo --build $(RELEASE) --storage

demo-api: root all ## clients of OpenStack, while a front end dies and a volume service stands still in the middle of what they ask, live
	@$(PYTHON) scripts/demo --build $(RELEASE) --api

demo-rest: root all ## the demo's repair, watched from outside alone: events and metrics by curl, what a webhook gets, live
	@$(PYTHON) scripts/demo --build $(RELEASE) --rest

check: root $(CHECK)/build.ninja ## build with sanitizers and run every test that a commit must pass; ONLY=word: those with it in a name
	@$(PYTHON) scripts/run-tests --build $(CHECK) --make $(if $(ONLY),--only "$(ONLY)")

check-busy: root $(CHECK)/build.ninja ## the same beside four processes for each processor that never rest; ONLY=word
	@$(PYTHON) scripts/run-tests --build $(CHECK) --make --busy 4 $(if $(ONLY),--only "$(ONLY)")

check-long: root $(CHECK)/build.ninja ## the longer suites too
	@ninja -C $(CHECK) --quiet
	@$(PYTHON) scripts/run-tests --build $(CHECK) --long

bench: root all ## measure; figures go to build/bench.json
	@ninja -C $(RELEASE) --quiet tests/bench/bench_repair tests/bench/bench_recovery tests/bench/bench_collect tests/bench/bench_storage tests/bench/bench_locks tests/bench/bench_config tests/bench/bench_confd tests/bench/bench_api tests/bench/bench_http tests/bench/bench_token tests/bench/bench_floor
	@$(PYTHON) scripts/bench --build $(RELEASE) --out build/bench.json

fuzz: packages ## search the fuzz targets with libFuzzer; TARGET=frame SECONDS=60, KEEP=yes: keep what reaches new code
	@$(PYTHON) scripts/fuzz $(TARGET) --seconds $(or $(SECONDS),60) $(if $(KEEP),--keep)

install: packages ## install below PREFIX (/usr/local), with DESTDIR in front of it
	@[ -e $(INSTALL_BUILD)/build.ninja ] || meson setup $(INSTALL_BUILD) -Dtests=false --prefix=$(PREFIX) >/dev/null
	@meson configure $(INSTALL_BUILD) -Dprefix=$(PREFIX)
	@ninja -C $(INSTALL_BUILD) --quiet
	@DESTDIR=$(DESTDIR) meson install -C $(INSTALL_BUILD) --no-rebuild --quiet

deb: packages ## build a Debian package into build/
	@scripts/deb

requirements: ## which requirement has a passing test, from the last run of the tests
	@$(PYTHON) scripts/requirements --results build/test-results.json

reference: all ## write docs/reference from the tables
	@$(PYTHON) scripts/reference --build $(RELEASE)

format: ## format the sources
	@git ls-files '*.c' '*.h' | xargs clang-format -i

clean: ## remove what was built
	@rm -rf build

.PHONY: root
root: packages
	@[ "$$(id -u)" = 0 ] || { echo "fettle: this needs root: it makes network namespaces, mounts and loop devices. Run it as root." >&2; exit 26; }
