# The project's commands; `make` alone lists them.

PYTHON ?= python3
PORT ?= 8321
DATA ?= .ctrlb

export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: help run test test-slow test-opensearch test-emulator check bench costs lock clean

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# glibc gives each thread an arena of memory, which keeps what the thread's largest upload took: 80 MB over time.
run: .venv/ready ## Serve everything on this machine: PORT=8321 DATA=.ctrlb
	@MALLOC_ARENA_MAX=2 exec .venv/bin/python -m ctrlb serve --port "$(PORT)" --data "$(DATA)"

test: .venv-dev/ready ## Run the unit, contract and acceptance tests
	.venv-dev/bin/python -m pytest -m "not slow and not opensearch and not emulator"

test-slow: .venv-dev/ready ## Run the tests that take minutes: fuzzing, crashes, races
	.venv-dev/bin/python -m pytest -m "slow and not opensearch and not emulator"

test-opensearch: .venv-dev/ready ## Run the tests on a real OpenSearch node: needs Java and Maven
	.venv-dev/bin/python -m pytest -m opensearch

test-emulator: .venv-dev/ready .venv-emulator/ready ## Run the tests on an emulator of AWS, which they start
	.venv-dev/bin/python -m pytest -m emulator

check: .venv-dev/ready ## Lint and type-check the code and the template
	.venv-dev/bin/ruff check
	.venv-dev/bin/ruff format --check
	.venv-dev/bin/mypy
	.venv-dev/bin/cfn-lint template.yaml

bench: .venv-dev/ready ## Measure beside the floor; writes docs/performance.md
	.venv-dev/bin/python -m bench

costs: .venv-dev/ready ## Count what each operation costs in AWS; writes docs/costs.md
	PYTHONPATH=shared .venv-dev/bin/python -m tests.aws.costs

# One resolution for every Python from 3.11 on: the server's, then the layer's and the developers' held to it.
lock: .venv-dev/ready ## Renew the locked versions from pyproject.toml
	$(compile) pyproject.toml --upgrade --extra laptop --output-file requirements/run.txt
	$(compile) pyproject.toml --upgrade --constraints requirements/run.txt --output-file shared/requirements.txt
	$(compile) pyproject.toml --upgrade --constraints requirements/run.txt --extra laptop --group dev --output-file requirements/dev.txt
	$(compile) --group emulator --upgrade --output-file requirements/emulator.txt

compile = .venv-dev/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --custom-compile-command "make lock"

clean: ## Remove the environments and caches, but no data
	rm -rf .venv .venv-dev .venv-emulator .aws-sam .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache dist
	find bench functions shared tests -name __pycache__ -type d -prune -exec rm -rf {} +

# An environment is whole once it has its `ready`, written last. It is made anew when its lock changes, or its Python does.
.venv/ready: requirements/run.txt .venv/bin/python
.venv-dev/ready: requirements/dev.txt .venv-dev/bin/python
.venv-emulator/ready: requirements/emulator.txt .venv-emulator/bin/python

.venv/ready .venv-dev/ready .venv-emulator/ready:
	@command -v "$(PYTHON)" >/dev/null || { echo "There is no $(PYTHON) here: install Python 3.11 or newer, or name one with PYTHON=…" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed, and $(PYTHON) is $$("$(PYTHON)" -V 2>&1): name another, as in PYTHON=python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) lacks the venv module: install it (Debian, Ubuntu: apt install python3-venv)" >&2; exit 1; }
	@echo "Setting up $(@D), once …"
	@"$(PYTHON)" -m venv --clear $(@D)
	@$(@D)/bin/python -m pip install --quiet --require-hashes -r $<
	@cd $(@D)/lib/python3.*/site-packages && echo ../../../../shared > ctrlb.pth
	@touch $@

.venv/bin/python .venv-dev/bin/python .venv-emulator/bin/python: ;
