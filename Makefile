# Thin verbs over the `weft` command. `make` alone lists them.

# The Python to set up with, and what to add to the command: make sim ARGS='--rows 4 --cols 4'.
# The numbers to compute with, int8 where nothing is said: make sim DTYPE=bf16
PYTHON ?= python3
ARGS   ?=
DTYPE  ?=
# The board to build for; `weft build --list` says which there are.
BOARD  ?=
# The bus of an IP core: axi, wishbone, stream or dma.
BUS    ?= axi

DESIGN := $(if $(DTYPE),--dtype $(DTYPE)) $(ARGS)

SHELL := /bin/sh
SETUP := $(PYTHON) tools/bootstrap.py
# Whole files go to a worker, the longest first.
PYTEST := python -m pytest -n auto --maxprocesses 8 --dist loadfile --no-loadscope-reorder
# The set-up's programs before the system's.
RUN   := PATH="$(CURDIR)/.venv/bin:$$PATH"

.DEFAULT_GOAL := help
.PHONY: help sim bench bitstream program gatesim test test-all lint verilog kit interop proofs wrappers waves setup train figures speed wire cost mutants mutation sweep lock clean distclean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

sim:  ## check the default design on two simulators, then run a network on it
	@$(SETUP) sim
	@$(RUN) weft sim $(DESIGN)

bench:  ## place and route whole accelerators, and write docs/performance.md (an hour at first)
	@$(SETUP) sim
	@$(RUN) weft bench $(ARGS)

bitstream:  ## make the bitstream of a board: make bitstream BOARD=icebreaker
	@$(SETUP) sim
	@$(RUN) weft build $(BOARD) $(ARGS)

program:  ## load that onto the board: make program BOARD=icebreaker
	@$(SETUP) sim
	@$(RUN) weft program $(BOARD) $(ARGS)

gatesim:  ## simulate what is in it, gate by gate: make gatesim BOARD=icebreaker
	@$(SETUP) sim
	@$(RUN) weft gatesim $(BOARD) $(ARGS)

test:  ## run the tests that a change could break, on all cores (some 12 minutes on two)
	@$(SETUP) test
	@$(RUN) $(PYTEST) -m 'not slow' $(ARGS)

test-all:  ## run all tests, on more designs and sizes (some 35 minutes on two cores)
	@$(SETUP) test
	@$(RUN) $(PYTEST) $(ARGS)

lint:  ## check the style of the sources
	@$(SETUP) test
	@$(RUN) ruff check $(ARGS) .

verilog:  ## write the core as Verilog
	@$(SETUP) sim
	@$(RUN) weft generate $(DESIGN)

kit:  ## write an IP core with driver and documents: make kit BUS=wishbone
	@$(SETUP) kit
	@$(RUN) weft generate --bus $(BUS) $(DESIGN)

interop:  ## run kits in GHDL, FuseSoC, LiteX and on a CPU; compare with LiteRT (minutes)
	@$(SETUP) kit
	@$(RUN) python tools/interop.py $(ARGS)

proofs:  ## prove the rules of buses, break them one by one, and write docs/proofs.md (minutes)
	@$(SETUP) test
	@$(RUN) python tools/proofs.py

wrappers:  ## place and route the bus wrappers of IP cores, and measure what they take of the rate (minutes)
	@$(SETUP) test
	@$(RUN) python tools/wrappers.py

waves:  ## simulate and leave a trace to open
	@$(SETUP) sim
	@$(RUN) weft sim --waves $(DESIGN)

setup:  ## make .venv with all that `make sim` needs, and say what is there
	@$(SETUP) sim
	@$(RUN) weft doctor

train:  ## train the demonstration network again
	@$(SETUP) train
	@$(RUN) python tools/train_digits.py $(ARGS)

figures:  ## write docs/figures.md again
	@$(SETUP) sim
	@$(RUN) python tools/figures.py

speed:  ## measure the simulated accelerator, and write docs/speed.md
	@$(SETUP) sim
	@$(RUN) python tools/speed.py

wire:  ## multiply over simulated serial ports, and write docs/wire.md (minutes)
	@$(SETUP) sim
	@$(RUN) python tools/wire.py

cost:  ## place and route parts, and write docs/cost.md again (minutes)
	@$(SETUP) sim
	@$(RUN) python tools/cost.py $(ARGS)

mutation:  ## change one line of the sources at a time, and write which changes no test sees (hours)
	@$(SETUP) test
	@$(RUN) python -m tools.mutation $(ARGS)

mutants:  ## break the BF16 leaf in every stage, and write docs/mutants.md (minutes)
	@$(SETUP) sim
	@$(RUN) python tools/mutants.py

sweep:  ## lint 300 random Configs, and multiply with 60 of them (half an hour)
	@$(SETUP) sim
	@$(RUN) python tools/sweep.py $(ARGS)

lock:  ## resolve the locked versions again, from pyproject.toml
	@$(PYTHON) tools/lock.py

clean:  ## delete what was generated; keep .venv
	rm -rf build out .pytest_cache .ruff_cache .hypothesis
	find . -name .venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean  ## delete .venv too
	rm -rf .venv .venv.lock src/*.egg-info
