# kiln. `make help` lists the targets and variables: a target's line stands behind its ##, a variable's above it. A target
# without a line is for a script alone. Here are the products; examples, tests, simulators, measurements and installing
# have a .mk file each, beside what they build.

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
# -g1: functions and lines. Variables, which debug has, cost a fifth of the compiler's time. Each frame is written beside its
# object, for tests/unit/contracts_test.sh.
CFLAGS_release  := -O2 -g1 -fstack-usage
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

LOADER_SOURCES := $(sort $(wildcard loader/*.c loader/blocks/*.c loader/tree/*.c loader/image/*.c loader/cuda/*.c loader/rocm/*.c loader/hip/*.c loader/cpu/*.c))
CLI_SOURCES    := $(sort $(wildcard loader/cli/*.c))
LOADER_OBJECTS := $(LOADER_SOURCES:%.c=$(OBJ)/%.o)
CLI_OBJECTS    := $(CLI_SOURCES:%.c=$(OBJ)/%.o)
OPERATOR_OBJECTS := $(OPERATORS:%=$(OBJ)/operators/%.o)
# What operators share, and the lists of all, which only tools link.
LEVEL_SOURCES  := $(sort $(wildcard kernels/common/*_cpu.c kernels/common/*/*_cpu.c))
COMMON_SOURCES := $(filter-out $(LEVEL_SOURCES),$(sort $(wildcard kernels/common/*.c kernels/common/*/*.c))) kernels/all_bundles.c kernels/all_operators.c
COMMON_OBJECTS := $(COMMON_SOURCES:%.c=$(OBJ)/%.o)
# What the CPU kernels of a level share: $(OBJ)/kernels/common/<noun>_cpu/<level>.o
LEVEL_OBJECTS  := $(foreach level,$(CPU_LEVELS),$(LEVEL_SOURCES:%.c=$(OBJ)/%/$(level).o))
DESCRIPTIONS   := $(OPERATORS:%=$(OBJ)/kernels/describe/%.o)

# What defines public functions: the loader but for its backends' folders, what operators share and their host sides. Each is
# compiled to assembly, in which everything is hidden, and assembled twice: as it is for libkiln.a, and for libkiln.so, which
# exports them, without the lines that hide them.
BACKEND_SOURCES := $(filter loader/cuda/% loader/rocm/% loader/hip/% loader/cpu/%,$(LOADER_SOURCES))
PUBLIC_SOURCES  := $(filter-out $(BACKEND_SOURCES),$(LOADER_SOURCES)) $(COMMON_SOURCES) $(foreach op,$(OPERATORS),kernels/$(op)/$(op).c)
SHARED_OBJECTS  := $(PUBLIC_SOURCES:%.c=$(OBJ)/shared/%.o) $(BACKEND_SOURCES:%.c=$(OBJ)/%.o) $(LEVEL_OBJECTS) $(DESCRIPTIONS) \
	$(foreach op,$(OPERATORS),$(OBJ)/embedded/$(op)/bundle.o $(CPU_LEVELS:%=$(OBJ)/kernels/$(op)/%.o))

FLAGS   := $(OBJ)/flags
OBJECTS := $(OBJ)/objects
$(eval $(call TEXT_FILE,$(FLAGS),$(shell $(CC) --version 2>/dev/null | head -n 1) $(CC) $(KILN_CFLAGS) $(KILN_LDFLAGS)))
$(eval $(call TEXT_FILE,$(OBJECTS),$(LOADER_OBJECTS) $(CLI_OBJECTS) $(OPERATOR_OBJECTS)))

# ---- Libraries ----------------------------------------------------------------------------------------------------

.PHONY: all
all: $(OUT)/libkiln.a $(OUT)/libkiln.so $(OUT)/kiln ## the library, static and shared, and the kiln program

$(OUT)/libkiln.a: $(LOADER_OBJECTS) $(OPERATOR_OBJECTS) $(COMMON_OBJECTS) $(LEVEL_OBJECTS) $(DESCRIPTIONS) $(OBJECTS)
	@rm -f $@
	$(AR) rcs $@ $(filter %.o,$^)

$(OBJ)/ptx/libkiln.a: $(LOADER_OBJECTS) $(OPERATORS:%=$(OBJ)/ptx/operators/%.o) $(COMMON_OBJECTS) $(LEVEL_OBJECTS) $(DESCRIPTIONS) $(OBJECTS)
	@rm -f $@
	$(AR) rcs $@ $(filter %.o,$^)

# Its own calls of public functions are direct, as in libkiln.a. Clang calls libm where GCC does not.
# nodelete: the HSA runtime keeps kiln's event handler and cannot be told to forget it; dlclose must leave it mapped.
$(OUT)/libkiln.so.0: $(SHARED_OBJECTS) scripts/libkiln.map $(OBJECTS)
	$(CC) -shared -Wl,-soname,libkiln.so.0 -Wl,-z,nodelete -Wl,-Bsymbolic-functions -Wl,--version-script=scripts/libkiln.map \
		-o $@ $(filter %.o,$^) $(KILN_LDFLAGS) -Wl,--as-needed -lm

$(OUT)/libkiln.so: $(OUT)/libkiln.so.0
	ln -sf libkiln.so.0 $@

$(OUT)/kiln: $(CLI_OBJECTS) $(OUT)/libkiln.a
	$(CC) -o $@ $^ $(KILN_LDFLAGS) -lm

# GCC for x86 then puts arguments where they belong without moving the stack pointer: one instruction of a launch.
$(OBJ)/loader/cuda/cuda_launch.o: KILN_CFLAGS += \
	$(call cc_option,-maccumulate-outgoing-args)
# A square root is then an instruction alone, and nothing of libm's.
$(foreach op,mha mha_paged mha_fp8_fwd mha_int8_x_fp8_fwd mha_nvfp4_fwd engram_gate,$(OBJ)/kernels/$(op)/$(op).s): KILN_CFLAGS += -fno-math-errno
$(OBJ)/%.o: %.c $(FLAGS)
	@mkdir -p $(@D)
	$(CC) $(KILN_CFLAGS) -MMD -MP -c -o $@ $<

# Not with -flto, which leaves what is hidden to the linker.
$(PUBLIC_SOURCES:%.c=$(OBJ)/%.s): $(OBJ)/%.s: %.c $(FLAGS)
	@mkdir -p $(@D)
	$(CC) $(KILN_CFLAGS) -fno-lto -MMD -MP -S -o $@ $<

# --no-warn: what clang writes for a static thread-local variable it then warns of.
ASSEMBLE = $(CC) -Wa,--no-warn -c
$(PUBLIC_SOURCES:%.c=$(OBJ)/%.o): $(OBJ)/%.o: $(OBJ)/%.s
	$(ASSEMBLE) -o $@ $<

$(OBJ)/shared/%.o: $(OBJ)/%.s
	@mkdir -p $(@D)
	sed '/\.hidden[[:space:]]*kiln_[a-z]/d' $< | $(ASSEMBLE) -x assembler -o $@ -

# ---- Operators: host side, each CPU level and the embedded images, joined into one object ------------------------

# kernels/<op>/<op>_cpu.c and kernels/common/<noun>_cpu.c, once for each level of this host: $(OBJ)/kernels/<op>/<level>.o
# Nothing reads a kernel's floating-point exception flags; if it could, choices like a > b ? a : b would not vectorise.
# -g1 here too: most variables are taken away by vectorising.
level_flags = $(if $(filter debug sanitize thread coverage,$(config)),-O1,-O3) $(if $(filter-out debug,$(config)),-g1) -fno-trapping-math $(call cpu_flags,$(1)) -DKILN_CPU_LEVEL=$(subst -,_,$(1))
define CPU_LEVEL_RULE
$(OBJ)/kernels/%/$(1).o: KILN_CFLAGS += $(call level_flags,$(1))
$(OBJ)/kernels/%/$(1).o: $(FLAGS) loader/targets.def
	@mkdir -p $$(@D)
	$$(CC) $$(KILN_CFLAGS) -MMD -MP -c -o $$@ kernels/$$*/$$*_cpu.c
$(OBJ)/kernels/common/%/$(1).o: kernels/common/%.c $(FLAGS) loader/targets.def
	@mkdir -p $$(@D)
	$$(CC) $$(KILN_CFLAGS) -MMD -MP -c -o $$@ $$<
endef
$(foreach level,$(CPU_LEVELS),$(eval $(call CPU_LEVEL_RULE,$(level))))

# kernels/describe.c, once for each operator, with the rows of its .def.
$(OBJ)/kernels/describe/%.o: kernels/describe.c $(FLAGS)
	@mkdir -p $(@D)
	$(CC) $(KILN_CFLAGS) -DKILN_DESCRIBE=$* -MMD -MP -c -o $@ $<

# The files of a folder that is kept as one archive: an operator's images, recorded cases.
%/.unpacked:
	scripts/archive.sh unpack $*
$(foreach op,$(OPERATORS),$(eval embedded/$(op)/.unpacked: embedded/$(op)/images.tar.xz))

# The bundle table and the images as C, from the manifest: $(OBJ)/embedded/<op>/*.c. Arguments: operator, a folder of
# $(OBJ), and the kind of image that is left out. In ptx/ are no cubins, so that a CUDA driver compiles the PTX: for tests.
define OPERATOR_RULE
$(OBJ)/$(2)embedded/$(1)/bundle.c: embedded/$(1)/manifest embedded/$(1)/.unpacked loader/targets.def kernels/common/operators.h kernels/$(1)/$(1).def scripts/embed.sh scripts/embed.awk scripts/targets.sh
	@mkdir -p $$(@D)
	scripts/embed.sh $(1) $(HOST) $$(@D) $(3)
$(OBJ)/$(2)operators/$(1).o: $(OBJ)/kernels/$(1)/$(1).o $(CPU_LEVELS:%=$(OBJ)/kernels/$(1)/%.o) $(OBJ)/$(2)embedded/$(1)/bundle.o
	@mkdir -p $$(@D)
	$(LD) -r -o $$@ $$^
endef
$(foreach op,$(OPERATORS),$(eval $(call OPERATOR_RULE,$(op),,)))
$(foreach op,$(OPERATORS),$(eval $(call OPERATOR_RULE,$(op),ptx/,cubin)))

# Not with -flto, which takes what the assembler includes from what refers to it.
$(OBJ)/%/bundle.o: $(OBJ)/%/bundle.c $(FLAGS)
	$(CC) $(KILN_CFLAGS) -fno-lto -MMD -MP -c -o $@ $<

# ---- What each folder builds --------------------------------------------------------------------------------------

# A make of the parts that a goal needs after scripts/deps.sh has had its say: as parallel as asked for, or as can be.
SUBMAKE = $(MAKE) --no-print-directory config=$(config) $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

include docs/examples/examples.mk loader/bindings/python/python.mk loader/bindings/triton/triton.mk loader/bindings/ggml/ggml.mk tests/bindings/hip.mk tests/tests.mk tests/fuzz/fuzz.mk \
	tests/sim/sim.mk tests/bench/bench.mk scripts/install.mk scripts/oci.mk

.PHONY: demo
demo: ## the main job on this machine: find its devices and run softmax on the best
	@scripts/deps.sh build
	@$(SUBMAKE) all examples
	@scripts/demo.sh $(OUT)

# ---- Images -------------------------------------------------------------------------------------------------------

## ARCH, OP: what images fires: one target (sm_90), cuda or rocm; one operator (softmax). All if empty
ARCH ?=
OP   ?=
## IMAGES: what images-check fires again: all, or sample, a third of the operators, which is another one each day
IMAGES ?= all

.PHONY: images images-check tuning-images
images: ## fire the kernels into embedded/; needs nvcc, clang-19, lld-19 and llvm-19
	@scripts/deps.sh images
	@scripts/archive.sh unpack embedded/*
	@scripts/fire.sh embedded '$(OP)' '$(ARCH)'
	@scripts/pack_images.sh $(or $(OP),$(OPERATORS))
	@[ -n '$(OP)$(ARCH)' ] || loader/bindings/ggml/fire.sh
images-check: ## are the images those of the sources? Fires them again where the very compilers are here
	@scripts/images_check.sh $(IMAGES)
	@loader/bindings/ggml/fire.sh fresh

TUNED = $(sort $(shell sed -n 's|^+++ b/kernels/\([a-z0-9_]*\)/.*_sm.*|\1|p' kernels/tuning/*.patch))
tuning-images: ## programs with other tiles for tune-gpu, of kernels/tuning, into build/tuning: docs/real-gpu.md
	@scripts/deps.sh images
	@$(SUBMAKE) all $(TUNED:%=$(OUT)/tests/ops/%_test)
	@for patch in kernels/tuning/*.patch; do scripts/tuning_images.sh $(OUT) $$(basename $$patch .patch) $(HOST) || exit; done

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

.PHONY: clean
clean: ## remove build/
	rm -rf build

# Those that people write; the compiler writes the others.
MAKEFILES_READ = $(filter %Makefile %.mk,$(MAKEFILE_LIST))

.PHONY: help
help: ## this list
	@echo 'Targets:'
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILES_READ) | awk -F'|' '{printf "  %-18s %s\n", $$1, $$2}'
	@echo 'Variables:'
	@sed -n 's/^## \([^:]*\): \(.*\)/\1|\2/p' $(MAKEFILES_READ) | awk -F'|' '{printf "  %-18s %s\n", $$1, $$2}'

-include $(shell find $(OBJ) -name '*.d' 2>/dev/null)
