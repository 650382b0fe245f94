/* The kernels of tests/sim/tests/programs/tiles.cu: cooperative groups of several warps, which meet by flags in shared
 * memory. Within a warp they count on its lanes to go on together, which PTX does not promise. */
#include "tests/sim/tests/ptx/ptx_harness.h"
#include "tests/sim/tests/ptx/ptx_text.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { TEXTS = 2, THREADS = 128, RESULTS = 6, SEEDS = 40 };

static ptx_text texts[TEXTS] = {{"tiles.sm_75", 75, NULL}, {"tiles.sm_80", 80, NULL}};
static uint64_t seed;
static uint32_t in[THREADS], out[THREADS * RESULTS], wanted[THREADS * RESULTS];

static bool find(void *context, uint64_t address, sim_region *out_region) {
    (void)context;
    *out_region = (sim_region){.base = (uintptr_t)in, .size = sizeof in};
    if (address - out_region->base < sizeof in) return true;
    *out_region = (sim_region){.base = (uintptr_t)out, .size = sizeof out};
    return address - out_region->base < sizeof out;
}

/* Draws numbers, and what the kernels make of them in tiles of so many threads. */
static void draw(uint32_t tile) {
    for (uint32_t i = 0; i < THREADS; i++)
        in[i] = (uint32_t)(sim_random(&seed) % 1000) * 2;
    in[sim_random(&seed) % THREADS]++;
    for (uint32_t i = 0; i < THREADS; i++) {
        const uint32_t *first = in + i / tile * tile;
        uint32_t sum = 0, most = 0, odd = 0;
        for (uint32_t j = 0; j < tile; j++) {
            sum += first[j];
            most = first[j] > most ? first[j] : most;
            odd |= first[j] & 1;
        }
        const uint32_t results[RESULTS] = {sum, first[tile - 1] + sum, most, odd, first[odd], first[tile / 2]};
        memcpy(wanted + i * RESULTS, results, sizeof results);
    }
}

static bool run(size_t text, const char *kernel, uint32_t tile, sim_report *report) {
    char name[32];
    snprintf(name, sizeof name, "%s_%u", kernel, tile);
    uint64_t parameters[] = {(uintptr_t)in, (uintptr_t)out};
    ptx_launch launch = {.program = texts[text].program,
                         .code = ptx_program_find(texts[text].program, name),
                         .grid = {1, 1, 1},
                         .block = {THREADS, 1, 1},
                         .reserved_shared_bytes = 1024,
                         .parameters = (const uint8_t *)parameters,
                         .find = find,
                         .seed = sim_random(&seed),
                         .budget = 1 << 20,
                         .threads = 1};
    assert_non_null(launch.code);
    sim_counters counters = {0};
    draw(tile);
    return ptx_launch_run(&launch, &counters, report);
}

static void warps_that_meet_collect(void **state) {
    (void)state;
    for (size_t i = 0; i < (size_t)SEEDS * TEXTS; i++) {
        for (uint32_t tile = 64; tile <= THREADS; tile *= 2) {
            sim_report report;
            if (!run(i % TEXTS, "collect", tile, &report)) fail_msg("%s: %s", texts[i % TEXTS].name, report.text);
            assert_memory_equal(out, wanted, sizeof out);
        }
    }
}

/* What comes out is right, or a race. */
static void lanes_that_run_ahead_are_reported(void **state) {
    (void)state;
    for (size_t text = 0; text < TEXTS; text++) {
        for (uint32_t tile = 64; tile <= THREADS; tile *= 2) {
            int races = 0;
            for (int i = 0; i < SEEDS; i++) {
                sim_report report;
                if (run(text, "ahead", tile, &report))
                    assert_memory_equal(out, wanted, sizeof out);
                else
                    assert_int_equal(report.kind, SIM_FAULT_RACE);
                races += report.kind != SIM_FAULT_NONE;
            }
            assert_true(races > SEEDS / 4);
        }
    }
}

static int load_all(void **state) {
    (void)state;
    return ptx_texts_load(texts, TEXTS);
}

static int free_all(void **state) {
    (void)state;
    return ptx_texts_free(texts, TEXTS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warps_that_meet_collect),
        cmocka_unit_test(lanes_that_run_ahead_are_reported),
    };
    seed = harness_seed();
    return cmocka_run_group_tests_name("ptx_tiles", tests, load_all, free_all);
}
