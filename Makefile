# The lab's targets. `make` alone lists them.

run := results/socket_buffers

help: ## list the targets
	@sed -nE 's/^([a-z]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 10

setup: ## install what is missing (saying what and why) and build the lab's kernels; safe to repeat
	@setup/packages
	@setup/python
	@setup/kernels

demo: setup ## the socket-buffer study in virtual time: table, figures, report
	.venv/bin/wanlab run scenarios/socket_buffers.py --out $(run) --fresh
	.venv/bin/wanlab show $(run)
	.venv/bin/wanlab report $(run)

check: python ## formatting, lint and types
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy --strict lab

test: setup check ## check, then all tests
	@setup/packages tests
	.venv/bin/pytest

format: python ## put the code into its canonical form
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

lock: ## write constraints.txt anew, with the newest versions that pyproject.toml allows
	setup/lock

clean: ## remove .venv and caches; kernels and results stay
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info

python:
	@setup/python

.PHONY: help setup demo check test format lock clean python
