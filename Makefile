# make demo and make test need nothing but Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests often wait for other processes, so two more run than there are cores.
JOBS := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 2)

# The processes of a test run share what one of them has compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all test-failed compiled-tests coverage check format bench bench-peers \
	screenshots clean

demo: $(VENV)/.runtime
	$(BIN)/claude-mem demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

# The tests that `make test` leaves out: they take long, or need node, tsc or a browser and fail if it
# is missing, or PostgreSQL, which comes from a wheel.
test-all: $(VENV)/.browser $(VENV)/.agents $(VENV)/.chroma
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m extra

# The tests that failed last, one after another; without a failed one, this fails.
test-failed: $(VENV)/.dev
	$(BIN)/python -m pytest --last-failed --last-failed-no-failures none -m "extra or not extra"

# Each process of a test run compiles all tests that it does not find compiled.
compiled-tests: $(VENV)/.dev
	$(BIN)/python -m pytest --collect-only -q >/dev/null || true # a run of the tests says why

coverage: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(JOBS) --cov --cov-report=term:skip-covered

check: $(VENV)/.dev
	$(BIN)/ruff format --check src tests bench training examples
	$(BIN)/ruff check src tests bench training examples
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff format src tests bench training examples
	$(BIN)/ruff check --fix src tests bench training examples

bench: $(VENV)/.dev
	$(BIN)/python -m bench

# Needs node and npm, and the network for the npm package; an hour. PEERS holds arguments, such as
# `make bench-peers PEERS="hooks --rounds 5"`; hook-starts, commands, mcp, spool and bare-search need
# neither.
bench-peers: $(VENV)/.dev
	$(BIN)/python -m bench.peers $(PEERS)

screenshots: $(VENV)/.browser
	$(BIN)/python -m bench.screenshots

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.dev: $(VENV)/.runtime
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

$(VENV)/.browser: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,browser,team-test]'
	touch $@

# The real clients of other agents, from npm. One that cannot be installed is skipped by its tests.
$(VENV)/.agents: $(VENV)/.dev tests/agent_clients.py
	$(BIN)/python -m tests.agent_clients
	touch $@

# A Chroma server. If it cannot be installed, its tests are skipped.
$(VENV)/.chroma: $(VENV)/.dev tests/chroma.py
	$(BIN)/python -m tests.chroma
	touch $@

clean:
	rm -rf $(VENV) .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
