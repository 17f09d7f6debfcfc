# make demo   set up, then release, submit, grade and report a sample class in demo/
# make test   set up, then format, lint, types and the default tests
# The slow suites have targets of their own, below.

PYTHON ?= python3
BIN := .venv/bin
export OMP_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test lint types tests attacks mutants docs test-browser test-hub test-runs test-slow test-many test-peer fuzz test-leak bench bench-leak clean setup

demo: setup
	@$(BIN)/autograder doctor
	@$(BIN)/autograder demo

test: lint types tests

lint: setup
	@$(BIN)/ruff format --check autograder tests solutions
	@$(BIN)/ruff check autograder tests solutions

types: setup
	@$(BIN)/mypy

tests: setup
	@$(BIN)/python -m pytest

# every attack of tests/attacks in every tier of this machine, as a table by kind
attacks: setup
	@$(BIN)/python -m tests.attacks.table

# every one-token slip of the chapter's references, run against the hidden tests: about 15 minutes
mutants: setup
	@nice $(BIN)/python -m tests.mutants

# coverage-guided search, a minute each, for a submission or a reply of a student's process that trips the grader; finds land in build/fuzz
fuzz: setup
	@$(BIN)/python -c 'import atheris' 2>/dev/null || $(BIN)/python -m pip install --quiet atheris==3.0.0
	@mkdir -p build/fuzz
	@for what in notebook wire; do \
	  $(BIN)/python tests/fuzz/fuzz_$$what.py -max_total_time=60 -verbosity=0 -print_final_stats=1 -artifact_prefix=build/fuzz/$$what- || exit 1; \
	done

setup: .venv/.installed

.venv/.installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "This needs Python 3.11 or newer; %s is %d.%d. Name another: make PYTHON=python3.12" % (sys.executable, *sys.version_info[:2]))'
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "Python's venv module is missing. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing the locked packages into .venv (once; torch is large) ..."
	@$(BIN)/python -m pip install --quiet --no-deps --requirement requirements.lock
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

test-browser: setup
	@$(BIN)/python -m pytest -m browser tests/browser

# docs/deploy.md's JupyterHub: users, exchange, PostgreSQL, the grader as a service; as root, with node and npm
test-hub: setup node_modules/.bin/configurable-http-proxy
	@$(BIN)/python -m pytest -m browser tests/hub

node_modules/.bin/configurable-http-proxy:
	@npm install --silent --no-save --no-fund --no-audit --prefix . configurable-http-proxy@5.1.0

# class runs that are disturbed: killed, workers lost, on a Dask cluster, watched
test-runs: setup
	@$(BIN)/python -m pytest -m "slow or not slow" tests/integration/test_resume.py tests/integration/test_cluster.py tests/integration/test_watch.py

test-slow: setup
	@$(BIN)/python -m pytest -m slow --ignore=tests/integration/test_many.py

# a class of 2,000 whose run is killed three times and started again (make test-many STUDENTS=300)
test-many: setup
	@$(BIN)/python -m pytest -m slow tests/integration/test_many.py

# nbgrader's own tests of autograde, those it skips too, with its kernels in our sandbox: forked, then each in a fresh interpreter
test-peer: setup
	@for way in warm cold; do \
	  echo "kernels: $$way"; \
	  PATH="$(CURDIR)/$(BIN):$$PATH" PYTHONPATH="$(CURDIR)" JUPYTER_CONFIG_PATH="$(CURDIR)/tests/peer/$$way" \
	    $(BIN)/python -m pytest -q -p no:cacheprovider -p tests.peer.unskipped -W ignore --rootdir=tests/peer/$$way -c /dev/null \
	    --pyargs nbgrader.tests.apps.test_nbgrader_autograde || exit 1; \
	done

# the mask-leak detector at every seed, and on other people's models (GPT-2, Llama, x-transformers)
test-leak: .venv/.installed-leak
	@$(BIN)/python -m pytest -m "slow or not slow" tests/leak

.venv/.installed-leak: .venv/.installed tests/leak/requirements.lock
	@$(BIN)/python -m pip install --quiet --no-deps --requirement tests/leak/requirements.lock
	@touch $@

# what the detector costs, and the checks in common use beside it
bench-leak: setup
	@$(BIN)/python -m tests.bench.leak --large

# the chapter graded by stock nbgrader, by this package, and in one process without isolation
bench: setup
	@$(BIN)/python -m tests.bench.grading

# the documentation as a site, in build/docs; a warning fails it
docs: setup
	@$(BIN)/python -m sphinx -q -W --keep-going -n -b html docs build/docs
	@echo "build/docs/index.html"

clean:
	rm -rf .venv node_modules demo build *.egg-info
