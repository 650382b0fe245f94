/* Kernels whose results were recorded on an H100, replayed on the interpreter: what comes out must be what the H100
 * left behind, to the bit, or within the error that the ISA states for approximations. Kernels with instructions that
 * are not simulated are named with the reason. */
#include "tests/sim/ptx/memory/ptx_tensor.h"
#include "tests/sim/tests/common/programs_host.h"
#include "tests/sim/tests/recorded/truth.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    CASES = 979,
    REPLAYED = 977, /* of them; the others are not simulated, or an error here */
    CAPABILITY = 90,
    BUFFERS = 64,
    PARAMETER_BYTES = 4096
};

/* ---- One case ---- */

typedef struct memory {
    uint8_t *bytes[BUFFERS];
    uint64_t size[BUFFERS];
} memory;

static bool find(void *context, uint64_t address, sim_region *out_region) {
    const memory *all = context;
    for (int i = 0; i < BUFFERS; i++) {
        uint64_t base = (uintptr_t)all->bytes[i];
        if (!base || address - base >= all->size[i]) continue;
        *out_region = (sim_region){.base = base, .size = all->size[i]};
        return true;
    }
    return false;
}

static memory memory_new(const truth_case *x) {
    memory all = {{0}, {0}};
    for (uint32_t i = 0; i < x->head->buffer_count; i++) {
        all.size[i] = x->buffers[i].size;
        all.bytes[i] = aligned_alloc(1024, (x->buffers[i].size + 1023) / 1024 * 1024);
        assert_non_null(all.bytes[i]);
        truth_fill_buffer(x, &x->buffers[i], all.bytes[i]);
    }
    return all;
}

static void memory_free(memory *all) {
    for (int i = 0; i < BUFFERS; i++)
        free(all->bytes[i]);
}

/* The tensor map of a field. false: it is of a kind that is not simulated. */
static bool map_of(const truth_case *x, const truth_field *field, const memory *all, ptx_tensor_map *out) {
    const truth_map *m = (const truth_map *)(const void *)(x->bytes + field->value);
    if (m->interleave) return false;
    *out = (ptx_tensor_map){.magic = PTX_TENSOR_MAGIC,
                            .type = (uint8_t)m->type,
                            .rank = (uint8_t)m->rank,
                            .swizzle = (uint8_t)m->swizzle,
                            .fill = (uint8_t)m->fill,
                            .address = (uintptr_t)all->bytes[field->buffer] + m->offset,
                            .by_pixels = (uint8_t)m->im2col,
                            .channels = (uint16_t)m->channels,
                            .pixels = (uint16_t)m->pixels};
    for (uint32_t i = 0; i < m->rank; i++) {
        out->dims[i] = m->dims[i];
        out->box[i] = (uint16_t)m->box[i];
        out->steps[i] = (uint8_t)m->steps[i];
        if (i) out->strides[i - 1] = m->strides[i - 1];
    }
    for (uint32_t i = 0; i < 3; i++) {
        out->lower[i] = (int16_t)m->lower[i];
        out->upper[i] = (int16_t)m->upper[i];
    }
    return true;
}

/* The parameters where the interpreter wants them. false: one is a tensor map that is not simulated. */
static bool parameters_of(const truth_case *x, const memory *all, const ptx_function *kernel, uint8_t *bytes) {
    for (const truth_field *f = x->fields; f < x->fields + x->head->field_count; f++) {
        const ptx_variable *parameter = kernel->parameters;
        uint64_t value = f->value;
        for (uint32_t i = 0; parameter && i < f->parameter; i++)
            parameter = parameter->next;
        assert_non_null(parameter);
        assert_true(f->inner + f->size <= parameter->size && kernel->parameter_bytes <= PARAMETER_BYTES);
        if (f->kind == TRUTH_MAP) {
            ptx_tensor_map map;
            if (!map_of(x, f, all, &map)) return false;
            memcpy(bytes + parameter->offset + f->inner, &map, sizeof map);
            continue;
        }
        if (f->kind == TRUTH_ADDRESS) value += (uintptr_t)all->bytes[f->buffer];
        memcpy(bytes + parameter->offset + f->inner, &value, f->size);
    }
    return true;
}

/* The CUresult of a fault. */
static uint32_t error_of(sim_fault_kind kind) {
    return kind == SIM_FAULT_ILLEGAL ? 715 : kind == SIM_FAULT_MISALIGNED ? 716 : 719;
}

static uint64_t within; /* approximations in their bounds, of other bits */

/* What is wrong with what a case leaves behind, in why; "" if nothing is. */
static void compare(const truth_case *x, const char *text, const memory *all, char *why, size_t size) {
    for (uint32_t i = 0; i < x->head->buffer_count && !*why; i++) {
        truth_verdict verdict = {0};
        if (x->buffers[i].flags != TRUTH_OUTPUT) continue;
        truth_compare(text, all->bytes[0], x->bytes + x->buffers[i].expected, all->bytes[i], all->size[i], &verdict);
        within += verdict.within;
        if (*verdict.wrong) snprintf(why, size, "buffer %u, %s", i, verdict.wrong);
    }
}

static void launch(const truth_case *x, const char *text, const ptx_program *program, const uint8_t *parameters,
                   const memory *all, char *why, size_t size) {
    ptx_launch run = {.program = program,
                      .code = ptx_program_find(program, x->head->kernel),
                      .multiprocessors = 132,
                      .dynamic_shared_bytes = x->head->shared_bytes,
                      .reserved_shared_bytes = 1024,
                      .parameters = parameters,
                      .find = find,
                      .find_context = (void *)(uintptr_t)all,
                      .seed = 0,
                      .budget = 1 << 24,
                      .threads = 1,
                      .sum_mode = SIM_SUM_HOPPER};
    sim_counters counters = {0};
    sim_report report = {0};
    memcpy(run.grid, x->head->grid, sizeof run.grid);
    memcpy(run.block, x->head->block, sizeof run.block);
    memcpy(run.cluster, x->head->cluster, sizeof run.cluster);
    bool ok = ptx_launch_run(&run, &counters, &report);
    if (x->head->error)
        snprintf(why, size, "%s", ok || error_of(report.kind) != x->head->error ? "does not end in its error" : "");
    else if (!ok)
        snprintf(why, size, "%s", report.text);
    else
        compare(x, text, all, why, size);
}

/* Whether the interpreter wants the parameters where the driver wanted them. */
static void check_places(const truth_case *x, const ptx_function *kernel) {
    assert_int_equal(x->head->block_bytes, kernel->parameter_bytes);
    for (const truth_field *f = x->fields; f < x->fields + x->head->field_count; f++) {
        const ptx_variable *parameter = kernel->parameters;
        for (uint32_t i = 0; parameter && i < f->parameter; i++)
            parameter = parameter->next;
        assert_non_null(parameter);
        assert_int_equal(f->offset, parameter->offset + f->inner);
    }
}

typedef enum outcome { EQUAL, DIFFERENT, REFUSED } outcome;

/* name is "mma/m16n8k16_f16_normal", ptx "m16n8k16_f16". */
static outcome replay(const char *name, const char *ptx, char *why, size_t size) {
    char path[256];
    size_t length;
    *why = 0;
    snprintf(path, sizeof path, TRUTH_FOLDER "/%.*s/%s.ptx", (int)strcspn(name, "/"), name, ptx);
    char *text = programs_read(path, &length);
    ptx_program *program = ptx_program_load(text, length, CAPABILITY, why, size);
    if (!program) {
        free(text);
        return REFUSED;
    }
    snprintf(path, sizeof path, TRUTH_FOLDER "/%s.case", name);
    truth_case x = truth_read(path);
    memory all = memory_new(&x);
    _Alignas(128) uint8_t parameters[PARAMETER_BYTES] = {0};
    const ptx_code *code = ptx_program_find(program, x.head->kernel);
    assert_non_null(code);
    outcome result = REFUSED;
    check_places(&x, code->function);
    if (parameters_of(&x, &all, code->function, parameters)) {
        launch(&x, text, program, parameters, &all, why, size);
        result = *why ? DIFFERENT : EQUAL;
    } else {
        snprintf(why, size, "takes an interleaved tensor map, which is not simulated");
    }
    memory_free(&all);
    truth_free(&x);
    ptx_program_free(program);
    free(text);
    return result;
}

/* ---- All of them ---- */

/* What the device forgives and the interpreter reports: a copy of 24 bytes, which the ISA does not allow, counts 16. */
static const char *const stricter[] = {"tma/bulk_g2s_size_24"};

static bool is_stricter(const char *name) {
    bool listed = false;
    for (size_t i = 0; i < sizeof stricter / sizeof *stricter; i++)
        listed |= strcmp(stricter[i], name) == 0;
    return listed;
}

static void what_is_simulated_is_what_was_recorded(void **state) {
    size_t size;
    unsigned counts[REFUSED + 1] = {0};
    char *list = programs_read(TRUTH_FOLDER "/cases.txt", &size), *rest = list;
    (void)state;
    for (char *line; (line = strtok_r(rest, "\n", &rest));) {
        char name[128], ptx[64], why[2048];
        if (*line == '#') continue;
        assert_int_equal(sscanf(line, "%127s %63s", name, ptx), 2);
        outcome result = replay(name, ptx, why, sizeof why);
        if (is_stricter(name)) {
            assert_int_equal(result, DIFFERENT);
            result = REFUSED;
        }
        counts[result]++;
        if (result != EQUAL) printf("# %s %s: %s\n", result == REFUSED ? "not simulated:" : "different:", name, why);
    }
    free(list);
    printf("# truth: %u of %u\n", counts[EQUAL], counts[EQUAL] + counts[DIFFERENT] + counts[REFUSED]);
    printf("# approximations of other bits, in their bounds: %llu\n", (unsigned long long)within);
    assert_int_equal(counts[EQUAL] + counts[DIFFERENT] + counts[REFUSED], CASES);
    assert_int_equal(counts[DIFFERENT], 0);
    assert_int_equal(counts[EQUAL], REPLAYED);
}

/* Also of kernels that are not simulated. */
static void parameters_lie_where_the_driver_wants_them(void **state) {
    static const char *const names[] = {"misc/packed_a64_o64",   "misc/packed_a64_o128", "misc/packed_a128_o64",
                                        "misc/packed_a128_o128", "misc/packed_a8_o48",   "misc/packed_a8_o112",
                                        "fault/packed_a8_o64"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[128], why[512];
        size_t size;
        snprintf(path, sizeof path, TRUTH_FOLDER "/%s.ptx", names[i]);
        char *text = programs_read(path, &size);
        ptx_module *module = ptx_module_parse(text, size, why, sizeof why);
        if (!module) fail_msg("%s: %s", path, why);
        snprintf(path, sizeof path, TRUTH_FOLDER "/%s.case", names[i]);
        truth_case x = truth_read(path);
        ptx_module_place_parameters(module, CAPABILITY);
        check_places(&x, ptx_function_find(module, x.head->kernel));
        truth_free(&x);
        ptx_module_free(module);
        free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_simulated_is_what_was_recorded),
                                       cmocka_unit_test(parameters_lie_where_the_driver_wants_them)};
    return cmocka_run_group_tests_name("truth", tests, NULL, NULL);
}
