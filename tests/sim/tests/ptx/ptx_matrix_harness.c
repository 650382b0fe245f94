#include "tests/sim/tests/ptx/ptx_matrix_harness.h"
#include "tests/sim/tests/ptx/ptx_device.h"
#include "tests/sim/tests/ptx/ptx_record.h"
#include "tests/sim/tests/ptx/ptx_verdict.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- Running ---- */

static size_t write_text(const matrix_case *test, char *text, size_t size) {
    size_t length = 0;
#define WRITE(...) length += (size_t)snprintf(text + length, size - length, __VA_ARGS__)
    WRITE(".version %s\n.target %s\n.address_size 64\n", test->version ? test->version : "9.0",
          test->target ? test->target : "sm_90");
    WRITE(".visible .entry kernel(.param .u64 pin, .param .u64 pout)\n{\n.reg .pred %%p, %%q;\n");
    WRITE(".reg .b32 %%w<%d>, %%v<%d>, %%r<16>, %%i, %%j, %%lane;\n", MATRIX_WORDS, MATRIX_WORDS);
    WRITE(".reg .f64 %%g<32>;\n.reg .b64 %%x<8>, %%in, %%out, %%by;\n.shared .align 128 .b8 tile[4096];\n");
    WRITE("mov.u32 %%i, %%ctaid.x;\nmov.u32 %%j, %%ntid.x;\nmov.u32 %%lane, %%tid.x;\n");
    WRITE("mad.lo.s32 %%i, %%i, %%j, %%lane;\nld.param.u64 %%in, [pin];\nld.param.u64 %%out, [pout];\n");
    WRITE("mul.wide.u32 %%by, %%i, %u;\nadd.s64 %%in, %%in, %%by;\n", test->in * 4);
    WRITE("mul.wide.u32 %%by, %%i, %u;\nadd.s64 %%out, %%out, %%by;\n", test->out * 4);
    for (uint32_t i = 0; i < test->in; i++)
        WRITE("ld.global.b32 %%w%u, [%%in+%u];\n", i, i * 4);
    WRITE("%s\n", test->code);
    for (uint32_t i = 0; i < test->out; i++)
        WRITE("st.global.b32 [%%out+%u], %%v%u;\n", i * 4, i);
    WRITE("ret;\n}\n");
#undef WRITE
    assert_true(length < size);
    return length;
}

static char text[32768];

static ptx_program *load(const matrix_case *test, char *why, size_t why_size) {
    size_t length = write_text(test, text, sizeof text);
    int32_t capability = (int32_t)strtol((test->target ? test->target : "sm_90") + 3, NULL, 10);
    return ptx_program_load(text, length, capability, why, why_size);
}

typedef struct arrays {
    uint64_t base[2], size[2];
} arrays;

static bool find(void *context, uint64_t address, sim_region *out_region) {
    const arrays *all = context;
    for (int i = 0; i < 2; i++) {
        if (address - all->base[i] >= all->size[i]) continue;
        *out_region = (sim_region){.base = all->base[i], .size = all->size[i]};
        return true;
    }
    return false;
}

bool matrix_run(const matrix_case *test, const uint32_t *in, uint32_t *out, sim_counters *counters,
                sim_report *report) {
    char why[512] = "";
    ptx_program *program = load(test, why, sizeof why);
    if (!program) fail_msg("%s: %s", test->code, why);
    uint64_t threads = (uint64_t)test->blocks * test->threads;
    arrays all = {{(uintptr_t)in, (uintptr_t)out}, {threads * test->in * 4, threads * test->out * 4}};
    memset(out, 0xb5, all.size[1]);
    ptx_launch launch = {.program = program,
                         .code = ptx_program_find(program, "kernel"),
                         .grid = {test->blocks, 1, 1},
                         .block = {test->threads, 1, 1},
                         .parameters = (const uint8_t *)all.base,
                         .find = find,
                         .find_context = &all,
                         .seed = test->seed,
                         .budget = 1 << 20,
                         .threads = 1,
                         .sum_mode = test->mode};
    bool ok = ptx_launch_run(&launch, counters, report);
    ptx_program_free(program);
    return ok;
}

const char *matrix_refusal(const char *target, const char *version, const char *code) {
    static char why[512];
    matrix_case test = {.target = target, .version = version, .code = code};
    *why = 0;
    ptx_program_free(load(&test, why, sizeof why));
    return why;
}

/* ---- Comparing with a device ---- */

bool matrix_here(const matrix_case *test, matrix_case *out_here) {
    *out_here = *test;
    out_here->target = device_target_for(test->target);
    out_here->version = device_version();
    const char *why = matrix_refusal(out_here->target, out_here->version, test->code);
    if (*why) verdict_on_kernel(test->code, VERDICT_ABSENT, why);
    return !*why;
}

static size_t words_of(const matrix_case *test, uint32_t of_a_lane) {
    return (size_t)test->blocks * test->threads * of_a_lane;
}

bool matrix_run_there(const matrix_case *test, uint32_t *in, uint32_t *out) {
    char why[512] = "";
    const device_array passed[] = {{in, words_of(test, test->in) * 4},
                                   {test->out ? out : NULL, words_of(test, test->out) * 4}};
    uint32_t *in_before = aligned_alloc(64, (passed[0].size + passed[1].size + 63) / 64 * 64);
    assert_non_null(in_before);
    memcpy(in_before, in, passed[0].size);
    memset(out, 0xb5, passed[1].size);
    memset((uint8_t *)in_before + passed[0].size, 0xb5, passed[1].size);
    write_text(test, text, sizeof text);
    bool ok = device_run(text, test->blocks, test->threads, passed, 2, why, sizeof why);
    if (!ok) verdict_on_kernel(test->code, VERDICT_FAILED, why);
    const record_kernel record = {
        .text = text,
        .code = test->code,
        .blocks = test->blocks,
        .threads = test->threads,
        .count = 2,
        .before = {{in_before, passed[0].size},
                   {test->out ? (uint8_t *)in_before + passed[0].size : NULL, passed[1].size}},
        .after = {passed[0], passed[1]}};
    if (ok) record_write(&record);
    free(in_before);
    return ok;
}

static void judge(const matrix_case *test, const char *what, const uint32_t *wanted, const uint32_t *got,
                  size_t count) {
    enum { PRINTED = 4 };
    uint64_t different = 0;
    for (size_t i = 0; i < count; i++) {
        if (wanted[i] == got[i] || different++ >= PRINTED) continue;
        printf("# different: %s: %s %zu: the device's 0x%x, simulated 0x%x\n", verdict_line(test->code), what, i,
               got[i], wanted[i]);
    }
    verdict_count(test->code, VERDICT_DIFFERENT, different);
    verdict_count(test->code, VERDICT_EQUAL, count - different);
}

void matrix_compare(const matrix_case *test, const uint32_t *in) {
    matrix_case here;
    if (!device_present() || !matrix_here(test, &here)) return;
    size_t in_count = words_of(test, test->in), out_count = words_of(test, test->out);
    uint32_t *memory[2]; /* of the interpreter and of the device: what goes in, then what comes out */
    for (int i = 0; i < 2; i++) {
        memory[i] = aligned_alloc(64, ((in_count + out_count) * 4 + 63) / 64 * 64);
        assert_non_null(memory[i]);
        memcpy(memory[i], in, in_count * 4);
    }
    sim_counters counters = {0};
    sim_report report;
    if (!matrix_run(&here, memory[0], memory[0] + in_count, &counters, &report))
        fail_msg("%s: %s", test->code, report.text);
    if (matrix_run_there(&here, memory[1], memory[1] + in_count)) {
        judge(test, "memory", memory[0], memory[1], in_count);
        judge(test, "result", memory[0] + in_count, memory[1] + in_count, out_count);
    }
    free(memory[0]);
    free(memory[1]);
}

/* ---- Layouts ---- */

typedef enum order { ROW, COLUMN } order;
typedef struct mode {
    uint32_t size, stride;
} mode;

typedef struct layout {
    uint32_t shape[3];
    matrix_letter letter;
    uint32_t bits;
    order order;
    mode threads[4], values[4];
} layout;

#define THREADS(...) \
    { __VA_ARGS__ }
#define VALUES(...) \
    { __VA_ARGS__ }
static const layout layouts[] = {
#define MATRIX_LAYOUT(m, n, k, matrix, bits, order, threads, values) \
    {{m, n, k}, MATRIX_##matrix, bits, order, threads, values},
#include "tests/sim/tests/ptx/ptx_matrix_layouts.def"
#undef MATRIX_LAYOUT
};

static uint32_t size_of(const mode *modes) {
    uint32_t size = 1;
    for (int i = 0; i < 4 && modes[i].size; i++)
        size *= modes[i].size;
    return size;
}

static uint32_t offset_of(const mode *modes, uint32_t number) {
    uint32_t offset = 0;
    for (int i = 0; i < 4 && modes[i].size; i++) {
        offset += number % modes[i].size * modes[i].stride;
        number /= modes[i].size;
    }
    return offset;
}

/* Only m8n8k4 of f16 has two orders. */
static const layout *layout_of(const uint32_t shape[3], matrix_letter letter, uint32_t bits, bool column) {
    bool orders = bits == 16 && shape[2] == 4 && (letter == MATRIX_A || letter == MATRIX_B);
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        const layout *x = &layouts[i];
        if (memcmp(x->shape, shape, sizeof x->shape) != 0 || x->letter != letter || x->bits != bits) continue;
        if (!orders || (x->order == COLUMN) == column) return x;
    }
    return NULL;
}

uint32_t matrix_elements(const uint32_t shape[3], matrix_letter letter, uint32_t bits, bool column) {
    const layout *x = layout_of(shape, letter, bits, column);
    return x ? size_of(x->values) : 0;
}

matrix_place matrix_place_of(const uint32_t shape[3], matrix_letter letter, uint32_t bits, bool column, uint32_t lane,
                             uint32_t element) {
    const layout *x = layout_of(shape, letter, bits, column);
    matrix_place place = {0};
    uint32_t thread = lane;
    if (size_of(x->threads) == 8) { /* a quad pair: lanes 0 to 3 and 16 to 19, and so on */
        place.matrix = lane / 4 % 4;
        thread = lane % 4 + lane / 16 * 4;
    }
    uint32_t offset = offset_of(x->threads, thread) + offset_of(x->values, element);
    uint32_t fast = letter == MATRIX_B ? shape[1] : shape[0], first = offset % fast, second = offset / fast;
    bool swapped = letter == MATRIX_B || letter == MATRIX_X || letter == MATRIX_XT;
    place.row = swapped ? second : first;
    place.column = swapped ? first : second;
    return place;
}
