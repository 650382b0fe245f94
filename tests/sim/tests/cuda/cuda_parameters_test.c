/* What goes into a kernel of the simulated CUDA driver: arguments as one pointer each or packed, variables of the
 * module; kernels and parameters in any number. */
#include "tests/sim/tests/cuda/cuda_driver.h"
#include <stdio.h>
#include <string.h>

enum { CU_INVALID_CLUSTER_SIZE = 912 };

static sim_control sim;
static cuda_driver driver;

/* mixed writes its arguments, of sizes that leave gaps between them, as 64-bit numbers; bare has no list of parameters
 * and doubles a variable. */
static const char text[] =
    ".version 6.3\n.target sm_75\n.address_size 64\n"
    ".visible .global .align 8 .u64 counted[][2] = {{21, 4}};\n.visible .const .align 4 .u32 factor = 2;\n"
    ".visible .entry mixed(.param .u8 c, .param .u64 .ptr .global .align 8 out, .param .u16 h,\n"
    "    .param .align 16 .b8 block[20], .param .f32 f) {\n"
    ".reg .b16 %h;\n.reg .b32 %r;\n.reg .b64 %d<3>;\n"
    "ld.param.u64 %d1, [out];\n"
    "ld.param.u8 %h, [c];\ncvt.u64.u16 %d2, %h;\nst.global.u64 [%d1], %d2;\n"
    "ld.param.u16 %h, [h];\ncvt.u64.u16 %d2, %h;\nst.global.u64 [%d1+8], %d2;\n"
    "ld.param.u32 %r, [block+16];\ncvt.u64.u32 %d2, %r;\nst.global.u64 [%d1+16], %d2;\n"
    "ld.param.b32 %r, [f];\ncvt.u64.u32 %d2, %r;\nst.global.u64 [%d1+24], %d2;\nret;\n}\n"
    ".visible .entry bare {\n.reg .b32 %r;\n.reg .b64 %d<3>;\n"
    "ld.const.u32 %r, [factor];\ncvt.u64.u32 %d2, %r;\n"
    "ld.global.u64 %d1, [counted];\nmul.lo.u64 %d1, %d1, %d2;\nst.global.u64 [counted], %d1;\nret;\n}\n"
    ".extern .shared .align 128 .b8 dynamic[];\n"
    ".visible .entry places(.param .u64 out) {\n.reg .pred %p<3>;\n.reg .b64 %d<5>;\n.shared .b8 fixed[4];\n"
    "ld.param.u64 %d1, [out];\n"
    "mov.u64 %d2, dynamic;\nst.global.u64 [%d1], %d2;\n"
    "mov.u64 %d2, factor;\nisspacep.const %p1, %d2;\nisspacep.global %p2, %d2;\n"
    "selp.u64 %d3, 1, 0, %p1;\nselp.u64 %d4, 2, 0, %p2;\nadd.u64 %d3, %d3, %d4;\nst.global.u64 [%d1+8], %d3;\n"
    "mov.u64 %d2, counted;\nisspacep.const %p1, %d2;\nisspacep.global %p2, %d2;\n"
    "selp.u64 %d3, 1, 0, %p1;\nselp.u64 %d4, 2, 0, %p2;\nadd.u64 %d3, %d3, %d4;\nst.global.u64 [%d1+16], "
    "%d3;\nret;\n}\n";

enum { RESULTS = 4 };

typedef struct fixture {
    kiln__cu_context context;
    kiln__cu_module module;
    kiln__cu_stream stream;
    kiln__cu_address out;
    uint8_t c;
    uint16_t h;
    uint32_t block[5];
    float f;
} fixture;

static int setup(void **state) {
    static fixture f;
    *state = &f;
    f = (fixture){.c = 0xab, .h = 0xcdef, .block = {1, 2, 3, 4, 0x12345678}, .f = 1.5f};
    return cuda_driver_enter(&driver, &f.context) || driver.cuStreamCreate(&f.stream, 0) ||
           driver.cuModuleLoadDataEx(&f.module, text, 0, NULL, NULL) || driver.cuMemAlloc(&f.out, RESULTS * 8);
}

static int teardown(void **state) {
    const fixture *f = *state;
    sim.reset();
    return driver.cuCtxSynchronize() || driver.cuMemFree(f->out) || driver.cuModuleUnload(f->module) ||
           driver.cuStreamDestroy(f->stream) || cuda_driver_leave(&driver) || sim.live("*");
}

static kiln__cu_function function_of(kiln__cu_module module, const char *name) {
    kiln__cu_function function;
    expect_cu(CU_OK, driver.cuModuleGetFunction(&function, module, name));
    expect_cu(CU_OK, driver.cuFuncLoad(function));
    return function;
}

static kiln__cu_result launch(const fixture *f, kiln__cu_function function, void **parameters, void **extra) {
    return driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, f->stream, parameters, extra);
}

static void expect_results(const fixture *f) {
    uint64_t results[RESULTS];
    expect_cu(CU_OK, driver.cuMemcpyDtoHAsync(results, f->out, sizeof results, f->stream));
    expect_cu(CU_OK, driver.cuStreamSynchronize(f->stream));
    assert_int_equal(results[0], 0xab);
    assert_int_equal(results[1], 0xcdef);
    assert_int_equal(results[2], 0x12345678);
    assert_int_equal(results[3], 0x3fc00000);
}

static void each_argument_has_a_pointer(void **state) {
    fixture *f = *state;
    void *parameters[] = {&f->c, &f->out, &f->h, f->block, &f->f};
    expect_cu(CU_OK, launch(f, function_of(f->module, "mixed"), parameters, NULL));
    f->c = 0; /* they were read */
    expect_results(f);
    assert_int_equal(sim.violations(), 0);
}

static void a_capture_keeps_them(void **state) {
    fixture *f = *state;
    void *parameters[] = {&f->c, &f->out, &f->h, f->block, &f->f};
    kiln__cu_function mixed = function_of(f->module, "mixed");
    struct CUgraph_st *graph;
    struct CUgraphExec_st *executable;
    expect_cu(CU_OK, driver.cuStreamBeginCapture(f->stream, CU_CAPTURE_GLOBAL));
    expect_cu(CU_OK, launch(f, mixed, parameters, NULL));
    expect_cu(CU_OK, driver.cuStreamEndCapture(f->stream, &graph));
    expect_cu(CU_OK, driver.cuGraphInstantiateWithFlags(&executable, graph, 0));
    f->c = 0;
    f->block[4] = 0;
    expect_cu(CU_OK, driver.cuGraphLaunch(executable, f->stream));
    expect_results(f);
    expect_cu(CU_OK, driver.cuGraphExecDestroy(executable));
    expect_cu(CU_OK, driver.cuGraphDestroy(graph));
    assert_int_equal(sim.violations(), 0);
}

static void arguments_are_given_once(void **state) {
    fixture *f = *state;
    void *parameters[] = {&f->c, &f->out, &f->h, f->block, NULL};
    size_t size = 0;
    void *extra[] = {KILN__CU_LAUNCH_PARAM_BUFFER_POINTER, NULL, KILN__CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     KILN__CU_LAUNCH_PARAM_END};
    kiln__cu_function mixed = function_of(f->module, "mixed");
    expect_cu(CU_INVALID_VALUE, launch(f, mixed, parameters, extra));
    expect_cu(CU_INVALID_VALUE, launch(f, mixed, parameters, NULL));
    assert_non_null(strstr(sim.violation(), "argument 4 of mixed is NULL"));
    expect_cu(CU_INVALID_VALUE, launch(f, mixed, NULL, NULL));
    expect_cu(CU_INVALID_VALUE, launch(f, mixed, NULL, extra));
    assert_int_equal(sim.violations(), 4);
}

/* mixed takes 56 bytes: c at 0, out at 8, h at 16, block at 32, f at 52. */
static void a_buffer_may_be_short_and_not_long(void **state) {
    fixture *f = *state;
    uint8_t packed[64] = {0};
    size_t size = 57;
    void *extra[] = {KILN__CU_LAUNCH_PARAM_BUFFER_POINTER, packed, KILN__CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     KILN__CU_LAUNCH_PARAM_END};
    kiln__cu_function mixed = function_of(f->module, "mixed");
    memcpy(packed, &f->c, 1);
    memcpy(packed + 8, &f->out, 8);
    memcpy(packed + 16, &f->h, 2);
    memcpy(packed + 32, f->block, 20);
    memcpy(packed + 52, &f->f, 4);
    expect_cu(CU_OUT_OF_RESOURCES, launch(f, mixed, NULL, extra));
    assert_non_null(strstr(sim.violation(), "57 bytes of arguments, mixed takes 56"));
    size = 56;
    expect_cu(CU_OK, launch(f, mixed, NULL, extra));
    expect_results(f);
    size = 52; /* all but f, which is then not what the caller has behind it */
    expect_cu(CU_OK, launch(f, mixed, NULL, extra));
    uint64_t results[RESULTS];
    expect_cu(CU_OK, driver.cuMemcpyDtoHAsync(results, f->out, sizeof results, f->stream));
    expect_cu(CU_OK, driver.cuStreamSynchronize(f->stream));
    assert_int_equal(results[2], 0x12345678);
    assert_int_not_equal(results[3], 0x3fc00000);
    assert_int_equal(sim.violations(), 1);
}

/* A parameter is aligned by its address in constant memory, where parameters begin at 0x160 before sm_90; of
 * sm_90 truth_test.c has them. */
static void parameters_are_aligned_by_their_address(void **state) {
    static const char aligned[] =
        ".version 7.0\n.target sm_80\n.address_size 64\n"
        ".visible .entry first(.param .align 64 .b8 block[64]) {\nret;\n}\n"
        ".visible .entry second(.param .align 128 .b8 block[8], .param .u32 n) {\nret;\n}\n"
        ".visible .entry third(.param .u64 out, .param .align 64 .b8 block[64]) {\n.reg .b32 %r;\n.reg .b64 %d;\n"
        "ld.param.u64 %d, [out];\nld.param.u32 %r, [block+8];\nst.global.u32 [%d], %r;\nret;\n}\n";
    static const struct {
        const char *name;
        size_t index, offset, size;
    } rows[] = {
        {"first", 0, 32, 64}, {"second", 0, 32, 8}, {"second", 1, 40, 4}, {"third", 0, 0, 8}, {"third", 1, 32, 64}};
    fixture *f = *state;
    kiln__cu_module module;
    expect_cu(CU_OK, driver.cuModuleLoadDataEx(&module, aligned, 0, NULL, NULL));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t offset, size;
        expect_cu(CU_OK, driver.cuFuncGetParamInfo(function_of(module, rows[i].name), rows[i].index, &offset, &size));
        assert_int_equal(offset, rows[i].offset);
        assert_int_equal(size, rows[i].size);
    }
    uint8_t packed[96] = {[32 + 8] = 0x2a};
    size_t size = sizeof packed;
    uint32_t result;
    memcpy(packed, &f->out, sizeof f->out);
    void *extra[] = {KILN__CU_LAUNCH_PARAM_BUFFER_POINTER, packed, KILN__CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     KILN__CU_LAUNCH_PARAM_END};
    expect_cu(CU_OK, launch(f, function_of(module, "third"), NULL, extra));
    expect_cu(CU_OK, driver.cuMemcpyDtoHAsync(&result, f->out, sizeof result, f->stream));
    expect_cu(CU_OK, driver.cuStreamSynchronize(f->stream));
    assert_int_equal(result, 0x2a);
    expect_cu(CU_OK, driver.cuModuleUnload(module));
    assert_int_equal(sim.violations(), 0);
}

static void a_module_s_variables_are_found(void **state) {
    fixture *f = *state;
    kiln__cu_address counted;
    size_t size;
    uint64_t numbers[2];
    expect_cu(CU_OK, driver.cuModuleGetGlobal(&counted, &size, f->module, "counted"));
    assert_int_equal(size, sizeof numbers);
    expect_cu(CU_OK, driver.cuModuleGetGlobal(NULL, &size, f->module, "factor"));
    assert_int_equal(size, 4);
    expect_cu(CU_NOT_FOUND, driver.cuModuleGetGlobal(NULL, &size, f->module, "count"));
    expect_cu(CU_OK, launch(f, function_of(f->module, "bare"), NULL, NULL));
    expect_cu(CU_OK, driver.cuMemcpyDtoHAsync(numbers, counted, sizeof numbers, f->stream));
    expect_cu(CU_OK, driver.cuStreamSynchronize(f->stream));
    assert_int_equal(numbers[0], 42);
    assert_int_equal(numbers[1], 4);
    assert_int_equal(sim.violations(), 0);
}

/* Where dynamic shared memory begins, and which spaces two variables are of. */
static void spaces_are_told_apart(void **state) {
    const fixture *f = *state;
    uint64_t results[3];
    void *parameters[] = {(void *)&f->out};
    expect_cu(CU_OK, driver.cuLaunchKernel(function_of(f->module, "places"), 1, 1, 1, 1, 1, 1, 64, f->stream,
                                           parameters, NULL));
    expect_cu(CU_OK, driver.cuMemcpyDtoHAsync(results, f->out, sizeof results, f->stream));
    expect_cu(CU_OK, driver.cuStreamSynchronize(f->stream));
    assert_int_equal(results[0], 128);
    assert_int_equal(results[1], 1); /* of const, not of global */
    assert_int_equal(results[2], 2);
    assert_int_equal(sim.violations(), 0);
}

/* Kernel number i adds its last of 100 parameters and i. */
static void modules_may_be_large(void **state) {
    enum { KERNELS = 100, PARAMETERS = 100, LAST = KERNELS - 1 };
    const fixture *f = *state;
    static char many[KERNELS * (PARAMETERS * 20 + 300)];
    size_t at = (size_t)snprintf(many, sizeof many, ".version 6.3\n.target sm_75\n.address_size 64\n");
    for (int k = 0; k < KERNELS; k++) {
        at += (size_t)snprintf(many + at, sizeof many - at, ".visible .entry k%d(.param .u64 p0", k);
        for (int p = 1; p < PARAMETERS; p++)
            at += (size_t)snprintf(many + at, sizeof many - at, ", .param .u64 p%d", p);
        at += (size_t)snprintf(many + at, sizeof many - at,
                               ") {\n.reg .b64 %%d<3>;\nld.param.u64 %%d1, [p0];\nld.param.u64 %%d2, [p%d];\n"
                               "add.u64 %%d2, %%d2, %d;\nst.global.u64 [%%d1], %%d2;\nret;\n}\n",
                               PARAMETERS - 1, k);
    }
    kiln__cu_module module;
    uint64_t arguments[PARAMETERS] = {f->out}, sum;
    void *parameters[PARAMETERS];
    for (int p = 0; p < PARAMETERS; p++)
        parameters[p] = &arguments[p];
    arguments[PARAMETERS - 1] = 1000;
    expect_cu(CU_OK, driver.cuModuleLoadDataEx(&module, many, 0, NULL, NULL));
    expect_cu(CU_OK, launch(f, function_of(module, "k99"), parameters, NULL));
    expect_cu(CU_OK, driver.cuMemcpyDtoHAsync(&sum, f->out, sizeof sum, f->stream));
    expect_cu(CU_OK, driver.cuStreamSynchronize(f->stream));
    assert_int_equal(sum, 1000 + LAST);
    expect_cu(CU_OK, driver.cuModuleUnload(module));
    assert_int_equal(sim.violations(), 0);
}

/* Of cuLaunchKernelEx: what is to be ignored, a wish that changes nothing, and clusters, which an architecture has or
 * has not. */
static void launches_have_attributes(void **state) {
    (void)state;
    enum { IGNORE = 0, CLUSTER = 4, PRIORITY = 8, BLOCKS = 18 };
    static const char any[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry any() {\nret;\n}\n";
    static const struct {
        kiln__cu_enum id;
        unsigned x, y;
        kiln__cu_result before_90, since;
    } rows[] = {
        {IGNORE, 77, 77, CU_OK, CU_OK},
        {PRIORITY, 0, 0, CU_OK, CU_OK},
        {CLUSTER, 1, 1, CU_OK, CU_OK},
        {CLUSTER, 2, 3, CU_NOT_SUPPORTED, CU_OK},
        {CLUSTER, 4, 1, CU_NOT_SUPPORTED, CU_INVALID_CLUSTER_SIZE},
        {CLUSTER, 9, 1, CU_NOT_SUPPORTED, CU_INVALID_CLUSTER_SIZE},
    };
    for (kiln__cu_device device = 0; device < 2; device++) {
        kiln__cu_context context;
        kiln__cu_module module;
        expect_cu(CU_OK, driver.cuCtxCreate(&context, 0, device));
        expect_cu(CU_OK, driver.cuModuleLoadData(&module, any));
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            kiln__cu_launch_attribute attribute = {.id = rows[i].id, .value.cluster = {rows[i].x, rows[i].y, 1}};
            const kiln__cu_launch_config config = {.grid_x = BLOCKS,
                                                   .grid_y = 3,
                                                   .grid_z = 1,
                                                   .block_x = 1,
                                                   .block_y = 1,
                                                   .block_z = 1,
                                                   .attributes = &attribute,
                                                   .attribute_count = 1};
            expect_cu(device ? rows[i].since : rows[i].before_90,
                      driver.cuLaunchKernelEx(&config, function_of(module, "any"), NULL, NULL));
        }
        expect_cu(CU_OK, driver.cuCtxDestroy(context));
    }
    assert_non_null(strstr(sim.violation(), "clusters (attribute 4) need compute capability 9.0"));
    sim.reset();
}

int main(int argc, char **argv) {
    (void)argc;
    cuda_driver_start(argv, "sm_80,sm_90", &sim, &driver);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_argument_has_a_pointer, setup, teardown),
        cmocka_unit_test_setup_teardown(a_capture_keeps_them, setup, teardown),
        cmocka_unit_test_setup_teardown(arguments_are_given_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_buffer_may_be_short_and_not_long, setup, teardown),
        cmocka_unit_test_setup_teardown(parameters_are_aligned_by_their_address, setup, teardown),
        cmocka_unit_test_setup_teardown(a_module_s_variables_are_found, setup, teardown),
        cmocka_unit_test_setup_teardown(spaces_are_told_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(modules_may_be_large, setup, teardown),
        cmocka_unit_test(launches_have_attributes),
    };
    return cmocka_run_group_tests_name("cuda_parameters", tests, NULL, NULL);
}
