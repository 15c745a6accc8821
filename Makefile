# SPDX-License-Identifier: Apache-2.0
#
#   make demo      build everything, run a C++ tour, then a C++ library used from Python
#   make test      the inner loop, from a fresh clone: suites, packaging, an old client, the quick model
#   make test-all  the long rest: every interpreter and release, sanitizers, fuzzing, all of the model, lint
#   make soak      random programs against the promises: make soak DURATION=600 [SEED=1] [PYTHON=PATH]
#   make bench     side by side with apache-tvm-ffi and other bindings (writes bench/results/)
#   make docs      the documentation site, in build/site
#   make wheels    wheels for every interpreter and architecture, and the source distribution, in dist/
#   make lint      formatting and static checks
#   make build     libraries and tests only, in build/release
#   make clean     remove what the other targets created, except downloads (.cache) and .venv
.PHONY: demo test test-all soak bench docs wheels lint build clean

demo:
	@scripts/demo.sh

test:
	@scripts/test.sh quick

test-all:
	@scripts/test.sh all

soak:
	@TETHER_PYTHON=$(PYTHON) scripts/soak.sh $(or $(DURATION),600) $(if $(SEED),--seed $(SEED))

bench:
	@scripts/bench.sh

docs:
	@scripts/docs.sh

wheels:
	@scripts/setup.sh demo
	@scripts/wheels.sh

lint:
	@scripts/lint.sh

build:
	@scripts/build.sh release

clean:
	@rm -rf build
