# `make check` is all that CI runs. `make demo` and `make test` need nothing but Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: demo test browser database node mlflow lint check studies bench-speed guarantees mutation coverage docs docs-refresh datasets reproduction clean

demo: $(INSTALLED)
	$(BIN)/reliablenet demo

# worksteal: a worker takes whole modules as long as there are any, so that what they share is made once.
test: $(INSTALLED)
	$(BIN)/python -m pytest -n auto --dist worksteal -rs

# Chromium, in which the tests open the report; without one they skip and say so.
browser:
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update -qq \
		&& DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; } \
		|| echo "There is no chromium here and no way to install it: the tests of the report in a browser will skip."

# PostgreSQL, in which the tests keep a decision log; without one they skip and say so.
database:
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update -qq \
		&& DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql >/dev/null; } \
		|| echo "There is no PostgreSQL here and no way to install it: the tests of a log in it will skip."

# onnxruntime for Node, in which the tests run a graph; without it they skip and say so. Its scripts would fetch GPU libraries.
node:
	@test -d .node/node_modules/onnxruntime-node || { command -v npm >/dev/null && npm install --silent --no-fund --no-audit --no-save --ignore-scripts \
		--prefix .node onnxruntime-node@1.30.0 >/dev/null 2>&1; } || echo "There is no npm here, or it finds no packages: the test of a graph in Node will skip."

# MLflow, which the tests let serve a model; apart, because it is heavy and its pins are not ours. Without it they skip.
mlflow: $(INSTALLED)
	@test -d .mlflow || $(BIN)/python -m pip install --quiet --disable-pip-version-check --target .mlflow "mlflow-skinny==3.17.2" \
		|| { rm -rf .mlflow; echo "MLflow cannot be installed here: the test that it serves a model will skip."; }

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint browser database node mlflow test

# What there is to measure, what it costs and whether its result is there. One: `python -m studies NAME`.
studies: $(INSTALLED)
	$(BIN)/python -m studies --list

bench-speed: $(INSTALLED)
	$(BIN)/python -m studies ratios --anew

# The promises of certificates, tried by simulation; hours, and goes on where it was stopped. Needs the source files.
guarantees: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/python -m studies guarantees

# Would the tests notice an error in risk/, certificate/ and metrics/? Most of an hour; without --anew it goes on.
mutation: $(INSTALLED)
	$(BIN)/python -m studies mutation --anew

# All tests, with the processes they start; fails below the limits.
coverage: $(INSTALLED)
	$(BIN)/python -m studies coverage --anew

# The site, into site/; a broken link is an error. The tests build it too. To search it: python -m http.server -d site
docs: $(INSTALLED)
	PYTHONPATH=. $(BIN)/zensical build --strict --clean

# Runs the README and every page and writes down what they print; draws the pictures; writes the tutorials as notebooks.
docs-refresh: $(INSTALLED)
	$(BIN)/python -m tools.docs.pages
	$(BIN)/python -m tools.docs.figures
	$(BIN)/python -m tools.docs.notebooks

# Needs the source files, or the network to fetch them.
datasets: $(INSTALLED)
	$(BIN)/python -m tools.docs.datasets

# Tables and figures of the committed results.
reproduction: $(INSTALLED)
	$(BIN)/python -m tools.docs.reproduction

# Reinstalled only when the pins or the project file change; torch in the same command, pinned.
$(INSTALLED): constraints.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt "torch==$$(sed -n 's/^torch==//p' constraints.txt)" -e ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) .node .mlflow .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .cache build dist site demo-output
