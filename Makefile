PYTHON       ?= python3
DEMO_DIR     ?= build/demo
FUZZ_SECONDS ?= 60

BIN    := .venv/bin
VENV   := .venv/.stamp
CODE   := $(wildcard src/jobman bench fuzz lab tests tools)
# Half of the tests wait for others, such as a cluster: more of them run at once than there are cores.
WORKERS ?= $(shell cores=$$(nproc 2>/dev/null || echo 2); echo $$((cores + (cores + 1) / 2)))
# Who is done takes over from the others: tests on a cluster take a thousand times as long as most.
# Where nothing compiled may be kept, every test process compiles all the tests and every command all of jobman.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help venv demo test test-fast lint format bench docs fuzz clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(VENV) ## make .venv with jobman and all it is developed with (PYTHON picks the interpreter)

# A half-made .venv is completed rather than removed: both ways below may run again over what is there.
$(VENV): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "jobman needs Python 3.11 or newer, and '$(PYTHON)' is not: try make PYTHON=python3.12" >&2; exit 1; }
	@echo "making .venv"
	@if command -v uv >/dev/null; then \
	    { test -x $(BIN)/python || uv venv --quiet --python "$$(command -v $(PYTHON))" .venv; } && \
	    uv pip install --quiet --python $(BIN)/python -e '.[dev]'; \
	else \
	    $(PYTHON) -m venv .venv && \
	    $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'; \
	fi
	@touch $@

demo: $(VENV) ## run the showcase on this machine, with a service of its own (DEMO_DIR)
	@mkdir -p $(DEMO_DIR)
	@cp examples/showcase.yaml $(DEMO_DIR)
	@cd $(DEMO_DIR) && unset JOBMAN_SERVER && export JOBMAN_STATE="$$PWD/state"; code=0; \
	    $(abspath $(BIN))/jobman run showcase.yaml || code=$$?; \
	    $(abspath $(BIN))/jobman service stop --force 2>/dev/null; exit $$code

# The components come up while the code is looked at, which takes one core a minute.
test: $(VENV) ## lint, then every test; ends with what ran on real components
	@lab/up & lab=$$!; code=0; $(MAKE) --no-print-directory lint || code=$$?; wait $$lab || code=$$?; exit $$code
	$(PYTEST)

test-fast: $(VENV) ## the tests that are quick and need nothing but Python
	JOBMAN_TESTS=quick $(PYTEST) -p no:schemathesis -m "not slow and not component"

lint: $(VENV) ## style, types and the layers of the packages
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy --strict $(CODE)
	$(BIN)/lint-imports --no-logo

format: $(VENV) ## write the code in the one style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(VENV) ## measure, each number beside its peer's
	@lab/slurm up >/dev/null || true
	$(BIN)/python -m bench

docs: $(VENV) ## write the generated pages again
	$(BIN)/python -m tools.generate_docs

fuzz: $(VENV) ## search for documents that break the reader (FUZZ_SECONDS)
	$(BIN)/python -m fuzz.run --seconds $(FUZZ_SECONDS)

clean: ## remove everything that was made here, .venv too
	rm -rf .venv build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
