# Every target does its own set-up: it needs Python 3.11 with pip, and make.
PYTHON ?= python3
VENV ?= .venv
# For example PYTEST_ARGS="-n 2", GUARDS="unknown-setting" and BENCH="scheduler permits".
# As many workers as there are cores, and twice as many where tests mostly wait for a server.
PYTEST_ARGS ?= -n auto
GUARDS ?=
BENCH ?=

PY := $(VENV)/bin/python
# Named by content, so that another branch's requirements are seen whatever the file times say.
SUM := $(shell cat requirements.txt requirements-dev.txt | cksum | cut -d ' ' -f 1)
BASE := $(VENV)/.base-$(SUM)
DEV := $(VENV)/.dev-$(SUM)
INSTALL := $(PYTHON) -m pip --python $(PY) install --quiet --disable-pip-version-check --require-hashes
PYTEST := $(PY) -m pytest $(PYTEST_ARGS)
TWICE := -n $(shell $(PYTHON) -c 'import os; print(2 * (os.cpu_count() or 1))')
PYTEST_SERVER := $(PY) -m tests.postgres --hasty -- $(PYTEST) $(if $(filter file,$(origin PYTEST_ARGS)),$(TWICE))
LONG := tests/contract/test_live_cohorts.py tests/contract/test_money_processes.py tests/backends/test_anthropic_money.py tests/faults tests/clusters
COVERED := --cov --cov-report= --cov-fail-under=0

# Python is started hundreds of times: what it compiles is kept, whatever the shell says.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help venv demo serve test test-browser check guards bench soak requirements

help:
	@echo "make demo     a first look: set-up, demo roster, one rehearsal run to its end"
	@echo "make serve    the admin on http://127.0.0.1:8000/admin/ and a worker, kept running until Ctrl-C"
	@echo "make test     the test suite, on SQLite and on a real PostgreSQL"
	@echo "make test-browser  what a person sees and does, in a real browser"
	@echo "make check    format, lint, types, layers, migrations, templates, licences, sizes"
	@echo "make guards   takes away one safeguard after the other and expects a test to fail"
	@echo "make bench    measurements, as tables for docs/performance.md"
	@echo "make soak     many more examples, cohort changes beside a live run, kills and faults at length"

$(PY):
	@$(PYTHON) -c 'import sys; sys.version_info[:2] == (3, 11) or sys.exit("Python 3.11 is needed, and this is %d.%d: try `make PYTHON=python3.11`." % sys.version_info[:2])'
	@$(PYTHON) -m venv --without-pip $(VENV)

$(BASE): | $(PY)
	@echo "Installing what the application needs …"
	@$(INSTALL) -r requirements.txt
	@touch $@

$(DEV): | $(BASE)
	@echo "Installing what tests and checks need …"
	@$(INSTALL) -r requirements-dev.txt
	@touch $@

venv: $(DEV)

demo: $(BASE)
	@$(PY) manage.py demo

serve: $(BASE)
	@$(PY) manage.py migrate --verbosity 0
	@exec $(PY) manage.py serve

# The whole suite on SQLite, then what depends on the database on PostgreSQL; coverage is judged over both.
test: $(DEV)
	@$(PY) -m coverage erase
	$(PYTEST) $(COVERED)
	$(PYTEST_SERVER) $(COVERED) --cov-append -m both_databases
	@$(PY) -m coverage report --skip-covered
	@$(PY) -m coverage report --skip-covered --include='engine/core/*,cohorts/rules.py' --fail-under=100

# Chromium is brought where it can be; any that is there can be named: CHROMIUM=/usr/bin/chromium.
test-browser: $(DEV)
	@$(PY) -m scripts.browser
	$(PYTEST) tests/browser

check: $(DEV)
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy .
	$(VENV)/bin/lint-imports --no-logo
	$(PY) manage.py check --fail-level WARNING
	$(PY) manage.py makemigrations --check --dry-run
	$(PY) -m scripts.site_checks
	$(PY) -m scripts.sizes
	$(PY) -m scripts.licences

guards: $(DEV)
	$(PY) -m scripts.guards $(GUARDS)

bench: $(BASE)
	@$(PY) -m benchmarks $(BENCH)

# The property tests of the pure parts with twenty times the examples, and the long forms of what
# takes its time beside a live run or under faults, on both databases.
soak: $(DEV)
	$(PYTEST) --hypothesis-profile=soak --timeout=1800 tests/core tests/runtime $(LONG)
	$(PYTEST_SERVER) --hypothesis-profile=soak --timeout=1800 $(LONG)

requirements: $(DEV)
	$(PY) -m uv pip compile --quiet --python-version 3.11 --generate-hashes --custom-compile-command 'make requirements' requirements.in -o requirements.txt
	$(PY) -m uv pip compile --quiet --python-version 3.11 --generate-hashes --custom-compile-command 'make requirements' requirements-dev.in -o requirements-dev.txt
