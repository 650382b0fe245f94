/* Every function that `kiln run --help` lists is called by the command line with the shapes that its own help promises:
 * with all inputs and with the required ones alone, each with leading dimensions folded or not, and with integers of
 * 64 bits where they may be of 32. What comes back has the shape of the help, too, and no operator of kernels/ops.def
 * is left out. What functions compute is for the operators' tests to say. */
#include "loader/cli/npy.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

enum { NAME = 64, TENSORS = 24, SIZES = 16, TERMS = 8, COMMAND = 16384, FOLD = 2 };

/* A size, as the help names it. All are different powers of two, and those in front the greater: heads are then a
 * multiple of kv_heads, and pages are powers of two. */
typedef struct size_of {
    char name[NAME];
    int64_t value;
} size_of;

/* An input or an output, as the help has it: "--in x=FILE  f32 [rows,2*cols] or [rows,cols], optional". */
typedef struct tensor {
    char name[NAME], dtype[NAME];
    char shape[NAME], without[NAME];     /* the second: where an optional input is left out; empty: the same */
    bool output, update, optional, wide; /* wide: "i32 or i64" */
} tensor;

typedef struct function {
    char name[NAME];
    tensor tensors[TENSORS];
    size_of sizes[SIZES];
    size_t tensor_count, size_count;
} function;

typedef struct mode {
    const char *name;
    bool all, fold, wide;
} mode;

static char program[4096], folder[4096];

/* ---- The help ---------------------------------------------------------------------------------------------------- */

static void read_tensor(function *f, const char *direction, const char *name, const char *kind) {
    assert_true(f->tensor_count < TENSORS);
    tensor *t = &f->tensors[f->tensor_count++];
    *t = (tensor){.output = strcmp(direction, "out") == 0,
                  .optional = strstr(kind, ", optional") != NULL,
                  .update = strstr(kind, ", also as --out") != NULL,
                  .wide = strncmp(kind, "i32 or i64 ", 11) == 0};
    snprintf(t->name, sizeof t->name, "%s", name);
    assert_int_equal(sscanf(kind, "%63s", t->dtype), 1);
    const char *open = strchr(kind, '['), *second = open ? strstr(open, "] or [") : NULL;
    assert_non_null(open);
    assert_int_equal(sscanf(open, "[%63[^]]]", t->shape), 1);
    if (second) assert_int_equal(sscanf(second, "] or [%63[^]]]", t->without), 1); /* not of "], by layout or [" */
}

/* Whether inputs that must be given have a size in their shapes, from which it is taken; one that none has is to be
 * set. */
static bool inputs_have(const function *f, const char *size) {
    for (size_t i = 0; i < f->tensor_count; i++) {
        const tensor *t = &f->tensors[i];
        for (const char *at = t->output || t->optional ? "" : t->shape; *at; at += strspn(at, ",*+/")) {
            const size_t length = strcspn(at, ",*+/");
            if (strlen(size) == length && memcmp(at, size, length) == 0) return true;
            at += length;
        }
    }
    return false;
}

/* Scales are for each row of 16 columns or fewer, and for the tensor; k, which no shape has, is 1. */
static int64_t value_for(const function *f, size_t size) {
    const char *name = f->sizes[size].name;
    if (strcmp(name, "scale_rows") == 0) return f->sizes[0].value;
    if (strcmp(name, "q_scale_rows") == 0) return f->sizes[0].value; /* one for each token */
    if (strcmp(name, "k_scale_rows") == 0) return f->sizes[1].value;
    if (strcmp(name, "mask_rows") == 0) return f->sizes[0].value;
    if (strcmp(name, "mask_cols") == 0) return f->sizes[1].value;
    if (strcmp(name, "head_blocks") == 0) return 4; /* NVFP4 blocks of a head of at most 64, and of all keys */
    if (strcmp(name, "v_blocks") == 0) return 4 * (f->sizes[1].value / 64 + f->sizes[2].value);
    if (strcmp(name, "width") == 0) return 2; /* of a convolution, whose states have at least one row less */
    if (strcmp(name, "tree_words") == 0) return (f->sizes[0].value + 31) / 32; /* a bit for each query */
    /* Of factors of a product, whose rows come first: a scale for each row, and those of all columns. */
    if (strcmp(name, "a_scale_rows") == 0 || strcmp(name, "b_scale_rows") == 0) return f->sizes[*name == 'b'].value;
    if (strstr(name, "_scale_") || strstr(name, "_global_")) return 1;
    if (strcmp(name, "scale_cols") == 0 || strcmp(name, "global_rows") == 0 || !inputs_have(f, name)) return 1;
    return INT64_C(1) << (f->size_count - size);
}

static void read_help(function *f) {
    char command[COMMAND], line[1024], direction[8], name[NAME], kind[512];
    snprintf(command, sizeof command, "%s run --help %s", program, f->name);
    FILE *help = popen(command, "r");
    assert_non_null(help);
    while (fgets(line, sizeof line, help)) {
        if (sscanf(line, " --%3[a-z] %63[a-z0-9_]=FILE %511[^\n]", direction, name, kind) == 3) {
            read_tensor(f, direction, name, kind);
        } else if (sscanf(line, " --set %63[a-z0-9_]=N %511[^\n]", name, kind) == 2 &&
                   strncmp(kind, "taken from the files", 20) == 0) {
            assert_true(f->size_count < SIZES);
            snprintf(f->sizes[f->size_count++].name, NAME, "%s", name);
        }
    }
    assert_int_equal(pclose(help), 0);
    assert_true(f->tensor_count >= 2);
    for (size_t i = 0; i < f->size_count; i++)
        f->sizes[i].value = value_for(f, i);
}

/* ---- Arrays ------------------------------------------------------------------------------------------------------ */

static int64_t value_of(const function *f, const char *name, size_t length) {
    for (size_t i = 0; i < f->size_count; i++)
        if (strlen(f->sizes[i].name) == length && memcmp(f->sizes[i].name, name, length) == 0) return f->sizes[i].value;
    fail_msg("%s: the help has a shape with %.*s, and no such size", f->name, (int)length, name);
    return 0;
}

/* The dimensions of "rows,2*cols,batch+1,k/2"; "k/group" is 1, since no group is set, and so is an option's factor. */
static uint32_t shape_of(const function *f, const char *text, int64_t shape[TERMS]) {
    uint32_t count = 0;
    for (const char *at = text; *at;) {
        char *name;
        int64_t factor = strtoll(at, &name, 10);
        const bool has_factor = strcspn(at, "*") < strcspn(at, ",");
        if (name == at) factor = 1;
        if (has_factor) at += strcspn(at, "*") + 1;
        const size_t length = strcspn(at, ",+/");
        assert_true(count < TERMS);
        shape[count] = factor * value_of(f, at, length);
        at += length;
        if (*at == '/') {
            const int64_t divisor = strtoll(at + 1, &name, 10);
            shape[count] = divisor > 1 ? shape[count] / divisor : 1;
            at += strcspn(at, ",");
        }
        if (*at == '+') shape[count] += strtoll(at + 1, &name, 10), at = name;
        count++;
        at += *at == ',';
    }
    return count;
}

static const char *text_of(const tensor *t, mode m) {
    return !m.all && t->without[0] ? t->without : t->shape;
}

/* Whether a required input, or with all of them any, has this as its first size, without a factor. */
static bool is_leading(const function *f, const char *text, mode m) {
    const size_t length = strcspn(text, ",");
    for (size_t i = 0; i < f->tensor_count; i++) {
        const tensor *t = &f->tensors[i];
        const char *other = text_of(t, m);
        if (!t->output && (m.all || !t->optional) && strcspn(other, ",") == length && memcmp(other, text, length) == 0)
            return strcspn(text, "*+/") >= length;
    }
    return false;
}

/* The shape of an array for the tensor: where it folds, the first dimension is two. */
static npy_header array_of(const function *f, const tensor *t, mode m) {
    int64_t shape[TERMS];
    npy_header array = {.dtype = npy_dtype_find(t->wide && m.wide ? "i64" : t->dtype)};
    const uint32_t count = shape_of(f, text_of(t, m), shape);
    assert_true(array.dtype < NPY_DTYPE_COUNT);
    array.data_size = npy_dtype_size(array.dtype);
    for (uint32_t i = 0; i < count; i++) {
        const bool folds = i == 0 && m.fold && shape[0] % FOLD == 0 && (!t->output || is_leading(f, text_of(t, m), m));
        if (folds) array.shape[array.dimensions++] = FOLD;
        array.shape[array.dimensions++] = folds ? shape[i] / FOLD : shape[i];
        array.data_size *= (uint64_t)shape[i];
    }
    return array;
}

static void write_array(const char *path, const npy_header *array) {
    char header[NPY_WRITTEN_SIZE];
    const size_t size = npy_format_header(array, header);
    FILE *file = fopen(path, "wb");
    void *bytes = calloc(1, (size_t)array->data_size);
    assert_non_null(file);
    assert_non_null(bytes);
    assert_int_equal(fwrite(header, 1, size, file), size);
    assert_int_equal(fwrite(bytes, 1, (size_t)array->data_size, file), array->data_size);
    assert_int_equal(fclose(file), 0);
    free(bytes);
}

static void assert_array(const function *f, const char *path, const tensor *t, mode m) {
    npy_header array;
    void *data;
    char error[NPY_ERROR_SIZE];
    const npy_header expected = array_of(f, t, m);
    if (!npy_read(path, &array, &data, error)) fail_msg("%s, %s: %s: %s", f->name, m.name, t->name, error);
    free(data);
    assert_int_equal(remove(path), 0);
    const bool same = array.dtype == expected.dtype && array.dimensions == expected.dimensions &&
                      memcmp(array.shape, expected.shape, expected.dimensions * sizeof *expected.shape) == 0;
    if (same) return;
    char header[2][NPY_WRITTEN_SIZE];
    npy_format_header(&array, header[0]);
    npy_format_header(&expected, header[1]);
    fail_msg("%s, %s: %s is %.128s, not %.128s", f->name, m.name, t->name, header[0] + 10, header[1] + 10);
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

static void call(const function *f, const char *command_name, mode m) {
    char command[COMMAND], path[2][8192];
    int length = snprintf(command, sizeof command, "%s %s %s%s", program, command_name,
                          strcmp(command_name, "trace") == 0 ? "--text " : "", f->name);
    for (size_t i = 0; i < f->tensor_count; i++) {
        const tensor *t = &f->tensors[i];
        if (t->optional && !m.all) continue;
        const npy_header array = array_of(f, t, m);
        snprintf(path[0], sizeof path[0], "%s/%s.npy", folder, t->name);
        snprintf(path[1], sizeof path[1], "%s/%s.out.npy", folder, t->name);
        if (!t->output) write_array(path[0], &array);
        if (!t->output)
            length += snprintf(command + length, sizeof command - (size_t)length, " --in %s=%s", t->name, path[0]);
        if (t->output || t->update)
            length += snprintf(command + length, sizeof command - (size_t)length, " --out %s=%s", t->name, path[1]);
    }
    for (size_t i = 0; i < f->size_count; i++)
        if (!inputs_have(f, f->sizes[i].name))
            length += snprintf(command + length, sizeof command - (size_t)length, " --set %s=%lld", f->sizes[i].name,
                               (long long)f->sizes[i].value);
    length += snprintf(command + length, sizeof command - (size_t)length, " --device cpu >/dev/null");
    assert_true((size_t)length < sizeof command);
    if (system(command) != 0) fail_msg("%s, %s: failed: %s", f->name, m.name, command);
    for (size_t i = 0; i < f->tensor_count; i++) {
        const tensor *t = &f->tensors[i];
        snprintf(path[1], sizeof path[1], "%s/%s.out.npy", folder, t->name);
        if ((t->output || t->update) && (m.all || !t->optional)) assert_array(f, path[1], t, m);
    }
}

typedef struct operator_seen {
    const char *name;
    bool seen;
} operator_seen;

/* The operator of "mul_add_f16" was called. */
static void see(operator_seen *operators, size_t count, const char *function_name) {
    const size_t length = (size_t)(strrchr(function_name, '_') - function_name);
    for (size_t i = 0; i < count; i++)
        if (strlen(operators[i].name) == length && memcmp(operators[i].name, function_name, length) == 0)
            operators[i].seen = true;
}

/* Of each operator the functions for all modes; the first of them by trace, too. */
static void every_function_takes_what_its_help_promises(void **state) {
    (void)state;
    static const mode modes[] = {{"all inputs", true, false, false},
                                 {"all inputs, folded", true, true, false},
                                 {"required inputs", false, false, true},
                                 {"required inputs, folded", false, true, true},
                                 {"all inputs of 64 bits", true, false, true}};
    operator_seen operators[] = {
#define KILN_OPERATOR(operator_name) {#operator_name, false},
#include "kernels/ops.def"
    };
    const size_t operator_count = sizeof operators / sizeof *operators;
    char command[COMMAND], line[1024];
    size_t calls = 0;
    snprintf(command, sizeof command, "%s run --help", program);
    FILE *help = popen(command, "r");
    assert_non_null(help);
    while (fgets(line, sizeof line, help) && strcmp(line, "functions:\n") != 0)
        ;
    while (fgets(line, sizeof line, help)) {
        if (strncmp(line, "   ", 3) == 0) continue; /* what the operator computes */
        bool first = true;
        char *rest = line;
        for (char *name; (name = strtok_r(rest, " \n", &rest)); first = false) {
            function f = {.tensor_count = 0};
            snprintf(f.name, sizeof f.name, "%s", name);
            read_help(&f);
            for (size_t i = 0; i < sizeof modes / sizeof *modes; i++, calls++)
                call(&f, "run", modes[i]);
            if (first) call(&f, "trace", modes[1]);
            see(operators, operator_count, f.name);
        }
    }
    assert_int_equal(pclose(help), 0);
    for (size_t i = 0; i < operator_count; i++)
        if (!operators[i].seen)
            fail_msg("%s is in kernels/ops.def, and no function of it was called", operators[i].name);
    print_message("# %zu calls\n", calls);
}

int main(void) {
    const char *build = getenv("KILN_BUILD"), *scratch = getenv("KILN_SCRATCH");
    snprintf(program, sizeof program, "%s/kiln", build ? build : "build");
    snprintf(folder, sizeof folder, "%s", scratch ? scratch : "/tmp");
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_function_takes_what_its_help_promises)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
