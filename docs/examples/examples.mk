# The examples: docs/examples/<name>.c is build/examples/<name>.

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

## MODEL_DIR: where stories260K.bin and tok512.bin are, for make story and its test
MODEL_DIR ?= ../shared/models
export MODEL_DIR

.PHONY: story
story: ## a real model tells its story on the CPU and on simulated GPUs
	@$(SUBMAKE) all sim examples
	@scripts/story.sh $(OUT) $(MODEL_DIR)
