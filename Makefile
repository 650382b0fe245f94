# kiln. `make help` lists the targets and variables: a target's line stands behind its ##, a variable's above it. A target
# without a line is for a script alone.

CONFIGS := debug release sanitize thread coverage fuzz

## config: debug, release (the default), sanitize, thread, coverage or fuzz; each has its own build folder
config ?= release
ifeq ($(filter $(config),$(CONFIGS)),)
$(error config=$(config) is none of: $(CONFIGS))
endif

## CC: the C compiler; fuzz needs a clang
ifeq ($(config) $(origin CC),fuzz default)
CC := clang
endif
## CFLAGS, LDFLAGS: added to kiln's own
CFLAGS  ?=
LDFLAGS ?=
## PREFIX: where install puts things
PREFIX ?= /usr/local
## DESTDIR: put before every installed path, for packages
DESTDIR ?=
## LIBDIR: the libraries' folder
LIBDIR ?= $(PREFIX)/lib
## TESTS: only tests whose path has one of these words in it: make check TESTS="softmax runner"
TESTS ?=
## JOBS: how many tests run at once
JOBS ?= $(shell nproc)

# The products of a release stand in build/, those of every other configuration in build/<config>/.
OUT := $(if $(filter release,$(config)),build,build/$(config))
OBJ := $(OUT)/obj

HOST := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null)))

WARNINGS := -Wall -Wextra -Wconversion -Wshadow -Werror
# Each frame is written beside its object, for tests/unit/contracts_test.sh.
CFLAGS_release  := -O2 -g -fstack-usage
CFLAGS_debug    := -O0 -g3
CFLAGS_sanitize := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
CFLAGS_thread   := -O1 -g -fsanitize=thread
CFLAGS_coverage := -O0 -g --coverage
CFLAGS_fuzz     := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
KILN_CFLAGS := -std=c11 -D_GNU_SOURCE -I. -Iinclude -fPIC -fvisibility=hidden -ffp-contract=off -pthread \
	-ffile-prefix-map=$(CURDIR)/= $(WARNINGS) $(CFLAGS_$(config)) $(CFLAGS)
# The flag, if the compiler knows it.
cc_option = $(shell $(CC) -Werror $(1) -x c -c /dev/null -o /dev/null 2>/dev/null && echo $(1))
KILN_LDFLAGS := $(filter -fsanitize% --coverage,$(CFLAGS_$(config))) -pthread $(LDFLAGS)

MAKEFLAGS += --no-builtin-rules
comma := ,

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: FORCE

# A file with a text in it that is written anew when the text changes, so that what depends on it is made again.
# $(call TEXT_FILE,path,text)
define TEXT_FILE
$(1): $(if $(subst <$(strip $(2))>,,<$(strip $(file <$(1)))>),FORCE)
	@mkdir -p $$(@D)
	@printf '%s\n' '$(subst ','\'',$(strip $(2)))' >$$@
endef

# ---- Sources: every room's files, found by their place -----------------------------------------------------------

OPERATORS := $(shell sed -n 's/^KILN_OPERATOR.\([a-z0-9_]*\).*/\1/p' kernels/ops.def)
CPU_LEVELS := $(shell sed -n 's/^KILN_CPU."\([^"]*\)", $(HOST),.*/\1/p' loader/targets.def)
cpu_flags = $(shell sed -n 's/^KILN_CPU."$(1)", $(HOST), [0-9]*, "\([^"]*\)".*/\1/p' loader/targets.def)

LOADER_SOURCES := $(sort $(wildcard loader/*.c loader/blocks/*.c loader/image/*.c loader/cuda/*.c loader/rocm/*.c loader/cpu/*.c))
CLI_SOURCES    := $(sort $(wildcard loader/cli/*.c))
LOADER_OBJECTS := $(LOADER_SOURCES:%.c=$(OBJ)/%.o)
CLI_OBJECTS    := $(CLI_SOURCES:%.c=$(OBJ)/%.o)
OPERATOR_OBJECTS := $(OPERATORS:%=$(OBJ)/operators/%.o)
# What operators share, and the lists of all, which only tools link.
COMMON_SOURCES := $(sort $(wildcard kernels/common/*.c)) kernels/all_bundles.c kernels/all_operators.c
COMMON_OBJECTS := $(COMMON_SOURCES:%.c=$(OBJ)/%.o)
DESCRIPTIONS   := $(OPERATORS:%=$(OBJ)/kernels/describe/%.o)

# libkiln.so: what defines public functions is compiled once more, to be exported; the rest is the same.
SHARED_OBJECTS := $(LOADER_SOURCES:%.c=$(OBJ)/shared/%.o) $(COMMON_SOURCES:%.c=$(OBJ)/shared/%.o) $(DESCRIPTIONS) \
	$(foreach op,$(OPERATORS),$(OBJ)/shared/kernels/$(op)/$(op).o $(OBJ)/embedded/$(op)/bundle.o \
	$(CPU_LEVELS:%=$(OBJ)/kernels/$(op)/%.o))

FLAGS   := $(OBJ)/flags
OBJECTS := $(OBJ)/objects
$(eval $(call TEXT_FILE,$(FLAGS),$(shell $(CC) --version 2>/dev/null | head -n 1) $(CC) $(KILN_CFLAGS) $(KILN_LDFLAGS)))
$(eval $(call TEXT_FILE,$(OBJECTS),$(LOADER_OBJECTS) $(CLI_OBJECTS) $(OPERATOR_OBJECTS)))

# ---- Libraries ----------------------------------------------------------------------------------------------------

.PHONY: all
all: $(OUT)/libkiln.a $(OUT)/libkiln.so $(OUT)/kiln ## the library, static and shared, and the kiln program

$(OUT)/libkiln.a: $(LOADER_OBJECTS) $(OPERATOR_OBJECTS) $(COMMON_OBJECTS) $(DESCRIPTIONS) $(OBJECTS)
	@rm -f $@
	$(AR) rcs $@ $(filter %.o,$^)

# nodelete: the HSA runtime keeps kiln's event handler and cannot be told to forget it; dlclose must leave it mapped.
$(OUT)/libkiln.so.0: $(SHARED_OBJECTS) scripts/libkiln.map $(OBJECTS)
	$(CC) -shared -Wl,-soname,libkiln.so.0 -Wl,-z,nodelete -Wl,--version-script=scripts/libkiln.map -o $@ $(filter %.o,$^) \
		$(KILN_LDFLAGS)

$(OUT)/libkiln.so: $(OUT)/libkiln.so.0
	ln -sf libkiln.so.0 $@

$(OUT)/kiln: $(CLI_OBJECTS) $(OUT)/libkiln.a
	$(CC) -o $@ $^ $(KILN_LDFLAGS) -lm

# GCC for x86 then puts arguments where they belong without moving the stack pointer: one instruction of a launch.
$(OBJ)/loader/cuda/cuda_launch.o $(OBJ)/shared/loader/cuda/cuda_launch.o: KILN_CFLAGS += \
	$(call cc_option,-maccumulate-outgoing-args)
# A square root is then an instruction alone, and nothing of libm's.
$(foreach op,mha mha_paged,$(OBJ)/kernels/$(op)/$(op).o $(OBJ)/shared/kernels/$(op)/$(op).o): KILN_CFLAGS += -fno-math-errno
$(OBJ)/shared/%.o: KILN_CFLAGS += -DKILN_BUILD_SHARED
$(OBJ)/shared/%.o: %.c $(FLAGS)
	@mkdir -p $(@D)
	$(CC) $(KILN_CFLAGS) -MMD -MP -c -o $@ $<

$(OBJ)/%.o: %.c $(FLAGS)
	@mkdir -p $(@D)
	$(CC) $(KILN_CFLAGS) -MMD -MP -c -o $@ $<

# ---- Operators: host side, each CPU level and the embedded images, joined into one object ------------------------

# kernels/<op>/<op>_cpu.c, once for each level of this host: $(OBJ)/kernels/<op>/<level>.o
# Nothing reads a kernel's floating-point exception flags; if it could, choices like a > b ? a : b would not vectorise.
level_flags = $(if $(filter debug coverage thread,$(config)),-O1,-O3) -fno-trapping-math $(call cpu_flags,$(1)) -DKILN_CPU_LEVEL=$(subst -,_,$(1))
define CPU_LEVEL_RULE
$(OBJ)/kernels/%/$(1).o: KILN_CFLAGS += $(call level_flags,$(1))
$(OBJ)/kernels/%/$(1).o: $(FLAGS) loader/targets.def
	@mkdir -p $$(@D)
	$$(CC) $$(KILN_CFLAGS) -MMD -MP -c -o $$@ kernels/$$*/$$*_cpu.c
endef
$(foreach level,$(CPU_LEVELS),$(eval $(call CPU_LEVEL_RULE,$(level))))

# kernels/describe.c, once for each operator, with the rows of its .def.
$(OBJ)/kernels/describe/%.o: kernels/describe.c $(FLAGS)
	@mkdir -p $(@D)
	$(CC) $(KILN_CFLAGS) -DKILN_DESCRIBE=$* -MMD -MP -c -o $@ $<

# The bundle table and the images as C, from the manifest: $(OBJ)/embedded/<op>/*.c
define OPERATOR_RULE
$(OBJ)/embedded/$(1)/bundle.c: embedded/$(1)/manifest $(wildcard embedded/$(1)/*) loader/targets.def loader/operators.h kernels/$(1)/$(1).def scripts/embed.sh scripts/embed.awk scripts/targets.sh
	@mkdir -p $$(@D)
	scripts/embed.sh $(1) $(HOST) $$(@D)
$(OBJ)/operators/$(1).o: $(OBJ)/kernels/$(1)/$(1).o $(CPU_LEVELS:%=$(OBJ)/kernels/$(1)/%.o) $(OBJ)/embedded/$(1)/bundle.o
	@mkdir -p $$(@D)
	$(LD) -r -o $$@ $$^
endef
$(foreach op,$(OPERATORS),$(eval $(call OPERATOR_RULE,$(op))))

$(OBJ)/embedded/%/bundle.o: $(OBJ)/embedded/%/bundle.c $(FLAGS)
	$(CC) $(KILN_CFLAGS) -MMD -MP -c -o $@ $<

# ---- Tests --------------------------------------------------------------------------------------------------------

# Every tests/<room>/<noun>_test.c is a program, linked with the other sources of its room (harnesses); every
# tests/<room>/<noun>_test.sh is a script. tests/run.c says what both must print. The rooms of the tests of the simulators
# share their harnesses.
SIM_ROOMS     := $(sort $(patsubst tests/%/,%,$(dir $(wildcard tests/sim/tests/*/*_test.*))))
ROOMS         := unit ops cli fuzz deploy $(SIM_ROOMS)
TEST_SOURCES  := $(sort $(wildcard $(ROOMS:%=tests/%/*_test.c)))
TEST_PROGRAMS := $(TEST_SOURCES:%.c=$(OUT)/%)
TEST_SCRIPTS  := $(sort $(wildcard $(ROOMS:%=tests/%/*_test.sh)))
# What takes longest begins first, so that none of it is left at the end with one processor.
LONG_TESTS := $(patsubst %,tests/%_test.sh,sim/tests/operators/operators_rocm sim/tests/operators/operators_cuda deploy/races deploy/make cli/story \
	sim/tests/operators/kernel_report unit/image_isa unit/contracts unit/images_check unit/runner)
room_objects   = $(patsubst %.c,$(OBJ)/%.o,$(filter-out %_test.c,$(sort $(wildcard $(patsubst %,tests/%/*.c,$(if $(filter sim/%,$(1)),$(SIM_ROOMS),$(1)))))))

define ROOM_RULE
$(OUT)/tests/$(1)/%_test: $(OBJ)/tests/$(1)/%_test.o $(call room_objects,$(1)) $(OUT)/libkiln.a
	@mkdir -p $$(@D)
	$$(CC) -o $$@ $$(filter %.o,$$^) $$(filter %.a,$$^) $$(KILN_LDFLAGS) -lcmocka -lm
endef
$(foreach room,$(ROOMS),$(eval $(call ROOM_RULE,$(room))))

# Refuses allocations one by one, so the library's must come to it.
$(OUT)/tests/unit/allocation_faults_test: KILN_LDFLAGS += \
	-Wl,--wrap=malloc,--wrap=calloc,--wrap=strdup,--wrap=posix_memalign,--wrap=free

# The interpreters' own tests reach them without a driver around.
SIM_ARITHMETIC := tests/sim/core/sim_float.c tests/sim/core/sim_space.c tests/sim/core/sim_sum.c
PTX_SOURCES    := $(sort $(wildcard tests/sim/ptx/*/*.c))
AMDGCN_SOURCES := $(sort $(wildcard tests/sim/amdgcn/*/*.c))
$(filter $(OUT)/tests/sim/%,$(TEST_PROGRAMS)): $(patsubst %.c,$(OBJ)/%.o,$(PTX_SOURCES) $(AMDGCN_SOURCES) $(SIM_ARITHMETIC))

# Counts what a step of the example's model asks for: its own calls and the library's must come to it.
$(OUT)/tests/sim/tests/operators/llama_steps_test: $(patsubst %,$(OBJ)/docs/examples/llama/%.o,decoder graph)
$(OUT)/tests/sim/tests/operators/llama_steps_test: KILN_LDFLAGS += \
	$(addprefix -Wl$(comma)--wrap=,malloc calloc strdup posix_memalign kiln_stream_sync)

# What the mutants of AMD images are made from.
INSTRUCTIONS := $(OUT)/tests/sim/mutants/instructions
$(INSTRUCTIONS): $(patsubst %.c,$(OBJ)/%.o,tests/sim/mutants/instructions.c $(AMDGCN_SOURCES) $(SIM_ARITHMETIC))
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(KILN_LDFLAGS) -lm

# What lets the processes of mutants take themselves for one.
ONE_PROCESS := $(OUT)/tests/sim/mutants/one_process.so
$(ONE_PROCESS): $(OBJ)/tests/sim/mutants/one_process.o
	@mkdir -p $(@D)
	$(CC) -shared -o $@ $^ $(KILN_LDFLAGS)

# docs/simulated-instructions.md, from the simulators' lists.
DOCUMENT := $(OUT)/tests/sim/document/instructions
$(DOCUMENT): $(patsubst %.c,$(OBJ)/%.o,tests/sim/document/instructions.c tests/sim/amdgcn/decode/amd_llvm.c)
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(KILN_LDFLAGS)

.PHONY: docs-instructions
docs-instructions: $(DOCUMENT) ## write docs/simulated-instructions.md; needs libllvm19
	$(DOCUMENT) >docs/simulated-instructions.md

# docs/kernel-report.md, from the images and the simulators' counters. The calls are made as the command line's.
REPORT := $(OUT)/tests/sim/document/kernels
$(REPORT): $(OBJ)/tests/sim/document/kernels.o $(filter-out %/main.o,$(CLI_OBJECTS)) $(OUT)/libkiln.a
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(KILN_LDFLAGS) -lm

.PHONY: kernel-report
kernel-report: $(REPORT) sim ## write docs/kernel-report.md: what each kernel takes and does on each target; needs libllvm19
	KILN_SIM_DIR=$(OUT)/sim $(REPORT) >docs/kernel-report.md

# One of the fuzzed parsers is the command line's.
$(OUT)/tests/fuzz/replay_test: $(OBJ)/loader/cli/npy.o

# The operators' tests have one thread of their own, and much to compute: only the library is watched for races.
ifeq ($(config),thread)
$(OBJ)/tests/ops/%.o: KILN_CFLAGS += -fno-sanitize=thread -O2
endif

# The command line's tests reach its parts, all but main.
$(filter $(OUT)/tests/cli/%,$(TEST_PROGRAMS)): $(filter-out %/main.o,$(CLI_OBJECTS))

$(OUT)/tests/run: $(OBJ)/tests/run.o
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(KILN_LDFLAGS)

.PHONY: test-programs
test-programs: $(TEST_PROGRAMS) $(OUT)/tests/run $(INSTRUCTIONS) $(ONE_PROCESS) $(DOCUMENT) $(REPORT) $(OUT)/bench/gpu_copy ## build what check runs, and run nothing

# A make of the parts that a goal needs after scripts/deps.sh has had its say: as parallel as asked for, or as can be.
SUBMAKE = $(MAKE) --no-print-directory config=$(config) $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

.PHONY: check
check: ## build everything and run every test; installs what is missing when run as root on Debian
	@scripts/deps.sh check
	@$(SUBMAKE) all sim examples test-programs
	@$(SUBMAKE) run-tests

.PHONY: run-tests
run-tests: $(OUT)/tests/run ## run the tests on what is built; builds nothing but their runner
	@KILN_BUILD=$(CURDIR)/$(OUT) KILN_CONFIG=$(config) CC='$(CC)' $(OUT)/tests/run -j $(JOBS) -d $(OUT)/tests/log \
		$(TESTS:%=-o %) $(LONG_TESTS) $(TEST_PROGRAMS) $(filter-out $(LONG_TESTS),$(TEST_SCRIPTS))

# Tests on the machine's own GPUs, which check does not run: tests/gpu/gpu.sh.
GPU_TESTS := $(patsubst %,tests/gpu/%_test.sh,operators story instructions sanitizer)

.PHONY: check-gpu run-gpu-tests
check-gpu: ## operators, story and single instructions on this machine's GPUs, by its own drivers: docs/real-gpu.md
	@scripts/deps.sh gpu
	@$(SUBMAKE) all examples test-programs
	@$(SUBMAKE) run-gpu-tests
run-gpu-tests: $(OUT)/tests/run ## check-gpu on what is built; builds nothing but the runner
	@KILN_BUILD=$(CURDIR)/$(OUT) $(OUT)/tests/run -t 3600 -d $(OUT)/gpu/log $(TESTS:%=-o %) $(GPU_TESTS)

.PHONY: gpu-package
gpu-package: ## check-gpu and bench-gpu as built, for a machine without compilers: build/kiln-gpu.tar.xz
	@scripts/deps.sh gpu
	@$(SUBMAKE) all examples test-programs
	@scripts/gpu_package.sh $(OUT) $(MODEL_DIR)

## MUTANTS: only the images whose file name this pattern matches: make check-mutants MUTANTS='softmax_f32.sm_90'
MUTANTS ?=
.PHONY: check-mutants
check-mutants: ## change each barrier, wait and comparison of the images, one at a time: a test must notice. Takes hours
	@scripts/deps.sh check
	@$(SUBMAKE) sim test-programs
	@KILN_BUILD=$(CURDIR)/$(OUT) JOBS=$(JOBS) scripts/mutants.sh run '$(MUTANTS)'

.PHONY: demo
demo: ## the main job on this machine: find its devices and run softmax on the best
	@scripts/deps.sh build
	@$(SUBMAKE) all examples
	@scripts/demo.sh $(OUT)

# The unit and operator tests on other processors: those of the GPU backends need drivers and headers of this machine.
# scripts/check_emulated.sh makes the first.
.PHONY: emulated-tests check-aarch64 check-v2
emulated-tests: $(filter-out $(OUT)/tests/unit/cuda_% $(OUT)/tests/unit/rocm_%,$(filter $(OUT)/tests/unit/% $(OUT)/tests/ops/%,$(TEST_PROGRAMS)))
check-aarch64: ## cross-build for aarch64 and run the unit and operator tests under qemu
	@scripts/check_emulated.sh aarch64
check-v2: ## the same tests on an emulated processor that has x86-64-v2 and no more
	@scripts/check_emulated.sh x86-64-v2

.PHONY: coverage
coverage: ## line coverage of loader/ by the tests
	@scripts/deps.sh coverage
	@scripts/coverage.sh

# ---- Fuzzing: build/fuzz/fuzz/<target> is tests/fuzz/<target>_fuzz.c under libFuzzer -------------------------------

FUZZERS := $(patsubst tests/fuzz/%_fuzz.c,$(OUT)/fuzz/%,$(sort $(wildcard tests/fuzz/*_fuzz.c)))
# The parsers, and what they use of the loader.
PARSER_OBJECTS := $(filter $(OBJ)/loader/image/%,$(LOADER_OBJECTS)) $(OBJ)/loader/cli/npy.o \
	$(patsubst %,$(OBJ)/loader/%.o,bundle status target)

$(OBJ)/fuzz/%.o: tests/fuzz/entry/libfuzzer.c $(FLAGS)
	@mkdir -p $(@D)
	$(CC) $(KILN_CFLAGS) -DFUZZ_TARGET=fuzz_$* -MMD -MP -c -o $@ $<

$(OUT)/fuzz/%: $(OBJ)/fuzz/%.o $(OBJ)/tests/fuzz/%_fuzz.o $(PARSER_OBJECTS)
	@mkdir -p $(@D)
	$(CC) -fsanitize=fuzzer -o $@ $^ $(KILN_LDFLAGS)

# For scripts/fuzz.sh.
.PHONY: fuzzers
fuzzers: $(FUZZERS)

## FUZZ_SECONDS: how long fuzz runs each parser
FUZZ_SECONDS ?= 60

.PHONY: fuzz fuzz-merge fuzz-coverage
fuzz: ## run libFuzzer on each parser; skips, and says so, where clang has none
	@scripts/fuzz.sh run $(FUZZ_SECONDS)
fuzz-merge: ## take what fuzzing found that reaches new code into tests/fuzz/corpus
	@scripts/fuzz.sh merge
fuzz-coverage: ## the lines of each parser that its committed inputs reach; fails below 95 %
	@$(MAKE) --no-print-directory config=coverage build/coverage/tests/fuzz/replay_test
	@scripts/fuzz_coverage.sh build/coverage

# ---- Simulated drivers: build/sim/libcuda.so.1 and build/sim/libhsa-runtime64.so.1 ---------------------------------

.PHONY: sim
sim: ## both simulated drivers, under their own names, in build/sim

sim_objects = $(patsubst %.c,$(OBJ)/%.o,$(sort $(wildcard tests/sim/core/*.c tests/sim/$(1)/*.c) $(SIM_EXECUTES_$(1)) \
	loader/image/sha256.c))
# What each driver executes launches with.
SIM_EXECUTES_cuda := $(PTX_SOURCES)
SIM_EXECUTES_rocm := $(AMDGCN_SOURCES)

# Interpreters are always optimised: their tests would take minutes otherwise. Clang would complain of each loop that
# calls a function and so stays scalar, though it may be vectorised.
$(OBJ)/tests/sim/ptx/%.o $(OBJ)/tests/sim/amdgcn/%.o: KILN_CFLAGS += -O2 -fno-math-errno -Wno-pass-failed

# The PTX of every committed cubin.
$(OBJ)/tests/sim/cuda/parents.S: $(wildcard embedded/*/manifest embedded/*/*.ptx) scripts/sim_parents.sh
	@mkdir -p $(@D)
	scripts/sim_parents.sh >$@
$(OBJ)/tests/sim/cuda/parents.o: $(OBJ)/tests/sim/cuda/parents.S
	$(CC) -c -o $@ $<
$(OUT)/sim/libcuda.so.1 $(OUT)/sim/cuda-10/libcuda.so.1 $(OUT)/sim/cuda-9/libcuda.so.1: $(OBJ)/tests/sim/cuda/parents.o

# $(call SIM_RULE,folder of tests/sim,library,version script)
define SIM_RULE
sim: $(OUT)/sim/$(2)
$(OUT)/sim/$(2): $(call sim_objects,$(1)) tests/sim/$(1)/$(3) $(FLAGS)
	@mkdir -p $$(@D)
	$$(CC) -shared -Wl,-soname,$(notdir $(2)) -Wl,--version-script=tests/sim/$(1)/$(3) -o $$@ $$(filter %.o,$$^) $$(KILN_LDFLAGS) -lm
endef
$(eval $(call SIM_RULE,cuda,libcuda.so.1,libcuda.map))
# The same without the functions that CUDA 10.1 and 9 do not have.
$(eval $(call SIM_RULE,cuda,cuda-10/libcuda.so.1,libcuda-10.map))
$(eval $(call SIM_RULE,cuda,cuda-9/libcuda.so.1,libcuda-9.map))
$(eval $(call SIM_RULE,rocm,libhsa-runtime64.so.1,libhsa.map))
# The same without the functions that ROCm 5 does not have.
$(eval $(call SIM_RULE,rocm,rocm-5/libhsa-runtime64.so.1,libhsa-5.map))

## MODEL_DIR: where stories260K.bin and tok512.bin are, for make story and its test
MODEL_DIR ?= ../shared/models
export MODEL_DIR

.PHONY: story
story: ## a real model tells its story on the CPU and on simulated GPUs
	@$(SUBMAKE) all sim examples
	@scripts/story.sh $(OUT) $(MODEL_DIR)

# ---- Examples: docs/examples/<name>.c is build/examples/<name> ------------------------------------------------------

EXAMPLES := $(patsubst docs/%.c,$(OUT)/%,$(sort $(wildcard docs/examples/*.c)))

# A kernel of one's own: its committed images, packed by the program just built.
OWN := docs/examples/bring-your-own-kernel
EXAMPLES += $(OUT)/examples/bring-your-own-kernel

$(OBJ)/$(OWN)/saxpy_bundle.c: $(OUT)/kiln $(addprefix $(OWN)/saxpy.,sm_75.ptx sm_90.cubin gfx942.hsaco)
	@mkdir -p $(@D)
	$(OUT)/kiln pack --name saxpy --out $@ sm_75=$(OWN)/saxpy.sm_75.ptx sm_90=$(OWN)/saxpy.sm_90.cubin \
		gfx942=$(OWN)/saxpy.gfx942.hsaco x86-64-v2:saxpy=saxpy_cpu aarch64:saxpy=saxpy_cpu
$(OBJ)/$(OWN)/saxpy_bundle.o: $(OBJ)/$(OWN)/saxpy_bundle.c $(FLAGS)
	$(CC) $(KILN_CFLAGS) -MMD -MP -c -o $@ $<
$(OUT)/examples/bring-your-own-kernel: $(addprefix $(OBJ)/$(OWN)/,main.o saxpy_cpu.o saxpy_bundle.o) $(OUT)/libkiln.a
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(KILN_LDFLAGS) -lm

LLAMA_SOURCES := $(sort $(wildcard docs/examples/llama/*.c))
EXAMPLES += $(OUT)/examples/llama

$(OUT)/examples/llama: $(LLAMA_SOURCES:%.c=$(OBJ)/%.o) $(OUT)/libkiln.a
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(KILN_LDFLAGS) -ldl -lm

.PHONY: examples
examples: $(EXAMPLES) ## the programs of docs/examples

$(OUT)/examples/%: $(OBJ)/docs/examples/%.o $(OUT)/libkiln.a
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(KILN_LDFLAGS) -lm

# ---- Images -------------------------------------------------------------------------------------------------------

## ARCH, OP: what images fires: one target (sm_90), cuda or rocm; one operator (softmax). All if empty
ARCH ?=
OP   ?=

.PHONY: images images-check
images: ## fire the kernels into embedded/; needs nvcc, clang-19, lld-19 and llvm-19
	@scripts/deps.sh images
	@scripts/fire.sh embedded '$(OP)' '$(ARCH)'
images-check: ## are the images those of the sources? Fires them again where the very compilers are here
	@scripts/images_check.sh

# ---- Measurements -------------------------------------------------------------------------------------------------

# Drivers that do nothing, under the drivers' own names, and the programs that tests/bench/*.sh run.
NULL_DRIVERS := $(OUT)/bench/null/libcuda.so.1 $(OUT)/bench/null/libhsa-runtime64.so.1
BENCHES      := $(OUT)/bench/launch_overhead $(OUT)/bench/first_use $(OUT)/bench/select_bench $(OUT)/bench/cpu_ops_bench \
	$(OUT)/bench/cpu_gemm_bench $(OUT)/bench/cpu_story_bench $(OUT)/bench/ptx_speed $(OUT)/bench/amd_speed \
	$(OUT)/bench/gpu_copy

$(OUT)/bench/null/libcuda.so.1: tests/bench/null_cuda.c loader/cuda/symbols.def loader/cuda/cuda_abi.h
$(OUT)/bench/null/libcuda.so.1: NULL := -DNULL_CUDA
$(OUT)/bench/null/libhsa-runtime64.so.1: tests/bench/null_hsa.c loader/rocm/symbols.def loader/rocm/hsa_abi.h
$(OUT)/bench/null/libhsa-runtime64.so.1: NULL := -DNULL_HSA
$(NULL_DRIVERS): tests/bench/null_others.c $(FLAGS)
	@mkdir -p $(@D)
	$(CC) $(KILN_CFLAGS) $(NULL) -shared -Wl,-soname,$(@F) -o $@ $(filter %.c,$^) $(KILN_LDFLAGS)

# The library's own calls of these go to the program, which counts them.
$(OUT)/bench/launch_overhead: KILN_LDFLAGS += $(addprefix -Wl$(comma)--wrap=,malloc calloc realloc posix_memalign \
	pthread_mutex_lock pthread_once)

# The example's model, and the plain one at each level, as the kernels are compiled.
$(OUT)/bench/cpu_story_bench: $(patsubst %,$(OBJ)/docs/examples/llama/%.o,checkpoint decoder graph) \
	$(CPU_LEVELS:%=$(OBJ)/tests/bench/plain_llama/%.o)
$(OBJ)/tests/bench/plain_llama/%.o: tests/bench/plain_llama.c $(FLAGS) loader/targets.def
	@mkdir -p $(@D)
	$(CC) $(KILN_CFLAGS) $(call level_flags,$*) -MMD -MP -c -o $@ $<

$(OUT)/bench/cpu_ops_bench: $(OBJ)/tests/bench/bandwidth.o

$(BENCHES): $(OUT)/bench/%: $(OBJ)/tests/bench/%.o $(OUT)/libkiln.a
	@mkdir -p $(@D)
	$(CC) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(KILN_LDFLAGS) -ldl -lm

$(OUT)/bench/amd_speed: $(patsubst %.c,$(OBJ)/%.o,tests/sim/tests/amdgcn/amdgcn_assembler.c $(AMDGCN_SOURCES) $(SIM_ARITHMETIC))
$(OUT)/bench/ptx_speed: $(patsubst %.c,$(OBJ)/%.o,$(PTX_SOURCES) $(SIM_ARITHMETIC))

$(OUT)/bench/gpu_copy: $(filter-out %/main.o,$(CLI_OBJECTS))

.PHONY: bench bench-programs bench-cpu bench-gpu
bench-programs: $(BENCHES) $(NULL_DRIVERS) $(OUT)/kiln ## build what bench runs, and measure nothing
bench-cpu: bench-programs ## the CPU kernels on one core and two: against memory, OpenBLAS and a model in plain C
	@$(OUT)/bench/cpu_ops_bench
	@$(OUT)/bench/cpu_gemm_bench
	@$(OUT)/bench/cpu_story_bench $(MODEL_DIR)/stories260K.bin
## BENCH_GPU: options of bench-gpu: make bench-gpu BENCH_GPU="--device cuda:1 --only softmax"
BENCH_GPU ?=
bench-gpu: ## operators on a GPU of this machine, against copies and PyTorch in the same run: docs/real-gpu.md
	@scripts/deps.sh gpu
	@$(SUBMAKE) all $(OUT)/bench/gpu_copy
	@scripts/bench_gpu.py $(OUT) $(BENCH_GPU)
bench: ## instructions of a launch, first use, selection, CPU kernels, interpreters, a clean build; wants config=release
	@scripts/deps.sh bench
	@$(SUBMAKE) bench-programs
	@tests/bench/launch_overhead.sh $(OUT)/bench/launch_overhead $(OUT)/bench/null $(config)
	@tests/bench/first_use.sh $(OUT)/bench/first_use $(config)
	@$(OUT)/bench/select_bench $(config)
	@$(SUBMAKE) bench-cpu
	@$(OUT)/bench/ptx_speed
	@$(OUT)/bench/amd_speed
	@$(OUT)/kiln bench --device cpu
	@tests/bench/build.sh

# ---- Documentation and order --------------------------------------------------------------------------------------

.PHONY: docs
docs: ## the API reference, build/docs/html; fails if a public function has no comment
	@scripts/deps.sh docs
	@mkdir -p build/docs
	doxygen docs/Doxyfile 2>build/docs/warnings
	@! grep '(function)' build/docs/warnings

.PHONY: lint
lint: ## clang-format, clang-tidy, shellcheck, white space and the README's generated tables; changes nothing
	@scripts/lint.sh '$(CC)'

.PHONY: format
format: ## put every C file into the shape of .clang-format
	@scripts/lint.sh --format

# ---- Installation -------------------------------------------------------------------------------------------------

VERSION = $(shell awk '/define KILN_VERSION_(MAJOR|MINOR|PATCH)/ {v = v dot $$3; dot = "."} END {print v}' include/kiln/kiln.h)
FILL    = sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@LIBDIR@|$(LIBDIR)|g' -e 's|@VERSION@|$(VERSION)|g'
INSTALLED = $(patsubst include/%,$(PREFIX)/include/%,$(wildcard include/kiln/*.h)) $(LIBDIR)/libkiln.a \
	$(LIBDIR)/libkiln.so.0 $(LIBDIR)/libkiln.so $(LIBDIR)/pkgconfig/kiln.pc $(LIBDIR)/cmake/kiln/kilnConfig.cmake \
	$(LIBDIR)/cmake/kiln/kilnConfigVersion.cmake $(PREFIX)/bin/kiln $(PREFIX)/share/man/man1/kiln.1

.PHONY: install
install: all ## headers, libraries, kiln.pc, a CMake package, the program and its manual page
	install -d $(sort $(dir $(INSTALLED:%=$(DESTDIR)%)))
	install -m 644 include/kiln/*.h $(DESTDIR)$(PREFIX)/include/kiln/
	install -m 644 $(OUT)/libkiln.a $(DESTDIR)$(LIBDIR)/
	install -m 755 $(OUT)/libkiln.so.0 $(DESTDIR)$(LIBDIR)/
	ln -sf libkiln.so.0 $(DESTDIR)$(LIBDIR)/libkiln.so
	$(FILL) scripts/kiln.pc.in >$(DESTDIR)$(LIBDIR)/pkgconfig/kiln.pc
	$(FILL) scripts/kilnConfig.cmake.in >$(DESTDIR)$(LIBDIR)/cmake/kiln/kilnConfig.cmake
	$(FILL) scripts/kilnConfigVersion.cmake.in >$(DESTDIR)$(LIBDIR)/cmake/kiln/kilnConfigVersion.cmake
	install -m 755 $(OUT)/kiln $(DESTDIR)$(PREFIX)/bin/
	install -m 644 docs/kiln.1 $(DESTDIR)$(PREFIX)/share/man/man1/

.PHONY: install-sim
install-sim: sim ## the simulated drivers, into libexec/kiln/sim, where no linker looks
	install -d $(DESTDIR)$(PREFIX)/libexec/kiln/sim
	install -m 755 $(OUT)/sim/libcuda.so.1 $(OUT)/sim/libhsa-runtime64.so.1 $(DESTDIR)$(PREFIX)/libexec/kiln/sim/

.PHONY: uninstall
uninstall: ## remove what install put there
	rm -f $(INSTALLED:%=$(DESTDIR)%)

.PHONY: clean
clean: ## remove build/
	rm -rf build

.PHONY: help
help: ## this list
	@echo 'Targets:'
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{printf "  %-18s %s\n", $$1, $$2}'
	@echo 'Variables:'
	@sed -n 's/^## \([^:]*\): \(.*\)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{printf "  %-18s %s\n", $$1, $$2}'

-include $(shell find $(OBJ) -name '*.d' 2>/dev/null)
