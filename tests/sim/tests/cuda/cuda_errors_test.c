/* Faults of kernels as the simulated CUDA driver reports them: by the error that the real one has for them, from then
 * on until the context goes. */
#include "tests/sim/tests/cuda/cuda_driver.h"

static sim_control sim;
static cuda_driver driver;

/* Each kernel takes an address of device memory. */
static const char text[] =
    ".version 7.8\n.target sm_75\n.address_size 64\n"
    ".visible .global .align 8 .u64 counted[2];\n.visible .const .align 8 .u64 factor = 2;\n"
    ".global .b8 claim[] = {105, 32, 60, 32, 110, 0};\n.global .b8 file[4] = {102, 46, 99, 0};\n"
    ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e) .noreturn;\n"
#define KERNEL(name, code)                                                                          \
    ".visible .entry " name "(.param .u64 at) {\n.reg .pred %p;\n.reg .b32 %r;\n.reg .b64 %d<3>;\n" \
    "ld.param.u64 %d1, [at];\n" code "\nret;\n}\n"
    KERNEL("store", "st.u64 [%d1], 7;") KERNEL("load", "ld.global.u64 %d2, [%d1];")
        KERNEL("load_constant", "ld.const.u64 %d2, [%d1];") KERNEL("misaligned", "st.global.u32 [%d1+2], 7;")
            KERNEL("trap", "trap;") KERNEL("endless", "AGAIN: bra AGAIN;")
                KERNEL("jump", "P: .callprototype _ ();\ncall %d1, P;")
                    KERNEL("assertion",
                           "{\n.param .b64 a;\n.param .b64 b;\n.param .b32 c;\n.param .b64 d;\n.param .b64 e;\n"
                           "mov.u64 %d1, claim;\nst.param.b64 [a], %d1;\nmov.u64 %d1, file;\nst.param.b64 [b], %d1;\n"
                           "st.param.b32 [c], 42;\nst.param.b64 [d], 0;\nst.param.b64 [e], 1;\n"
                           "call.uni __assertfail, (a, b, c, d, e);\n}");

enum { BYTES = 64 };

typedef enum memory { WRITTEN, FRESH, FREED, VARIABLE, CONSTANT, ELSEWHERE } memory;

static kiln__cu_address elsewhere; /* in another context of the same device */

static kiln__cu_address address_of(memory place, kiln__cu_module module) {
    const unsigned char bytes[BYTES] = {0};
    kiln__cu_address at;
    if (place == ELSEWHERE) return elsewhere;
    if (place == VARIABLE || place == CONSTANT) {
        const char *name = place == VARIABLE ? "counted" : "factor";
        expect_cu(CU_OK, driver.cuModuleGetGlobal(&at, NULL, module, name));
        return at;
    }
    expect_cu(CU_OK, driver.cuMemAlloc(&at, BYTES));
    if (place == FREED) expect_cu(CU_OK, driver.cuMemFree(at));
    if (place == WRITTEN) expect_cu(CU_OK, driver.cuMemcpyHtoDAsync(at, bytes, BYTES, NULL));
    return at;
}

static const struct {
    const char *kernel;
    memory place;
    int offset, result;
} rows[] = {
    {"store", WRITTEN, BYTES - 8, CU_OK},
    {"store", WRITTEN, BYTES, CU_ILLEGAL_ADDRESS},
    {"store", WRITTEN, -8, CU_ILLEGAL_ADDRESS},
    {"store", FREED, 0, CU_ILLEGAL_ADDRESS},
    {"load", FREED, 0, CU_ILLEGAL_ADDRESS},
    {"load", FRESH, 0, CU_LAUNCH_FAILED},
    {"store", ELSEWHERE, 0, CU_ILLEGAL_ADDRESS},
    {"store", VARIABLE, 8, CU_OK},
    {"store", VARIABLE, 16, CU_ILLEGAL_ADDRESS},
    {"store", VARIABLE, -8, CU_ILLEGAL_ADDRESS},
    {"load", CONSTANT, 0, CU_OK},
    {"store", CONSTANT, 0, CU_ILLEGAL_ADDRESS},
    {"load_constant", CONSTANT, 0, CU_OK},
    {"load_constant", CONSTANT, 8, CU_ILLEGAL_ADDRESS},
    {"load_constant", VARIABLE, 0, CU_ILLEGAL_ADDRESS},
    {"misaligned", WRITTEN, 0, CU_MISALIGNED_ADDRESS},
    {"trap", WRITTEN, 0, CU_LAUNCH_FAILED},
    {"endless", WRITTEN, 0, CU_LAUNCH_TIMEOUT},
    {"jump", WRITTEN, 0, CU_ILLEGAL_INSTRUCTION},
    {"assertion", WRITTEN, 0, CU_ASSERT},
};

/* In a context of its own, which a fault ends. */
static void run(size_t row) {
    kiln__cu_context context;
    kiln__cu_module module;
    kiln__cu_function function;
    expect_cu(CU_OK, driver.cuCtxCreate(&context, 0, 0));
    expect_cu(CU_OK, driver.cuModuleLoadDataEx(&module, text, 0, NULL, NULL));
    expect_cu(CU_OK, driver.cuModuleGetFunction(&function, module, rows[row].kernel));
    kiln__cu_address at = address_of(rows[row].place, module) + (kiln__cu_address)rows[row].offset;
    void *parameters[] = {&at};
    expect_cu(CU_OK, driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    int result = (int)driver.cuCtxSynchronize();
    if (result != rows[row].result)
        fail_msg("row %zu, %s: %d, must be %d", row, rows[row].kernel, result, rows[row].result);
    expect_cu(rows[row].result, driver.cuCtxSynchronize());
    expect_cu(CU_OK, driver.cuCtxDestroy(context));
}

static void a_fault_is_the_driver_s_error(void **state) {
    (void)state;
    kiln__cu_context other;
    expect_cu(CU_OK, driver.cuInit(0));
    expect_cu(CU_OK, driver.cuCtxCreate(&other, 0, 0));
    expect_cu(CU_OK, driver.cuMemAlloc(&elsewhere, BYTES));
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++)
        run(row);
    expect_cu(CU_OK, driver.cuCtxDestroy(other));
    assert_int_equal(sim.violations(), 0);
}

int main(int argc, char **argv) {
    (void)argc;
    setenv("KILN_SIM_BUDGET", "10000", 1);
    cuda_driver_start(argv, "sm_80", &sim, &driver);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fault_is_the_driver_s_error),
    };
    return cmocka_run_group_tests_name("cuda_errors", tests, NULL, NULL);
}
