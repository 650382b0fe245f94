# NVIDIA Triton Inference Server's backend: docs/serving.md.

# What the backend has of the Llama example, and the scheduler, which needs no server.
TRITON_LLAMA     := $(patsubst %,$(OBJ)/docs/examples/llama/%.o,checkpoint forward tokenizer weights)
TRITON_SCHEDULER := $(patsubst %,$(OBJ)/loader/bindings/triton/%.o,engine paged_llama scheduler)

# The scheduler beside the example's decoder.
$(OUT)/tests/bindings/scheduler_test: $(TRITON_SCHEDULER) $(TRITON_LLAMA) $(patsubst %,$(OBJ)/docs/examples/llama/%.o,decoder graph)
