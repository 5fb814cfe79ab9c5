# Targets are what CI runs. `make demo` and `make test` need nothing but Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: demo test lint check bench-speed readme datasets reproduction clean

demo: $(INSTALLED)
	$(BIN)/reliablenet demo

test: $(INSTALLED)
	$(BIN)/python -m pytest -n auto

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test

bench-speed: $(INSTALLED)
	$(BIN)/python benchmarks/speed.py

# Shows what the demo prints today; run it after a change that alters results.
readme: $(INSTALLED)
	$(BIN)/python docs/refresh_readme.py

# Needs the source files, or the network to fetch them.
datasets: $(INSTALLED)
	$(BIN)/python docs/refresh_datasets.py

# Tables and figures of the committed results.
reproduction: $(INSTALLED)
	$(BIN)/python docs/refresh_reproduction.py

# Reinstalled only when the pins or the project file change; torch in the same command, pinned.
$(INSTALLED): constraints.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt "torch==$$(sed -n 's/^torch==//p' constraints.txt)" -e ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist demo-output
