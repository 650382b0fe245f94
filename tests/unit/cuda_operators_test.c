/* Every operator with a strict driver. Nothing is executed; what is shown is that
 *
 * - on every architecture the image that selection picks is one that loads, and the driver agrees on its kernels and
 * the size of their arguments;
 * - every operator can be captured in a graph: a call that is loaded makes launches, and no other call;
 * - gemm chooses among an image's kernels by the sizes of the product. */
#include "tests/unit/cuda_fixture.h"

#include <kiln/ops.h>

static const char devices[] = "sm_75,sm_80,sm_86,sm_87,sm_89,sm_90,sm_100,sm_103,sm_120,sm_121";
enum { DEVICE_COUNT = 10 };

/* The portable images' targets, by device. */
static const char *const expected[DEVICE_COUNT] = {"sm_75", "sm_80",  "sm_86",  "sm_86",  "sm_86",
                                                   "sm_90", "sm_100", "sm_100", "sm_120", "sm_120"};

typedef struct tally {
    int results, wrong;
} tally;

/* Whether an image's target is the expected one, that chip's own, with an a, or its family's, with an f. */
static bool is_of(const char *target, const char *chip) {
    const size_t length = strlen(chip);
    const char *end = target + length;
    return !strncmp(target, chip, length) && (!*end || !strcmp(end, "a") || !strcmp(end, "f"));
}

static void count_result(void *user, const kiln_preload_result *result) {
    tally *counted = user;
    kiln_device_info info;
    counted->results++;
    kiln_device_get_info(result->device, &info);
    const char *own = strrchr(info.name, ' ') + 1; /* "kiln simulated sm_89", of which some operators have images */
    if (result->status == KILN_OK && (is_of(result->target, expected[info.ordinal]) || is_of(result->target, own)))
        return;
    print_error("%s %s on %s: %s\n", result->bundle->name, result->part, info.name, result->text);
    counted->wrong++;
}

static void test_every_operator_loads_on_every_architecture(void **state) {
    (void)state;
    const kiln_bundle *const *bundles;
    size_t bundle_count;
    kiln_device *opened[DEVICE_COUNT];
    tally counted = {0, 0};
    int parts = 0;
    assert_ok(kiln_all_bundles(&bundles, &bundle_count));
    assert_true(bundle_count > 0);
    for (size_t i = 0; i < bundle_count; i++)
        parts += (int)bundles[i]->part_count;
    for (int32_t i = 0; i < DEVICE_COUNT; i++)
        opened[i] = fixture_open(i);
    assert_ok(kiln_preload(opened, DEVICE_COUNT, bundles, bundle_count, count_result, &counted));
    assert_int_equal(counted.wrong, 0);
    assert_int_equal(counted.results, parts * DEVICE_COUNT);
    for (int32_t i = 0; i < DEVICE_COUNT; i++)
        kiln_device_close(opened[i]);
}

/* ---- Captures ---- */

enum { SIZE_VALUE = 128, TENSOR_BYTES = 1 << 20, TENSOR_STEP = 256, PARAMS_MAX = 512 };

/* Whether a size has few values that an operator takes: a convolution's width, the orders of n-grams, blocks or
 * pairs of a head. */
static bool is_limited(const kiln_field *field) {
    static const char *const names[] = {"width", "orders", "head_blocks", "pairs"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(field->name, names[i]) == 0) return true;
    return false;
}

/* Fills an operator's params from its description: tensors one after the other from a place on, every size the same, or
 * what is typical where that is 1 or the size is limited. */
static void fill_params(const kiln_operator *described, uint8_t *params, void *tensor) {
    const char *place = tensor;
    memset(params, 0, PARAMS_MAX);
    for (uint32_t i = 0; i < described->field_count; i++) {
        const kiln_field *field = &described->fields[i];
        int64_t size = field->typical == 1 || is_limited(field) ? field->typical : SIZE_VALUE;
        if (field->role == KILN_FIELD_INPUT || field->role == KILN_FIELD_OUTPUT || field->role == KILN_FIELD_UPDATE) {
            memcpy(params + field->offset, &place, sizeof place);
            place += TENSOR_STEP;
        }
        if (field->role == KILN_FIELD_SIZE) memcpy(params + field->offset, &size, sizeof size);
    }
}

/* Gives the call the workspace that it needs, in the second half of the tensors' memory. */
static void give_workspace(kiln_stream *stream, const kiln_operator *described, const kiln_operator_function *function,
                           uint8_t *params, void *tensor) {
    size_t size = 0;
    void *workspace = (char *)tensor + TENSOR_BYTES / 2;
    if (!function->workspace_size) return;
    assert_ok(function->workspace_size(stream, params, described->params_size, &size));
    assert_in_range(size, 0, TENSOR_BYTES / 2);
    for (uint32_t i = 0; size && i < described->field_count; i++) {
        const kiln_field *field = &described->fields[i];
        if (field->role == KILN_FIELD_WORKSPACE) memcpy(params + field->offset, &workspace, sizeof workspace);
        if (field->role == KILN_FIELD_WORKSPACE_SIZE) memcpy(params + field->offset, &size, sizeof size);
    }
}

/* Whether a launch reads or writes one of the tensors that fill_params placed. */
static bool has_tensor(const sim_launch *launch, const kiln_operator *described, const void *tensor) {
    const char *place = tensor;
    for (uint32_t i = 0; i < described->field_count; i++, place += TENSOR_STEP)
        if (memmem(launch->arguments, launch->arguments_size, &place, sizeof place)) return true;
    return false;
}

static void capture_function(kiln_stream *stream, const kiln_operator *described,
                             const kiln_operator_function *function, void *tensor) {
    enum { CAPTURE_GLOBAL = 0 };
    uint8_t params[PARAMS_MAX];
    struct CUgraph_st *graph;
    sim_launch seen;
    assert_in_range(described->params_size, 1, PARAMS_MAX);
    fill_params(described, params, tensor);
    give_workspace(stream, described, function, params, tensor);
    assert_ok(function->call(stream, params, described->params_size)); /* the first use loads */
    assert_int_equal(cuda.cuStreamBeginCapture(stream->native, CAPTURE_GLOBAL), 0);
    sim.reset();
    assert_ok(function->call(stream, params, described->params_size));
    uint64_t calls = sim.calls("*"), asked = sim.calls("cuCtxGetCurrent"), launched = sim.calls("cuLaunchKernel");
    assert_true(launched > 0);
    assert_int_equal(calls, asked + launched);
    assert_int_equal(sim.launches(), launched);
    for (uint64_t i = 0; i < launched; i++) {
        assert_true(sim.launch(i, &seen));
        assert_true(seen.captured);
        assert_non_null(strstr(seen.kernel, described->name));
        assert_true(has_tensor(&seen, described, tensor));
    }
    assert_int_equal(cuda.cuStreamEndCapture(stream->native, &graph), 0);
    assert_int_equal(cuda.cuGraphDestroy(graph), 0);
}

static void test_every_operator_can_be_captured(void **state) {
    (void)state;
    const kiln_operator *const *operators;
    size_t count;
    kiln_device *device = fixture_open(5);
    kiln__cu_context context;
    kiln_stream stream;
    void *tensor;
    assert_ok(kiln_all_operators(&operators, &count));
    assert_true(count > 0);
    assert_ok(kiln_stream_open(device, 0, &stream));
    assert_ok(kiln_memory_alloc(device, TENSOR_BYTES, &tensor));
    assert_int_equal(cuda.cuDevicePrimaryCtxRetain(&context, 5), 0);
    assert_int_equal(cuda.cuCtxSetCurrent(context), 0);
    for (size_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < operators[i]->function_count; j++)
            capture_function(&stream, operators[i], &operators[i]->functions[j], tensor);
    assert_int_equal(cuda.cuCtxSetCurrent(NULL), 0);
    assert_int_equal(cuda.cuDevicePrimaryCtxRelease(5), 0);
    kiln_memory_free(device, tensor);
    kiln_stream_close(&stream);
    kiln_device_close(device);
}

/* ---- Choices ---- */

enum { ON_SM_90 = 5, MULTIPROCESSORS = 132 };

/* gemm's kernels on sm_90 by the sizes of a product: few rows by their own kernels; else the tile that was the fastest
 * on an H200; blocks that share k, where d has few tiles; and by what is asked for. */
static void test_gemm_chooses_by_sizes(void **state) {
    (void)state;
    static const struct {
        int64_t m, n, k, a_stride;
        kiln_gemm_tile tile;
        const char *kernel;
        uint32_t blocks, launches; /* blocks 0: of no account */
    } rows[] = {
        {1, 8192, 8192, 0, 0, "kiln_gemm_mma_rows_8_bf16", 512, 1},
        {8, 8192, 8192, 0, 0, "kiln_gemm_mma_rows_8_bf16", 512, 1},
        {16, 8192, 8192, 0, 0, "kiln_gemm_mma_rows_16_bf16", 512, 1},
        {8, 8192, 8193, 0, 0, "kiln_gemm_rows_bf16", 0, 1},
        {128, 8192, 8192, 0, 0, "kiln_gemm_wgmma_small_bf16", 128, 1},
        {1024, 1024, 1024, 0, 0, "kiln_gemm_wgmma_small_2_bf16", 128, 1},
        {1024, 1280, 8192, 0, 0, "kiln_gemm_wgmma_small_80_bf16", 128, 1},
        {2048, 2048, 2048, 0, 0, "kiln_gemm_wgmma_large_bf16", 128, 1},
        {1024, 6144, 4096, 0, 0, "kiln_gemm_wgmma_large_192_bf16", MULTIPROCESSORS, 1},
        {1024, 7168, 8192, 0, 0, "kiln_gemm_wgmma_large_224_bf16", MULTIPROCESSORS, 1},
        {512, 8192, 8192, 0, 0, "kiln_gemm_wgmma_large_bf16", 128, 1},
        {4096, 4096, 4096, 0, 0, "kiln_gemm_wgmma_large_bf16", MULTIPROCESSORS, 1},
        {8192, 8192, 8192, 0, 0, "kiln_gemm_wgmma_large_bf16", MULTIPROCESSORS, 1},
        {64, 8192, 8192, 0, 0, "kiln_gemm_wgmma_rows_1_bf16", 128, 1},
        {17, 4096, 4096, 0, 0, "kiln_gemm_wgmma_rows_2_bf16", 128, 1},
        {64, 512, 8192, 0, 0, "kiln_gemm_wgmma_rows_4_bf16", 32, 1},
        {64, 512, 2048, 0, 0, "kiln_gemm_wgmma_rows_2_bf16", 16, 1},
        {64, 512, 2040, 0, 0, "kiln_gemm_wgmma_rows_1_bf16", 8, 1},
        {65, 512, 8192, 0, 0, "kiln_gemm_wgmma_small_bf16", 128, 2},
        {4096, 4096, 4096, 4097, 0, "kiln_gemm_tiles_bf16", 0, 1},
        {4096, 4096, 4096, 0, KILN_GEMM_TILE_PORTABLE, "kiln_gemm_tiles_bf16", 0, 1},
        {4096, 4096, 4096, 0, KILN_GEMM_TILE_SMALL, "kiln_gemm_wgmma_small_2_bf16", MULTIPROCESSORS, 1},
        {130, 256, 4096, 0, KILN_GEMM_TILE_LARGE, "kiln_gemm_wgmma_large_bf16", 16, 2},
        {16384, 64, (int64_t)1 << 28, (int64_t)1 << 39, 0, "kiln_gemm_tiles_bf16", 0, 1},
    };
    kiln_device *device = fixture_open(ON_SM_90);
    kiln_stream stream;
    void *memory;
    assert_ok(kiln_stream_open(device, 0, &stream));
    assert_ok(kiln_memory_alloc(device, TENSOR_BYTES, &memory));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kiln_gemm_params params = {.d = memory, .a = memory, .b = memory, .batch = 1};
        params.m = rows[i].m;
        params.n = rows[i].n;
        params.k = rows[i].k;
        params.a_stride = rows[i].a_stride;
        params.tile = (int32_t)rows[i].tile;
        if (rows[i].launches > 1) {
            params.workspace = memory;
            assert_ok(kiln_gemm_bf16_workspace_size(&stream, &params, &params.workspace_size));
        }
        sim.reset();
        assert_ok(kiln_gemm_bf16(&stream, &params));
        static sim_launch seen;
        assert_int_equal(sim.launches(), rows[i].launches);
        assert_true(sim.launch(0, &seen));
        if (strcmp(seen.kernel, rows[i].kernel) != 0) fail_msg("row %zu: %s", i, seen.kernel);
        if (rows[i].blocks) assert_int_equal(seen.grid[0] * seen.grid[1] * seen.grid[2], rows[i].blocks);
        if (strstr(seen.kernel, "wgmma")) assert_int_equal(seen.group[0], strstr(seen.kernel, "rows") ? 160 : 384);
    }
    kiln_memory_free(device, memory);
    kiln_stream_close(&stream);
    kiln_device_close(device);
}

/* The warps of blocks for few rows: as many as let all blocks be there at once; and no more than k has parts for. */
static void test_gemm_gives_few_rows_warps(void **state) {
    (void)state;
    static const struct {
        int64_t m, n, k;
        uint32_t warps;
    } rows[] = {
        {1, 1280, 8192, 16}, {1, 1280, 1024, 8},  {1, 1280, 128, 4},    {8, 4096, 4096, 8},
        {8, 6144, 4096, 8},  {8, 8192, 8192, 4},  {8, 28672, 8192, 8},  {16, 1280, 8192, 16},
        {16, 4096, 4096, 8}, {16, 6144, 4096, 4}, {16, 28672, 8192, 4},
    };
    kiln_device *device = fixture_open(ON_SM_90);
    kiln_stream stream;
    void *memory;
    assert_ok(kiln_stream_open(device, 0, &stream));
    assert_ok(kiln_memory_alloc(device, TENSOR_BYTES, &memory));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kiln_gemm_params params = {.d = memory, .a = memory, .b = memory, .batch = 1};
        params.m = rows[i].m;
        params.n = rows[i].n;
        params.k = rows[i].k;
        sim.reset();
        assert_ok(kiln_gemm_bf16(&stream, &params));
        static sim_launch seen;
        assert_true(sim.launch(0, &seen));
        if (seen.group[0] != 32 * rows[i].warps) fail_msg("row %zu: %u threads", i, seen.group[0]);
    }
    kiln_memory_free(device, memory);
    kiln_stream_close(&stream);
    kiln_device_close(device);
}

/* gemm that normalises and gates: few rows in one launch, but for f16 with its weights; others by a launch before and
 * one after the product. */
static void test_gemm_fuses_few_rows(void **state) {
    (void)state;
    static const struct {
        kiln_status (*call)(kiln_stream *stream, const kiln_gemm_params *params, size_t params_size);
        int64_t m;
        bool norm, gated;
        uint32_t launches, blocks, warps; /* of the first launch; warps 0: of no account */
        const char *kernel;               /* the first */
    } rows[] = {
        {kiln_gemm_bf16_sized, 1, true, false, 1, 256, 8, "kiln_gemm_mma_norm_8_bf16"},
        {kiln_gemm_bf16_sized, 8, true, true, 1, 512, 4, "kiln_gemm_mma_norm_8_bf16"},
        {kiln_gemm_bf16_sized, 8, false, true, 1, 512, 4, "kiln_gemm_mma_gated_8_bf16"},
        {kiln_gemm_bf16_sized, 16, false, true, 1, 512, 4, "kiln_gemm_mma_gated_16_bf16"},
        {kiln_gemm_bf16_sized, 9, true, true, 1, 512, 4, "kiln_gemm_mma_norm_16_bf16"},
        {kiln_gemm_bf16_sized, 16, true, false, 1, 256, 8, "kiln_gemm_mma_norm_16_bf16"},
        {kiln_gemm_f16_sized, 9, true, true, 2, 9, 8, "kiln_gemm_norm_f16"},
        {kiln_gemm_bf16_sized, 17, true, true, 3, 17, 8, "kiln_gemm_norm_bf16"},
        {kiln_gemm_f16_sized, 1, true, false, 2, 1, 8, "kiln_gemm_norm_f16"},
        {kiln_gemm_f16_sized, 1, false, true, 1, 512, 4, "kiln_gemm_mma_gated_8_f16"},
        {kiln_gemm_f32_sized, 8, true, true, 1, 256, 8, "kiln_gemm_rows_fused_f32"},
        {kiln_gemm_bf16_sized, 64, false, true, 2, 0, 0, "kiln_gemm_wgmma_rows_1_bf16"},
    };
    kiln_device *device = fixture_open(ON_SM_90);
    kiln_stream stream;
    void *memory;
    assert_ok(kiln_stream_open(device, 0, &stream));
    assert_ok(kiln_memory_alloc(device, TENSOR_BYTES, &memory));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kiln_gemm_params params = {.d = memory, .a = memory, .b = memory, .batch = 1, .m = rows[i].m, .n = 4096};
        params.k = 4096;
        params.norm_weight = rows[i].norm ? memory : NULL;
        params.gated = rows[i].gated;
        params.workspace = memory;
        params.workspace_size = TENSOR_BYTES;
        sim.reset();
        assert_ok(rows[i].call(&stream, &params, sizeof params));
        static sim_launch seen;
        assert_int_equal(sim.launches(), rows[i].launches);
        assert_true(sim.launch(0, &seen));
        if (strcmp(seen.kernel, rows[i].kernel) != 0) fail_msg("row %zu: %s", i, seen.kernel);
        if (rows[i].blocks && seen.grid[0] * seen.grid[1] != rows[i].blocks) fail_msg("row %zu: %u", i, seen.grid[0]);
        if (rows[i].warps && seen.group[0] != 32 * rows[i].warps) fail_msg("row %zu: %u threads", i, seen.group[0]);
    }
    kiln_memory_free(device, memory);
    kiln_stream_close(&stream);
    kiln_device_close(device);
}

/* gemm_w4a16's kernels for repacked weights of few rows: those of groups of whole steps of k, and of many columns, have
 * a in shared memory, in as many clusters of two blocks as find room at once; and they normalise a themselves. */
static void test_gemm_w4a16_chooses_by_sizes(void **state) {
    (void)state;
    static const struct {
        int64_t m, n, k, group;
        bool zeros, pre_scale, norm;
        uint32_t launches, blocks, warps; /* of the last */
        const char *kernel;
    } rows[] = {
        {8, 4096, 4096, 128, true, false, true, 1, 128, 16, "kiln_gemm_w4a16_mma_norm_8_bf16"},
        {8, 28672, 4096, 128, true, false, true, 1, 128, 14, "kiln_gemm_w4a16_mma_shared_8_bf16"},
        {8, 28672, 4096, 64, true, false, true, 1, 896, 8, "kiln_gemm_w4a16_mma_norm_8_bf16"},
        {1, 1024, 4096, 128, false, true, false, 1, 64, 14, "kiln_gemm_w4a16_mma_shared_8_bf16"},
        {9, 4096, 4096, 128, false, false, false, 1, 128, 8, "kiln_gemm_w4a16_mma_rows_16_bf16"},
        {16, 28672, 8192, 128, true, false, false, 1, 128, 14, "kiln_gemm_w4a16_mma_shared_16_bf16"},
        {16, 28672, 32768, 0, true, false, true, 1, 128, 14, "kiln_gemm_w4a16_mma_shared_16_bf16"},
        {16, 128256, 4096, 128, true, true, false, 1, 1146, 7, "kiln_gemm_w4a16_mma_shared_16_bf16"},
        {16, 4096, 14336, 128, true, false, false, 1, 128, 8, "kiln_gemm_w4a16_mma_rows_16_bf16"},
        {16, 6144, 4096, 128, false, false, true, 1, 128, 12, "kiln_gemm_w4a16_mma_shared_16_bf16"},
        {16, 6144, 4096, 128, false, true, true, 2, 128, 12, "kiln_gemm_w4a16_mma_shared_16_bf16"},
        {17, 4096, 4096, 128, true, false, false, 1, 16, 20, "kiln_gemm_w4a16_wgmma_32_bf16"},
    };
    kiln_device *device = fixture_open(ON_SM_90);
    kiln_stream stream;
    void *memory;
    assert_ok(kiln_stream_open(device, 0, &stream));
    assert_ok(kiln_memory_alloc(device, TENSOR_BYTES, &memory));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kiln_gemm_w4a16_params params = {.d = memory, .a = memory, .weights = memory, .scales = memory};
        params.zeros = rows[i].zeros ? memory : NULL;
        params.pre_scale = rows[i].pre_scale ? memory : NULL;
        params.norm_weight = rows[i].norm ? memory : NULL;
        params.m = rows[i].m;
        params.n = rows[i].n;
        params.k = rows[i].k;
        params.group = rows[i].group;
        params.weight_layout = KILN_W4A16_SM80_V1;
        params.workspace = rows[i].launches > 1 ? memory : NULL;
        params.workspace_size = rows[i].launches > 1 ? TENSOR_BYTES : 0;
        sim.reset();
        assert_ok(kiln_gemm_w4a16_bf16(&stream, &params));
        static sim_launch seen;
        assert_int_equal(sim.launches(), rows[i].launches);
        assert_true(sim.launch(rows[i].launches - 1, &seen));
        if (strcmp(seen.kernel, rows[i].kernel) != 0) fail_msg("row %zu: %s", i, seen.kernel);
        if (seen.grid[0] != rows[i].blocks) fail_msg("row %zu: %u blocks", i, seen.grid[0]);
        if (seen.group[0] != 32 * rows[i].warps) fail_msg("row %zu: %u threads", i, seen.group[0]);
    }
    kiln_memory_free(device, memory);
    kiln_stream_close(&stream);
    kiln_device_close(device);
}

/* gemm_fp8's in the same way; gemm_int8 has the same host side. */
static void test_gemm_fp8_chooses_by_sizes(void **state) {
    (void)state;
    static const struct {
        int64_t m, n, k, a_stride;
        kiln_gemm_tile tile;
        const char *kernel;
        uint32_t blocks, launches;
    } rows[] = {
        {1, 8192, 8192, 0, 0, "kiln_gemm_fp8_mma_rows_8_bf16", 0, 1},
        {8, 8192, 8192, 0, 0, "kiln_gemm_fp8_mma_rows_8_bf16", 0, 1},
        {9, 8192, 8192, 0, 0, "kiln_gemm_fp8_mma_rows_16_bf16", 0, 1},
        {17, 8192, 8192, 0, 0, "kiln_gemm_fp8_wgmma_rows_2_bf16", 256, 1},
        {17, 16384, 8192, 0, 0, "kiln_gemm_fp8_wgmma_rows_1_bf16", 256, 1},
        {64, 4096, 4096, 0, 0, "kiln_gemm_fp8_wgmma_rows_2_bf16", 128, 1},
        {64, 512, 8192, 0, 0, "kiln_gemm_fp8_wgmma_rows_4_bf16", 32, 1},
        {1024, 1024, 1024, 0, 0, "kiln_gemm_fp8_wgmma_small_bf16", 128, 1},
        {2048, 2048, 2048, 0, 0, "kiln_gemm_fp8_wgmma_medium_bf16", MULTIPROCESSORS, 1},
        {512, 8192, 8192, 0, 0, "kiln_gemm_fp8_wgmma_large_bf16", 128, 1},
        {8192, 8192, 8192, 0, 0, "kiln_gemm_fp8_wgmma_large_bf16", MULTIPROCESSORS, 1},
        {80, 512, 16384, 0, 0, "kiln_gemm_fp8_wgmma_small_bf16", 128, 2},
        {4096, 4096, 4096, 4097, 0, "kiln_gemm_fp8_tiles_bf16", 0, 1},
        {130, 256, 4096, 0, KILN_GEMM_TILE_LARGE, "kiln_gemm_fp8_wgmma_large_bf16", 8, 2},
    };
    kiln_device *device = fixture_open(ON_SM_90);
    kiln_stream stream;
    void *memory;
    assert_ok(kiln_stream_open(device, 0, &stream));
    assert_ok(kiln_memory_alloc(device, TENSOR_BYTES, &memory));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kiln_gemm_fp8_params params = {.d = memory, .a = memory, .b = memory, .a_scales = memory, .b_scales = memory};
        params.m = rows[i].m;
        params.n = rows[i].n;
        params.k = rows[i].k;
        params.a_stride = rows[i].a_stride;
        params.tile = (int32_t)rows[i].tile;
        if (rows[i].launches > 1) {
            params.workspace = memory;
            assert_ok(kiln_gemm_fp8_bf16_workspace_size(&stream, &params, &params.workspace_size));
        }
        sim.reset();
        assert_ok(kiln_gemm_fp8_bf16(&stream, &params));
        static sim_launch seen;
        assert_int_equal(sim.launches(), rows[i].launches);
        assert_true(sim.launch(0, &seen));
        if (strcmp(seen.kernel, rows[i].kernel) != 0) fail_msg("row %zu: %s", i, seen.kernel);
        uint32_t blocks = seen.grid[0] * seen.grid[1] * seen.grid[2];
        if (rows[i].blocks && blocks != rows[i].blocks) fail_msg("row %zu: %u blocks", i, blocks);
    }
    kiln_memory_free(device, memory);
    kiln_stream_close(&stream);
    kiln_device_close(device);
}

int main(int argc, char **argv) {
    (void)argc;
    fixture_start(argv, devices);
    const struct CMUnitTest tests[] = {fixture_test(test_every_operator_loads_on_every_architecture),
                                       fixture_test(test_every_operator_can_be_captured),
                                       fixture_test(test_gemm_chooses_by_sizes),
                                       fixture_test(test_gemm_gives_few_rows_warps),
                                       fixture_test(test_gemm_fuses_few_rows),
                                       fixture_test(test_gemm_w4a16_chooses_by_sizes),
                                       fixture_test(test_gemm_fp8_chooses_by_sizes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
