# kiln. `make help` lists the targets and variables.

config ?= release
CC     ?= cc
PREFIX ?= /usr/local

CONFIGS := debug release sanitize thread coverage fuzz
ifeq ($(filter $(config),$(CONFIGS)),)
$(error config=$(config) is none of: $(CONFIGS))
endif

# The products of a release stand in build/, those of every other configuration in build/<config>/.
OUT := $(if $(filter release,$(config)),build,build/$(config))
OBJ := $(OUT)/obj

HOST := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))

WARNINGS := -Wall -Wextra -Wconversion -Wshadow -Werror
CFLAGS_release  := -O2 -g
CFLAGS_debug    := -O0 -g3
CFLAGS_sanitize := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
CFLAGS_thread   := -O1 -g -fsanitize=thread
CFLAGS_coverage := -O0 -g --coverage
CFLAGS_fuzz     := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
KILN_CFLAGS := -std=c11 -D_GNU_SOURCE -I. -Iinclude -fPIC -fvisibility=hidden -ffp-contract=off -pthread \
	-ffile-prefix-map=$(CURDIR)/= $(WARNINGS) $(CFLAGS_$(config)) $(CFLAGS)
KILN_LDFLAGS := $(filter -fsanitize% --coverage,$(CFLAGS_$(config))) -pthread $(LDFLAGS)

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:

# ---- Sources: every room's files, found by their place -----------------------------------------------------------

OPERATORS := $(shell sed -n 's/^KILN_OPERATOR(\([a-z0-9_]*\)).*/\1/p' kernels/ops.def)
CPU_LEVELS := $(shell sed -n 's/^KILN_CPU("\([^"]*\)", $(HOST),.*/\1/p' loader/targets.def)
cpu_flags = $(shell sed -n 's/^KILN_CPU("$(1)", $(HOST), [0-9]*, "\([^"]*\)").*/\1/p' loader/targets.def)

LOADER_SOURCES := $(sort $(wildcard loader/*.c loader/image/*.c loader/cuda/*.c loader/rocm/*.c loader/cpu/*.c))
CLI_SOURCES    := $(sort $(wildcard loader/cli/*.c))
LOADER_OBJECTS := $(LOADER_SOURCES:%.c=$(OBJ)/%.o)
CLI_OBJECTS    := $(CLI_SOURCES:%.c=$(OBJ)/%.o)
OPERATOR_OBJECTS := $(OPERATORS:%=$(OBJ)/operators/%.o)
ALL_OBJECTS    := $(OBJ)/kernels/all_bundles.o $(OBJ)/kernels/all_operators.o

# ---- Libraries ----------------------------------------------------------------------------------------------------

.PHONY: all
all: $(OUT)/libkiln.a $(OUT)/libkiln.so $(OUT)/kiln ## the library, static and shared, and the kiln program

$(OUT)/libkiln.a: $(LOADER_OBJECTS) $(OPERATOR_OBJECTS) $(ALL_OBJECTS)
	@rm -f $@
	$(AR) rcs $@ $^

$(OUT)/libkiln.so.0: $(LOADER_OBJECTS) $(OPERATOR_OBJECTS) $(ALL_OBJECTS) scripts/libkiln.map
	$(CC) -shared -Wl,-soname,libkiln.so.0 -Wl,--version-script=scripts/libkiln.map -o $@ $(filter %.o,$^) $(KILN_LDFLAGS)

$(OUT)/libkiln.so: $(OUT)/libkiln.so.0
	ln -sf libkiln.so.0 $@

$(OUT)/kiln: $(CLI_OBJECTS) $(OUT)/libkiln.a
	$(CC) -o $@ $^ $(KILN_LDFLAGS) -lm

$(OBJ)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(KILN_CFLAGS) -MMD -MP -c -o $@ $<

# ---- Operators: host side, each CPU level and the embedded images, joined into one object ------------------------

# kernels/<op>/<op>_cpu.c, once for each level of this host: $(OBJ)/kernels/<op>/<level>.o
define CPU_LEVEL_RULE
$(OBJ)/kernels/%/$(1).o: KILN_CFLAGS += $(if $(filter debug coverage,$(config)),-O1,-O3) $(call cpu_flags,$(1)) -DKILN_CPU_LEVEL=$(subst -,_,$(1))
$(OBJ)/kernels/%/$(1).o: Makefile loader/targets.def
	@mkdir -p $$(@D)
	$$(CC) $$(KILN_CFLAGS) -MMD -MP -c -o $$@ kernels/$$*/$$*_cpu.c
endef
$(foreach level,$(CPU_LEVELS),$(eval $(call CPU_LEVEL_RULE,$(level))))

# The bundle table and the images as C, from the manifest: $(OBJ)/embedded/<op>/*.c
define OPERATOR_RULE
$(OBJ)/embedded/$(1)/bundle.c: embedded/$(1)/manifest $(wildcard embedded/$(1)/*) loader/targets.def kernels/$(1)/$(1).def scripts/embed.sh
	@mkdir -p $$(@D)
	scripts/embed.sh $(1) $(HOST) $$(@D)
$(OBJ)/operators/$(1).o: $(OBJ)/kernels/$(1)/$(1).o $(CPU_LEVELS:%=$(OBJ)/kernels/$(1)/%.o) $(OBJ)/embedded/$(1)/bundle.o
	@mkdir -p $$(@D)
	$(LD) -r -o $$@ $$^
endef
$(foreach op,$(OPERATORS),$(eval $(call OPERATOR_RULE,$(op))))

$(OBJ)/embedded/%/bundle.o: $(OBJ)/embedded/%/bundle.c
	$(CC) $(KILN_CFLAGS) -MMD -MP -c -o $@ $<

# ---- Tests --------------------------------------------------------------------------------------------------------

UNIT_TESTS := $(patsubst %.c,$(OUT)/%,$(sort $(wildcard tests/unit/*_test.c tests/ops/*_test.c)))

$(OUT)/tests/%_test: $(OBJ)/tests/%_test.o $(OUT)/libkiln.a
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(KILN_LDFLAGS) -lcmocka -lm -ldl

.PHONY: unit-tests
unit-tests: $(UNIT_TESTS)

.PHONY: clean
clean: ## remove build/
	rm -rf build

-include $(shell find $(OBJ) -name '*.d' 2>/dev/null)
