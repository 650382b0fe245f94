/* Kernels with one planted bug each, and what the simulator must say of it; and the same kernels mended, which must
 * run. */
#include "tests/sim/ptx/warp/ptx_warp.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WORDS = 256 };

/* One allocation, of which the first half was written. */
typedef struct world {
    uint32_t *memory;
    uint8_t written[WORDS * 4 / 8 + 1];
    bool constant;
} world;

static bool find(void *context, uint64_t address, sim_region *out_region) {
    world *w = context;
    uint64_t base = (uintptr_t)w->memory;
    *out_region = (sim_region){base, WORDS * 4, w->written, w->constant};
    return address - base < WORDS * 4;
}

/* keep(1) writes its own memory, keep(0) reads it; lend() and grow() give the address of their own, grow() from alloca;
 * leave(1) exits, and any other traps. */
#define FUNCTIONS_DECLARED                                                                                    \
    ".func (.param .b32 r) keep(.param .b32 p); .func (.param .b64 r) lend(); .func (.param .b64 r) grow(); " \
    ".func (.param .b32 r) leave(.param .b32 p);"
#define FUNCTIONS                                                                                                     \
    ".func (.param .b32 r) keep(.param .b32 p) {\n.reg .b32 x;\n.reg .pred q;\n"                                      \
    ".local .b32 m;\nld.param.b32 x, [p];\nsetp.ne.b32 q, x, 0;\n@q st.local.b32 [m], x;\n"                           \
    "@!q ld.local.b32 x, [m];\nst.param.b32 [r], x;\nret;\n}\n"                                                       \
    ".func (.param .b64 r) lend() {\n.reg .b64 x;\n.local .b32 m;\nst.local.b32 [m], 1;\n"                            \
    "mov.b64 x, m;\nst.param.b64 [r], x;\nret;\n}\n"                                                                  \
    ".func (.param .b64 r) grow() {\n.reg .b64 x;\nalloca.u64 x, 8000;\nst.local.b32 [x], 1;\nst.param.b64 [r], x;\n" \
    "ret;\n}\n.func (.param .b32 r) leave(.param .b32 p) {\n.reg .b32 x;\n.reg .pred q;\nld.param.b32 x, [p];\n"      \
    "setp.eq.u32 q, x, 1;\n@q exit;\ntrap;\n}\n"
#define KEEP(x) \
    "{ .param .b32 p; .param .b32 r; st.param.b32 [p], " #x "; call (r), keep, (p); ld.param.b32 %r5, [r]; }\n"
#define GROW "{ .param .b64 r; call (r), grow; ld.param.b64 %rd5, [r]; }\n"
#define LEND "{ .param .b64 r; call (r), lend; ld.param.b64 %rd5, [r]; }\n"

static bool let_same_stores;
static _Atomic uint32_t same_store;

static sim_report run_text(const char *body, uint32_t threads, uint64_t seed, world *w, sim_counters *counters) {
    static char text[8192];
    char why[256] = "";
    snprintf(text, sizeof text,
             ".version 7.8\n.target sm_80\n.address_size 64 " FUNCTIONS_DECLARED "\n"
             ".visible .entry kernel(.param .u64 p) {\n"
             ".reg .pred %%p<8>;\n.reg .b32 %%r<16>;\n.reg .b64 %%rd<8>;\n"
             ".shared .align 16 .b8 tile[256];.local .align 8 .b8 own[64];\n"
             "ld.param.u64 %%rd1, [p];\ncvta.to.global.u64 %%rd2, %%rd1;\n"
             "mov.u32 %%r1, %%tid.x;\nmul.wide.u32 %%rd3, %%r1, 4;\nadd.s64 %%rd4, %%rd2, %%rd3;\n"
             "mov.u32 %%r2, tile;\nshl.b32 %%r3, %%r1, 2;\nadd.s32 %%r3, %%r2, %%r3;\n"
             "%s\nret;\n}\n" FUNCTIONS,
             body);
    ptx_program *program = ptx_program_load(text, strlen(text), 80, why, sizeof why);
    if (!program) fail_msg("%s", why);
    uint64_t pointer = (uintptr_t)w->memory;
    sim_report report;
    ptx_launch launch = {.program = program,
                         .code = ptx_program_find(program, "kernel"),
                         .grid = {1, 1, 1},
                         .block = {threads, 1, 1},
                         .parameters = (const uint8_t *)&pointer,
                         .find = find,
                         .find_context = w,
                         .seed = seed,
                         .same_store = let_same_stores ? &same_store : NULL,
                         .budget = 100000,
                         .reserved_shared_bytes = 1024,
                         .threads = 1};
    assert_non_null(launch.code);
    bool ok = ptx_launch_run(&launch, counters, &report);
    assert_int_equal(ok, report.kind == SIM_FAULT_NONE);
    ptx_program_free(program);
    return report;
}

static world world_new(void) {
    world w = {.memory = aligned_alloc(128, WORDS * 4)};
    assert_non_null(w.memory);
    for (uint32_t i = 0; i < WORDS; i++)
        w.memory[i] = i;
    memset(w.written, 0xff, WORDS * 4 / 8 / 2);
    return w;
}

typedef struct row {
    const char *name;
    const char *body;
    uint32_t threads;
    sim_fault_kind kind; /* NONE: the mended kernel */
    const char *word;    /* in the report */
} row;

#define COPY "cp.async.ca.shared.global [%r3], [%rd4], 4;\n"
#define COPY_TWO                                                                              \
    COPY "cp.async.commit_group;\ncp.async.ca.shared.global.L2::128B [%r3+128], [%rd4], 4;\n" \
         "cp.async.commit_group;\n"

/* Words of zeros, and then one lane of each warp; that of the second jumps to W1, that of the third to W2. */
#define ONE_OF_EACH                                                                                              \
    "setp.lt.u32 %p1, %r1, 64;\n@%p1 st.shared.u32 [%r3], 0;\nbar.sync 0;\nand.b32 %r6, %r1, 31;\n"              \
    "setp.ne.u32 %p1, %r6, 0;\n@%p1 exit;\nsetp.eq.u32 %p1, %r1, 32;\n@%p1 bra W1;\nsetp.eq.u32 %p1, %r1, 64;\n" \
    "@%p1 bra W2;\n"
/* Waits at a label until a load of the flag gives so much. */
#define AWAIT(label, load, value) \
    label ":\n" load " %r4, [tile+4];\nsetp.ne.u32 %p1, %r4, " value ";\n@%p1 bra " label ";\n"
/* The first writes a word and a flag, for which the second waits to read the word; then it zeroes both. */
#define FLAG(give, load)                                                              \
    ONE_OF_EACH "st.shared.u32 [tile], 5;\n" give                                     \
                "\nexit;\nW1:\n" AWAIT("A", load, "1") "ld.shared.u32 %r5, [tile];\n" \
                                                       "st.shared.u32 [tile], 0;\nst.shared.u32 [tile+4], 0;\nW2:"
/* The second waits for the first and hands on to the third, which reads. */
#define HANDS(hand, load)                                                                               \
    ONE_OF_EACH "st.shared.u32 [tile], 5;\nst.release.cta.shared.u32 [tile+4], 1;\nexit;\nW1:\n" AWAIT( \
        "A", "ld.relaxed.cta.shared.u32",                                                               \
        "1") "atom.acquire.cta.shared.or.b32 %r5, [tile+4], 0;\nst.shared.u32 [tile+8], 7;\n" hand      \
             "\nexit;\nW2:\n" AWAIT("B", load, "2") "ld.shared.u32 %r5, [tile];\nld.shared.u32 %r5, [tile+8];"
/* The first two read a word and count, and the third waits for both, and writes. */
#define READERS(count)                                    \
    ONE_OF_EACH "W1:\nld.shared.u32 %r5, [tile];\n" count \
                "\nexit;\nW2:\n" AWAIT("A", "ld.acquire.cta.shared.u32", "2") "st.shared.u32 [tile], 5;"

/* Of two lanes the second reads a word; the first releases a flag, for which another warp waits to write that. */
#define LANE_AHEAD(meet)                                                                                        \
    "setp.eq.u32 %p1, %r1, 0;\n@%p1 st.shared.v2.u32 [tile], {5, 0};\nbar.sync 0;\nand.b32 %r6, %r1, 31;\n"     \
    "setp.gt.u32 %p1, %r6, 1;\n@%p1 exit;\nsetp.gt.u32 %p1, %r1, 31;\n@%p1 bra W1;\nsetp.eq.u32 %p1, %r1, 1;\n" \
    "@%p1 ld.shared.u32 %r5, [tile];\n" meet "@!%p1 st.release.cta.shared.u32 [tile+4], 1;\nexit;\nW1:\n"       \
    "setp.eq.u32 %p1, %r6, 1;\n@%p1 exit;\n" AWAIT("A", "ld.acquire.cta.shared.u32", "1") "st.shared.u32 [tile], 6;"
/* The first reads a word and gives a flag, for which the second waits; it reads, too, and releases to the third. */
#define READERS_IN_TURN(give)                                                                                \
    ONE_OF_EACH "ld.shared.u32 %r5, [tile];\nst." give ".cta.shared.u32 [tile+4], 1;\nexit;\nW1:\n" AWAIT(   \
        "A", "ld.acquire.cta.shared.u32", "1") "ld.shared.u32 %r5, [tile];\n"                                \
                                               "st.release.cta.shared.u32 [tile+4], 2;\nexit;\nW2:\n" AWAIT( \
                                                   "B", "ld.acquire.cta.shared.u32", "2") "st.shared.u32 [tile], 5;"
/* Two halves of a warp that a branch has parted store to one word, by one instruction. */
#define APART(value)                                                                                \
    "mov.u32 %r5, 5;\nsetp.lt.u32 %p1, %r1, 16;\n@%p1 bra STORE;\nadd.u32 %r5, %r1, %r2;\nSTORE:\n" \
    "st.shared.u32 [tile], " value ";"

static const row rows[] = {
    {"a load in bounds", "ld.global.u32 %r4, [%rd4];", 32, SIM_FAULT_NONE, ""},
    {"a load beyond the end", "ld.global.u32 %r4, [%rd4+1024];", 32, SIM_FAULT_OUT_OF_BOUNDS, "line 17"},
    {"a store before the start", "st.global.u32 [%rd4+-4], %r1;", 32, SIM_FAULT_OUT_OF_BOUNDS, "thread 0"},
    {"a store through NULL", "mov.u64 %rd5, 0;\nst.global.u32 [%rd5], %r1;", 32, SIM_FAULT_OUT_OF_BOUNDS, "0x0"},
    {"a misaligned load", "ld.global.u32 %r4, [%rd4+2];", 32, SIM_FAULT_MISALIGNED, "4 bytes"},
    {"a misaligned vector", "ld.global.v2.u32 {%r4, %r5}, [%rd4];", 32, SIM_FAULT_MISALIGNED, "8 bytes"},
    {"a read of what was never written", "ld.global.u32 %r4, [%rd4+512];", 32, SIM_FAULT_UNINITIALISED, "load"},
    {"a read of what was written before", "st.global.u32 [%rd4+512], %r1;\nld.global.u32 %r4, [%rd4+512];", 32,
     SIM_FAULT_NONE, ""},
    {"a store to a parameter", "mov.b64 %rd5, p;\nst.u32 [%rd5], %r1;", 32, SIM_FAULT_STORE_TO_CONSTANT, "parameters"},
    {"shared memory that was never written", "ld.shared.u32 %r4, [%r3];\nst.global.u32 [%rd4], %r4;", 32,
     SIM_FAULT_UNINITIALISED,
     "shared memory that line 17 loaded into a register %r: kernel kernel, PTX line 18, block"},
    {"the same through a generic address",
     "setp.eq.u32 %p1, %r1, 9;\n@!%p1 exit;\nmov.u64 %rd5, tile;\ncvta.shared.u64 %rd5, %rd5;\n"
     "ld.u32 %r4, [%rd5+8];\nst.global.u32 [%rd4], %r4;",
     32, SIM_FAULT_UNINITIALISED, "thread 9, address 0x8"},
    {"the same once it was written", "st.shared.u32 [%r3], %r1;\nld.shared.u32 %r4, [%r3];\nst.global.u32 [%rd4], %r4;",
     32, SIM_FAULT_NONE, ""},
    {"a branch by shared memory that was never written",
     "ld.shared.u32 %r4, [%r3];\nsetp.eq.u32 %p1, %r4, 5;\n@%p1 bra END;\nEND:", 32, SIM_FAULT_UNINITIALISED,
     "shared memory that line 17 loaded into a register %p"},
    {"such memory converted to a number",
     "ld.shared.u32 %r4, [%r3];\ncvt.rn.f32.u32 %r4, %r4;\nst.global.u32 [%rd4], %r4;", 32, SIM_FAULT_UNINITIALISED,
     "line 19"},
    {"such memory converted within bounds",
     "ld.shared.u32 %r4, [%r3];\ncvt.sat.s32.u32 %r4, %r4;\nst.global.u32 [%rd4], %r4;", 32, SIM_FAULT_UNINITIALISED,
     "line 19"},
    {"an address of such memory", "ld.shared.u32 %r4, [%r3];\nadd.u32 %r4, %r2, %r4;\nst.shared.u32 [%r4], 1;", 1,
     SIM_FAULT_UNINITIALISED, "line 19"},
    {"a shuffle of such memory", "ld.shared.u32 %r4, [%r3];\nshfl.sync.bfly.b32 %r4, %r4, 1, 31, -1;", 32,
     SIM_FAULT_UNINITIALISED, "line 18"},
    {"such memory stored elsewhere in it", "ld.shared.u32 %r4, [%r3];\nst.shared.u32 [%r3+128], %r4;", 32,
     SIM_FAULT_UNINITIALISED, "line 18"},
    {"an atomic on such memory", "red.shared.add.u32 [%r3], 1;", 32, SIM_FAULT_UNINITIALISED, "shared"},
    {"half of a vector in such memory",
     "setp.ne.u32 %p1, %r1, 9;\n@%p1 st.shared.u32 [%r3], %r1;\nbar.warp.sync -1;\nand.b32 %r5, %r1, 1;\n"
     "setp.eq.u32 %p2, %r5, 0;\n@%p2 ld.shared.v2.u32 {%r4, %r5}, [%r3];\n@%p2 st.global.u32 [%rd4], %r4;",
     32, SIM_FAULT_NONE, ""},
    {"its other half",
     "setp.ne.u32 %p1, %r1, 9;\n@%p1 st.shared.u32 [%r3], %r1;\nbar.warp.sync -1;\nand.b32 %r5, %r1, 1;\n"
     "setp.eq.u32 %p2, %r5, 0;\n@%p2 ld.shared.v2.u32 {%r4, %r5}, [%r3];\n@%p2 st.global.u32 [%rd4], %r5;",
     32, SIM_FAULT_UNINITIALISED, "thread 8, address 0x20"},
    {"an element beyond those that were written, discarded",
     "setp.ne.u32 %p1, %r1, 31;\n@%p1 st.shared.u32 [%r3], %r1;\nbar.warp.sync -1;\n"
     "setp.lt.u32 %p1, %r1, 30;\nld.shared.v2.u32 {%r4, %r5}, [tile+120];\nld.shared.u32 %r6, [tile+124];\n"
     "setp.lt.u32 %p2, %r6, %r4;\nor.pred %p2, %p1, %p2;\nselp.u32 %r5, %r4, %r6, %p1;\n"
     "@%p1 st.global.u32 [%rd4], %r5;\nadd.u32 %r6, %r6, 1;\nst.global.u32 [%rd4], %r4;",
     32, SIM_FAULT_NONE, ""},
    {"the same element, used",
     "setp.ne.u32 %p1, %r1, 31;\n@%p1 st.shared.u32 [%r3], %r1;\nbar.warp.sync -1;\n"
     "ld.shared.u32 %r4, [%r3];\nsetp.lt.u32 %p2, %r4, 64;\n@%p2 st.global.u32 [%rd4], %r4;",
     32, SIM_FAULT_UNINITIALISED, "thread 31, address 0x7c"},
    {"shared memory that was read before it is written",
     "setp.lt.u32 %p1, %r1, 32;\n@%p1 ld.shared.u32 %r4, [tile];\n@!%p1 st.shared.u32 [tile], 5;", 64, SIM_FAULT_RACE,
     "thread"},
    {"local memory that was never written", "ld.local.u32 %r4, [own];\nst.global.u32 [%rd4], %r4;", 32,
     SIM_FAULT_UNINITIALISED, "local memory that line 17 loaded"},
    {"the same through a generic address",
     "mov.u64 %rd5, own;\ncvta.local.u64 %rd5, %rd5;\nld.u32 %r4, [%rd5+8];\nst.shared.u32 [%r3], %r4;", 32,
     SIM_FAULT_UNINITIALISED, "address 0x200000000000008"},
    {"the same once it was written", "st.local.u32 [own], %r1;\nld.local.u32 %r4, [own];\nst.global.u32 [%rd4], %r4;",
     32, SIM_FAULT_NONE, ""},
    {"a branch by such memory", "ld.local.u32 %r4, [own];\nsetp.eq.u32 %p1, %r4, 5;\n@%p1 bra END;\nEND:", 32,
     SIM_FAULT_UNINITIALISED, "line 19"},
    {"an address of such memory",
     "ld.local.u32 %r4, [own];\nand.b32 %r4, %r4, 4;\nadd.u32 %r4, %r2, %r4;\nst.shared.u32 [%r4], 1;", 1,
     SIM_FAULT_UNINITIALISED, "line 20"},
    {"a branch to one of several by such memory",
     "T: .branchtargets LEFT, END;\nld.local.u32 %r4, [own];\nand.b32 %r4, %r4, 1;\nbrx.idx %r4, T;\nLEFT:\nEND:", 32,
     SIM_FAULT_UNINITIALISED, "line 20"},
    {"a shuffle of such memory", "ld.local.u32 %r4, [own];\nshfl.sync.bfly.b32 %r4, %r4, 1, 31, -1;", 32,
     SIM_FAULT_UNINITIALISED, "line 18"},
    {"a shuffle of the one lane that wrote",
     "setp.eq.u32 %p1, %r1, 5;\n@%p1 st.local.u32 [own], %r1;\nld.local.u32 %r4, [own];\n"
     "shfl.sync.idx.b32 %r5|%p2, %r4, 5, 31, -1;\n@%p2 st.global.u32 [%rd4], %r5;\n"
     "shfl.sync.idx.b32 %r4, %r4, 5, 31, -1;\nst.global.u32 [%rd4], %r4;",
     32, SIM_FAULT_NONE, ""},
    {"a shuffle of its neighbour",
     "setp.eq.u32 %p1, %r1, 5;\n@%p1 st.local.u32 [own], %r1;\nld.local.u32 %r4, [own];\n"
     "shfl.sync.idx.b32 %r5, %r4, 6, 31, -1;",
     32, SIM_FAULT_UNINITIALISED, "thread 6"},
    {"what a shuffle leaves in its own lane",
     "setp.eq.u32 %p1, %r1, 0;\n@!%p1 st.local.u32 [own], %r1;\nld.local.u32 %r4, [own];\n"
     "@!%p1 mov.b32 %r4, 9;\nshfl.sync.up.b32 %r5, %r4, 31, 0, -1;\nst.global.u32 [%rd4], %r5;",
     32, SIM_FAULT_UNINITIALISED, "thread 0"},
    {"such memory in one lane",
     "setp.ne.u32 %p1, %r1, 9;\n@%p1 st.local.u32 [own], %r1;\nld.local.u32 %r4, [own];\n"
     "st.global.u32 [%rd4], %r4;",
     32, SIM_FAULT_UNINITIALISED, "thread 9"},
    {"such memory that is copied and not used",
     "st.local.u8 [own], %r1;\nld.local.v2.u32 {%r4, %r5}, [own];\nmov.b64 %rd5, {%r4, %r5};\nst.local.u64 [own+8], "
     "%rd5;\nld.local.u32 %r6, [own+8];\nst.global.u32 [%rd4], %r6;\nst.local.u32 [own+4], 7;\n"
     "ld.local.u64 %rd6, [own];\nshr.u64 %rd6, %rd6, 32;\nst.global.u64 [%rd2], %rd6;",
     1, SIM_FAULT_NONE, ""},
    {"the part of it that was written",
     "st.local.u8 [own], %r1;\nld.local.u32 %r4, [own];\nand.b32 %r4, %r4, 255;\nsetp.ge.u32 %p1, %r4, 0;\n@%p1 "
     "st.global.u32 [%rd4], %r4;\nprmt.b32 %r4, %r4, 0, 0x4440;\nst.global.u32 [%rd4], %r4;",
     32, SIM_FAULT_NONE, ""},
    {"the part of it that was not",
     "st.local.u8 [own], %r1;\nld.local.u32 %r4, [own];\nshr.u32 %r4, %r4, 8;\nsetp.ge.u32 %p1, %r4, 0;\n@%p1 "
     "st.global.u32 [%rd4], %r4;",
     32, SIM_FAULT_UNINITIALISED, "line 21"},
    {"a choice that does not take it",
     "ld.local.u32 %r4, [own];\nadd.u32 %r4, %r4, 1;\nsetp.lt.u32 %p1, %r1, 64;\nsetp.ne.u32 %p2, %r4, 0;\n"
     "selp.u32 %r4, %r1, %r4, %p1;\nst.global.u32 [%rd4], %r4;\nor.pred %p2, %p1, %p2;\n@%p2 bra END;\nEND:",
     32, SIM_FAULT_NONE, ""},
    {"a choice of a constant",
     "ld.local.u32 %r4, [own];\nsetp.lt.u32 %p1, %r1, 64;\nselp.u32 %r4, 5, %r4, %p1;\nsetp.ne.u32 %p2, %r4, 0;\n"
     "@%p2 bra END;\nEND:",
     32, SIM_FAULT_NONE, ""},
    {"its inverse", "ld.local.u32 %r4, [own];\nnot.b32 %r4, %r4;\nst.global.u32 [%rd4], %r4;", 32,
     SIM_FAULT_UNINITIALISED, "line 19"},
    {"a shift of it by what its result's register held",
     "st.local.u8 [own], %r1;\nld.local.u32 %r4, [own];\nmov.u32 %r5, 24;\nshl.b32 %r5, %r4, %r5;\n"
     "setp.eq.u32 %p1, %r5, 0;\n@%p1 bra END;\nEND:",
     32, SIM_FAULT_NONE, ""},
    {"a choice by it",
     "ld.local.u32 %r4, [own];\nsetp.ne.u32 %p2, %r4, 0;\nselp.u32 %r4, 1, 2, %p2;\n"
     "st.global.u32 [%rd4], %r4;",
     32, SIM_FAULT_UNINITIALISED, "line 20"},
    {"what a call before this one wrote", KEEP(1) KEEP(0) "st.global.u32 [%rd4], %r5;", 32, SIM_FAULT_UNINITIALISED,
     "line 18"},
    {"what this call wrote", KEEP(1) "st.global.u32 [%rd4], %r5;", 32, SIM_FAULT_NONE, ""},
    {"a function's memory after its return", LEND "ld.local.u32 %r4, [%rd5];", 32, SIM_FAULT_OUT_OF_BOUNDS, "local"},
    {"local memory beyond its end", "st.local.u32 [own+64], %r1;", 32, SIM_FAULT_OUT_OF_BOUNDS, "local"},
    {"alloca's memory that was never written",
     "alloca.u64 %rd5, 16;\nld.local.u32 %r4, [%rd5+12];\n"
     "st.global.u32 [%rd4], %r4;",
     32, SIM_FAULT_UNINITIALISED, "line 18"},
    {"the same once it was written",
     "alloca.u64 %rd5, 16, 64;\nst.local.u32 [%rd5+12], %r1;\nld.local.u32 %r4, [%rd5+12];\nst.global.u32 [%rd4], "
     "%r4;\n"
     "and.b64 %rd6, %rd5, 63;\nsetp.ne.u64 %p1, %rd6, 0;\n@%p1 trap;",
     32, SIM_FAULT_NONE, ""},
    {"memory below alloca's", "alloca.u64 %rd5, 16;\nst.local.u32 [%rd5+-4], %r1;", 32, SIM_FAULT_OUT_OF_BOUNDS,
     "local"},
    {"alloca's memory after a restore",
     "stacksave.u64 %rd5;\nalloca.u64 %rd6, 16;\nst.local.u32 [%rd6], %r1;\nstackrestore.u64 %rd5;\n"
     "ld.local.u32 %r4, [%rd6];",
     32, SIM_FAULT_OUT_OF_BOUNDS, "line 21"},
    {"alloca's memory that was there before a restore",
     "alloca.u64 %rd6, 4;\nst.local.u32 [%rd6], %r1;\nstacksave.u64 %rd5;\nalloca.u64 %rd7, 4000;\n"
     "stackrestore.u64 %rd5;\nld.local.u32 %r4, [%rd6];\nst.global.u32 [%rd4], %r4;",
     32, SIM_FAULT_NONE, ""},
    {"a stack that was not saved", "alloca.u64 %rd5, 16;\nadd.u64 %rd5, %rd5, 16384;\nstackrestore.u64 %rd5;", 32,
     SIM_FAULT_ILLEGAL, "saved"},
    {"more of alloca than there is", "alloca.u64 %rd5, 16777216;", 32, SIM_FAULT_STACK, "bytes"},
    {"alloca in a loop", "AGAIN:\nalloca.u64 %rd5, 1024;\nbra AGAIN;", 32, SIM_FAULT_STACK, "1024 bytes"},
    {"alloca's memory after its function's return", GROW "ld.local.u32 %r4, [%rd5];", 32, SIM_FAULT_OUT_OF_BOUNDS,
     "local"},
    {"alloca in each of many calls",
     "mov.u32 %r5, 100;\nAGAIN:\n" GROW "sub.u32 %r5, %r5, 1;\n"
     "setp.ne.u32 %p1, %r5, 0;\n@%p1 bra AGAIN;",
     32, SIM_FAULT_NONE, ""},
    {"a trap in a function", "{ .param .b32 p; .param .b32 r; st.param.b32 [p], 2; call (r), leave, (p); }", 32,
     SIM_FAULT_TRAP, "thread"},
    {"an exit in a function",
     "{ .param .b32 p; .param .b32 r; st.param.b32 [p], 1; call (r), leave, (p); }\nst.global.u32 [%rd4+4096], %r1;",
     32, SIM_FAULT_NONE, ""},
    {"events", "pmevent 3;\npmevent.mask 5;", 32, SIM_FAULT_NONE, ""},
    {"shared memory beyond its end", "st.shared.u32 [%r3+1024], %r1;", 32, SIM_FAULT_OUT_OF_BOUNDS, "256"},
    {"a race of two warps",
     "st.shared.u32 [%r3], %r1;\nbar.sync 0;\nst.shared.u32 [%r3], %r1;\nxor.b32 %r5, %r3, 128;\n"
     "ld.shared.u32 %r4, [%r5];",
     64, SIM_FAULT_RACE, "thread"},
    {"the same with a barrier",
     "st.shared.u32 [%r3], %r1;\nbar.sync 0;\nxor.b32 %r5, %r3, 128;\nld.shared.u32 %r4, [%r5];", 64, SIM_FAULT_NONE,
     ""},
    {"a race within a warp", "st.shared.u32 [%r3], %r1;\nxor.b32 %r5, %r3, 4;\nld.shared.u32 %r4, [%r5];", 32,
     SIM_FAULT_RACE, "thread"},
    {"the same with bar.warp.sync",
     "st.shared.u32 [%r3], %r1;\nbar.warp.sync 0xffffffff;\nxor.b32 %r5, %r3, 4;\nld.shared.u32 %r4, [%r5];", 32,
     SIM_FAULT_NONE, ""},
    {"two bytes of one word", "mov.u32 %r5, tile;\nadd.u32 %r5, %r5, %r1;\nst.shared.u8 [%r5], %r1;", 64,
     SIM_FAULT_NONE, ""},
    {"one byte of what another warp writes",
     "st.shared.u32 [%r3], %r1;\nbar.sync 0;\nmov.u32 %r5, tile;\nadd.u32 %r5, %r5, %r1;\nst.shared.u8 [%r5], %r1;\n"
     "setp.eq.u32 %p1, %r1, 32;\n@%p1 ld.shared.u8 %r4, [tile+31];",
     64, SIM_FAULT_RACE, "thread"},
    {"a word of which a byte was written",
     "setp.eq.u32 %p1, %r1, 0;\n@%p1 st.shared.u8 [tile+1], %r1;\nbar.sync 0;\nld.shared.u32 %r4, [tile];\n"
     "shr.u32 %r4, %r4, 16;\nsetp.ne.u32 %p1, %r4, 0;\n@%p1 trap;",
     64, SIM_FAULT_UNINITIALISED, "shared"},
    {"its byte that was written",
     "setp.eq.u32 %p1, %r1, 0;\n@%p1 st.shared.u8 [tile+1], %r1;\nbar.sync 0;\nld.shared.u32 %r4, [tile];\n"
     "bfe.u32 %r4, %r4, 8, 8;\nst.global.u32 [%rd4], %r4;\nsetp.ne.u32 %p1, %r4, 0;\n@%p1 trap;",
     64, SIM_FAULT_NONE, ""},
    {"a byte of a word that is written after it",
     "st.shared.u32 [%r3], %r1;\nbar.sync 0;\nxor.b32 %r5, %r3, 128;\nld.shared.u8 %r4, [%r5+3];\n"
     "st.shared.u32 [%r3], %r1;",
     64, SIM_FAULT_RACE, "thread"},
    {"two writes to one word", "st.shared.u32 [tile], %r1;", 64, SIM_FAULT_RACE, "writes"},
    {"the same write of a warp's lanes to one word", "st.shared.u32 [tile], 7;\nst.shared.v2.u32 [tile+8], {%r2, 5};",
     32, SIM_FAULT_NONE, ""},
    {"two writes of a warp's lanes to one word", "st.shared.u32 [tile], %r1;", 32, SIM_FAULT_RACE, "writes"},
    {"one after the other", "setp.lt.u32 %p1, %r1, 16;\n@%p1 st.shared.u32 [tile], 7;\n@!%p1 st.shared.u32 [tile], 7;",
     32, SIM_FAULT_RACE, "writes"},
    {"the same write of two warps to one word", "st.shared.u32 [tile], 7;", 64, SIM_FAULT_RACE, "writes"},
    {"a write after a read without a barrier",
     "st.shared.u32 [%r3], %r1;\nbar.sync 0;\nxor.b32 %r5, %r3, 128;\nld.shared.u32 %r4, [%r5];\nst.shared.u32 [%r3], "
     "%r4;",
     64, SIM_FAULT_RACE, "thread"},
    {"an atomic after a write without a barrier",
     "st.shared.u32 [%r3], %r1;\nbar.sync 0;\nst.shared.u32 [%r3], %r1;\n"
     "xor.b32 %r5, %r3, 128;\nred.shared.add.u32 [%r5], 1;",
     64, SIM_FAULT_RACE, "thread"},
    {"a write after an atomic without a barrier",
     "st.shared.u32 [%r3], %r1;\nbar.sync 0;\nxor.b32 %r5, %r3, 128;\n"
     "red.shared.add.u32 [%r5], 1;\nst.shared.u32 [%r3], %r1;",
     64, SIM_FAULT_RACE, "wrote"},
    {"a read after an atomic without a barrier",
     "st.shared.u32 [%r3], %r1;\nbar.sync 0;\n"
     "red.shared.add.u32 [tile], 1;\nld.shared.u32 %r4, [tile];",
     64, SIM_FAULT_RACE, "wrote"},
    {"an atomic after a read without a barrier",
     "st.shared.u32 [%r3], %r1;\nbar.sync 0;\n"
     "ld.shared.u32 %r4, [tile];\nred.shared.add.u32 [tile], 1;",
     64, SIM_FAULT_RACE, "read"},
    {"atomics of many threads between barriers",
     "st.shared.u32 [%r3], %r1;\nbar.sync 0;\n"
     "red.shared.add.u32 [tile], 1;\nred.shared.add.u32 [tile+4], 1;\nbar.sync 0;\nld.shared.u32 %r4, [tile];",
     64, SIM_FAULT_NONE, ""},
    {"a write of one's own after reads that the warp has left behind",
     "st.shared.u32 [%r3], %r1;\n"
     "bar.warp.sync -1;\nxor.b32 %r5, %r3, 4;\nld.shared.u32 %r4, [%r5];\nbar.warp.sync -1;\n"
     "ld.shared.u32 %r5, [%r3];\nst.shared.u32 [%r3], %r4;",
     32, SIM_FAULT_NONE, ""},
    {"a word that was released", FLAG("st.release.cta.shared.u32 [tile+4], 1;", "ld.acquire.cta.shared.u32"), 64,
     SIM_FAULT_NONE, ""},
    {"the same by an atomic", FLAG("red.release.cta.shared.or.b32 [tile+4], 1;", "ld.acquire.gpu.shared.u32"), 64,
     SIM_FAULT_NONE, ""},
    {"a word that was not released", FLAG("st.relaxed.cta.shared.u32 [tile+4], 1;", "ld.acquire.cta.shared.u32"), 64,
     SIM_FAULT_RACE, "address 0x0"},
    {"a word that was not acquired", FLAG("st.release.cta.shared.u32 [tile+4], 1;", "ld.relaxed.cta.shared.u32"), 64,
     SIM_FAULT_RACE, "address 0x0"},
    {"a word that is read like any other", FLAG("st.release.cta.shared.u32 [tile+4], 1;", "ld.volatile.shared.u32"), 64,
     SIM_FAULT_RACE, "address 0x4"},
    {"a word that is written like any other", FLAG("st.volatile.shared.u32 [tile+4], 1;", "ld.acquire.cta.shared.u32"),
     64, SIM_FAULT_RACE, "address 0x4"},
    {"a write after the release",
     FLAG("st.release.cta.shared.u32 [tile+4], 1;\nst.shared.u32 [tile], 6;", "ld.acquire.cta.shared.u32"), 64,
     SIM_FAULT_RACE, "address 0x0"},
    {"a release of another word",
     FLAG("st.release.cta.shared.u32 [tile+8], 1;\nst.relaxed.cta.shared.u32 [tile+4], 1;",
          "ld.acquire.cta.shared.u32"),
     64, SIM_FAULT_RACE, "address 0x0"},
    {"a word released by hands in between",
     HANDS("atom.acq_rel.cta.shared.add.u32 %r5, [tile+4], 1;", "ld.acquire.cta.shared.u32"), 96, SIM_FAULT_NONE, ""},
    {"the same, but what those hands did is not released",
     HANDS("atom.acquire.cta.shared.add.u32 %r5, [tile+4], 1;", "ld.acquire.cta.shared.u32"), 96, SIM_FAULT_RACE,
     "address 0x8"},
    {"a released word that another overwrites",
     ONE_OF_EACH "st.shared.u32 [tile], 5;\nst.release.cta.shared.u32 [tile+4], 1;\nexit;\nW1:\n" AWAIT(
         "A", "ld.relaxed.cta.shared.u32",
         "1") "st.relaxed.cta.shared.u32 [tile+4], 2;\nexit;\nW2:\n" AWAIT("B", "ld.relaxed.cta.shared.u32",
                                                                           "2") "ld.acquire.cta.shared.u32 %r4, "
                                                                                "[tile+4];\nld.shared.u32 %r5, [tile];",
     96, SIM_FAULT_RACE, "address 0x0"},
    {"a write after all that read have released", READERS("red.release.cta.shared.add.u32 [tile+4], 1;"), 96,
     SIM_FAULT_NONE, ""},
    {"a write after they have not", READERS("red.relaxed.cta.shared.add.u32 [tile+4], 1;"), 96, SIM_FAULT_RACE,
     "address 0x0"},
    {"a read by another lane than that which releases", LANE_AHEAD(""), 64, SIM_FAULT_RACE,
     "thread 32 writes what thread 1 read"},
    {"the same after the two have met", LANE_AHEAD("bar.warp.sync 3;\n"), 64, SIM_FAULT_NONE, ""},
    {"a write after one of two readers has released", READERS_IN_TURN("relaxed"), 96, SIM_FAULT_RACE,
     "thread 64 writes what thread 0 read"},
    {"the same after the other handed on to it", READERS_IN_TURN("release"), 96, SIM_FAULT_NONE, ""},
    {"the same that parted lanes store", APART("7"), 32, SIM_FAULT_NONE, ""},
    {"what differs", APART("%r1"), 32, SIM_FAULT_RACE, "wrote"},
    {"the same that another warp stores, too", APART("7"), 64, SIM_FAULT_RACE, "wrote"},
    {"a race in the system's own shared memory",
     "mov.u32 %r4, %reserved_smem_offset_1;\nld.shared.u32 %r5, [%r4];\nst.shared.u32 [%r4], 7;", 64, SIM_FAULT_RACE,
     "writes what"},
    {"a barrier in half of a warp", "setp.lt.u32 %p1, %r1, 16;\n@%p1 bar.sync 0;", 32, SIM_FAULT_BARRIER, "returned"},
    {"a barrier in one of two warps", "setp.lt.u32 %p1, %r1, 32;\n@%p1 bar.sync 0;", 64, SIM_FAULT_BARRIER, "returned"},
    {"two different barriers",
     "setp.lt.u32 %p1, %r1, 32;\n@%p1 bra LEFT;\nbar.sync 1;\nbra END;\nLEFT:\nbar.sync 2;\nEND:", 64,
     SIM_FAULT_BARRIER, "wait for ever"},
    {"one barrier in two places",
     "setp.lt.u32 %p1, %r1, 7;\n@%p1 bra LEFT;\nbar.sync 1;\nbra END;\nLEFT:\nbar.sync 1;\nEND:", 64, SIM_FAULT_BARRIER,
     "wait for ever"},
    {"one that is not aligned in two places",
     "st.shared.u32 [%r3], %r1;\nsetp.lt.u32 %p1, %r1, 7;\n@%p1 bra LEFT;\nbarrier.sync 1;\nbra END;\nLEFT:\n"
     "barrier.sync 1;\nEND:\nxor.b32 %r5, %r3, 128;\nld.shared.u32 %r4, [%r5];",
     64, SIM_FAULT_NONE, ""},
    {"one that is not aligned and that some lanes miss",
     "setp.lt.u32 %p1, %r1, 7;\n@%p1 bra LEFT;\nbarrier.sync 1;\nbra END;\nLEFT:\nbarrier.sync 2;\nEND:", 64,
     SIM_FAULT_BARRIER, "wait for ever"},
    {"a barrier for some warps", "setp.lt.u32 %p1, %r1, 64;\n@%p1 bar.sync 1, 64;", 96, SIM_FAULT_NONE, ""},
    {"a barrier for too few threads", "mov.u32 %r5, 40;\nbar.sync 1, %r5;", 64, SIM_FAULT_BARRIER, "malformed"},
    {"a call of no function", "mov.u64 %rd5, 64;\nP: .callprototype _ ();\ncall %rd5, P;", 32, SIM_FAULT_ILLEGAL,
     "no such function"},
    {"a call of a kernel",
     "mov.u64 %rd5, kernel;\nP: .callprototype _ (.param .b64 _);\n.param .b64 q;\n"
     "st.param.b64 [q], %rd5;\ncall %rd5, (q), P;",
     32, SIM_FAULT_ILLEGAL, "a call of kernel"},
    {"a shuffle that some lanes skip",
     "setp.lt.u32 %p1, %r1, 16;\n@%p1 bra END;\nshfl.sync.bfly.b32 %r4, %r1, 1, 31, -1;\nst.global.u32 [%rd4], "
     "%r4;\nEND:\nbar.sync 0;",
     32, SIM_FAULT_BARRIER, "wait for ever"},
    {"a shuffle that lacks its own lane", "shfl.sync.bfly.b32 %r4, %r1, 1, 31, 1;", 32, SIM_FAULT_SYNC, "lacks"},
    {"a shuffle from a lane that takes no part",
     "setp.lt.u32 %p1, %r1, 16;\n@!%p1 bra END;\nshfl.sync.idx.b32 %r4, %r1, 20, 31, 0xffff;\nEND:", 32, SIM_FAULT_SYNC,
     "takes no part"},
    {"a copy that is waited for", COPY "cp.async.commit_group;\ncp.async.wait_group 0;\nld.shared.u32 %r4, [%r3];", 32,
     SIM_FAULT_NONE, ""},
    {"a copy that is read too early", COPY "cp.async.commit_group;\nld.shared.u32 %r4, [%r3];", 32, SIM_FAULT_IN_FLIGHT,
     "reads what thread"},
    {"a copy whose group was not committed", COPY "cp.async.wait_group 0;\nld.shared.u32 %r4, [%r3];", 32,
     SIM_FAULT_IN_FLIGHT, "line 19"},
    {"the same with wait_all", COPY "cp.async.wait_all;\nld.shared.u32 %r4, [%r3];", 32, SIM_FAULT_NONE, ""},
    {"the older of two groups", COPY_TWO "cp.async.wait_group 1;\nld.shared.u32 %r4, [%r3];", 32, SIM_FAULT_NONE, ""},
    {"the newer of two groups", COPY_TWO "cp.async.wait_group 1;\nld.shared.u32 %r4, [%r3+128];", 32,
     SIM_FAULT_IN_FLIGHT, "reads"},
    {"groups that no lane of the other half waits for",
     "setp.lt.u32 %p1, %r1, 16;\n" COPY "cp.async.commit_group;\n@%p1 cp.async.wait_group 0;\n"
     "ld.shared.u32 %r4, [%r3];",
     32, SIM_FAULT_IN_FLIGHT, "reads"},
    {"a barrier that is no wait", COPY "cp.async.commit_group;\nbar.sync 0;\nld.shared.u32 %r4, [%r3];", 32,
     SIM_FAULT_IN_FLIGHT, "reads"},
    {"a wait that is no barrier", COPY "cp.async.wait_all;\nxor.b32 %r5, %r3, 4;\nld.shared.u32 %r4, [%r5];", 32,
     SIM_FAULT_RACE, "wrote"},
    {"a wait and a barrier", COPY "cp.async.wait_all;\nbar.sync 0;\nxor.b32 %r5, %r3, 128;\nld.shared.u32 %r4, [%r5];",
     64, SIM_FAULT_NONE, ""},
    {"a copy over what another thread reads",
     "st.shared.u32 [%r3], %r1;\nbar.warp.sync -1;\nxor.b32 %r5, %r3, 4;\nld.shared.u32 %r4, [%r5];\n" COPY, 32,
     SIM_FAULT_RACE, "writes"},
    {"a store to a copy's destination", COPY "st.shared.u32 [%r3], %r1;", 32, SIM_FAULT_IN_FLIGHT, "writes"},
    {"an atomic on a copy's destination", COPY "red.shared.add.u32 [%r3], %r1;", 32, SIM_FAULT_IN_FLIGHT, "writes"},
    {"a copy to a copy's destination", COPY COPY, 32, SIM_FAULT_IN_FLIGHT, "writes"},
    {"a store to a copy's source", COPY "st.global.u32 [%rd4], %r1;", 32, SIM_FAULT_IN_FLIGHT, "source"},
    {"the same when it has landed", COPY "cp.async.wait_all;\nbar.warp.sync -1;\nst.global.u32 [%rd4], %r1;", 32,
     SIM_FAULT_NONE, ""},
    {"an atomic on a copy's source", COPY "red.global.add.u32 [%rd4], %r1;", 32, SIM_FAULT_IN_FLIGHT, "source"},
    {"another warp's store to a copy's source",
     "setp.lt.u32 %p1, %r1, 32;\n@%p1 " COPY "bar.sync 0;\n@!%p1 st.global.u32 [%rd4+-128], %r1;", 64,
     SIM_FAULT_IN_FLIGHT, "source"},
    {"a copy from beyond the end", "cp.async.ca.shared.global [%r3], [%rd4+1024], 4;", 32, SIM_FAULT_OUT_OF_BOUNDS,
     "load"},
    {"a copy to beyond the end", "cp.async.ca.shared.global [%r3+256], [%rd4], 4;", 32, SIM_FAULT_OUT_OF_BOUNDS, "256"},
    {"a copy of what was never written", "cp.async.ca.shared.global [%r3], [%rd4+512], 4;", 32, SIM_FAULT_UNINITIALISED,
     "load"},
    {"a misaligned source", "cp.async.ca.shared.global [%r3], [%rd4+2], 4;", 32, SIM_FAULT_MISALIGNED, "4 bytes"},
    {"a misaligned destination", "cp.async.cg.shared.global [%r3+4], [%rd2], 16;", 1, SIM_FAULT_MISALIGNED, "16 bytes"},
    {"a source that is larger than the copy", "mov.u32 %r5, 5;\ncp.async.ca.shared.global [%r3], [%rd4], 4, %r5;", 32,
     SIM_FAULT_ILLEGAL, "5 bytes"},
    {"a source of no bytes",
     "mov.u64 %rd5, 0;\ncp.async.ca.shared.global [%r3], [%rd5], 4, 0;\ncp.async.wait_all;\nld.shared.u32 %r4, [%r3];",
     32, SIM_FAULT_NONE, ""},
    {"a source that is ignored",
     "setp.ge.u32 %p1, %r1, 0;\nmov.u64 %rd5, 0;\ncp.async.ca.shared.global [%r3], [%rd5], 4, "
     "%p1;\ncp.async.wait_all;\n"
     "ld.shared.u32 %r4, [%r3];",
     32, SIM_FAULT_NONE, ""},
    {"a copy that is never waited for", COPY, 32, SIM_FAULT_NONE, ""},
    {"a line that was discarded", "discard.global.L2 [%rd2+128], 128;\nld.global.u32 %r4, [%rd2+128];", 1,
     SIM_FAULT_UNINITIALISED, "load"},
    {"the same, written again",
     "discard.global.L2 [%rd2+128], 128;\nst.global.u32 [%rd2+128], %r1;\nld.global.u32 %r4, [%rd2+128];", 1,
     SIM_FAULT_NONE, ""},
    {"a discard of half a line", "discard.L2 [%rd2+64], 128;", 1, SIM_FAULT_MISALIGNED, "128 bytes"},
    {"a discard beyond the end", "discard.L2 [%rd2+1024], 128;", 1, SIM_FAULT_OUT_OF_BOUNDS, "128 bytes"},
    {"hints",
     "prefetch.global.L1 [%rd2];\nprefetch.L2 [%rd4];\nprefetchu.L1 [%rd4];\nprefetch.global.L2::evict_last [%rd2];\n"
     "applypriority.L2::evict_normal [%rd2], 128;\ncreatepolicy.fractional.L2::evict_first.b64 %rd5;\n"
     "ld.global.L1::no_allocate.L2::cache_hint.u32 %r4, [%rd4], %rd5;\nst.global.L2::cache_hint.u32 [%rd4], %r4, "
     "%rd5;\n"
     "red.global.add.L2::cache_hint.u32 [%rd4], %r4, %rd5;\nnanosleep.u32 %r4;\nfence.sc.gpu;\nmembar.sys;",
     32, SIM_FAULT_NONE, ""},
    {"an endless loop", "AGAIN:\nbra AGAIN;", 32, SIM_FAULT_ENDLESS, "instructions"},
    {"a trap", "setp.eq.u32 %p1, %r1, 7;\n@%p1 trap;", 32, SIM_FAULT_TRAP, "thread 7"},
};

/* Under several seeds, since the order decides which thread is caught, but never whether. */
static void each_planted_bug_is_reported(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (uint64_t seed = 1; seed <= 8; seed++) {
            world w = world_new();
            sim_counters counters = {0};
            sim_report report = run_text(rows[i].body, rows[i].threads, seed, &w, &counters);
            if (report.kind != rows[i].kind || (report.kind && !strstr(report.text, rows[i].word)))
                fail_msg("%s, seed %llu: %s (%s)", rows[i].name, (unsigned long long)seed, sim_fault_text(report.kind),
                         report.kind ? report.text : "");
            free(w.memory);
        }
    }
}

/* Two warps' stores of the same value to one place are no race where the launch lets them; stores of other values, and
 * reads of the other warp's, are. */
static void stores_of_the_same_may_be_let(void **state) {
    (void)state;
    static const struct {
        const char *body;
        bool race, told;
    } cases[] = {
        {"st.shared.u32 [tile], 7;", false, true},
        {"st.shared.v2.u32 [tile], {7, %r1};", true, false},
        {"st.shared.u32 [tile], %r1;", true, false},
        {"st.shared.u32 [tile], 7;\nld.shared.u32 %r4, [tile];", true, true},
        {"st.shared.u32 [tile], 7;\nbar.sync 0;\nld.shared.u32 %r4, [tile];\nst.shared.u32 [tile], 7;", true, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (uint64_t seed = 1; seed <= 8; seed++) {
            world w = world_new();
            sim_counters counters = {0};
            atomic_store(&same_store, 0);
            let_same_stores = true;
            sim_report report = run_text(cases[i].body, 64, seed, &w, &counters);
            let_same_stores = false;
            free(w.memory);
            if (cases[i].race != (report.kind == SIM_FAULT_RACE))
                fail_msg("%s, seed %llu: %s", cases[i].body, (unsigned long long)seed,
                         report.kind ? report.text : "no race");
            if (!cases[i].race) assert_true(cases[i].told == (atomic_load(&same_store) != 0));
        }
    }
}

/* Lanes that took different ways meet at a shuffle with all members, whatever the order. */
static void lanes_meet_at_a_sync(void **state) {
    (void)state;
    static const char body[] = "mov.u32 %r4, 5;\nsetp.lt.u32 %p1, %r1, 11;\n@%p1 bra LEFT;\nadd.s32 %r4, %r1, 100;\n"
                               "bra.uni MEET;\nLEFT:\nadd.s32 %r4, %r1, 200;\nMEET:\n"
                               "shfl.sync.bfly.b32 %r5, %r4, 31, 31, -1;\nst.global.u32 [%rd4], %r5;";
    for (uint64_t seed = 1; seed <= 50; seed++) {
        world w = world_new();
        sim_counters counters = {0};
        sim_report report = run_text(body, 32, seed, &w, &counters);
        if (report.kind) fail_msg("%s", report.text);
        for (uint32_t l = 0; l < 32; l++) {
            uint32_t from = 31 - l;
            assert_int_equal(w.memory[l], from + (from < 11 ? 200 : 100));
        }
        assert_int_equal(counters.divergent_branches, 1);
        free(w.memory);
    }
}

static void counters_count(void **state) {
    (void)state;
    world w = world_new();
    sim_counters counters = {0};
    sim_report report = run_text("ld.global.u32 %r4, [%rd4];\nshl.b32 %r5, %r1, 3;\nadd.s32 %r5, %r2, %r5;\n"
                                 "and.b32 %r5, %r5, 255;\nst.shared.u32 [%r3], %r4;\nst.global.u32 [%rd4], %r4;",
                                 32, 1, &w, &counters);
    if (report.kind) fail_msg("%s", report.text);
    assert_int_equal(counters.global_requests, 2);
    assert_int_equal(counters.global_sectors, 8);
    assert_int_equal(counters.global_read_bytes, 128);
    assert_int_equal(counters.global_written_bytes, 128);
    assert_int_equal(counters.shared_requests, 1);
    assert_int_equal(counters.shared_conflicts, 0);
    counters = (sim_counters){0};
    report = run_text("shl.b32 %r5, %r1, 3;\nadd.s32 %r5, %r2, %r5;\nst.shared.u32 [%r5], %r1;", 32, 1, &w, &counters);
    if (report.kind) fail_msg("%s", report.text);
    assert_int_equal(counters.shared_conflicts, 1); /* two words in each of 16 banks */
    free(w.memory);
}

static void what_is_not_simulated_is_refused_by_name(void **state) {
    (void)state;
    static const struct {
        const char *line, *word;
    } refused[] = {
        {"tcgen05.wait::ld.sync.aligned;", "tcgen05"},
        {"tex.2d.v4.f32.f32 {%f1, %f1, %f1, %f1}, [t, {%f1, %f1}];", "not simulated"},
        {"ld.global.colour.u32 %r1, [%rd1];", ".colour"},
        {"add.u32.u32 %r1, %r1, %r1;", "types"},
        {"add.u32 %r1, %rd1, %r1;", "64 bits"},
        {"bra NOWHERE;", "NOWHERE"},
        {"mov.u32 %r1, %unknown;", "%unknown"},
        {"vote.all.pred %p1, %p1;", "sm_70"},
        {"cp.async.bulk.commit_group;", "sm_90"},
        {"mapa.u64 %rd1, %rd2, %r1;", "mapa"},
        {"cp.async.wait_group %r1;", "constant"},
        {"cp.async.ca.shared.global [%r1], [%rd1], 2;", "2 bytes"},
        {"cp.async.cg.shared.global [%r1], [%rd1], 8;", "8 bytes"},
        {"cp.async.ca.shared.global [%r1], [%rd1], 8, 9;", "more bytes"},
        {"cp.async.ca.global [%r1], [%rd1], 8;", "from global to shared"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char text[512], why[256] = "";
        snprintf(text, sizeof text,
                 ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k() {\n.reg .pred %%p<2>;\n"
                 ".reg .b32 %%r<2>;\n.reg .f32 %%f<2>;\n.reg .b64 %%rd<2>;\n%s\nret;\n}\n",
                 refused[i].line);
        assert_null(ptx_program_load(text, strlen(text), 80, why, sizeof why));
        if (!strstr(why, refused[i].word) || !strstr(why, "line 9")) fail_msg("%s: %s", refused[i].line, why);
    }
    char why[256] = "";
    static const char clusters[] = ".version 7.8\n.target sm_90\n.address_size 64\n"
                                   ".visible .entry k()\n.blocksareclusters\n{\nret;\n}\n";
    assert_null(ptx_program_load(clusters, strlen(clusters), 90, why, sizeof why));
    assert_non_null(strstr(why, ".blocksareclusters: is not simulated: grids that count clusters"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_planted_bug_is_reported),
        cmocka_unit_test(stores_of_the_same_may_be_let),
        cmocka_unit_test(lanes_meet_at_a_sync),
        cmocka_unit_test(counters_count),
        cmocka_unit_test(what_is_not_simulated_is_refused_by_name),
    };
    return cmocka_run_group_tests_name("ptx_checks", tests, NULL, NULL);
}
