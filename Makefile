# make run [ARGS="--port 8123 --demo"]   start the board (first use: makes .venv and installs)
# make test [TESTS="tests/tasks -k claim"] run the test suite (-n 0 among TESTS: in a row)
# make chaos                               kill workers at every point of a call (make test does a part of it)
# make soak [SOAK=3]                       shares, waits and losses over a long time, printed (make test does a part of it)
# make bench [BENCH="drain intake"]       measure speed, beside other queues on the same server (docs/performance.md)
# make dify-plugin                         pack the tools for Dify as dist/ai-task-board.difypkg
# make test-n8n [N8N_VERSION=1.123.81]     the sample flows and what else concerns n8n, in a real n8n (installed at first use)
# make env                                 write .env with fresh secrets, for docker compose (docs/compose.md)
# make lint                                style, types and import rules
#
# Needs Python 3.11 or newer and make. Another interpreter: make run PYTHON=python3.13

PYTHON ?= python3
ARGS ?=
TESTS ?=
SOAK ?= 3
BENCH ?=
N8N_VERSION ?= 2.40.7
export N8N_VERSION
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --prefer-binary --constraint constraints.txt

# A virtual environment holds absolute paths: one that was moved, or whose Python is gone, is made anew.
ifneq ($(shell test -x $(BIN)/python && cat $(VENV)/.made-in 2>/dev/null),$(CURDIR))
$(shell rm -f $(VENV)/.made-in $(VENV)/.installed $(VENV)/.installed-dev)
endif

.PHONY: run env test chaos dify-plugin soak bench install-n8n test-n8n lint clean

# The board ends with make: on SIGTERM make passes the signal on; setpriv (Linux) covers a make that was killed.
run: $(VENV)/.installed
	@guard=; if setpriv --pdeathsig TERM true 2>/dev/null; then guard='setpriv --pdeathsig TERM'; fi; \
	exec $$guard $(BIN)/board up $(ARGS)

test: $(VENV)/.installed-dev
	@exec $(BIN)/python -m pytest -n auto $(TESTS)

chaos: $(VENV)/.installed-dev
	@exec $(BIN)/python -m pytest --chaos tests/chaos $(TESTS)

soak: $(VENV)/.installed-dev
	@BOARD_TEST_SOAK=$(SOAK) exec $(BIN)/python -m pytest -s tests/soak $(TESTS)

bench: $(VENV)/.installed-bench
	@exec $(BIN)/python -m bench $(BENCH)

env:
	@$(PYTHON) deploy/env.py .env

install-n8n:
	@tests/n8n/install.sh

test-n8n: install-n8n $(VENV)/.installed-dev
	@exec $(BIN)/python -m pytest --n8n tests/n8n $(TESTS)

dify-plugin:
	@$(PYTHON) integrations/dify/plugin/pack.py dist/ai-task-board.difypkg

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

$(VENV)/.made-in:
	@$(PYTHON) --version >/dev/null 2>&1 || { \
	echo "Python was not found ('$(PYTHON)'). Install Python 3.11 or newer, or name one: make $(MAKECMDGOALS) PYTHON=python3.13" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	echo "$$($(PYTHON) --version 2>&1) is too old: the board needs Python 3.11 or newer. Name another one: make $(MAKECMDGOALS) PYTHON=python3.13" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	echo "This Python cannot make virtual environments. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)
	@printf '%s\n' "$(CURDIR)" >$@

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/.made-in
	@echo "Installing the board into $(VENV) (under two minutes, only when its dependencies changed) ..." >&2
	@$(INSTALL) --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(VENV)/.made-in
	@echo "Installing the board and its development tools into $(VENV) ..." >&2
	@$(INSTALL) --editable '.[dev]'
	@touch $(VENV)/.installed $@

$(VENV)/.installed-bench: pyproject.toml constraints.txt | $(VENV)/.made-in
	@echo "Installing the board, its development tools and the queues it is compared with into $(VENV) ..." >&2
	@$(INSTALL) --editable '.[dev,bench]'
	@touch $(VENV)/.installed $(VENV)/.installed-dev $@
