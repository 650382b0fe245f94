/* Wrong arguments, for every function of every operator, derived from the operators' own descriptions: each is refused
 * by a sentence that names the function and the parameter, and nothing is written. */
#include "tests/ops/harness.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROOM = 8192, SIDE = 4, PARAMS_MAX = 512, TENSORS_MAX = 20, TAIL = 16 };

/* Valid params: every size is SIDE, twice that or 1, every tensor has memory of its own, the rest is 0. */
typedef struct call {
    const kiln_operator *op;
    const kiln_operator_function *function;
    kiln_stream *stream;
    unsigned char params[PARAMS_MAX];
    matrix tensors[TENSORS_MAX];
    size_t tensor_count;
} call;

static void set_field(call *c, const kiln_field *field, const void *value) {
    memcpy(c->params + field->offset, value, field->size);
}

static void set_number(call *c, const kiln_field *field, int64_t value) {
    set_field(c, field, &value); /* little-endian: the low bytes of an int32_t */
}

static void *add_tensor(call *c, int64_t bytes) {
    assert_true(c->tensor_count < TENSORS_MAX);
    matrix *m = &c->tensors[c->tensor_count++];
    *m = matrix_create(c->stream, F32, 1, bytes / 4, 0, 0);
    return m->data;
}

/* 1 where that is typical, and twice SIDE where another size is at most half of it. */
static int64_t size_of(const kiln_operator *op, const kiln_field *field) {
    for (uint32_t i = 0; i < op->field_count; i++) {
        const char *follows = op->fields[i].follows;
        const size_t length = strlen(field->name);
        if (follows && strncmp(follows, field->name, length) == 0 && strcmp(follows + length, "/2") == 0)
            return 2 * SIDE;
    }
    return field->typical == 1 ? 1 : SIDE;
}

static void prepare(call *c) {
    assert_true(c->op->params_size + TAIL <= PARAMS_MAX);
    for (uint32_t i = 0; i < c->op->field_count; i++) {
        const kiln_field *field = &c->op->fields[i];
        void *memory = NULL;
        switch (field->role) {
        case KILN_FIELD_INPUT:
        case KILN_FIELD_OUTPUT:
        case KILN_FIELD_UPDATE:
        case KILN_FIELD_WORKSPACE:
            memory = add_tensor(c, ROOM);
            set_field(c, field, &memory);
            break;
        case KILN_FIELD_SIZE:
            set_number(c, field, size_of(c->op, field));
            break;
        case KILN_FIELD_WORKSPACE_SIZE:
            set_number(c, field, ROOM);
            break;
        case KILN_FIELD_STRIDE:
        case KILN_FIELD_OPTION:
        case KILN_FIELD_INTEGER:
        case KILN_FIELD_REAL:
            break;
        }
    }
}

static void refuse(call *c, const char *parameter) {
    harness_describe("%s with a wrong %s", c->function->name, parameter);
    expect_refusal(c->stream, c->function, c->params, c->op->params_size, parameter);
}

/* The largest number, by itself or with the other sizes, and what would be the most. */
static void refuse_the_largest(call *c, const kiln_field *field) {
    set_number(c, field, INT64_MAX);
    harness_describe("%s with the largest %s", c->function->name, field->name);
    expect_refusal(c->stream, c->function, c->params, c->op->params_size, "");
    const char *text = kiln_last_error();
    const bool with_others = strstr(text, "too large") && (strstr(text, "at most") || strstr(text, "with a stride of"));
    if (!strstr(text, "must be at most") && !with_others) fail_msg("no rule is named: %s", text);
}

/* Sets a field to each wrong value in turn, then back. */
static void refuse_numbers(call *c, const kiln_field *field, const int64_t *values, size_t count) {
    unsigned char old[PARAMS_MAX];
    memcpy(old, c->params, sizeof old);
    for (size_t i = 0; i < count; i++) {
        set_number(c, field, values[i]);
        refuse(c, field->name);
    }
    memcpy(c->params, old, sizeof old);
}

/* No real is NaN or infinite. */
static void refuse_reals(call *c, const kiln_field *field) {
    static const float values[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        set_field(c, field, &values[i]);
        refuse(c, field->name);
    }
}

static int64_t count_choices(const char *choices) {
    int64_t count = 1;
    for (const char *c = choices; *c; c++) {
        count += *c == ',';
    }
    return count;
}

/* Whether a tensor's elements are bytes, which lie at any address. */
static bool has_bytes(const call *c, const kiln_field *field) {
    const char *dtype = field->dtype;
    for (uint32_t i = 0; i < c->op->field_count; i++)
        if (strcmp(c->op->fields[i].name, dtype) == 0) dtype = c->op->fields[i].choices; /* an option says so */
    return strncmp(dtype, "u8", 2) == 0 || strncmp(dtype, "i8", 2) == 0;
}

static void refuse_field(call *c, const kiln_field *field) {
    unsigned char old[PARAMS_MAX];
    memcpy(old, c->params, sizeof old);
    switch (field->role) {
    case KILN_FIELD_INPUT:
    case KILN_FIELD_OUTPUT:
    case KILN_FIELD_UPDATE:
        if (!field->optional) refuse_numbers(c, field, (int64_t[]){0}, 1);
        c->params[field->offset]++; /* an odd address */
        if (!has_bytes(c, field)) refuse(c, field->name);
        break;
    case KILN_FIELD_SIZE:
        refuse_numbers(c, field, (int64_t[]){-1, INT64_MIN}, 2);
        refuse_the_largest(c, field);
        break;
    case KILN_FIELD_STRIDE:
        refuse_numbers(c, field, (int64_t[]){-1, SIDE - 1}, 2);
        refuse_the_largest(c, field);
        break;
    case KILN_FIELD_OPTION:
        refuse_numbers(c, field, (int64_t[]){-1, count_choices(field->choices), INT32_MAX}, 3);
        break;
    case KILN_FIELD_REAL:
        refuse_reals(c, field);
        break;
    case KILN_FIELD_INTEGER: /* any number will do */
    case KILN_FIELD_WORKSPACE:
    case KILN_FIELD_WORKSPACE_SIZE: /* needed by long rows only: softmax's own test */
        break;
    }
    memcpy(c->params, old, sizeof old);
}

/* Bytes of params that no field covers are reserved. */
static void refuse_reserved(call *c) {
    bool covered[PARAMS_MAX] = {false};
    for (uint32_t i = 0; i < c->op->field_count; i++) {
        memset(covered + c->op->fields[i].offset, true, c->op->fields[i].size);
    }
    for (uint32_t i = 0; i < c->op->params_size; i++) {
        if (covered[i]) continue;
        c->params[i] = 1;
        refuse(c, "reserved");
        c->params[i] = 0;
    }
}

/* A caller of an older or a newer version of the header has a shorter or a longer struct. */
static void try_sizes(call *c) {
    size_t size = c->op->params_size;
    harness_describe("%s with params longer than they are", c->function->name);
    harness_ok(c->function->call(c->stream, c->params, size + TAIL));
    c->params[size + TAIL - 1] = 1;
    expect_refusal(c->stream, c->function, c->params, size + TAIL, "params");
    c->params[size + TAIL - 1] = 0;

    const kiln_field *last = &c->op->fields[c->op->field_count - 1];
    size_t workspace = 0;
    if (last->role == KILN_FIELD_SIZE) return; /* without its tail the call would be another one */
    if (c->function->workspace_size) harness_ok(c->function->workspace_size(c->stream, c->params, size, &workspace));
    if (last->role == KILN_FIELD_WORKSPACE_SIZE && workspace) return; /* the same */
    harness_describe("%s with params shorter than they are", c->function->name);
    harness_ok(c->function->call(c->stream, c->params, last->offset));
}

static void refuse_workspace_size(call *c, const void *params, size_t params_size, size_t *out_size,
                                  const char *parameter) {
    harness_describe("%s_workspace_size with a wrong %s", c->function->name, parameter);
    if (out_size) *out_size = 1;
    assert_int_equal(c->function->workspace_size(c->stream, params, params_size, out_size),
                     KILN_ERROR_INVALID_ARGUMENT);
    if (out_size) assert_int_equal(*out_size, 0);
    const char *text = kiln_last_error();
    if (!strstr(text, c->function->name) || !strstr(text, parameter)) fail_msg("its name or %s: %s", parameter, text);
}

/* What asks for the size of the workspace refuses what the call does, and gives 0. */
static void refuse_workspace_sizes(call *c) {
    size_t size, params_size = c->op->params_size;
    if (!c->function->workspace_size) return;
    harness_ok(c->function->workspace_size(c->stream, c->params, params_size, &size));
    refuse_workspace_size(c, c->params, params_size, NULL, "out_size");
    refuse_workspace_size(c, NULL, params_size, &size, "params");
    kiln_stream *open_stream = c->stream, closed = {0};
    c->stream = NULL;
    refuse_workspace_size(c, c->params, params_size, &size, "stream");
    c->stream = &closed;
    refuse_workspace_size(c, c->params, params_size, &size, "stream");
    c->stream = open_stream;
    c->params[params_size + TAIL - 1] = 1;
    refuse_workspace_size(c, c->params, params_size + TAIL, &size, "params");
    c->params[params_size + TAIL - 1] = 0;
    for (uint32_t i = 0; i < c->op->field_count; i++) {
        const kiln_field *field = &c->op->fields[i];
        if (field->role != KILN_FIELD_SIZE) continue;
        set_number(c, field, -1);
        refuse_workspace_size(c, c->params, params_size, &size, field->name);
        set_number(c, field, size_of(c->op, field));
    }
}

static void expect_nothing_written(call *c) {
    harness_describe("%s after refusals", c->function->name);
    for (size_t i = 0; i < c->tensor_count; i++) {
        matrix_expect_unchanged(&c->tensors[i]);
    }
}

/* Whether a name stands in a shape: "rows,2*cols". */
static bool is_named(const char *shape, const char *name) {
    size_t length = strlen(name);
    for (const char *at = shape; (at = strstr(at, name)); at += length) {
        bool begins = at == shape || strchr(",|*", at[-1]), ends = !at[length] || strchr(",|", at[length]);
        if (begins && ends) return true;
    }
    return false;
}

/* Whether all outputs are empty where a size is 0. */
static bool empties_outputs(const kiln_operator *op, const kiln_field *size) {
    for (uint32_t i = 0; i < op->field_count; i++) {
        const kiln_field *field = &op->fields[i];
        if (field->role == KILN_FIELD_OUTPUT && !is_named(field->shape, size->name)) return false;
    }
    return true;
}

/* A size of 0 is no error, and nothing is written. */
static void try_empty(call *c) {
    for (uint32_t i = 0; i < c->op->field_count; i++) {
        const kiln_field *field = &c->op->fields[i];
        if (field->role != KILN_FIELD_SIZE || !empties_outputs(c->op, field)) continue;
        harness_describe("%s with %s 0", c->function->name, field->name);
        set_number(c, field, 0);
        harness_ok(c->function->call(c->stream, c->params, c->op->params_size));
        set_number(c, field, size_of(c->op, field));
    }
}

static void run_function(kiln_stream *stream, const kiln_operator *op, const kiln_operator_function *function) {
    call c = {.op = op, .function = function, .stream = stream};
    prepare(&c);
    harness_describe("%s", function->name);
    expect_refusal(stream, function, NULL, op->params_size, "params");
    expect_refusal(NULL, function, c.params, op->params_size, "stream");
    for (uint32_t i = 0; i < op->field_count; i++) {
        refuse_field(&c, &op->fields[i]);
    }
    refuse_reserved(&c);
    refuse_workspace_sizes(&c);
    try_empty(&c);
    expect_nothing_written(&c);
    harness_describe("%s with valid arguments", function->name);
    harness_ok(function->call(stream, c.params, op->params_size));
    try_sizes(&c);
    for (size_t i = 0; i < c.tensor_count; i++) {
        matrix_destroy(&c.tensors[i]);
    }
}

static void test_wrong_arguments(kiln_stream *stream) {
    const kiln_operator *const *operators;
    size_t count;
    harness_ok(kiln_all_operators(&operators, &count));
    for (size_t i = 0; i < count; i++) {
        for (uint32_t f = 0; f < operators[i]->function_count; f++) {
            run_function(stream, operators[i], &operators[i]->functions[f]);
        }
    }
}

/* What the descriptions promise: functions named <operator>_<precision>, fields inside the struct and not overlapping.
 */
static void test_descriptions(void **state) {
    (void)state;
    const kiln_operator *const *operators;
    size_t count;
    harness_ok(kiln_all_operators(&operators, &count));
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        const kiln_operator *op = operators[i];
        unsigned char covered[PARAMS_MAX] = {0};
        harness_describe("%s", op->name);
        assert_string_equal(op->bundle->name, op->name);
        assert_true(op->summary[0] && op->function_count > 0 && op->params_size <= PARAMS_MAX);
        for (uint32_t f = 0; f < op->function_count; f++) {
            char name[64];
            kiln_part part;
            snprintf(name, sizeof name, "%s_%s", op->name, op->functions[f].part);
            assert_string_equal(op->functions[f].name, name);
            harness_ok(kiln_bundle_find_part(op->bundle, op->functions[f].part, &part));
        }
        for (uint32_t f = 0; f < op->field_count; f++) {
            const kiln_field *field = &op->fields[f];
            assert_true(field->text[0] && field->offset + field->size <= op->params_size);
            for (uint32_t b = 0; b < field->size; b++) {
                assert_int_equal(covered[field->offset + b]++, 0);
            }
        }
    }
}

/* softmax: a row that needs workspace does not run without it, with too little, or with unaligned memory. */
static void test_softmax_workspace(kiln_stream *stream) {
    enum { COLS = 1 << 17 };
    const kiln_operator *op = &kiln__operator_softmax;
    matrix x = matrix_create(stream, F32, 1, COLS, 0, 0);
    for (uint32_t f = 0; f < op->function_count; f++) {
        const kiln_operator_function *function = &op->functions[f];
        kiln_softmax_params params = {.y = x.data, .x = x.data, .rows = 1, .cols = COLS};
        size_t size;
        harness_describe("%s", function->name);
        harness_ok(function->workspace_size(stream, &params, sizeof params, &size));
        assert_true(size > 0);
        params.workspace_size = size;
        expect_refusal(stream, function, &params, sizeof params, "workspace");
        matrix workspace = matrix_create(stream, F32, 1, (int64_t)(size + 3) / 4 + 4, 0, 0);
        params.workspace = workspace.data;
        params.workspace_size = size - 1;
        expect_refusal(stream, function, &params, sizeof params, "workspace_size");
        params.workspace = (char *)workspace.data + 4;
        params.workspace_size = size;
        expect_refusal(stream, function, &params, sizeof params, "workspace");
        matrix_expect_unchanged(&workspace);
        matrix_destroy(&workspace);

        kiln_status status = function->workspace_size(stream, &params, sizeof params, NULL);
        assert_int_equal(status, KILN_ERROR_INVALID_ARGUMENT);
        params.cols = -1;
        status = function->workspace_size(stream, &params, sizeof params, &size);
        assert_int_equal(status, KILN_ERROR_INVALID_ARGUMENT);
        assert_int_equal(size, 0);
    }
    matrix_expect_unchanged(&x);
    matrix_destroy(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descriptions),
        on_one_device(test_wrong_arguments),
        on_one_device(test_softmax_workspace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
