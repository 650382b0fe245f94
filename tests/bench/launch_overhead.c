/* What a launch costs the host before the driver: COUNT launches in a loop, on DEVICES devices in turn, against drivers
 * that do nothing (null_cuda.c, null_hsa.c). scripts count its instructions:
 *
 *     launch_overhead MODE DEVICES COUNT [current] [sealed]
 *
 *     direct     cuLaunchKernel with a packed buffer, called as an application of one device would
 *     switched   the same after cuCtxSetCurrent, without which an application of several devices cannot launch
 *     launch     kiln_launch of the same on CUDA
 *     mul_add    kiln_mul_add_f16: checks, argument struct, launch; so are the others of OPERATOR_CALLS
 *     hsa        kiln_launch on ROCm: a whole dispatch
 *
 *     current    the thread has the context of CUDA device 0 current, as in an application that uses CUDA itself; else
 *                none
 *     sealed     the loop runs where every system call but write kills
 *
 * Everything is loaded and has run before the loop. Prints the allocations and locks of the loop: those of libkiln.a,
 * whose calls the linker sends here (--wrap). */
#include "loader/cuda/cuda_abi.h"
#include <dlfcn.h>
#include <kiln/ops.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DEVICES_MAX = 4, GROUPS = 7, THREADS = 256 };

/* ---- Counting ---------------------------------------------------------------------------------------------------- */

static unsigned long allocations, locks;

#define COUNTED(counter, result, name, parameters, arguments) \
    result __real_##name parameters;                          \
    result __wrap_##name parameters;                          \
    result __wrap_##name parameters {                         \
        counter++;                                            \
        return __real_##name arguments;                       \
    }
COUNTED(allocations, void *, malloc, (size_t size), (size))
COUNTED(allocations, void *, calloc, (size_t count, size_t size), (count, size))
COUNTED(allocations, void *, realloc, (void *memory, size_t size), (memory, size))
COUNTED(allocations, int, posix_memalign, (void **out_memory, size_t alignment, size_t size),
        (out_memory, alignment, size))
COUNTED(locks, int, pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex))
COUNTED(locks, int, pthread_once, (pthread_once_t * once, void (*routine)(void)), (once, routine))

/* ---- What is launched -------------------------------------------------------------------------------------------- */

typedef struct bench_arguments {
    uint64_t words[6];
} bench_arguments;

static const char *const kernel_names[] = {"bench"};
static const kiln_kernel_info kernels[] = {{.name = "bench", .arguments_size = sizeof(bench_arguments)}};
static const kiln_image images[] = {{.target = "sm_75",
                                     .data = "// the null driver reads no PTX",
                                     .size = sizeof "// the null driver reads no PTX" - 1,
                                     .kind = KILN_IMAGE_PTX,
                                     .format_version = 63,
                                     .driver_version = 10000,
                                     .kernel_size = sizeof(kiln_kernel_info),
                                     .kernels = kernels}};
static const kiln_part parts[] = {{.name = "f16",
                                   .images = images,
                                   .kernel_names = kernel_names,
                                   .image_count = 1,
                                   .image_size = sizeof(kiln_image),
                                   .kernel_count = 1}};
static const kiln_bundle bench_bundle = {
    .version = KILN_BUNDLE_VERSION, .part_size = sizeof(kiln_part), .name = "bench", .parts = parts, .part_count = 1};

/* They have code objects, whose metadata a ROCm device reads. */
#define KILN_OPERATOR(name) extern const kiln_bundle kiln__bundle_##name;
#include "kernels/ops.def"
#undef KILN_OPERATOR

typedef kiln__cu_result (*set_function)(kiln__cu_context context);
typedef kiln__cu_result (*launch_function)(kiln__cu_function function, unsigned grid_x, unsigned grid_y,
                                           unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                                           unsigned shared_bytes, kiln__cu_stream stream, void **parameters,
                                           void **extra);

/* What is launched where; the devices' targets are a ring. */
typedef struct bench_target {
    kiln_stream stream;
    const kiln_kernel *kernel;
    struct bench_target *next;
    kiln__cu_context context;
} bench_target;

static struct {
    bench_target targets[DEVICES_MAX];
    size_t arguments_size;
    launch_function cuLaunchKernel;
    set_function cuCtxSetCurrent;
    char *tensor, *other;
    int32_t *numbers;
    int64_t *frequencies;
} bench;

/* Finds what an application of CUDA calls itself. */
static void find_driver(int devices) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) abort();
    kiln__cu_result (*retain)(kiln__cu_context * out_context, kiln__cu_device device) =
        (kiln__cu_result(*)(kiln__cu_context *, kiln__cu_device))dlsym(driver, "cuDevicePrimaryCtxRetain");
    bench.cuLaunchKernel = (launch_function)dlsym(driver, "cuLaunchKernel");
    bench.cuCtxSetCurrent = (set_function)dlsym(driver, "cuCtxSetCurrent");
    if (!retain || !bench.cuLaunchKernel || !bench.cuCtxSetCurrent) abort();
    for (int i = 0; i < devices; i++) {
        if (retain(&bench.targets[i].context, i)) abort();
    }
}

static void require(kiln_status status) {
    if (status == KILN_OK) return;
    fprintf(stderr, "launch_overhead: %s\n", kiln_last_error());
    exit(1);
}

static void open_devices(kiln_backend_id backend, const kiln_bundle *bundle, int devices) {
    for (int i = 0; i < devices; i++) {
        const kiln_device_options options = {.backend = backend, .ordinal = i};
        const kiln_module *module;
        kiln_part part;
        kiln_kernel_attributes attributes;
        kiln_device *device;
        require(kiln_device_open(&options, &device));
        require(kiln_stream_open(device, 0, &bench.targets[i].stream));
        require(kiln_module_get(device, bundle, "f16", &module));
        require(kiln_bundle_find_part(bundle, "f16", &part));
        require(kiln_module_find_kernel(module, part.kernel_names[0], &bench.targets[i].kernel));
        require(kiln_kernel_get_attributes(bench.targets[i].kernel, &attributes));
        bench.arguments_size = attributes.arguments_size;
        bench.targets[i].next = &bench.targets[(i + 1) % devices];
    }
}

/* ---- The loops --------------------------------------------------------------------------------------------------- */

static inline __attribute__((always_inline)) void run_directly(long count, bool switched) {
    bench_arguments arguments = {{1, 2, 3, 4, 5, 6}};
    bench_target *target = bench.targets;
    for (; count > 0; count--, target = target->next) {
        size_t size = sizeof arguments;
        void *extra[] = {KILN__CU_LAUNCH_PARAM_BUFFER_POINTER, &arguments, KILN__CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                         KILN__CU_LAUNCH_PARAM_END};
        if (switched && bench.cuCtxSetCurrent(target->context)) abort();
        if (bench.cuLaunchKernel((kiln__cu_function)(void *)&bench, GROUPS, 1, 1, THREADS, 1, 1, 0,
                                 target->stream.native, NULL, extra))
            abort();
    }
}

static void __attribute__((noinline)) run_direct(long count) {
    run_directly(count, false);
}

static void __attribute__((noinline)) run_switched(long count) {
    run_directly(count, true);
}

static void __attribute__((noinline)) run_launch(long count) {
    uint64_t arguments[64] = {1, 2, 3, 4, 5, 6};
    const kiln_launch_config config = {.grid = {GROUPS, 1, 1}, .block = {THREADS, 1, 1}};
    bench_target *target = bench.targets;
    for (; count > 0; count--, target = target->next) {
        if (kiln_launch(&target->stream, target->kernel, &config, arguments, bench.arguments_size)) abort();
    }
}

/* The operators' calls: CALL(mode, operator, params...). For the first ones a step of four sequences through a layer of
 * 1024 columns and 8 heads; _packed, _long and _tiles are calls that take another way. */
#define OPERATOR_CALLS(CALL)                                                                                           \
    CALL(mul_add, mul_add, .y = bench.tensor, .a = bench.tensor, .b = bench.tensor, .c = bench.tensor, .count = 4096)  \
    CALL(add, add, .y = bench.tensor, .a = bench.tensor, .b = bench.tensor, .count = 4096)                             \
    CALL(softmax, softmax, .y = bench.tensor, .x = bench.tensor, .rows = 4, .cols = 1024)                              \
    CALL(silu_mul, silu_mul, .y = bench.tensor, .gate = bench.tensor, .up = bench.tensor, .rows = 4, .cols = 1024)     \
    CALL(silu_mul_packed, silu_mul, .y = bench.tensor, .gate = bench.tensor + 4096, .rows = 4, .cols = 1024)           \
    CALL(silu_mul_long, silu_mul, .y = bench.tensor, .gate = bench.tensor, .up = bench.tensor, .rows = 4,              \
         .cols = 11008)                                                                                                \
    CALL(add_gelu, add_gelu, .y = bench.tensor, .x = bench.tensor, .bias = bench.tensor, .rows = 4, .cols = 1024)      \
    CALL(add_gelu_long, add_gelu, .y = bench.tensor, .x = bench.tensor, .bias = bench.tensor, .rows = 4,               \
         .cols = 16384)                                                                                                \
    CALL(rmsnorm, rmsnorm, .y = bench.tensor, .x = bench.tensor, .weight = bench.tensor, .rows = 4, .cols = 1024)      \
    CALL(add_rmsnorm, add_rmsnorm, .y = bench.tensor, .sum = bench.other, .x = bench.tensor, .residual = bench.other,  \
         .weight = bench.tensor, .rows = 4, .cols = 1024)                                                              \
    CALL(embedding, embedding, .y = bench.tensor, .table = bench.tensor, .ids = bench.numbers, .rows = 4,              \
         .cols = 1024, .vocabulary = 32000)                                                                            \
    CALL(engram_gate, engram_gate, .y = bench.tensor, .normed = bench.other, .key = bench.tensor,                      \
         .query = bench.tensor, .value = bench.other, .tokens = 4, .groups = 4, .cols = 1024)                          \
    CALL(engram_hash, engram_hash, .rows = bench.frequencies, .ids = bench.numbers, .history = bench.numbers,          \
         .multipliers = bench.frequencies, .primes = bench.frequencies, .tokens = 4, .batch = 4, .layers = 2,          \
         .orders = 2, .heads = 8)                                                                                      \
    CALL(causal_conv1d, causal_conv1d, .y = bench.tensor, .final_states = bench.other, .x = bench.other,               \
         .weight = bench.tensor, .residual = bench.tensor, .initial_states = bench.other, .tokens = 4,                 \
         .channels = 4096, .batch = 4, .width = 4, .dilation = 3)                                                      \
    CALL(rope, rope, .y = bench.tensor, .x = bench.tensor, .positions = bench.numbers,                                 \
         .frequencies = bench.frequencies, .tokens = 4, .heads = 8, .pairs = 64)                                       \
    CALL(kv_store, kv_store, .key_cache = bench.tensor, .value_cache = bench.other, .key = bench.tensor,               \
         .value = bench.other, .slot_mapping = bench.numbers, .tokens = 4, .cols = 1024, .capacity = 65536)            \
    CALL(rope_kv_store, rope_kv_store, .query_out = bench.tensor, .key_cache = bench.tensor,                           \
         .value_cache = bench.other, .query = bench.tensor, .key = bench.other, .value = bench.other,                  \
         .slot_mapping = bench.numbers, .positions = bench.numbers, .frequencies = bench.frequencies, .tokens = 4,     \
         .heads = 8, .kv_heads = 8, .head_dim = 128, .pairs = 64, .capacity = 4096)                                    \
    CALL(rope3d, rope3d, .y = bench.tensor, .x = bench.tensor, .grids = bench.numbers + 1,                             \
         .frequencies = bench.frequencies, .batch = 1, .tokens = 4, .heads = 8, .pairs = 64)                           \
    CALL(kv_compact, kv_compact, .key_cache = bench.tensor, .value_cache = bench.other, .slot_mapping = bench.numbers, \
         .path = bench.numbers, .accepted = bench.numbers, .batch = 4, .nodes = 4, .depth = 2, .cols = 1024,           \
         .capacity = 64)                                                                                               \
    CALL(kv_copy_blocks, kv_copy_blocks, .key_cache = bench.tensor, .value_cache = bench.other,                        \
         .pairs = bench.numbers, .count = 4, .blocks = 64, .cols = 16384)                                              \
    CALL(mha, mha, .out = bench.other, .q = bench.tensor, .k = bench.tensor, .v = bench.tensor, .tokens = 4,           \
         .kv_tokens = 1024, .batch = 4, .heads = 8, .kv_heads = 8, .head_dim = 128, .causal = 1)                       \
    CALL(mha_paged, mha_paged, .out = bench.other, .q = bench.tensor, .k_cache = bench.tensor,                         \
         .v_cache = bench.tensor, .block_table = bench.numbers, .seqlens_k = bench.numbers, .tokens = 4,               \
         .blocks = 4096, .block_size = 16, .batch = 4, .max_blocks_per_seq = 64, .heads = 8, .kv_heads = 8,            \
         .head_dim = 128, .causal = 1)                                                                                 \
    CALL(mha_fp8_fwd, mha_fp8_fwd, .out = bench.other, .q = (void *)bench.tensor, .k = (void *)bench.tensor,           \
         .v = (void *)bench.tensor, .q_scales = (void *)bench.tensor, .k_scales = (void *)bench.tensor,                \
         .v_scales = (void *)bench.tensor, .tokens = 4, .kv_tokens = 1024, .batch = 4, .heads = 8, .kv_heads = 8,      \
         .head_dim = 128, .causal = 1)                                                                                 \
    CALL(mha_int8_x_fp8_fwd, mha_int8_x_fp8_fwd, .out = bench.other, .q = (void *)bench.tensor,                        \
         .k = (void *)bench.tensor, .v = (void *)bench.tensor, .q_scales = (void *)bench.tensor,                       \
         .k_scales = (void *)bench.tensor, .v_scales = (void *)bench.tensor, .tokens = 4, .kv_tokens = 1024,           \
         .batch = 4, .heads = 8, .kv_heads = 8, .head_dim = 128, .causal = 1)                                          \
    CALL(mha_quantize, mha_quantize, .q_codes = bench.other, .q_scales = (void *)bench.numbers, .q = bench.tensor,     \
         .tokens = 4, .heads = 8, .head_dim = 128)                                                                     \
    CALL(mha_nvfp4_fwd, mha_nvfp4_fwd, .out = bench.other, .q = (void *)bench.tensor, .k = (void *)bench.tensor,       \
         .v = (void *)bench.tensor, .q_block_scales = (void *)bench.tensor, .k_block_scales = (void *)bench.tensor,    \
         .v_block_scales = (void *)bench.tensor, .q_scales = (void *)bench.tensor, .k_scales = (void *)bench.tensor,   \
         .v_scales = (void *)bench.tensor, .tokens = 4, .kv_tokens = 1024, .batch = 4, .heads = 8, .kv_heads = 8,      \
         .head_dim = 128, .causal = 1)                                                                                 \
    CALL(mha_quantize_nvfp4, mha_quantize_nvfp4, .q_codes = (void *)bench.other,                                       \
         .q_block_scales = (void *)bench.numbers, .q_scales = (void *)bench.numbers, .q = bench.tensor, .tokens = 4,   \
         .heads = 8, .head_dim = 128)                                                                                  \
    CALL(gemm, gemm, .d = bench.other, .a = bench.tensor, .b = bench.tensor, .batch = 1, .m = 4, .n = 1024, .k = 1024) \
    CALL(gemm_tiles, gemm, .d = bench.other, .a = bench.tensor, .b = bench.tensor, .batch = 1, .m = 512, .n = 1024,    \
         .k = 1024)                                                                                                    \
    CALL(gemm_w4a16, gemm_w4a16, .d = bench.other, .a = bench.tensor, .weights = (void *)bench.tensor,                 \
         .scales = bench.tensor, .m = 4, .n = 1024, .k = 1024, .group = 128)                                           \
    CALL(gemm_fp8, gemm_fp8, .d = bench.other, .a = (void *)bench.tensor, .b = (void *)bench.tensor,                   \
         .a_scales = (void *)bench.numbers, .b_scales = (void *)bench.numbers, .m = 4, .n = 1024, .k = 1024)           \
    CALL(gemm_int8, gemm_int8, .d = bench.other, .a = (void *)bench.tensor, .b = (void *)bench.tensor,                 \
         .a_scales = (void *)bench.numbers, .b_scales = (void *)bench.numbers, .m = 4, .n = 1024, .k = 1024)           \
    CALL(gemm_nvfp4, gemm_nvfp4, .d = bench.other, .a = (void *)bench.tensor, .b = (void *)bench.tensor,               \
         .a_scales = (void *)bench.numbers, .b_scales = (void *)bench.numbers,                                         \
         .a_global_scale = (void *)bench.numbers, .b_global_scale = (void *)bench.numbers, .m = 4, .n = 1024,          \
         .k = 1024, .a_scale_rows = 4, .a_scale_cols = 64, .b_scale_rows = 1024, .b_scale_cols = 64,                   \
         .a_global_rows = 1, .b_global_rows = 1)                                                                       \
    CALL(quantize_fp8, quantize_fp8, .codes = (void *)bench.other, .scales = (void *)bench.numbers, .x = bench.tensor, \
         .rows = 4, .cols = 1024, .scale_rows = 4, .scale_cols = 1)                                                    \
    CALL(quantize_int8, quantize_int8, .codes = (void *)bench.other, .scales = (void *)bench.numbers,                  \
         .x = bench.tensor, .rows = 4, .cols = 1024, .scale_rows = 4, .scale_cols = 1)                                 \
    CALL(quantize_nvfp4, quantize_nvfp4, .codes = (void *)bench.other, .scales = (void *)bench.numbers,                \
         .x = bench.tensor, .given = (void *)bench.numbers, .rows = 4, .cols = 1024, .scale_rows = 4,                  \
         .scale_cols = 64, .global_rows = 1)                                                                           \
    CALL(rmsnorm_fp8, rmsnorm_fp8, .codes = (void *)bench.tensor, .scales = (void *)bench.numbers, .sum = bench.other, \
         .x = bench.tensor, .residual = bench.other, .weight = bench.tensor, .rows = 4, .cols = 1024)                  \
    CALL(rmsnorm_int8, rmsnorm_int8, .codes = (void *)bench.tensor, .scales = (void *)bench.numbers,                   \
         .x = bench.tensor, .weight = bench.tensor, .rows = 4, .cols = 1024)                                           \
    CALL(rmsnorm_nvfp4, rmsnorm_nvfp4, .codes = (void *)bench.tensor, .scales = (void *)bench.other,                   \
         .x = bench.tensor, .weight = bench.tensor, .rows = 4, .cols = 1024, .scale_rows = 4, .scale_cols = 64)        \
    CALL(silu_mul_fp8, silu_mul_fp8, .codes = (void *)bench.other, .scales = (void *)bench.numbers,                    \
         .gate = bench.tensor, .up = bench.tensor, .rows = 4, .cols = 1024)                                            \
    CALL(silu_mul_int8, silu_mul_int8, .codes = (void *)bench.other, .scales = (void *)bench.numbers,                  \
         .gate = bench.tensor, .rows = 4, .cols = 1024)                                                                \
    CALL(silu_mul_nvfp4, silu_mul_nvfp4, .codes = (void *)bench.other, .scales = (void *)bench.numbers,                \
         .gate = bench.tensor, .up = bench.tensor, .rows = 4, .cols = 1024, .scale_rows = 4, .scale_cols = 64)         \
    CALL(dequantize_fp8, dequantize_fp8, .y = bench.tensor, .codes = (void *)bench.other,                              \
         .scales = (void *)bench.numbers, .rows = 4, .cols = 1024)                                                     \
    CALL(dequantize_int8, dequantize_int8, .y = bench.tensor, .codes = (void *)bench.other,                            \
         .scales = (void *)bench.numbers, .rows = 4, .cols = 1024)                                                     \
    CALL(dequantize_w4a16, dequantize_w4a16, .y = bench.tensor, .weights = (void *)bench.other, .scales = bench.other, \
         .n = 4, .k = 1024, .group = 128)                                                                              \
    CALL(dequantize_nvfp4, dequantize_nvfp4, .y = bench.tensor, .codes = (void *)bench.other,                          \
         .scales = (void *)bench.numbers, .global_scale = (void *)bench.numbers, .rows = 4, .cols = 1024,              \
         .scale_rows = 4, .scale_cols = 64, .global_rows = 1)                                                          \
    CALL(amax, amax, .y = (void *)bench.numbers, .x = bench.tensor, .rows = 4, .cols = 1024, .scale_rows = 4,          \
         .scale_cols = 1)                                                                                              \
    CALL(argmax, argmax, .y = bench.numbers, .x = bench.tensor, .rows = 4, .cols = 1024)                               \
    CALL(log_softmax, log_softmax, .y = bench.other, .lse = (void *)bench.numbers, .x = bench.tensor, .rows = 4,       \
         .cols = 1024)                                                                                                 \
    CALL(tree_verify_sampled, tree_verify_sampled, .path = bench.numbers, .accepted = bench.numbers,                   \
         .next = bench.numbers, .target = bench.tensor, .tokens = bench.numbers, .parents = bench.numbers, .batch = 1, \
         .nodes = 4, .depth = 2, .vocabulary = 256, .trees = 1)                                                        \
    CALL(softmax_update, softmax_update, .states = (void *)bench.other, .lse = (void *)bench.numbers,                  \
         .x = bench.tensor, .before = (void *)bench.other, .rows = 4, .cols = 1024)                                    \
    CALL(merge_attention_states, merge_attention_states, .out = bench.other, .x = bench.tensor,                        \
         .x_lse = (void *)bench.numbers, .parts = 2, .tokens = 4, .heads = 2, .head_dim = 64)                          \
    CALL(top_k, top_k, .values = bench.other, .indices = bench.numbers, .x = bench.tensor, .rows = 4, .cols = 1024,    \
         .k = 8)                                                                                                       \
    CALL(sample, sample, .y = bench.numbers, .x = bench.tensor, .row_seed = bench.frequencies, .rows = 4,              \
         .cols = 32000, .temperature = 0.8f, .top_p = 0.9f)                                                            \
    CALL(tree_accept, tree_accept, .path = bench.numbers, .accepted = bench.numbers, .next = bench.numbers,            \
         .targets = bench.numbers, .tokens = bench.numbers, .parents = bench.numbers, .batch = 1, .nodes = 4,          \
         .depth = 2, .trees = 1)                                                                                       \
    CALL(quantize_embedding, quantize_embedding, .codes = (void *)bench.other, .scales = (void *)bench.numbers,        \
         .x = bench.tensor, .rows = 4, .cols = 1024, .code_cols = 128)                                                 \
    CALL(vector_search, vector_search, .indices = bench.numbers, .query_codes = (void *)bench.other,                   \
         .table_codes = (void *)bench.tensor, .queries = 1, .rows = 16, .code_cols = 128, .k = 4)

#define OPERATOR_LOOP(mode, op, ...)                                \
    static void __attribute__((noinline)) run_##mode(long count) {  \
        bench_target *target = bench.targets;                       \
        for (; count > 0; count--, target = target->next) {         \
            const kiln_##op##_params params = {__VA_ARGS__};        \
            if (kiln_##op##_f16(&target->stream, &params)) abort(); \
        }                                                           \
    }
OPERATOR_CALLS(OPERATOR_LOOP)

/* ---- Main -------------------------------------------------------------------------------------------------------- */

typedef struct bench_mode {
    const char *name;
    kiln_backend_id backend;
    const kiln_bundle *bundle;
    void (*run)(long count);
} bench_mode;

static const bench_mode modes[] = {
    {"direct", KILN_BACKEND_CUDA, &bench_bundle, run_direct},
    {"switched", KILN_BACKEND_CUDA, &bench_bundle, run_switched},
    {"launch", KILN_BACKEND_CUDA, &bench_bundle, run_launch},
#define OPERATOR_MODE(mode, op, ...) {#mode, KILN_BACKEND_CUDA, &kiln__bundle_##op, run_##mode},
    OPERATOR_CALLS(OPERATOR_MODE){"hsa", KILN_BACKEND_ROCM, &kiln__bundle_mul_add, run_launch},
};

static void report(const char *text) {
    if (write(STDOUT_FILENO, text, strlen(text)) < 0) abort();
}

int main(int argc, char **argv) {
    const bench_mode *mode = NULL;
    for (size_t i = 0; argc > 3 && i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(argv[1], modes[i].name) == 0) mode = &modes[i];
    int devices = mode ? atoi(argv[2]) : 0;
    if (devices < 1 || devices > DEVICES_MAX) {
        fprintf(stderr, "usage: launch_overhead MODE DEVICES COUNT [current] [sealed]\n");
        return 2;
    }
    bool sealed = false, current = false;
    for (int i = 4; i < argc; i++) {
        if (strcmp(argv[i], "sealed") == 0) sealed = true;
        if (strcmp(argv[i], "current") == 0) current = true;
    }
    open_devices(mode->backend, mode->bundle, devices);
    if (mode->backend == KILN_BACKEND_CUDA) {
        find_driver(devices);
        if (current && bench.cuCtxSetCurrent(bench.targets[0].context)) abort();
    }
    /* Nothing reads or writes them. */
    bench.tensor = aligned_alloc(256, 1 << 16);
    bench.other = aligned_alloc(256, 1 << 16);
    bench.numbers = aligned_alloc(256, 1 << 16);
    bench.frequencies = aligned_alloc(256, 1 << 16);
    mode->run(2 * devices);

    allocations = locks = 0;
    if (sealed && prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) {
        report("system calls: not counted, this kernel has no seccomp\n");
        return 0;
    }
    mode->run(atol(argv[3]));
    char text[128];
    snprintf(text, sizeof text, "allocations: %lu, locks: %lu, system calls: %s\n", allocations, locks,
             sealed ? "0" : "not counted");
    report(text);
    if (sealed) syscall(SYS_exit, 0);
    return 0;
}
