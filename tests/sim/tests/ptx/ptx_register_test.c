/* What the special registers hold in each thread of a launch of several blocks, in clusters and without; and registers
 * that are vectors. */
#include "tests/sim/ptx/warp/ptx_warp.h"
#include "tests/sim/tests/ptx/ptx_harness.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t seed;

typedef struct thread {
    const ptx_launch *launch;
    uint32_t block[3], index; /* in the block */
} thread;

/* ---- Special registers ---- */

static uint64_t x_of(const uint32_t *v) {
    return v[0];
}

static uint64_t place_of(const thread *t, int dimension) {
    const uint32_t *size = t->launch->block;
    uint32_t xy = size[0] * size[1];
    return dimension == 0 ? t->index % size[0] : dimension == 1 ? t->index % xy / size[0] : t->index / xy;
}

static uint64_t cluster_of(const thread *t, int dimension) {
    return t->launch->cluster[dimension] ? t->launch->cluster[dimension] : 1;
}

static uint64_t rank_of(const thread *t) {
    uint64_t rank = 0;
    for (int i = 3; i--;)
        rank = rank * cluster_of(t, i) + t->block[i] % cluster_of(t, i);
    return rank;
}

static uint64_t shared_of(const thread *t) {
    return 64 + t->launch->dynamic_shared_bytes;
}

#define REGISTERS(X)                                                                                    \
    X("%tid.x", place_of(t, 0))                                                                         \
    X("%tid.y", place_of(t, 1))                                                                         \
    X("%tid.z", place_of(t, 2))                                                                         \
    X("%tid.w", 0)                                                                                      \
    X("%ntid.x", x_of(t->launch->block))                                                                \
    X("%ntid.z", t->launch->block[2])                                                                   \
    X("%ctaid.x", t->block[0])                                                                          \
    X("%ctaid.y", t->block[1])                                                                          \
    X("%ctaid.z", t->block[2])                                                                          \
    X("%nctaid.y", t->launch->grid[1])                                                                  \
    X("%clusterid.x", t->block[0] / cluster_of(t, 0))                                                   \
    X("%clusterid.y", t->block[1] / cluster_of(t, 1))                                                   \
    X("%clusterid.w", 0)                                                                                \
    X("%nclusterid.x", t->launch->grid[0] / cluster_of(t, 0))                                           \
    X("%nclusterid.z", t->launch->grid[2] / cluster_of(t, 2))                                           \
    X("%cluster_ctaid.x", t->block[0] % cluster_of(t, 0))                                               \
    X("%cluster_ctaid.z", t->block[2] % cluster_of(t, 2))                                               \
    X("%cluster_nctaid.y", cluster_of(t, 1))                                                            \
    X("%cluster_ctarank", rank_of(t))                                                                   \
    X("%cluster_nctarank", cluster_of(t, 0) * cluster_of(t, 1) * cluster_of(t, 2))                      \
    X("%laneid", t->index % 32)                                                                         \
    X("%lanemask_eq", 1u << t->index % 32)                                                              \
    X("%lanemask_lt", (1u << t->index % 32) - 1)                                                        \
    X("%lanemask_le", (1u << t->index % 32) | ((1u << t->index % 32) - 1))                              \
    X("%lanemask_ge", ~((1u << t->index % 32) - 1))                                                     \
    X("%lanemask_gt", ~((1u << t->index % 32) | ((1u << t->index % 32) - 1)))                           \
    X("%nsmid", t->launch->multiprocessors)                                                             \
    X("%gridid", t->launch->number & 0xffffffff)                                                        \
    X("%dynamic_smem_size", t->launch->dynamic_shared_bytes)                                            \
    X("%total_smem_size", (shared_of(t) + 127) / 128 * 128)                                             \
    X("%aggr_smem_size", (shared_of(t) + 127) / 128 * 128 + t->launch->reserved_shared_bytes)           \
    X("%reserved_smem_offset_begin", (shared_of(t) + 127) / 128 * 128)                                  \
    X("%reserved_smem_offset_end", (shared_of(t) + 127) / 128 * 128 + t->launch->reserved_shared_bytes) \
    X("%reserved_smem_offset_cap", t->launch->reserved_shared_bytes)                                    \
    X("%envreg0", 0)                                                                                    \
    X("%envreg31", 0)

static uint64_t expected(const thread *t, uint32_t number) {
    const uint64_t values[] = {
#define VALUE(name, value) value,
        REGISTERS(VALUE)
#undef VALUE
    };
    return values[number];
}

static const char *const names[] = {
#define NAME(name, value) name,
    REGISTERS(NAME)
#undef NAME
};
enum { NAMES = sizeof names / sizeof *names, EACH = NAMES + 4, THREADS_MAX = 3 * 2 * 4 * 90 };

static uint32_t words[THREADS_MAX * EACH];

static bool find(void *context, uint64_t address, sim_region *out_region) {
    (void)context;
    *out_region = (sim_region){.base = (uintptr_t)words, .size = sizeof words};
    return address - (uintptr_t)words < sizeof words;
}

/* A kernel that stores each register, then whether the cluster is explicit, %smid, and the whole of %gridid. */
static ptx_program *load(void) {
    static char text[16384];
    char why[256] = "";
    size_t length = 0;
#define WRITE(...) length += (size_t)snprintf(text + length, sizeof text - length, __VA_ARGS__)
    WRITE(".version 9.0\n.target sm_90\n.address_size 64\n.extern .shared .b8 more[];\n.entry kernel(.param .u64 p) {\n"
          ".reg .b32 %%r<8>, n;\n.reg .b64 at, d;\n.reg .pred e;\n.reg .v4 .u32 t, b, w, g;\n.shared .b8 some[64];\n"
          "mov.v4.u32 t, %%tid;\nmov.v4.u32 w, %%ntid;\nmov.v4.u32 b, %%ctaid;\nmov.v4.u32 g, %%nctaid;\n"
          "mad.lo.u32 %%r0, b.z, g.y, b.y;\nmad.lo.u32 %%r0, %%r0, g.x, b.x;\n"
          "mad.lo.u32 %%r0, %%r0, w.z, t.z;\nmad.lo.u32 %%r0, %%r0, w.y, t.y;\nmad.lo.u32 %%r0, %%r0, w.x, t.x;\n"
          "ld.param.u64 at, [p];\nmad.wide.u32 at, %%r0, %d, at;\n",
          EACH * 4);
    for (int i = 0; i < NAMES; i++)
        WRITE("mov.u32 n, %s;\nst.global.u32 [at+%d], n;\n", names[i], i * 4);
    /* The system's shared memory may be used where it is asked for, and its code knows what it holds. */
    WRITE("mov.u32 n, %%reserved_smem_offset_1;\nld.shared.u32 %%r1, [n+508];\nmad.lo.u32 n, t.x, 4, n;\n"
          "mad.lo.u32 n, t.y, 20, n;\nmad.lo.u32 n, t.z, 60, n;\nsetp.eq.u32 e, %%r1, 7;\nst.shared.u32 [n], n;\n"
          "ld.shared.u32 %%r1, [n];\nsetp.ne.u32 e, %%r1, n;\n@e trap;\n");
    WRITE("mov.pred e, %%is_explicit_cluster;\nselp.u32 n, 1, 0, e;\nst.global.u32 [at+%d], n;\n", NAMES * 4);
    WRITE("mov.u32 n, %%smid;\nst.global.u32 [at+%d], n;\n", (NAMES + 1) * 4);
    WRITE("mov.u64 d, %%gridid;\nmov.b64 {n, %%r1}, d;\nst.global.u32 [at+%d], n;\nst.global.u32 [at+%d], "
          "%%r1;\nret;\n}\n",
          (NAMES + 2) * 4, (NAMES + 3) * 4);
#undef WRITE
    ptx_program *program = ptx_program_load(text, length, 90, why, sizeof why);
    if (!program) fail_msg("%s", why);
    return program;
}

static void check(ptx_launch *launch, const ptx_program *program) {
    uint64_t pointer = (uintptr_t)words;
    sim_counters counters = {0};
    sim_report report;
    launch->program = program;
    launch->code = ptx_program_find(program, "kernel");
    launch->parameters = (const uint8_t *)&pointer;
    launch->find = find;
    launch->budget = 1 << 20;
    launch->threads = 2;
    if (!ptx_launch_run(launch, &counters, &report)) fail_msg("%s", report.text);
    uint32_t threads = launch->block[0] * launch->block[1] * launch->block[2], multiprocessors = 0;
    for (uint32_t n = 0; n < launch->grid[0] * launch->grid[1] * launch->grid[2]; n++) {
        const uint32_t *first = words + n * threads * EACH;
        multiprocessors |= 1u << first[NAMES + 1];
        for (uint32_t i = 0; i < threads; i++) {
            const uint32_t *is = first + i * EACH;
            thread t = {launch, {0}, i};
            t.block[0] = n % launch->grid[0];
            t.block[1] = n / launch->grid[0] % launch->grid[1];
            t.block[2] = n / launch->grid[0] / launch->grid[1];
            for (uint32_t r = 0; r < NAMES; r++)
                if (is[r] != (uint32_t)expected(&t, r))
                    fail_msg("%s of thread %u, block %u: %u, must be %u", names[r], i, n, is[r],
                             (uint32_t)expected(&t, r));
            assert_int_equal(is[NAMES], launch->cluster[0] != 0);
            assert_int_equal(is[NAMES + 1], first[NAMES + 1]); /* a block is on one multiprocessor */
            assert_true(is[NAMES + 1] < launch->multiprocessors);
            assert_int_equal(is[NAMES + 2] | (uint64_t)is[NAMES + 3] << 32, launch->number);
        }
    }
    assert_true(__builtin_popcount(multiprocessors) > 1);
}

static void special_registers(void **state) {
    (void)state;
    ptx_program *program = load();
    ptx_launch launch = {.grid = {3, 2, 4},
                         .block = {5, 3, 6},
                         .number = 0x500000007,
                         .multiprocessors = 30,
                         .dynamic_shared_bytes = 100,
                         .reserved_shared_bytes = 1024,
                         .seed = seed};
    check(&launch, program);
    ptx_launch clustered = launch;
    memcpy(clustered.cluster, (uint32_t[]){3, 1, 2}, sizeof clustered.cluster);
    check(&clustered, program);
    ptx_program_free(program);
}

/* ---- Vectors ---- */

enum { COUNT = 64 };

/* Each makes a * 5 + b. */
static void vectors_of_registers(void **state) {
    (void)state;
    static const char *const codes[] = {
        ".reg .v2 .b32 v;\nmov.b32 v.x, %a;\nmov.b32 v.y, %b;\nmad.lo.u32 %d, v.r, 5, v.g;",
        ".reg .v4 .u32 v<3>;\nmov.v4.u32 v2, {%a, 5, %b, %b};\nmov.v4.u32 v1, v2;\nmad.lo.u32 %d, v1.x, v2.g, v1.w;",
        ".reg .v2 .b32 v;\nmov.v2.b32 v, {%b, %a};\nmov.v2.b32 v, {v.y, v.x};\nmad.lo.u32 %d, v.x, 5, v.y;",
        ".reg .v2 .b32 v;\n.reg .b64 w;\nmov.v2.b32 v, {%a, %b};\nmov.b64 w, v;\nmov.b64 {%t0, %t1}, w;\n"
        "mov.b64 v, w;\nmad.lo.u32 %d, %t0, 5, v.y;",
        ".reg .v4 .b16 v;\n.reg .b64 w;\nmov.b64 w, {%a, %b};\nmov.b64 v, w;\nmov.b32 %t0, {v.x, v.y};\n"
        "mov.b32 %t1, {v.b, v.a};\nmad.lo.u32 %d, %t0, 5, %t1;",
        ".reg .v2 .b32 v;\n.local .align 8 .b8 m[8];\nst.local.v2.b32 [m], {%b, %a};\nld.local.v2.b32 v, [m];\n"
        "st.local.v2.b32 [m], v;\nld.local.b32 v.x, [m];\nmad.lo.u32 %d, v.y, 5, v.x;",
    };
    uint32_t a[COUNT], b[COUNT], d[COUNT];
    uint64_t random = seed;
    for (int i = 0; i < COUNT; i++) {
        a[i] = (uint32_t)sim_random(&random);
        b[i] = (uint32_t)sim_random(&random);
    }
    for (size_t n = 0; n < sizeof codes / sizeof *codes; n++) {
        harness_case test = {.code = codes[n], .result_bits = 32, .source_bits = {32, 32}, .seed = seed};
        harness_run(&test, COUNT, d, (const void *[HARNESS_SOURCES]){a, b});
        for (int i = 0; i < COUNT; i++)
            if (d[i] != a[i] * 5 + b[i]) fail_msg("%s: 0x%x, must be 0x%x", codes[n], d[i], a[i] * 5 + b[i]);
    }
}

static void wrong_vectors_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *code, *word;
    } refused[] = {
        {".reg .v2 .b32 v;\nmov.b32 %d, v.z;", "no such element"},
        {".reg .v4 .b32 v;\nmov.b32 %d, v.k;", "no such element"},
        {".reg .v4 .b64 v;", "4 elements"},
        {".reg .v2 .pred v;", "pred"},
        {".reg .v2 .b32 v;\nadd.u32 %d, v, 1;", "operand"},
        {".reg .v2 .b32 v;\nmov.v4.b32 v, %tid;", "4 elements"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        harness_case test = {.code = refused[i].code, .result_bits = 32, .source_bits = {32}};
        const char *why = harness_refusal(&test);
        if (!strstr(why, refused[i].word)) fail_msg("%s: %s", refused[i].code, why);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(special_registers),
        cmocka_unit_test(vectors_of_registers),
        cmocka_unit_test(wrong_vectors_are_refused),
    };
    seed = harness_seed();
    return cmocka_run_group_tests_name("ptx_register", tests, NULL, NULL);
}
