# The project's commands; `make` alone lists them.

PYTHON ?= python3
PORT ?= 8321
DATA ?= .ctrlb

# What `make deploy` calls the stack, and the template's parameters that are not to have their defaults.
STACK ?= ctrlb
PARAMETERS ?=
# What the functions run on. This Python must be here, for it compiles them.
RUNTIME ?= python3.13
ARCHITECTURE ?= arm64

# Where npm puts the clients that the tests drive.
CLIENTS = tests/real_clients/node_modules

export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: help run test test-slow test-python test-agent test-opensearch test-emulator test-clients test-console e2e check bench costs build deploy lock clean

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# glibc gives each thread an arena of memory, which keeps what the thread's largest upload took: 80 MB over time.
run: .venv/ready ## Serve everything on this machine: PORT=8321 DATA=.ctrlb
	@MALLOC_ARENA_MAX=2 exec .venv/bin/python -m ctrlb serve --port "$(PORT)" --data "$(DATA)"

# The tests read UTF-8 whatever the locale is. What they start has the locale as it is.
test test-slow test-python test-agent test-opensearch test-emulator test-clients test-console e2e: export PYTHONUTF8 = 1

test: .venv-dev/ready ## Run the unit, contract and acceptance tests
	.venv-dev/bin/python -m pytest -m "not slow and not opensearch and not emulator and not clients and not browser"

test-slow: .venv-dev/ready ## Run the tests that take minutes: fuzzing, crashes, races
	.venv-dev/bin/python -m pytest -m "slow and not opensearch and not emulator and not clients and not browser"

test-python: .venv-dev/ready ## Run the tests of a running server on another Python's: PYTHON=python3.13
	"$(PYTHON)" -m venv --clear .venv-other
	.venv-other/bin/python -m pip install --quiet --require-hashes --no-deps -r requirements/run.txt
	CTRLB_TEST_PYTHON=.venv-other/bin/python .venv-dev/bin/python -m pytest -m "not slow and not opensearch and not emulator" \
		tests/acceptance tests/mcp tests/laptop_mode

test-agent: .venv-dev/ready ## Run the tests of what runs on users' machines on another Python, 3.9 or newer: PYTHON=python3.9
	CTRLB_AGENT_PYTHON="$$("$(PYTHON)" -c 'import sys; print(sys.executable)')" .venv-dev/bin/python -m pytest -m "not slow" tests/agent

test-opensearch: .venv-dev/ready ## Run the tests on a real OpenSearch node: needs Java and Maven
	.venv-dev/bin/python -m pytest -m opensearch

test-emulator: .venv-dev/ready .venv-emulator/ready ## Run the tests on an emulator of AWS, which they start
	.venv-dev/bin/python -m pytest -m emulator

test-clients: .venv-dev/ready $(CLIENTS)/ready ## Run the tests with the real Claude Code and Codex, on scripted models: needs npm
	.venv-dev/bin/python -m pytest -m clients tests/real_clients

test-console: .venv-dev/browser ## Run the tests of the console in a real browser: needs Chromium
	.venv-dev/bin/python -m pytest -m browser tests/console

e2e: .venv-dev/ready .venv-emulator/ready .venv-sam/ready ## Deploy the template to an emulator and run every deployment's tests on it
	.venv-dev/bin/python -m tests.e2e

check: .venv-dev/ready ## Lint and type-check the code and the template
	.venv-dev/bin/ruff check
	.venv-dev/bin/ruff format --check
	.venv-dev/bin/mypy
	.venv-dev/bin/cfn-lint template.yaml

bench: .venv-dev/ready ## Measure beside the floor; writes docs/performance.md
	.venv-dev/bin/python -m bench

costs: .venv-dev/ready ## Count what each operation costs in AWS; writes docs/costs.md
	PYTHONPATH=shared .venv-dev/bin/python -m tests.aws.costs

# Without a container. Only the services of botocore that are used are kept, and every module is compiled.
build: .venv-sam/ready ## Build what `make deploy` deploys: RUNTIME=python3.13 ARCHITECTURE=arm64
	@command -v "$(RUNTIME)" >/dev/null || { echo "There is no $(RUNTIME) here: install it, or name another the functions are to run on, as in RUNTIME=python3.12" >&2; exit 1; }
	SAM_CLI_TELEMETRY=0 .venv-sam/bin/sam build --parameter-overrides Runtime=$(RUNTIME) Architecture=$(ARCHITECTURE)
	$(RUNTIME) infra/finish_build.py .aws-sam/build $(PARAMETERS)

deploy: build ## Deploy to AWS, with the credentials and region of the environment: STACK=ctrlb PARAMETERS="Stage=prod …"
	SAM_CLI_TELEMETRY=0 .venv-sam/bin/sam deploy --stack-name "$(STACK)" --resolve-s3 --capabilities CAPABILITY_IAM \
		--no-fail-on-empty-changeset --parameter-overrides Runtime=$(RUNTIME) Architecture=$(ARCHITECTURE) $(PARAMETERS)

# One resolution for every Python from 3.11 on: the server's, then the layer's and the developers' held to it.
lock: .venv-dev/ready ## Renew the locked versions from pyproject.toml
	$(compile) pyproject.toml --upgrade --extra laptop --output-file requirements/run.txt
	$(compile) pyproject.toml --upgrade --constraints requirements/run.txt --output-file shared/requirements.txt
	$(compile) pyproject.toml --upgrade --constraints requirements/run.txt --extra laptop --group dev --output-file requirements/dev.txt
	$(compile) --group browser --upgrade --constraints requirements/dev.txt --output-file requirements/browser.txt
	$(compile) --group emulator --upgrade --output-file requirements/emulator.txt
	$(compile) --group sam --upgrade --output-file requirements/sam.txt

compile = .venv-dev/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --custom-compile-command "make lock"

clean: ## Remove the environments and caches, but no data
	rm -rf .venv .venv-dev .venv-emulator .venv-other .venv-sam .aws-sam .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache dist $(CLIENTS)
	find agent bench functions shared tests -name __pycache__ -type d -prune -exec rm -rf {} +

# An environment is whole once it has its `ready`, written last. It is made anew when its lock changes, or its Python does.
.venv/ready: requirements/run.txt .venv/bin/python
.venv-dev/ready: requirements/dev.txt .venv-dev/bin/python
.venv-emulator/ready: requirements/emulator.txt .venv-emulator/bin/python
.venv-sam/ready: requirements/sam.txt .venv-sam/bin/python

.venv/ready .venv-dev/ready .venv-emulator/ready .venv-sam/ready:
	@command -v "$(PYTHON)" >/dev/null || { echo "There is no $(PYTHON) here: install Python 3.11 or newer, or name one with PYTHON=…" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed, and $(PYTHON) is $$("$(PYTHON)" -V 2>&1): name another, as in PYTHON=python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) lacks the venv module: install it (Debian, Ubuntu: apt install python3-venv)" >&2; exit 1; }
	@echo "Setting up $(@D), once …"
	@"$(PYTHON)" -m venv --clear $(@D)
	@$(@D)/bin/python -m pip install --quiet --require-hashes --no-deps -r $<
	@cd $(@D)/lib/python3.*/site-packages && echo ../../../../shared > ctrlb.pth
	@touch $@

.venv/bin/python .venv-dev/bin/python .venv-emulator/bin/python .venv-sam/bin/python: ;

.venv-dev/browser: requirements/browser.txt .venv-dev/ready
	@.venv-dev/bin/python -m pip install --quiet --require-hashes --no-deps -r $<
	@touch $@

# Of the clients' own scripts only the one that puts Claude Code's program in its place is run.
$(CLIENTS)/ready: tests/real_clients/package-lock.json
	@command -v npm >/dev/null || { echo "There is no npm here: install Node.js 18 or newer, which brings it (Debian, Ubuntu: apt install nodejs npm)" >&2; exit 1; }
	@echo "Installing the clients, once …"
	@cd tests/real_clients && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@node $(CLIENTS)/@anthropic-ai/claude-code/install.cjs
	@touch $@
