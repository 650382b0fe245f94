# NVIDIA Triton Inference Server's backend: docs/serving.md.

## TRITON_DIR: where check-triton keeps the server, 0.2 GB
TRITON_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kiln/triton-$(TRITON_WHEEL)
# The release of PyPI's nvidia-pytriton that has the server: 2.51.
TRITON_WHEEL := 0.7.0

# What the backend has of the Llama example, and the scheduler, which needs no server.
TRITON_LLAMA     := $(patsubst %,$(OBJ)/docs/examples/llama/%.o,checkpoint codes forward groups quantised tokenizer weights)
TRITON_SCHEDULER := $(patsubst %,$(OBJ)/loader/bindings/triton/%.o,engine paged_llama scheduler)

# The scheduler beside the example's decoder.
$(OUT)/tests/bindings/scheduler_test $(OUT)/tests/bindings/scheduler_devices_test: $(TRITON_SCHEDULER) $(TRITON_LLAMA) $(patsubst %,$(OBJ)/docs/examples/llama/%.o,decoder graph)

TRITON_SOURCES := $(sort $(wildcard loader/bindings/triton/*.c))
TRITON_BACKEND := $(OUT)/triton/backends/kiln/libtriton_kiln.so

# nodelete: as libkiln.so.0. What the server has is found in its process when the backend is loaded, so the linker cannot ask
# that every name be found: nm says whether one of ours is missing.
$(TRITON_BACKEND): $(TRITON_SOURCES:%.c=$(OBJ)/%.o) $(TRITON_LLAMA) $(OBJ)/loader/cli/json.o $(OUT)/libkiln.a
	@mkdir -p $(@D)
	$(CC) -shared -Wl,-z,nodelete -o $@ $(filter %.o,$^) $(filter %.a,$^) $(KILN_LDFLAGS) -lm
	@names=$$(nm -u $@) && ! printf '%s\n' "$$names" | grep -E ' U (kiln|llama)_' || { rm -f $@; false; }

.PHONY: triton
triton: ## the backend for NVIDIA Triton Inference Server, in build/triton/backends: docs/serving.md
	@scripts/deps.sh build triton
	@$(SUBMAKE) $(TRITON_BACKEND)

.PHONY: check-triton
check-triton: ## the backend in the real server, which is downloaded the first time; not in check
	@scripts/deps.sh build triton
	@$(SUBMAKE) $(TRITON_BACKEND) sim
	@loader/bindings/triton/install.sh $(TRITON_WHEEL) '$(TRITON_DIR)' || { status=$$?; [ $$status -eq 77 ]; exit; }; \
		KILN_BUILD=$(OUT) TRITON_DIR='$(TRITON_DIR)' tests/bindings/triton.sh
