# The tests: what `make check` builds and runs, and the same elsewhere: on GPUs, on emulated processors, for coverage.

# Every tests/<room>/<noun>_test.c is a program, linked with the other sources of its room (harnesses); every
# tests/<room>/<noun>_test.sh is a script. tests/run.c says what both must print. The rooms of the tests of the simulators
# share their harnesses.
SIM_ROOMS     := $(sort $(patsubst tests/%/,%,$(dir $(wildcard tests/sim/tests/*/*_test.*))))
ROOMS         := unit ops cli fuzz deploy bindings $(SIM_ROOMS)
TEST_SOURCES  := $(sort $(wildcard $(ROOMS:%=tests/%/*_test.c)))
TEST_PROGRAMS := $(TEST_SOURCES:%.c=$(OUT)/%)
TEST_SCRIPTS  := $(sort $(wildcard $(ROOMS:%=tests/%/*_test.sh)))
# What takes longest begins first, so that none of it is left at the end with one processor.
LONG_TESTS := $(patsubst %,tests/%_test.sh,sim/tests/operators/operators_cuda sim/tests/operators/operators_rocm sim/tests/operators/kernel_report \
	cli/numpy deploy/make unit/contracts sim/tests/operators/gpu_scripts deploy/races cli/story unit/image_isa unit/images_check unit/runner \
	sim/tests/operators/mutants cli/llama_bench cli/draft bindings/python)
room_objects   = $(patsubst %.c,$(OBJ)/%.o,$(filter-out %_test.c,$(sort $(wildcard $(patsubst %,tests/%/*.c,$(if $(filter sim/%,$(1)),$(SIM_ROOMS),$(1)))))))

# As an archive, of which a test is linked with what it uses: a harness that calls an operator brings all its images.
define ROOM_RULE
$(OBJ)/tests/$(1)/harness.a: $(call room_objects,$(1))
	@mkdir -p $$(@D)
	@rm -f $$@
	$$(AR) rcs $$@ $$^
$(OUT)/tests/$(1)/%_test: $(OBJ)/tests/$(1)/%_test.o $(OBJ)/tests/$(1)/harness.a $(OUT)/libkiln.a
	@mkdir -p $$(@D)
	$$(CC) -o $$@ $$(filter %.o,$$^) $$(filter %.a,$$^) $$(KILN_LDFLAGS) -lcmocka -lm
endef
$(foreach room,$(ROOMS),$(eval $(call ROOM_RULE,$(room))))

# The operators' tests once more, from bundles without cubins: build/tests/ops-ptx.
PTX_PROGRAMS := $(patsubst tests/ops/%.c,$(OUT)/tests/ops-ptx/%,$(filter-out %/arguments_test.c %/images_test.c %/small_stack_test.c,$(wildcard tests/ops/*_test.c)))
$(OUT)/tests/ops-ptx/%_test: $(OBJ)/tests/ops/%_test.o $(OBJ)/tests/ops/harness.a $(OBJ)/ptx/libkiln.a
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(KILN_LDFLAGS) -lcmocka -lm
# Those that check runs, which call one operator each: the bundles of the others need not be made once more for them.
PTX_CHECKED := $(patsubst %,$(OUT)/tests/ops-ptx/%_test,add argmax)
$(PTX_CHECKED): $(OUT)/tests/ops-ptx/%_test: $(OBJ)/tests/ops/%_test.o $(OBJ)/ptx/operators/%.o $(OBJ)/tests/ops/harness.a $(OUT)/libkiln.a
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(KILN_LDFLAGS) -lcmocka -lm

# Products by AMX, which a processor need not have.
$(foreach room,ops ops-ptx,$(patsubst %,$(OUT)/tests/$(room)/%_test,gemm w8a8)): $(OBJ)/tests/sim/amx/amx_sim.o

# Refuses allocations one by one, so the library's must come to it.
$(OUT)/tests/unit/allocation_faults_test: KILN_LDFLAGS += \
	-Wl,--wrap=malloc,--wrap=calloc,--wrap=strdup,--wrap=posix_memalign,--wrap=free

# One of the fuzzed parsers is the command line's.
$(OUT)/tests/fuzz/replay_test: $(OBJ)/loader/cli/npy.o

# Lines and no variables, which debug has: a seventh of the time to compile.
ifneq ($(config),debug)
$(OBJ)/tests/%.o: KILN_CFLAGS += -g1
endif

# References in f64, and the rounding of what is compared with them, are most of what these tests take.
ifeq ($(config),release)
$(patsubst %,$(OBJ)/tests/ops/%.o,harness attention mha_codes_test): KILN_CFLAGS += -O3
endif

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
test-programs: $(TEST_PROGRAMS) $(PYTHON_OBJECTS) $(PTX_CHECKED) $(OUT)/tests/run ## build what check runs, and run nothing

.PHONY: check
check: ## build everything and run every test; installs what is missing when run as root on Debian
	@scripts/deps.sh check
	@$(SUBMAKE) all sim examples test-programs $(TRITON_BACKEND)
	@$(SUBMAKE) run-tests

.PHONY: run-tests
run-tests: $(OUT)/tests/run ## run the tests on what is built; builds nothing but their runner
	@KILN_BUILD=$(CURDIR)/$(OUT) KILN_CONFIG=$(config) CC='$(CC)' $(OUT)/tests/run -j $(JOBS) -d $(OUT)/tests/log \
		$(TESTS:%=-o %) $(LONG_TESTS) $(TEST_PROGRAMS) $(filter-out $(LONG_TESTS),$(TEST_SCRIPTS))

# Tests on the machine's own GPUs, which check does not run: tests/gpu/gpu.sh.
## CHECK_GPU: options of check-gpu, instead of those that run all anew, however long it takes: make check-gpu CHECK_GPU=
CHECK_GPU ?= --anew --seconds 0

.PHONY: check-gpu run-gpu-tests
check-gpu: ## operators, story and single instructions on this machine's GPUs, by its own drivers: docs/real-gpu.md
	@scripts/deps.sh gpu
	@$(SUBMAKE) all examples test-programs ptx-programs
	@$(SUBMAKE) run-gpu-tests
run-gpu-tests: $(OUT)/tests/run ## check-gpu on what is built; builds nothing but the runner
	@scripts/check_gpu.sh $(OUT) $(CHECK_GPU) $(TESTS)

.PHONY: ptx-programs
ptx-programs: $(PTX_PROGRAMS) ## the operators' tests with bundles that have no cubins, in build/tests/ops-ptx: docs/real-gpu.md

.PHONY: gpu-package
gpu-package: ## check-gpu, bench-gpu, bench-llama and tune-gpu as built, for a machine without compilers: build/kiln-gpu.tar.xz
	@scripts/deps.sh gpu
	@$(SUBMAKE) all examples test-programs ptx-programs
	@scripts/gpu_package.sh $(OUT) $(MODEL_DIR)

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
