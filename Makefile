# One word for each daily job; `make help` lists them. CMake does the work.
PRESET ?= $(if $(CI),ci,dev)
PREFIX ?= /usr/local
MODEL ?= smollm2
PROMPT ?=
JOBS ?= $(shell nproc 2>/dev/null || sysctl -n hw.ncpu)
BUILD := build/$(PRESET)

.DEFAULT_GOAL := help
.PHONY: help run program build test lint format bench install fuzz clean

help: ## Show this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

run: program ## Answer PROMPT="..." with MODEL (default: the embedded SmolLM2); no PROMPT: chat
	@build/sheave run $(MODEL) $(if $(PROMPT),"$$PROMPT")
export PROMPT

# The program alone: a newcomer shouldn't wait for the tests.
program: TARGETS = --target sheave_program
program build: $(BUILD)/build.ninja
	@cmake --build $(BUILD) --parallel $(JOBS) $(TARGETS)
	@ln -sfn $(PRESET)/bin/sheave build/sheave

build: ## Set up, build, and put the program at build/sheave

.PHONY: setup
setup:
	@scripts/setup --build

$(BUILD)/build.ninja: CMakePresets.json | setup
	@cmake --preset $(PRESET)

test: ## Set up, build, and run every test
	@scripts/setup --test
	@$(MAKE) --no-print-directory build
	@ctest --test-dir $(BUILD) --output-on-failure --no-tests=error --parallel $(JOBS)

lint: ## Check format, rooms, clang-tidy, cargo clippy
	@scripts/setup --lint
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	@scripts/lint $(BUILD)

format: ## Rewrite the sources as the formatters want them
	@scripts/setup --lint
	@scripts/format

bench: build ## Measure speed (see bench/README.md)
	@build/sheave bench $(MODEL)

fuzz: ## Build the fuzz targets (clang); run them with scripts/fuzz
	@scripts/setup --build
	@cmake --workflow --preset fuzz

install: build ## Install to PREFIX (default /usr/local)
	@cmake --install $(BUILD) --prefix "$(PREFIX)"

clean: ## Remove everything that was built (not .venv, not the models)
	@rm -rf build
