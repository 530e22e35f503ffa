# Every target makes its own virtual environment in .venv if there is none.
PYTHON ?= python3
BIN := .venv/bin
SHELL := /bin/bash
# Without bytecode every process compiles all modules anew, which doubles the time to collect the tests.
export PYTHONDONTWRITEBYTECODE :=

EXPERIMENTS := figures tables bounds certificates utility shift bench ledger-stress crossings

.PHONY: demo test test-long check format fuzz $(EXPERIMENTS) clean

demo: .venv/ready
	$(BIN)/ptclust demo --output build/demo

test: .venv/ready-dev
	$(BIN)/python -m pytest -n 2 -m "not long"

test-long: .venv/ready-dev
	$(BIN)/python -m pytest -n 2

check: .venv/ready-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/ready-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

fuzz: .venv/ready-dev
	$(BIN)/python -m tests.robustness.fuzz --count $(or $(COUNT),12000)

# Options go into ARGS, as in: make utility ARGS="--quick --repetitions 2"
$(EXPERIMENTS): .venv/ready
	$(BIN)/python -m experiments $@ $(ARGS)

utility: .venv/ready-dev  # networkx has some of its graphs

.venv/bin/python:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'

.venv/ready: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

.venv/ready-dev: .venv/ready
	$(BIN)/python -m pip install --quiet --group dev
	touch $@

clean:
	rm -rf .venv build dist .hypothesis .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
