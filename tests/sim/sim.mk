# The simulators: drivers without a GPU, the interpreters that execute what is launched, and what is made with these.

SIM_ARITHMETIC := $(patsubst %,tests/sim/core/sim_%.c,float row space sum)
PTX_SOURCES    := $(sort $(wildcard tests/sim/ptx/*/*.c))
AMDGCN_SOURCES := $(sort $(wildcard tests/sim/amdgcn/*/*.c))

.PHONY: sim
sim: ## both simulated drivers, under their own names, in build/sim

sim_objects = $(patsubst %.c,$(OBJ)/%.o,$(sort $(wildcard tests/sim/core/*.c tests/sim/$(1)/*.c) $(SIM_EXECUTES_$(1)) \
	loader/image/sha256.c))
# What each driver executes launches with.
SIM_EXECUTES_cuda := $(PTX_SOURCES)
SIM_EXECUTES_rocm := $(AMDGCN_SOURCES)

# Interpreters are always optimised: their tests would take minutes otherwise. For ThreadSanitizer, whose calls are most of
# what they then do, as little as the rest: that compiles in two thirds of the time. Clang would complain of each loop that
# calls a function and so stays scalar, though it may be vectorised.
sim_level_release := -O3
sim_level_thread  := -O1
$(OBJ)/tests/sim/ptx/%.o $(OBJ)/tests/sim/amdgcn/%.o: KILN_CFLAGS += $(or $(sim_level_$(config)),-O2) -fno-math-errno -Wno-pass-failed
# PTX's, where this machine has vectors of 256 bits, for machines that have: a twelfth of its time. AMD's gains nothing.
SIM_WIDE := $(if $(filter x86_64,$(HOST)),$(if $(shell grep -w avx2 /proc/cpuinfo | grep -w fma),$(call cc_option,-march=x86-64-v3)))
$(OBJ)/tests/sim/ptx/%.o: KILN_CFLAGS += $(SIM_WIDE)

# The PTX of every committed cubin.
$(OBJ)/tests/sim/cuda/parents.S: $(OPERATORS:%=embedded/%/manifest) $(OPERATORS:%=embedded/%/.unpacked) scripts/sim_parents.sh
	@mkdir -p $(@D)
	scripts/sim_parents.sh >$@
$(OBJ)/tests/sim/cuda/parents.o: $(OBJ)/tests/sim/cuda/parents.S
	$(CC) -c -o $@ $<
$(OUT)/sim/libcuda.so.1 $(OUT)/sim/cuda-10/libcuda.so.1 $(OUT)/sim/cuda-9/libcuda.so.1: $(OBJ)/tests/sim/cuda/parents.o

# The cases that truth_test replays.
tests/sim/recorded/h100/.unpacked: tests/sim/recorded/h100/cases.tar.xz
$(OUT)/tests/sim/tests/recorded/truth_test: | tests/sim/recorded/h100/.unpacked

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

# ---- Tests and documents made with them ----------------------------------------------------------------------------

# The interpreters' own tests reach them without a driver around.
$(filter $(OUT)/tests/sim/%,$(TEST_PROGRAMS)): $(patsubst %.c,$(OBJ)/%.o,$(PTX_SOURCES) $(AMDGCN_SOURCES) $(SIM_ARITHMETIC))

$(OUT)/tests/sim/tests/amx/amx_test: $(OBJ)/tests/sim/amx/amx_sim.o

# Counts what a step of the example's model asks for: its own calls and the library's must come to it.
$(OUT)/tests/sim/tests/operators/llama_steps_test: $(patsubst %,$(OBJ)/docs/examples/llama/%.o,codes decoder forward graph groups quantised weights)
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
	KILN_SIM_DIR=$(OUT)/sim $(REPORT) >$(OUT)/kernel-report.md
	mv $(OUT)/kernel-report.md docs/kernel-report.md

test-programs: $(INSTRUCTIONS) $(ONE_PROCESS) $(DOCUMENT) $(REPORT)

## MUTANTS: only the images whose file name this pattern matches: make check-mutants MUTANTS='softmax_f32.sm_90'
MUTANTS ?=
.PHONY: check-mutants
check-mutants: ## change each barrier, wait and comparison of the images, one at a time: a test must notice. Takes hours
	@scripts/deps.sh check
	@$(SUBMAKE) sim test-programs
	@KILN_BUILD=$(CURDIR)/$(OUT) JOBS=$(JOBS) scripts/mutants.sh run '$(MUTANTS)'
