# Thin: Meson and Ninja build, scripts/ do the rest. `make help` lists the targets.
PREFIX ?= /usr/local
DESTDIR ?=
QUICK ?=
FULL ?=
STORE ?= sqlite
SEEDS ?= 100000
FROM ?= 1
SECONDS ?= 60
TARGET ?=

.PHONY: all build demo check test sim sim-bugs pg-bugs torture chaos soak fuzz lint format bench install uninstall deb image clean deps help

all: build

build:            ## build the library and the program into build/
	scripts/build

demo:             ## build and run the order service: outage, kill -9, poison message
	scripts/demo

check:            ## fast: the text checks, unit tests, contracts on the embedded parts; under two minutes
	scripts/check

test:             ## lint, four builds (gcc with ASan, with TSan, without; clang), every test
	scripts/test

sim:              ## run the simulator: SEEDS=1000000, FROM=1
	scripts/sim --seeds '$(SEEDS)' --from '$(FROM)'

sim-bugs:         ## plant bugs in a copy of the source; the simulator finds each
	scripts/install-packages build test
	tests/proof/sim/run-bugs .

pg-bugs:          ## plant bugs in a copy of sql/postgres; the visibility test finds each
	scripts/pg-bugs

torture:          ## fail every allocation and every I/O call, one by one, in every scenario
	scripts/torture

fuzz:             ## fuzz the parsers with libFuzzer: SECONDS=60 for each, TARGET=url for one
	SECONDS_EACH='$(SECONDS)' scripts/fuzz $(TARGET)

lint:             ## format, size, layers, banned functions, symbols, clang-tidy
	scripts/lint

format:           ## rewrite the C sources with clang-format
	scripts/format

chaos:            ## everything dies at random, each store with each broker: MINUTES=10
	scripts/chaos $(MINUTES)

soak:             ## one daemon among faults of every kind: MINUTES=30
	scripts/soak $(MINUTES)

bench:            ## measure; QUICK=1 takes less than half a minute; STORE=postgres, FULL=1, BROKER=redis, BROKER=isolation, BROKER=sources
	QUICK='$(QUICK)' FULL='$(FULL)' STORE='$(STORE)' BROKER='$(BROKER)' bench/run

install:          ## install into $(DESTDIR)$(PREFIX)
	PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install

uninstall:        ## remove what make install installed, from the same $(DESTDIR)$(PREFIX)
	PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/uninstall

deb:              ## build the Debian packages into build/deb
	scripts/deb

image:            ## make an OCI image of them in build/image; no registry is involved
	scripts/image

deps:             ## install every Debian package that building, testing and linting need
	scripts/install-packages build test lint packages

clean:            ## remove everything that was built
	rm -rf build build-test build-install

help:             ## this list
	@grep -E '^[a-z-]+: +##' Makefile | sed 's/: *## */\t/' | expand -t 12
