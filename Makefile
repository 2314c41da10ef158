# Every target sets up what it needs: Python 3.11 or newer and make are enough.
#   make demo     see it work
#   make test     all that must pass before a change is merged
#   make check    the part of `test` that reads the code: lint, format, types
#   make bench    speed and solved counts beside other solvers
#   make soak     many models under random loads for SOAK seconds; SOAK_FOLDERS adds folders of models
#   make docs     the documentation, into docs/_build
#   make pictures the pictures in it, rendered again; that of learning where torch is in the environment
#   make reproduce  the papers' experiments, into reproduced/report.html (half an hour or more)
#   make clean    remove the environment and all caches
# Another interpreter: make test PYTHON=python3.12

PYTHON ?= python3
VENV   := .venv
RUN    := $(VENV)/bin/python
PIP    := $(RUN) -m pip install --quiet --disable-pip-version-check
# Four workers at most: each one holds its own copy of the compiled kernels.
# Groups: one browser serves all its tests. A worker that crashes ends the run: with groups, xdist
# would wait for its tests for ever.
PYTEST_ARGS ?= -n auto --maxprocesses=4 --dist loadgroup --max-worker-restart=0

SOAK ?= 3600
SOAK_FOLDERS ?=

.PHONY: demo test check bench soak docs pictures reproduce clean

demo: $(VENV)/demo.stamp
	$(RUN) examples/pinch.py

test: check
	$(RUN) -m pytest $(PYTEST_ARGS)

check: $(VENV)/dev.stamp
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

bench: $(VENV)/bench.stamp
	$(RUN) benchmarks/simulator_speed.py
	$(RUN) benchmarks/simulator_speed.py --growth
	$(RUN) benchmarks/frontier.py
	$(RUN) benchmarks/clutter.py
	$(RUN) benchmarks/batch.py
	$(RUN) benchmarks/event_agreement.py
	$(RUN) benchmarks/articulated_scaling.py
	$(RUN) benchmarks/delassus_routes.py
	$(RUN) benchmarks/lcp_peers.py
	$(RUN) benchmarks/contact_solvers.py
	$(RUN) benchmarks/contact_normals.py
	$(RUN) benchmarks/siconos_friction.py
	$(RUN) benchmarks/large_problems.py
	$(RUN) benchmarks/baraff_timing.py

soak: $(VENV)/dev.stamp
	$(RUN) tests/support/soak.py --seconds $(SOAK) --failures soak-failures $(SOAK_FOLDERS)

docs: $(VENV)/docs.stamp
	$(RUN) -m sphinx -W --keep-going -q docs docs/_build
	@echo "built docs/_build/index.html"

pictures: $(VENV)/demo.stamp
	$(RUN) examples/pinch.py docs/pinch.png
	$(RUN) examples/gallery.py docs/scenes.png
	$(RUN) docs/pictures/view.py
	$(RUN) docs/pictures/clips.py
	$(RUN) docs/pictures/frontier.py
	$(RUN) examples/identify_push.py docs/identify_push.png
	$(RUN) examples/slide_to_goal.py docs/slide_to_goal.png
	rm -rf build/pinch-sweep
	$(RUN) -m stiction sweep pinch --set friction=0.01:0.09:9 --set force=5,10,20 --seeds 10 \
	  --time 1 --out build/pinch-sweep
	$(RUN) docs/pictures/sweep.py build/pinch-sweep
	@if $(RUN) -c 'import gymnasium, torch' 2>/dev/null; then \
	  $(RUN) examples/learn_pinch_lift.py docs/pictures/learn-pinch-lift.png 100; \
	else echo "docs/pictures/learn-pinch-lift.png stays as it is: torch is not in $(VENV)"; fi

reproduce: $(VENV)/bench.stamp
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(RUN) -m stiction reproduce all --out reproduced

clean:
	rm -rf $(VENV) build dist docs/_build .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/made.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "stiction needs Python 3.11 or newer; '$(PYTHON)' is missing or older." \
	       "Name another one: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV) || { rm -rf $(VENV); \
	  echo "'$(PYTHON) -m venv' failed; the system may ship it apart (python3-venv)."; exit 1; }
	@touch $@

$(VENV)/dev.stamp: pyproject.toml | $(VENV)/made.stamp
	@echo "installing stiction into $(VENV) (once)"
	@$(PIP) -e '.[dev]'
	@touch $@

$(VENV)/demo.stamp: pyproject.toml $(VENV)/dev.stamp
	@$(PIP) -e '.[demo]'
	@touch $@

$(VENV)/docs.stamp: pyproject.toml | $(VENV)/made.stamp
	@echo "installing what builds the documentation into $(VENV) (once)"
	@$(PIP) -e '.[docs]'
	@touch $@

$(VENV)/bench.stamp: pyproject.toml $(VENV)/dev.stamp
	@echo "installing the solvers to compare with into $(VENV) (once)"
	@$(PIP) -e '.[bench]'
	@touch $@
