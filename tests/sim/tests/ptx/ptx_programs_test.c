/* PTX as compilers write it: the programs of tests/sim/tests/programs. */
#include "tests/sim/tests/common/programs_host.h"
#include "tests/sim/tests/ptx/ptx_text.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static ptx_text texts[] = {{"programs.nvcc-O0", 80, NULL},
                           {"programs.nvcc-O3", 80, NULL},
                           {"programs.clang-O0", 80, NULL},
                           {"programs.clang-O3", 80, NULL}};
enum { TEXTS = sizeof texts / sizeof *texts };

typedef struct context {
    const programs_buffers *buffers;
    uint8_t *globals;
    const ptx_variable *variables;
} context;

static bool find(void *pointer, uint64_t address, sim_region *out_region) {
    const context *c = pointer;
    for (const ptx_variable *v = c->variables; v; v = v->next) {
        *out_region = (sim_region){(uintptr_t)c->globals + v->offset, v->size, NULL, v->space == PTX_SPACE_CONST};
        bool own = v->space == PTX_SPACE_GLOBAL || v->space == PTX_SPACE_CONST;
        if (own && address - out_region->base < v->size) return true;
    }
    return programs_find(c->buffers, address, out_region);
}

/* The module's variables with their initial values, as a driver puts them. */
static uint8_t *globals_new(const ptx_program *program) {
    uint8_t *globals = aligned_alloc(256, (program->global_bytes + 256) / 256 * 256);
    assert_non_null(globals);
    ptx_program_initialise(program, globals);
    return globals;
}

static void launch(size_t text, const programs_launch *l) {
    context around = {l->buffers, globals_new(texts[text].program), texts[text].program->module->variables};
    ptx_launch launched = {.program = texts[text].program,
                           .code = ptx_program_find(texts[text].program, l->kernel),
                           .grid = {l->grid[0], l->grid[1], 1},
                           .block = {l->group[0], l->group[1], 1},
                           .parameters = (const uint8_t *)l->parameters,
                           .globals = (uintptr_t)around.globals,
                           .find = find,
                           .find_context = &around,
                           .seed = l->seed,
                           .budget = 1 << 22,
                           .threads = 2,
                           .sum_mode = (sim_sum_mode)(l->seed % SIM_SUM_MODES)};
    assert_non_null(launched.code);
    sim_counters counters = {0};
    sim_report report;
    if (!ptx_launch_run(&launched, &counters, &report)) fail_msg("%s: %s", texts[text].name, report.text);
    free(around.globals);
}

static int load_all(void **state) {
    (void)state;
    return ptx_texts_load(texts, TEXTS);
}

static int free_all(void **state) {
    (void)state;
    return ptx_texts_free(texts, TEXTS);
}

static const char *name(size_t text) {
    return texts[text].name;
}

int main(void) {
    return programs_test("ptx_programs", &(const programs_machine){TEXTS, name, launch, load_all, free_all});
}
