# Measurements, for people to read: no test depends on a time.

# Drivers that do nothing, under the drivers' own names, and the programs that tests/bench/*.sh run.
NULL_DRIVERS := $(OUT)/bench/null/libcuda.so.1 $(OUT)/bench/null/libhsa-runtime64.so.1
BENCHES      := $(OUT)/bench/launch_overhead $(OUT)/bench/first_use $(OUT)/bench/select_bench $(OUT)/bench/cpu_ops_bench \
	$(OUT)/bench/cpu_gemm_bench $(OUT)/bench/cpu_story_bench $(OUT)/bench/ptx_speed $(OUT)/bench/amd_speed \
	$(OUT)/bench/gpu_copy

$(OUT)/bench/null/libcuda.so.1: tests/bench/null_cuda.c loader/cuda/symbols.def loader/cuda/cuda_abi.h
$(OUT)/bench/null/libcuda.so.1: NULL := -DNULL_CUDA
$(OUT)/bench/null/libhsa-runtime64.so.1: tests/bench/null_hsa.c loader/rocm/symbols.def loader/rocm/rocm_abi.h
$(OUT)/bench/null/libhsa-runtime64.so.1: NULL := -DNULL_HSA
$(NULL_DRIVERS): tests/bench/null_others.c $(FLAGS)
	@mkdir -p $(@D)
	$(CC) $(KILN_CFLAGS) $(NULL) -shared -Wl,-soname,$(@F) -o $@ $(filter %.c,$^) $(KILN_LDFLAGS)

# The library's own calls of these go to the program, which counts them.
$(OUT)/bench/launch_overhead: KILN_LDFLAGS += $(addprefix -Wl$(comma)--wrap=,malloc calloc realloc posix_memalign \
	pthread_mutex_lock pthread_once)

# The example's model, and the plain one at each level, as the kernels are compiled.
$(OUT)/bench/cpu_story_bench: $(patsubst %,$(OBJ)/docs/examples/llama/%.o,checkpoint codes decoder forward graph groups quantised weights) \
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

.PHONY: bench bench-programs bench-cpu bench-gpu bench-graphs check-launch
bench-programs: $(BENCHES) $(NULL_DRIVERS) $(OUT)/kiln ## build what bench runs, and measure nothing
check-launch: ## fails where a call takes the host more instructions than its limit: docs/benchmarks/launch.md
	@scripts/deps.sh launch
	@$(SUBMAKE) bench-programs
	@tests/bench/launch_overhead.sh $(OUT)/bench/launch_overhead $(OUT)/bench/null $(config)
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
## BENCH_GRAPHS: options of bench-graphs: make bench-graphs BENCH_GRAPHS="--only gemm,mha"
BENCH_GRAPHS ?=
bench-graphs: ## operators as CUDA graphs beside PyTorch on the same tensors, compared with it first: docs/real-gpu.md
	@scripts/deps.sh gpu
	@$(SUBMAKE) all $(PYTHON_OBJECTS)
	@PYTHONPATH=$(PYTHON_BINDING) KILN_LIBRARY=$(CURDIR)/$(OUT)/libkiln.so.0 $(PYTHON) scripts/bench_graphs.py $(BENCH_GRAPHS)
bench: ## instructions of a launch, first use, selection, CPU kernels, interpreters, a clean build; wants config=release
	@scripts/deps.sh bench
	@$(SUBMAKE) bench-programs
	-@tests/bench/launch_overhead.sh $(OUT)/bench/launch_overhead $(OUT)/bench/null $(config)
	@tests/bench/first_use.sh $(OUT)/bench/first_use $(config)
	@$(OUT)/bench/select_bench $(config)
	@$(SUBMAKE) bench-cpu
	@$(OUT)/bench/ptx_speed
	@$(OUT)/bench/amd_speed
	@$(OUT)/kiln bench --device cpu
	@tests/bench/build.sh

test-programs: $(OUT)/bench/gpu_copy
