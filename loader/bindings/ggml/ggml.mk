# llama.cpp's backend, libggml-kiln.so: docs/llama.cpp.md.

## GGML_DIR: where check-ggml keeps llama.cpp, its sources and its programs, 0.2 GB
GGML_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kiln/llama.cpp-$(GGML_SDIST)
# The release of PyPI's llama-cpp-python whose source distribution has the llama.cpp that is built against.
GGML_SDIST := 0.3.36

## GGML_CASES: sample: check-ggml runs a sample of llama.cpp's own cases on the CPU, too, and not all of them
GGML_CASES ?= all

GGML_BINDING := loader/bindings/ggml
# The binding's own, each with a file for CPUs and one for GPUs.
GGML_KERNELS := map mul_vec
GGML_OBJECTS := $(patsubst %.c,$(OBJ)/%.o,$(filter-out %_cpu.c %_gpu.c,$(sort $(wildcard $(GGML_BINDING)/*.c)))) \
	$(foreach kernel,$(GGML_KERNELS),$(CPU_LEVELS:%=$(OBJ)/$(GGML_BINDING)/$(kernel)_%.o) $(OBJ)/$(GGML_BINDING)/$(kernel)/bundle.o)

$(GGML_OBJECTS): private KILN_CFLAGS += -isystem $(GGML_DIR)/source/ggml/include -isystem $(GGML_DIR)/source/ggml/src \
	-DGGML_BACKEND_DL -DGGML_BACKEND_SHARED -DGGML_SHARED

define GGML_LEVEL_RULE
$(OBJ)/$(GGML_BINDING)/$(1)_$(2).o: private KILN_CFLAGS += $(call level_flags,$(2))
$(OBJ)/$(GGML_BINDING)/$(1)_$(2).o: $(GGML_BINDING)/$(1)_cpu.c $(FLAGS) loader/targets.def
	@mkdir -p $$(@D)
	$$(CC) $$(KILN_CFLAGS) -MMD -MP -c -o $$@ $$<
endef

# A kernel's.
ggml_images = $(wildcard $(GGML_BINDING)/images/$(1)_f32.*.ptx $(GGML_BINDING)/images/$(1)_f32.*.hsaco)
# The target of an image by its name: map_f32.gfx942.hsaco.
ggml_target = $(patsubst .%,%,$(suffix $(basename $(notdir $(1)))))
define GGML_KERNEL_RULES
$(foreach level,$(CPU_LEVELS),$(eval $(call GGML_LEVEL_RULE,$(1),$(level))))
$(OBJ)/$(GGML_BINDING)/$(1)/bundle.c: $(OUT)/kiln $(call ggml_images,$(1))
	@mkdir -p $$(@D)
	$(OUT)/kiln pack --name ggml_kiln_$(1)_images --out $$@ \
		$(foreach image,$(call ggml_images,$(1)),$(call ggml_target,$(image))=$(image)) \
		$(foreach level,$(CPU_LEVELS),$(level):ggml_kiln_$(1)=ggml_kiln_$(1)_$(subst -,_,$(level)))
endef
$(foreach kernel,$(GGML_KERNELS),$(eval $(call GGML_KERNEL_RULES,$(kernel))))

# nodelete: as of libkiln.so.
$(OUT)/libggml-kiln.so: $(GGML_OBJECTS) $(OUT)/libkiln.a
	$(CC) -shared -Wl,-z,nodelete -Wl,--no-undefined -o $@ $^ -L$(GGML_DIR)/build/bin -lggml-base $(KILN_LDFLAGS) -lm

.PHONY: check-ggml
check-ggml: ## llama.cpp on kiln: builds it, the first time for minutes, and runs its tests and a model; not in check
	@scripts/deps.sh ggml
	@$(GGML_BINDING)/build.sh $(GGML_SDIST) '$(GGML_DIR)'
	@$(SUBMAKE) all sim $(OUT)/libggml-kiln.so GGML_DIR='$(GGML_DIR)'
	@KILN_BUILD=$(OUT) GGML_CASES=$(GGML_CASES) GGML_DIR='$(GGML_DIR)' PYTHON_DIR='$(PYTHON_DIR)' tests/bindings/ggml.sh
