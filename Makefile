# Python for the environment, 3.11 or newer: make test PYTHON=python3.12
PYTHON ?= python3

# Another torch than constraints.txt pins, as words for pip, remembered until `make clean`:
#     make TORCH='torch==2.12.0'
#     make TORCH='torch --index-url URL'
READY := .venv/ready
REMEMBERED := $(shell cat $(READY) 2>/dev/null)
TORCH ?= $(REMEMBERED)

BIN := .venv/bin
# One test process for each core, each with one thread; the tests of a file stay together.
SPREAD := -n auto --dist loadfile
TORTURE := OMP_NUM_THREADS=1 PYTHONPATH=$(CURDIR)/src:$(CURDIR)/tests $(BIN)/python -m torture
# -qq keeps errors and drops warnings, such as those about index locations pip passes over.
PIPFLAGS ?= -qq
INSTALL := $(BIN)/python -m pip --disable-pip-version-check --no-input install $(PIPFLAGS)
FAILED := { echo "pip could not install this. To see all it says, add PIPFLAGS= to the command."; exit 1; }

.PHONY: env demo workbench test test-slow torture torture-sample docs gpu lint clean help FORCE

env: $(READY)
	@echo "Environment ready in .venv; next: make demo, make test, make help."
	@echo "To use g2n2 in this shell: . .venv/bin/activate"

help:
	@echo "make            create the environment in .venv"
	@echo "make demo       derive a network with its proof, train it against a GIN, write a report"
	@echo "make workbench  open the workbench in a browser, on this machine alone"
	@echo "make test       style, types and the default tests"
	@echo "make test-slow  the tests marked slow"
	@echo "make torture    kill, starve and feed junk to everything; writes docs/reliability.md"
	@echo "make docs       these pages as a site in build/site"
	@echo "make gpu        on a machine with a GPU: its tests, then all benchmarks"
	@echo "make lint       style and types only"
	@echo "make clean      remove .venv, build/ and caches"
	@echo
	@echo "PYTHON=python3.12      another Python, 3.11 or newer"
	@echo "TORCH='torch==2.12.0'  another torch, in pip's words, remembered until make clean"

demo: $(READY)
	@$(BIN)/g2n2 demo --out build/demo
	@echo "To use g2n2 in this shell: . .venv/bin/activate"

workbench: $(READY)
	@$(BIN)/g2n2 workbench

test: lint
	@echo "pytest: the default tests"
	@OMP_NUM_THREADS=1 $(BIN)/pytest $(SPREAD)

test-slow: $(READY)
	@echo "pytest: the slow tests"
	@OMP_NUM_THREADS=1 $(BIN)/pytest $(SPREAD) -m "slow and not gpu"

torture: $(READY)
	@$(TORTURE)

torture-sample: $(READY)
	@echo "torture: a sample"
	@$(TORTURE) --sample

docs: $(READY)
	@echo "mkdocs: pages into build/site"
	@$(BIN)/python docs/generated_pages.py
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "open build/site/index.html"

gpu: $(READY)
	@$(BIN)/pytest -m gpu
	@$(BIN)/g2n2-paper bench --device cuda

lint: $(READY)
	@echo "ruff: style and formatting"
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@echo "mypy: types of the package"
	@$(BIN)/mypy

clean:
	rm -rf .venv build dist .benchmarks .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp holds the TORCH it was made with; another one, or a changed pin, makes it anew.
ifneq ($(strip $(TORCH)),$(strip $(REMEMBERED)))
$(READY): FORCE
endif

$(READY): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { \
	    echo "$(PYTHON): not found. Choose a Python 3.11 or newer: make PYTHON=/path/to/python3"; \
	    exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "$(PYTHON) is $$($(PYTHON) --version 2>&1); g2n2 needs Python 3.11 or newer."; \
	    echo "Choose another with: make PYTHON=python3.12"; \
	    exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	    echo "$(PYTHON) cannot make environments: its module ensurepip or venv is missing."; \
	    echo "On Debian and Ubuntu: apt install python3-venv"; \
	    exit 1; }
	@rm -f $@
	@echo "Preparing the environment in .venv"
	@$(PYTHON) -m venv .venv
ifeq ($(strip $(TORCH)),)
	@echo "Installing g2n2, torch and the development tools (minutes the first time: torch is large)"
	@$(INSTALL) -c constraints.txt -e ".[dev]" || $(FAILED)
else
	@echo "Installing $(TORCH) (minutes the first time: torch is large)"
	@$(INSTALL) $(foreach word,$(TORCH),'$(word)') || $(FAILED)
	@sed -E '/^(torch|triton)==/d' constraints.txt > .venv/constraints.txt
	@$(BIN)/python -c 'from importlib.metadata import version; print("torch==" + version("torch"))' \
	    >> .venv/constraints.txt
	@echo "Installing g2n2 and the development tools"
	@$(INSTALL) -c .venv/constraints.txt -e ".[dev]" || $(FAILED)
endif
	@printf '#!/bin/sh\nexec "$$(dirname "$$0")/python" -m g2n2_paper "$$@"\n' > $(BIN)/g2n2-paper
	@chmod +x $(BIN)/g2n2-paper
	@echo '$(strip $(TORCH))' > $@
