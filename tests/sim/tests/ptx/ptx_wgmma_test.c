/* wgmma: the products of every form and number of columns, against sums of whole numbers; kernels with one planted bug
 * each, and what the simulator must say of it; and what is refused. Swizzles, layouts and the bits of sums are those
 * that were recorded on an H100 (truth_test.c). */
#include "tests/sim/core/sim_float.h"
#include "tests/sim/core/sim_random.h"
#include "tests/sim/ptx/warp/ptx_warp.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    TEXT = 1 << 15,
    THREADS = 128,
    ROWS = 64,
    LINE = 32,
    COLUMNS = 256,
    REGISTERS = 128,
    IMAGE = (ROWS + COLUMNS) * LINE
};

/* ---- Launches ---- */

static uint8_t image[IMAGE];
static uint32_t results[REGISTERS * THREADS];

static bool find(void *context, uint64_t address, sim_region *out_region) {
    (void)context;
    bool in_image = address - (uintptr_t)image < sizeof image;
    *out_region = in_image ? (sim_region){.base = (uintptr_t)image, .size = sizeof image}
                           : (sim_region){.base = (uintptr_t)results, .size = sizeof results};
    return in_image || address - (uintptr_t)results < sizeof results;
}

static sim_report run_text(const char *text, uint32_t threads, uint32_t registers, sim_sum_mode mode, uint64_t seed) {
    char why[256] = "";
    ptx_program *program = ptx_program_load(text, strlen(text), 90, why, sizeof why);
    if (!program) fail_msg("%s", why);
    uint64_t parameters[2] = {(uintptr_t)image, (uintptr_t)results};
    sim_counters counters = {0};
    sim_report report;
    ptx_launch launch = {.program = program,
                         .code = ptx_program_find(program, "kernel"),
                         .grid = {1, 1, 1},
                         .block = {threads, 1, 1},
                         .registers = registers,
                         .parameters = (const uint8_t *)parameters,
                         .find = find,
                         .seed = seed,
                         .budget = 1 << 20,
                         .threads = 1,
                         .sum_mode = mode};
    ptx_launch_run(&launch, &counters, &report);
    ptx_program_free(program);
    return report;
}

/* ---- Every form ---- */

typedef struct form {
    uint32_t k;
    const char *d, *a, *b;
    const char *tail; /* behind the types */
    const char *last; /* operands */
} form;

static const form forms[] = {
    {16, "f16", "f16", "f16", "", ", 1, 1, 0, 0"},
    {16, "f32", "f16", "f16", "", ", 1, 1, 0, 0"},
    {16, "f32", "bf16", "bf16", "", ", 1, 1, 0, 0"},
    {8, "f32", "tf32", "tf32", "", ", 1, 1"},
    {32, "f16", "e4m3", "e5m2", "", ", 1, 1"},
    {32, "f32", "e5m2", "e4m3", "", ", 1, 1"},
    {32, "f32", "e4m3", "e4m3", "", ", 1, 1"},
    {32, "f32", "e5m2", "e5m2", "", ", 1, 1"},
    {32, "s32", "s8", "u8", "", ""},
    {32, "s32", "u8", "s8", ".satfinite", ""},
    {256, "s32", "b1", "b1", ".and.popc", ""},
};

static int format_of(const char *type) {
    static const struct {
        const char *type;
        sim_format format;
    } rows[] = {{"f16", SIM_f16}, {"bf16", SIM_bf16}, {"tf32", SIM_f32}, {"e4m3", SIM_e4m3}, {"e5m2", SIM_e5m2}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].type, type) == 0) return (int)rows[i].format;
    return -1;
}

/* A line of whole numbers from -2 to 2 (bits, or 0 to 2, where the type has no others), as bytes. */
static void make_line(const form *f, const char *type, uint64_t *state, int *numbers, uint8_t *bytes) {
    uint32_t size = LINE / f->k;
    int format = format_of(type);
    memset(bytes, 0, LINE);
    for (uint32_t k = 0; k < f->k; k++) {
        int number = (int)(sim_random(state) % 5) - 2;
        if (*type == 'u' && number < 0) number = -number;
        if (size == 0) number &= 1;
        numbers[k] = number;
        uint32_t bits =
            format < 0 ? (uint32_t)number : sim_encode((sim_format)format, number, SIM_ROUND_NEAREST_EVEN, false);
        if (size)
            memcpy(bytes + k * size, &bits, size);
        else
            bytes[k / 8] |= (uint8_t)(bits << k % 8);
    }
}

static size_t write_registers(char *text, const char *prefix, uint32_t count) {
    size_t length = 0;
    for (uint32_t i = 0; i < count; i++)
        length += (size_t)sprintf(text + length, "%s%s%u", i ? ", " : "{", prefix, i);
    return length + (size_t)sprintf(text + length, "}");
}

/* A and B lie in shared memory as in the image: groups of eight lines of 32 bytes, of which the first halves come
 * first. */
static void write_product(const form *f, uint32_t n, bool in_registers, char *text) {
    uint32_t registers = n / (strcmp(f->d, "f16") == 0 ? 4 : 2);
    char *end = text + sprintf(text,
                               ".version 8.4\n.target sm_90a\n.address_size 64\n"
                               ".visible .entry kernel(.param .u64 p, .param .u64 q)\n{\n"
                               ".reg .pred %%p<4>;\n.reg .b32 %%r<16>, %%d<128>, %%a<4>;\n.reg .b64 %%rd<8>;\n"
                               ".shared .align 1024 .b8 tile[%u];\n"
                               "ld.param.u64 %%rd1, [p];\nld.param.u64 %%rd2, [q];\nmov.u32 %%r1, %%tid.x;\n"
                               "mov.u32 %%r2, tile;\nshl.b32 %%r3, %%r1, 2;\nFILL:\nadd.u32 %%r4, %%r2, %%r3;\n"
                               "cvt.u64.u32 %%rd3, %%r3;\nadd.u64 %%rd3, %%rd3, %%rd1;\n"
                               "ld.global.b32 %%r5, [%%rd3];\nst.shared.b32 [%%r4], %%r5;\n"
                               "add.u32 %%r3, %%r3, 512;\nsetp.lt.u32 %%p1, %%r3, %u;\n@%%p1 bra FILL;\n"
                               "fence.proxy.async;\nbar.sync 0;\nshr.u32 %%r6, %%r2, 4;\n"
                               "cvt.u64.u32 %%rd4, %%r6;\nor.b64 %%rd4, %%rd4, 0x1000080000;\n"
                               "add.u64 %%rd5, %%rd4, 128;\nsetp.ne.u32 %%p2, 0, 0;\n",
                               IMAGE, IMAGE);
    /* Lane l has bytes l % 4 * 4 on, of rows l / 4 and 8 behind, of both halves. */
    if (in_registers)
        end += sprintf(end, "shr.u32 %%r7, %%r1, 5;\nshl.b32 %%r7, %%r7, 9;\nand.b32 %%r8, %%r1, 31;\n"
                            "shl.b32 %%r8, %%r8, 2;\nadd.u32 %%r7, %%r7, %%r8;\nadd.u32 %%r7, %%r7, %%r2;\n"
                            "ld.shared.b32 %%a0, [%%r7];\nld.shared.b32 %%a1, [%%r7+256];\n"
                            "ld.shared.b32 %%a2, [%%r7+128];\nld.shared.b32 %%a3, [%%r7+384];\n");
    end += sprintf(end, "wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n%uk%u.%s.%s.%s%s ", n, f->k, f->d,
                   f->a, f->b, f->tail);
    end += write_registers(end, "%d", registers);
    const char *last = in_registers && strlen(f->last) > 6 ? ", 1, 1, 0" : f->last;
    end += sprintf(end,
                   ", %s, %%rd5, %%p2%s;\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
                   "mul.wide.u32 %%rd6, %%r1, 4;\nadd.u64 %%rd6, %%rd6, %%rd2;\n",
                   in_registers ? "{%a0, %a1, %a2, %a3}" : "%rd4", last);
    for (uint32_t r = 0; r < registers; r++)
        end += sprintf(end, "st.global.b32 [%%rd6+%u], %%d%u;\n", r * THREADS * 4, r);
    sprintf(end, "ret;\n}\n");
}

static double result_at(const form *f, uint32_t row, uint32_t column) {
    bool half = strcmp(f->d, "f16") == 0;
    uint32_t thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2, high = row % 16 / 8, bits;
    if (half) {
        bits = results[(column / 8 * 2 + high) * THREADS + thread] >> column % 2 * 16 & 0xffff;
        return sim_decode(SIM_f16, bits);
    }
    bits = results[(column / 8 * 4 + high * 2 + column % 2) * THREADS + thread];
    return strcmp(f->d, "s32") == 0 ? (int32_t)bits : sim_decode(SIM_f32, bits);
}

static void place_line(uint32_t base, uint32_t line, const uint8_t *bytes) {
    memcpy(image + base + line / 8 * 256 + line % 8 * 16, bytes, 16);
    memcpy(image + base + line / 8 * 256 + 128 + line % 8 * 16, bytes + 16, 16);
}

static void check_product(const form *f, uint32_t n, bool in_registers, sim_sum_mode mode, uint64_t seed) {
    static int a[ROWS][256], b[COLUMNS][256];
    static char text[TEXT];
    uint8_t bytes[LINE];
    for (uint32_t row = 0; row < ROWS; row++) {
        make_line(f, f->a, &seed, a[row], bytes);
        place_line(0, row, bytes);
    }
    for (uint32_t column = 0; column < COLUMNS; column++) {
        make_line(f, f->b, &seed, b[column], bytes);
        place_line(ROWS * LINE, column, bytes);
    }
    write_product(f, n, in_registers, text);
    sim_report report = run_text(text, THREADS, 0, mode, seed);
    if (report.kind) fail_msg("%s.%s n%u: %s", f->d, f->a, n, report.text);
    for (uint32_t row = 0; row < ROWS; row++) {
        for (uint32_t column = 0; column < n; column++) {
            int sum = 0;
            for (uint32_t k = 0; k < f->k; k++)
                sum += a[row][k] * b[column][k];
            if (result_at(f, row, column) != sum)
                fail_msg("%s.%s.%s n%u, row %u, column %u: %g, must be %d", f->d, f->a, f->b, n, row, column,
                         result_at(f, row, column), sum);
        }
    }
}

static void whole_numbers_are_summed_in_every_form(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        for (uint32_t n = 8; n <= COLUMNS; n += 8) {
            if (strcmp(forms[i].d, "s32") == 0 && n > 32 && n % 16) continue;
            check_product(&forms[i], n, n % 16 == 0, SIM_SUM_HOPPER, sim_random(&seed));
        }
        for (int mode = 0; mode < SIM_SUM_MODES; mode++)
            check_product(&forms[i], 8, false, (sim_sum_mode)mode, sim_random(&seed));
    }
}

/* ---- Planted bugs ---- */

#define FENCE   "wgmma.fence.sync.aligned;\n"
#define COMMIT  "wgmma.commit_group.sync.aligned;\n"
#define WAIT(n) "wgmma.wait_group.sync.aligned " #n ";\n"
#define PRODUCT                                                                                            \
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd2, %rd3, %p1, 1, 1, 0, 0;" \
    "\n"
#define OTHER                                                                                              \
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f4, %f5, %f6, %f7}, %rd2, %rd3, %p1, 1, 1, 0, 0;" \
    "\n"
#define WIDER                                                                                                       \
    "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, %rd2, %rd3, %p1," \
    " 1, 1, 0, 0;\n"
#define OF_REGISTERS(d)                                                                                            \
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%" d "0, %" d "1, %" d "2, %" d "3}, {%a0, %a1, %a2, %a3}" \
    ", %rd3, %p1, 1, 1, 0;\n"
#define STORED "st.shared.b32 [%r3], 0;\n"
#define PROXY  "fence.proxy.async;\n"
#define SYNC   "bar.sync 0;\n"
#define READ   "add.f32 %g0, %f1, %f1;\n"
/* One lane of each warp arrives; when all have, a thread of another warp writes what was read. */
#define READY                                                                                                      \
    ".shared .align 8 .b64 bar;\nsetp.eq.u32 %p2, %r1, 0;\n@%p2 mbarrier.init.shared.b64 [bar], 4;\nbar.sync 0;\n" \
    "and.b32 %r4, %r1, 31;\nsetp.eq.u32 %p2, %r4, 7;\n"
#define ARRIVE "@%p2 mbarrier.arrive.shared.b64 _, [bar];\n"
#define FILL                                                                                                       \
    "setp.ne.u32 %p2, %r1, 33;\n@%p2 bra OUT;\nPOLL:\nmbarrier.test_wait.parity.shared.b64 %p3, [bar], 0;\n@!%p3 " \
    "bra POLL;\nst.shared.b32 [%r2+2048], 0;\nOUT:\n"

typedef struct row {
    const char *name, *body;
    uint32_t threads;
    sim_fault_kind kind; /* NONE: the mended kernel */
    const char *word;    /* in the report */
} row;

static const row rows[] = {
    {"all is well", FENCE PRODUCT COMMIT WAIT(0) READ, 128, SIM_FAULT_NONE, ""},
    {"two warpgroups", FENCE PRODUCT COMMIT WAIT(0) READ, 256, SIM_FAULT_NONE, ""},
    {"no fence at all", PRODUCT COMMIT WAIT(0), 128, SIM_FAULT_ILLEGAL, "no wgmma.fence"},
    {"an accumulator is written behind the fence", FENCE "mov.f32 %f1, 0f00000000;\n" PRODUCT COMMIT WAIT(0), 128,
     SIM_FAULT_ILLEGAL, "no wgmma.fence since register %f"},
    {"A is written behind the fence", FENCE "mov.b32 %a1, 0;\n" OF_REGISTERS("f") COMMIT WAIT(0), 128,
     SIM_FAULT_ILLEGAL, "no wgmma.fence since register %a"},
    {"products of one shape need no fence between them", FENCE PRODUCT PRODUCT COMMIT PRODUCT COMMIT WAIT(0) READ, 128,
     SIM_FAULT_NONE, ""},
    {"an accumulator is read, and no fence follows", FENCE PRODUCT COMMIT WAIT(0) READ PRODUCT COMMIT WAIT(0), 128,
     SIM_FAULT_ILLEGAL, "no wgmma.fence"},
    {"an accumulator is read, and a fence follows", FENCE PRODUCT COMMIT WAIT(0) READ FENCE PRODUCT COMMIT WAIT(0), 128,
     SIM_FAULT_NONE, ""},
    {"products of two shapes without a wait", FENCE PRODUCT COMMIT FENCE WIDER COMMIT WAIT(0), 128, SIM_FAULT_WAIT,
     "another kind"},
    {"products of two shapes without a fence", FENCE PRODUCT COMMIT WAIT(0) WIDER COMMIT WAIT(0), 128,
     SIM_FAULT_ILLEGAL, "no wgmma.fence"},
    {"products of two shapes", FENCE PRODUCT COMMIT WAIT(0) FENCE WIDER COMMIT WAIT(0), 128, SIM_FAULT_NONE, ""},
    {"an accumulator is read before the wait", FENCE PRODUCT COMMIT READ WAIT(0), 128, SIM_FAULT_WAIT, "register %f"},
    {"an accumulator is written before the wait", FENCE PRODUCT COMMIT "mov.f32 %f3, %g0;\n" WAIT(0), 128,
     SIM_FAULT_WAIT, "register %f"},
    {"one lane reads before the wait", "setp.eq.u32 %p2, %r1, 7;\n" FENCE PRODUCT COMMIT "@%p2 " READ WAIT(0), 128,
     SIM_FAULT_WAIT, "register %f"},
    {"no lane reads before the wait", "setp.eq.u32 %p2, %r1, 700;\n" FENCE PRODUCT COMMIT "@%p2 " READ WAIT(0), 128,
     SIM_FAULT_NONE, ""},
    {"the product was not committed", FENCE PRODUCT WAIT(0) READ, 128, SIM_FAULT_WAIT, "register %f"},
    {"the wait leaves the group", FENCE PRODUCT COMMIT WAIT(1) READ, 128, SIM_FAULT_WAIT, "register %f"},
    {"the wait leaves another group", FENCE PRODUCT COMMIT OTHER COMMIT WAIT(1) READ, 128, SIM_FAULT_NONE, ""},
    {"A is written before the wait", FENCE OF_REGISTERS("f") COMMIT "mov.b32 %a2, 0;\n" WAIT(0), 128, SIM_FAULT_WAIT,
     "register %a"},
    {"A is used twice", FENCE OF_REGISTERS("f") OF_REGISTERS("g") COMMIT WAIT(0), 128, SIM_FAULT_NONE, ""},
    {"shared memory is written before the wait", FENCE PRODUCT COMMIT "bar.sync 0;\nst.shared.b32 [%r3], 0;\n" WAIT(0),
     128, SIM_FAULT_IN_FLIGHT, "wgmma.mma_async reads"},
    {"shared memory is written behind the wait", FENCE PRODUCT COMMIT WAIT(0) "bar.sync 0;\nst.shared.b32 [%r3], 0;\n",
     128, SIM_FAULT_NONE, ""},
    {"a lane of each warp arrives behind the wait", READY FENCE PRODUCT COMMIT WAIT(0) ARRIVE FILL, 128, SIM_FAULT_NONE,
     ""},
    {"a lane of each warp arrives before the wait", READY FENCE PRODUCT COMMIT ARRIVE FILL WAIT(0), 128,
     SIM_FAULT_IN_FLIGHT, "wgmma.mma_async reads"},
    {"another lane read by itself", READY "ld.shared.b32 %r5, [%r2+2048];\n" FENCE PRODUCT COMMIT WAIT(0) ARRIVE FILL,
     128, SIM_FAULT_RACE, "writes what thread"},
    {"shared memory is written without a barrier", "st.shared.b32 [%r3], 0;\n" FENCE PRODUCT COMMIT WAIT(0), 128,
     SIM_FAULT_RACE, "reads what thread"},
    {"threads stored what it reads, and no proxy fence follows", STORED SYNC FENCE PRODUCT COMMIT WAIT(0), 128,
     SIM_FAULT_RACE, "without fence.proxy.async"},
    {"the proxy fence is in front of the stores", PROXY STORED SYNC FENCE PRODUCT COMMIT WAIT(0), 128, SIM_FAULT_RACE,
     "without fence.proxy.async"},
    {"a proxy fence follows them", STORED PROXY SYNC FENCE PRODUCT COMMIT WAIT(0), 128, SIM_FAULT_NONE, ""},
    {"a proxy fence of those who multiply", STORED SYNC PROXY FENCE PRODUCT COMMIT WAIT(0), 128, SIM_FAULT_NONE, ""},
    {"shared memory that was never written", "add.u64 %rd3, %rd3, 512;\n" FENCE PRODUCT COMMIT WAIT(0), 128,
     SIM_FAULT_UNINITIALISED, "shared memory"},
    {"beyond shared memory", "add.u64 %rd3, %rd3, 0x1000;\n" FENCE PRODUCT COMMIT WAIT(0), 128, SIM_FAULT_OUT_OF_BOUNDS,
     "shared memory"},
    {"a descriptor with bits of no meaning", "or.b64 %rd3, %rd3, 0x4000;\n" FENCE PRODUCT COMMIT WAIT(0), 128,
     SIM_FAULT_ILLEGAL, "matrix descriptor"},
    {"descriptors of lanes differ",
     "mul.wide.u32 %rd4, %r1, 16;\nadd.u64 %rd3, %rd3, %rd4;\n" FENCE PRODUCT COMMIT WAIT(0), 128, SIM_FAULT_SYNC,
     "matrix descriptors"},
    {"descriptors of warps differ",
     "shr.u32 %r4, %r1, 5;\nmul.wide.u32 %rd4, %r4, 16;\nadd.u64 %rd3, %rd3, %rd4;\n" FENCE PRODUCT COMMIT WAIT(0), 128,
     SIM_FAULT_SYNC, "other operands"},
    {"scale-d of lanes differs", "setp.eq.u32 %p1, %r1, 3;\n" FENCE PRODUCT COMMIT WAIT(0), 128, SIM_FAULT_SYNC,
     "scale-d"},
    {"scale-d of warps differs", "setp.lt.u32 %p1, %r1, 32;\n" FENCE PRODUCT COMMIT WAIT(0), 128, SIM_FAULT_SYNC,
     "other operands"},
    {"a warp comes to another instruction",
     FENCE "setp.lt.u32 %p2, %r1, 32;\n@%p2 bra ONE;\n" PRODUCT "bra BOTH;\nONE:\n" OTHER "BOTH:\n" COMMIT WAIT(0), 128,
     SIM_FAULT_SYNC, "another warp of the warpgroup"},
    {"a warp does not come", FENCE "setp.lt.u32 %p2, %r1, 32;\n@%p2 exit;\n" PRODUCT COMMIT WAIT(0), 128,
     SIM_FAULT_SYNC, "ended without it"},
    {"a lane does not come", FENCE "setp.eq.u32 %p2, %r1, 5;\n@%p2 exit;\n" PRODUCT COMMIT WAIT(0), 128, SIM_FAULT_SYNC,
     "all lanes"},
    {"three warps", FENCE PRODUCT COMMIT WAIT(0), 96, SIM_FAULT_SYNC, "a warpgroup of 3 warps"},
    {"registers are handed on", "setmaxnreg.dec.sync.aligned.u32 40;\nsetmaxnreg.inc.sync.aligned.u32 232;\n", 128,
     SIM_FAULT_NONE, ""},
    {"a warp keeps its registers", "setp.lt.u32 %p2, %r1, 32;\n@!%p2 setmaxnreg.dec.sync.aligned.u32 40;\n", 128,
     SIM_FAULT_SYNC, "ended without it"},
};

/* 4 KiB of zeros are A (2 KiB) and B. */
static const char head[] =
    ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry kernel(.param .u64 p, .param .u64 q)\n{\n"
    ".reg .pred %p<4>;\n.reg .b32 %r<16>, %a<4>;\n.reg .f32 %f<8>, %g<4>;\n.reg .b64 %rd<8>;\n"
    ".shared .align 1024 .b8 tile[16384];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, tile;\nshl.b32 %r3, %r1, 5;\n"
    "add.u32 %r3, %r3, %r2;\nst.shared.v4.b32 [%r3], {0, 0, 0, 0};\nst.shared.v4.b32 [%r3+16], {0, 0, 0, 0};\n"
    "fence.proxy.async;\nbar.sync 0;\nshr.u32 %r4, %r2, 4;\ncvt.u64.u32 %rd2, %r4;\nor.b64 %rd2, %rd2, 0x1000080000;\n"
    "add.u64 %rd3, %rd2, 128;\nsetp.eq.u32 %p1, 0, 0;\n";

static void each_planted_bug_is_reported(void **state) {
    (void)state;
    static char text[TEXT];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (uint64_t seed = 1; seed <= 5; seed++) {
            snprintf(text, sizeof text, "%s%sret;\n}\n", head, rows[i].body);
            sim_report report = run_text(text, rows[i].threads ? rows[i].threads : 128, 0, SIM_SUM_HOPPER, seed);
            if (report.kind != rows[i].kind || (report.kind && !strstr(report.text, rows[i].word)))
                fail_msg("%s, seed %llu: %s", rows[i].name, (unsigned long long)seed, report.text);
        }
    }
}

/* ---- Registers ---- */

/* The first warpgroup does as the first line says, the second as the second, the third as the third. */
static void registers_are_handed_on(void **state) {
    (void)state;
#define DEC(count) "setmaxnreg.dec.sync.aligned.u32 " #count ";\n"
#define INC(count) "setmaxnreg.inc.sync.aligned.u32 " #count ";\n"
    static const struct {
        const char *first, *second, *third;
        uint32_t registers; /* of a thread at the launch */
        sim_fault_kind kind;
        const char *word;
    } cases[] = {
        {DEC(24), INC(240), INC(240), 168, SIM_FAULT_NONE, ""},
        {DEC(32), INC(232), INC(240), 168, SIM_FAULT_NONE, ""},
        {DEC(32), INC(240), INC(240), 168, SIM_FAULT_REGISTERS, "the warp lacks 72 registers"},
        {"", INC(176), INC(176), 168, SIM_FAULT_REGISTERS,
         "lacks 8 registers of each lane, and 0 of one warp are free"},
        {DEC(40), INC(232), INC(232), 162, SIM_FAULT_NONE, ""}, /* 168 are given out */
        {DEC(40), INC(232), INC(232), 160, SIM_FAULT_REGISTERS, "lacks 72"},
        {DEC(40), INC(232), INC(232), 0, SIM_FAULT_NONE, ""}, /* not known */
        {DEC(40) INC(168), INC(176) DEC(168), INC(176) DEC(168), 168, SIM_FAULT_NONE, ""},
        {DEC(176), "", "", 168, SIM_FAULT_ILLEGAL, "setmaxnreg.dec to 176 registers of a warp that has 168"},
        {INC(160), "", "", 168, SIM_FAULT_ILLEGAL, "setmaxnreg.inc to 160"},
        /* A warp that asks for what others write does not hide that they wait for ever. */
        {DEC(32) "AGAIN:\nld.volatile.shared.b32 %r4, [tile+8192];\nsetp.eq.u32 %p2, %r4, 1;\n@!%p2 bra AGAIN;\n",
         INC(240), INC(240), 168, SIM_FAULT_REGISTERS, "lacks 72 registers"},
    };
#undef DEC
#undef INC
    static char text[TEXT];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (uint64_t seed = 1; seed <= 5; seed++) {
            snprintf(
                text, sizeof text,
                ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry kernel(.param .u64 p, .param .u64 q)\n"
                "{\n.reg .pred %%p<4>;\n.reg .b32 %%r<8>;\n.shared .align 16 .b8 tile[16384];\nmov.u32 %%r1, %%tid.x;\n"
                "setp.eq.u32 %%p1, %%r1, 0;\n@%%p1 st.shared.b32 [tile+8192], 0;\nbar.sync 0;\n"
                "setp.ge.u32 %%p1, %%r1, 256;\n@%%p1 bra THIRD;\n"
                "setp.ge.u32 %%p1, %%r1, 128;\n@%%p1 bra SECOND;\n%sret;\nSECOND:\n%sret;\nTHIRD:\n%sret;\n}\n",
                cases[i].first, cases[i].second, cases[i].third);
            sim_report report = run_text(text, 384, cases[i].registers, SIM_SUM_HOPPER, seed);
            if (report.kind != cases[i].kind || (report.kind && !strstr(report.text, cases[i].word)))
                fail_msg("case %zu, seed %llu: %s", i, (unsigned long long)seed, report.text);
        }
    }
}

/* ---- What is refused ---- */

static void what_is_no_form_is_refused(void **state) {
    (void)state;
#define MMA  "wgmma.mma_async.sync.aligned."
#define FOUR "{%r0, %r1, %r2, %r3}, %rd1, %rd2, %p1"
    static const struct {
        const char *target, *line, *word;
    } refused[] = {
        {"sm_90", FENCE, "sm_90a"},
        {"sm_90", "setmaxnreg.inc.sync.aligned.u32 64;", "sm_90a"},
        {"sm_90a", "wgmma.fence;", ".sync.aligned"},
        {"sm_90a", "wgmma.wait_group.sync.aligned %r1;", "constant"},
        {"sm_90a", MMA "m64n8k32.s32.s8.u8 " FOUR ";", "PTX 8.4"},
        {"sm_90a", MMA "m64n12k16.f32.f16.f16 " FOUR ", 1, 1, 0, 0;", "shape"},
        {"sm_90a", MMA "m64n264k16.f32.f16.f16 " FOUR ", 1, 1, 0, 0;", "shape"},
        {"sm_90a", MMA "m64n40k32.s32.s8.s8 " FOUR ";", "shape"},
        {"sm_90a", MMA "m64n8k8.f32.f16.f16 " FOUR ", 1, 1, 0, 0;", "shape"},
        {"sm_90a", MMA "m64n8k16.f32.f16.bf16 " FOUR ", 1, 1, 0, 0;", "no such form of types"},
        {"sm_90a", MMA "m64n8k16.f16.bf16.bf16 " FOUR ", 1, 1, 0, 0;", "no such form of types"},
        {"sm_90a", MMA "m64n8k16.f32.f16.f16 " FOUR ", 1, 1;", "operands"},
        {"sm_90a", MMA "m64n8k8.f32.tf32.tf32 " FOUR ", 1, 1, 0, 0;", "operands"},
        {"sm_90a", MMA "m64n8k16.f32.f16.f16 " FOUR ", 2, 1, 0, 0;", "imm-scale"},
        {"sm_90a", MMA "m64n8k16.f32.f16.f16 " FOUR ", 1, 1, 2, 0;", "imm-trans"},
        {"sm_90a", MMA "m64n16k16.f32.f16.f16 " FOUR ", 1, 1, 0, 0;", "4 registers where it has 8"},
        {"sm_90a", MMA "m64n8k256.s32.b1.b1 " FOUR ";", ".and.popc"},
        {"sm_90a", MMA "m64n8k16.f32.f16.f16.satfinite " FOUR ", 1, 1, 0, 0;", ".satfinite"},
        {"sm_90a", "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 " FOUR ", 1, 1, 0, 0;", "sparse"},
        {"sm_90a", "mma.sync.aligned.m64n8k16.row.col.f32.f16.f16.f32 " FOUR ";", "shape"},
        {"sm_90a", "setmaxnreg.dec.sync.aligned.u32 20;", "24 to 256"},
        {"sm_90a", "setmaxnreg.dec.sync.aligned.u32 260;", "24 to 256"},
        {"sm_90a", "setmaxnreg.dec.sync.aligned.u32 36;", "multiple of 8"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char text[1024], why[256] = "";
        snprintf(text, sizeof text,
                 ".version 8.0\n.target %s\n.address_size 64\n.visible .entry k() {\n.reg .pred %%p<2>;\n"
                 ".reg .b32 %%r<4>;\n.reg .b64 %%rd<4>;\n%s\nret;\n}\n",
                 refused[i].target, refused[i].line);
        assert_null(ptx_program_load(text, strlen(text), 90, why, sizeof why));
        if (!strstr(why, refused[i].word)) fail_msg("%s: %s", refused[i].line, why);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers_are_summed_in_every_form),
        cmocka_unit_test(each_planted_bug_is_reported),
        cmocka_unit_test(registers_are_handed_on),
        cmocka_unit_test(what_is_no_form_is_refused),
    };
    return cmocka_run_group_tests_name("ptx_wgmma", tests, NULL, NULL);
}
