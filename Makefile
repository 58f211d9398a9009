# Python 3.11 or newer, make, and a package index: nothing else is needed; the tests run servers under node too.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
VAULT ?= examples/vault
# Which model answers: standard (1,117 MB), small (491 MB), tiny (98 MB), or provider:model. Kept in the settings.
MODEL ?=
# Of the tests. More than there are processors fill the time in which tests wait for each other's processes.
WORKERS ?= 3
NPM_SERVERS := $(addprefix @modelcontextprotocol/server-,everything@2026.8.31 filesystem@2026.8.31)
AXE := axe-core@4.14.0
SUDO = $(shell [ "$$(id -u)" = 0 ] || echo sudo)

# Tests start hundreds of processes: what they import is compiled once, whatever the surroundings say.
test test-all coverage fuzz golden: export PYTHONDONTWRITEBYTECODE =
# Most tests commit to a store, and commits wait for the disk: in memory all of them take two thirds of the time.
MEMORY := $(shell [ "$$(df -k --output=avail /dev/shm 2>/dev/null | tail -1)" -gt 4000000 ] 2>/dev/null \
	&& ! grep -q " /dev/shm .*noexec" /proc/mounts && echo /dev/shm)

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */  make \1\t/' | expand -t 18

chat: .venv/python.ready weights ## chat over the example vault; VAULT=folder for your own notes, MODEL=small for a smaller model
	@$(BIN)/recto chat --vault "$(VAULT)"

web: .venv/web.ready weights ## the same in the browser, on a page that shows what goes into every reply
	@$(BIN)/recto web --vault "$(VAULT)"

demo: .venv/python.ready weights ## a short conversation without a terminal: the window, the record, a summary, the proof
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo.sh

test: lint .venv/node.ready .venv/browser.ready ## what must hold: format, lint, types, all tests but the slow ones
	@scratch=$$(mktemp -d --tmpdir=$(MEMORY)); chmod 755 $$scratch; trap 'rm -rf '$$scratch EXIT; export TMPDIR=$$scratch; \
	$(BIN)/mypy >.venv/types.txt & types=$$!; \
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow" $(TESTS); tests=$$?; \
	wait $$types; types=$$?; cat .venv/types.txt; exit $$((tests | types))

# apart from the tests: tracing every line makes them half as slow again
coverage: .venv/test.ready .venv/node.ready .venv/browser.ready ## the same tests with their coverage, at least 90 %
	@rm -f .coverage .coverage.*
	@scratch=$$(mktemp -d --tmpdir=$(MEMORY)); chmod 755 $$scratch; trap 'rm -rf '$$scratch EXIT; export TMPDIR=$$scratch; \
	$(BIN)/coverage run -m pytest -n $(WORKERS) --dist worksteal -m "not slow" $(TESTS)
	@$(BIN)/coverage combine -q
	$(BIN)/coverage report

test-all: lint types .venv/node.ready .venv/browser.ready .venv/postgres.ready .venv/compiler.ready ## the slow tests too (embedded model, servers of npm, a process a command), more examples
	RECTO_EXAMPLES=all $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(TESTS)

fuzz: .venv/test.ready ## the laws over many more random conversations; EXAMPLES=n of each (20,000)
	RECTO_EXAMPLES=$(or $(EXAMPLES),20000) $(BIN)/python -m pytest -n 2 tests/test_laws.py tests/window/test_planner.py tests/test_fitting.py \
		tests/chat/test_chain.py tests/serve/test_placement.py

golden: .venv/test.ready ## writes the files of tests/golden again, from what commands and doors give now
	UPDATE_GOLDEN=1 $(BIN)/python -m pytest -q -n 2 tests/golden
	git diff --stat -- tests/golden

lint: .venv/test.ready ## formatter check and linter
	$(BIN)/ruff format --check
	$(BIN)/ruff check

types: .venv/test.ready ## strict type checker
	$(BIN)/mypy

format: .venv/test.ready ## formats the code
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: .venv/test.ready ## figures, with peers beside us in the same run (they get an environment of their own); BENCH=quick for all in small
	$(BIN)/python -m bench $(BENCH)

fit: .venv/test.ready ## fits the scorer of sentences on bench/summary_data, and says how it does on authors held out
	$(BIN)/python -m bench.summary_fit

docs: .venv/test.ready ## writes the pages of docs/ that are made from the code
	$(BIN)/python -m docs.generate

picture: .venv/test.ready ## draws docs/chat.svg again, from a real chat; installs tmux if it is missing
	@command -v tmux >/dev/null || { $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq tmux; } >&2
	$(BIN)/python -m docs.generate.picture

lock: ## renews the lock files; needs uv
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		pyproject.toml --extra embedded --extra meaning --group build -o requirements/run.txt
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		pyproject.toml --extra web -c requirements/run.txt -o requirements/web.txt
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		pyproject.toml --extra embedded --extra meaning --extra postgres --extra web --group dev -c requirements/run.txt \
		-c requirements/web.txt -o requirements/dev.txt

dist: .venv/python.ready ## wheel and source distribution, into dist/
	@rm -rf dist
	@$(BIN)/python -m hatchling build

clean: ## takes away everything that was built here
	rm -rf .venv .bench dist .coverage* .mypy_cache .ruff_cache .pytest_cache .hypothesis

# Set-up speaks on stderr, so that `echo question | make chat` gives the reply alone.
# Weights are kept in the user's cache (RECTO_MODELS), for all copies of Recto. Checking their hash takes seconds: once.
# Checked once for each home and folder of models: looking takes a second.
weights: .venv/python.ready
	@$(if $(MODEL),$(BIN)/recto models use $(MODEL) >&2)
	@place="$(MODEL) $$RECTO_HOME $$RECTO_MODELS"; [ "$$place" = "$$(cat .venv/weights.ready 2>&-)" ] || \
	{ $(BIN)/recto models pull >&2 && echo "$$place" >.venv/weights.ready; }

.venv/python.ready: requirements/run.txt pyproject.toml
	@echo "Setting up .venv. Once: 150 MB of packages, the model that answers, 1,117 MB, and two for search, 163 MB." >&2
	@echo "MODEL=small takes 491 MB, MODEL=tiny 98 MB; MODEL=openai:gpt-4o-mini, with a key, takes none." >&2
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 …")' >&2
	@$(PYTHON) -m venv .venv >&2
	@$(PIP) install --require-hashes -r requirements/run.txt >&2
	@$(PIP) install --no-deps --no-build-isolation -q -e . >&2
	@touch $@

.venv/web.ready: .venv/python.ready requirements/web.txt
	@$(PIP) install --require-hashes -q -r requirements/web.txt >&2
	@touch $@

.venv/test.ready: .venv/python.ready requirements/dev.txt
	@$(PIP) install --require-hashes -q -r requirements/dev.txt >&2
	@$(BIN)/recto models pull tiny minilm multilingual >&2
	@touch $@

# Servers as others publish them, to test with; node comes from the system's packages where there is none.
.venv/node.ready: .venv/python.ready Makefile
	@command -v npm >/dev/null || { $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq nodejs npm; } >&2
	@npm install --silent --no-audit --no-fund --no-save --no-package-lock --ignore-scripts --prefix .venv/node \
		$(NPM_SERVERS) $(AXE) >&2
	@touch $@

# A browser for the tests of the page, which are skipped where there is no way to have one.
.venv/browser.ready: .venv/test.ready
	@command -v chromium >/dev/null || { $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq chromium; } >&2 || true
	@touch $@

# The programs of a server, which the tests start for themselves, in a folder of their own.
.venv/postgres.ready: .venv/test.ready
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || { \
		$(SUDO) apt-get update -qq && \
		$(SUDO) apt-get install -y -qq --no-install-recommends postgresql; } >&2
	@touch $@

# For a library that tests load into a process, to log what it writes.
.venv/compiler.ready: .venv/test.ready
	@command -v cc >/dev/null || { $(SUDO) apt-get update -qq && \
		$(SUDO) apt-get install -y -qq --no-install-recommends gcc libc6-dev; } >&2
	@touch $@

.PHONY: help chat web demo weights test test-all coverage fuzz golden lint types format bench fit docs picture lock dist clean
.DEFAULT_GOAL := help
