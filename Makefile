# Short targets for the `weft` command and the tools. `make` alone lists them.

# The Python that creates .venv.
PYTHON ?= python3
# Extra options for the command: make sim ARGS='--rows 4 --cols 4'
ARGS   ?=
# The data type of the design, int8 by default: make sim DTYPE=bf16
DTYPE  ?=
# The board to build for; `weft boards` lists the boards.
BOARD  ?=
# The bus of an IP core: axi, wishbone, apb, stream or dma.
BUS    ?= axi

DESIGN := $(if $(DTYPE),--dtype $(DTYPE)) $(ARGS)

SHELL := /bin/sh
SETUP := $(PYTHON) tools/bootstrap.py
# Each worker runs whole test files, the longest first.
PYTEST := python -m pytest -n auto --maxprocesses 8 --dist loadfile --no-loadscope-reorder
# Programs in .venv come before the programs of the system.
RUN   := PATH="$(CURDIR)/.venv/bin:$$PATH"

.DEFAULT_GOAL := help
.PHONY: docs registers help sim demo story bench bitstream explore regress program gatesim test test-all test-long lint verilog kit interop proofs wrappers waves setup train cycles networks program-memory streams sim-speed link-bench language-link usb-bench area sdram estimates presets mutation results compare boards pictures sweep lock clean distclean chips jax-overhead torch-overhead language-texts

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

sim:  ## check the default design on two simulators, then run a network on it
	@$(SETUP) sim
	@$(RUN) weft sim $(DESIGN)

demo:  ## networks whole on a simulated chip: digits, spoken words, and the timeline of their layers
	@$(SETUP) sim
	@$(RUN) weft demo

story:  ## a language model on a simulated chip tells a story, word by word
	@$(SETUP) sim
	@$(RUN) weft story $(ARGS)

bench:  ## place and route whole accelerators, write their record (an hour the first time)
	@$(SETUP) test
	@$(RUN) weft bench $(ARGS)
	@$(RUN) python -m tools.results bench

boards:  ## make the record of the bitstreams that `weft build` wrote into out
	@$(SETUP) test
	@$(RUN) python -m tools.board_builds

results:  ## write docs/results.md and its pages from the records in results
	@$(SETUP) test
	@$(RUN) python -m tools.results

compare:  ## compare the designs of hardware records with today's: make compare ARGS=area (minutes)
	@$(SETUP) test
	@$(RUN) python -m tools.compare $(ARGS)

pictures:  ## draw the pictures of the documents again
	@$(SETUP) test
	@$(RUN) python -m tools.pictures

bitstream:  ## build the bitstream of a board: make bitstream BOARD=icebreaker
	@$(SETUP) sim
	@$(RUN) weft build $(BOARD) $(ARGS)

program:  ## load the bitstream onto the board: make program BOARD=icebreaker
	@$(SETUP) sim
	@$(RUN) weft program $(BOARD) $(ARGS)

explore:  ## search for the best accelerator: make explore ARGS='--board icebreaker --workload 64x64x64'
	@$(SETUP) test
	@$(RUN) weft explore $(ARGS)

gatesim:  ## simulate the board's netlist, gate by gate: make gatesim BOARD=icebreaker
	@$(SETUP) sim
	@$(RUN) weft gatesim $(BOARD) $(ARGS)

test:  ## run the quick tests, on all cores (10 minutes on two cores)
	@$(SETUP) test
	@$(RUN) $(PYTEST) -m 'not slow and not long' $(ARGS)

test-all:  ## run all tests except the long ones: more designs and sizes (21 minutes on two cores)
	@$(SETUP) test
	@$(RUN) $(PYTEST) -m 'not long' $(ARGS)

test-long:  ## run the long tests, on the most designs and lists; without ARGS, write their record
	@$(SETUP) test
	@$(RUN) $(PYTEST) -m long --junitxml=build/long-tests.xml $(or $(ARGS),--record-durations)
	@$(if $(ARGS),,$(RUN) python -m tools.long_tests)

docs:  ## build the documents as a site, in build/docs; broken links are errors
	@$(SETUP) test
	@$(RUN) python -m sphinx -W --keep-going -q -b html docs build/docs
	@echo "Open build/docs/index.html"

registers:  ## write docs/registers.md from the description of the registers
	@$(SETUP) test
	@$(RUN) python -m tools.registers

lint:  ## check the style of the sources, and the types of the public API
	@$(SETUP) test
	@$(RUN) ruff check $(ARGS) .
	@$(RUN) mypy

verilog:  ## write the core as Verilog
	@$(SETUP) sim
	@$(RUN) weft generate $(DESIGN)

kit:  ## write an IP core with its driver and documents: make kit BUS=wishbone
	@$(SETUP) kit
	@$(RUN) weft generate --bus $(BUS) $(DESIGN)

interop:  ## run kits in GHDL, FuseSoC and LiteX and on a CPU; compare with LiteRT (minutes)
	@$(SETUP) kit
	@$(RUN) python -m tools.interop $(ARGS)

proofs:  ## prove the bus rules, check that a broken rule is found, write the record (minutes)
	@$(SETUP) test
	@$(RUN) python -m tools.proofs

wrappers:  ## place and route the bus wrappers, measure the throughput they lose (minutes)
	@$(SETUP) test
	@$(RUN) python -m tools.wrappers $(ARGS)

waves:  ## simulate two small products and write a waveform (VCD)
	@$(SETUP) sim
	@$(RUN) weft sim --waves $(DESIGN)

setup:  ## create .venv with everything that `make sim` needs, and check the tools
	@$(SETUP) sim
	@$(RUN) weft doctor

train:  ## train the demonstration networks again
	@$(SETUP) train
	@$(RUN) python -m tools.train_digits
	@$(RUN) python -m tools.train_digits_cnn
	@$(SETUP) test
	@$(RUN) python -m tools.train_words

cycles:  ## write the record of the cycles of common designs
	@$(SETUP) sim
	@$(RUN) python -m tools.cycles

networks:  ## write the record of the networks in the folder WEFT_NETWORKS, and the table of README
	@$(SETUP) test
	@$(RUN) python -m tools.networks

program-memory:  ## measure networks behind AXI4, write the record (minutes)
	@$(SETUP) test
	@$(RUN) python -m tools.program_memory

streams:  ## predict networks whose weights lie in an SDRAM, write the record (minutes)
	@$(SETUP) test
	@$(RUN) python -m tools.streams

sim-speed:  ## measure the speed of the simulation, write the record
	@$(SETUP) sim
	@$(RUN) python -m tools.sim_speed

jax-overhead:  ## measure a step of training in JAX on a golden core, write the record
	@$(SETUP) test
	@$(RUN) python -m tools.jax_overhead

torch-overhead:  ## the same in PyTorch; PYTHON=... is one that has PyTorch (docs/testing.md)
	@$(PYTHON) -m tools.torch_overhead

link-bench:  ## products and networks over simulated serial ports, write the record (an hour)
	@$(SETUP) sim
	@$(RUN) python -m tools.link_bench

language-texts:  ## compare texts of a simulated language core with golden, write the record (minutes)
	@$(SETUP) test
	@$(RUN) python -m tools.language_texts

language-link:  ## a story over a simulated serial port, write the record (15 minutes)
	@$(SETUP) sim
	@$(RUN) python -m tools.language_link

chips:  ## several simulated cores, and 1 to 64 chips behind links, write the record (minutes)
	@$(SETUP) sim
	@$(RUN) python -m tools.chips

usb-bench:  ## networks over simulated USB pins, write the record (an hour)
	@$(SETUP) test
	@$(RUN) python -m tools.usb_bench

estimates:  ## write the record of the estimates: errors, rates, more workers (minutes)
	@$(SETUP) test
	@$(RUN) python -m tools.estimates

presets:  ## compare the boards' cores with searches, write the record (minutes)
	@$(SETUP) test
	@$(RUN) python -m tools.presets

area:  ## place and route single components, write the record (minutes)
	@$(SETUP) sim
	@$(RUN) python -m tools.area $(ARGS)

sdram:  ## place and route SDRAM controllers, measure their rates, write the record (minutes)
	@$(SETUP) test
	@$(RUN) python -m tools.sdram

mutation:  ## run the tests on one-line mutants of the sources, list the survivors
	@$(SETUP) test
	@$(RUN) python -m tools.mutation $(ARGS)

regress:  ## check random Configs on two simulators: make regress ARGS='--configs 20 --seeds 2'
	@$(SETUP) test
	@$(RUN) weft regress $(ARGS)

sweep:  ## lint 300 random Configs, and multiply with 60 of them, others each day (half an hour)
	@$(SETUP) test
	@status=0; for matrix in 'lint --configs 300' 'products --configs 60'; do \
		$(RUN) weft regress --draw $$(date +%Y%m%d) --checks $$matrix $(ARGS) || status=$$?; \
		[ $$status -ne 130 ] || break; \
	done; exit $$status

lock:  ## resolve the locked versions again, from pyproject.toml
	@$(PYTHON) tools/lock.py

clean:  ## delete generated files; keep .venv
	rm -rf build out .pytest_cache .ruff_cache .hypothesis
	find . -name .venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean  ## delete .venv too
	rm -rf .venv .venv.lock src/*.egg-info
