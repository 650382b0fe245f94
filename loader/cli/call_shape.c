/* How arrays and the described shapes of a call's tensors determine each other. */
#include "loader/cli/call.h"
#include <inttypes.h>
#include <string.h>

const char *shape_text(const npy_header *array, char text[SHAPE_TEXT_SIZE]) {
    size_t length = 0;
    length += (size_t)snprintf(text, SHAPE_TEXT_SIZE, "[");
    for (uint32_t i = 0; i < array->dimensions && length < SHAPE_TEXT_SIZE; i++)
        length +=
            (size_t)snprintf(text + length, SHAPE_TEXT_SIZE - length, "%s%" PRId64, i ? ", " : "", array->shape[i]);
    if (length < SHAPE_TEXT_SIZE) snprintf(text + length, SHAPE_TEXT_SIZE - length, "]");
    return text;
}

/* One name of a shape, with its factor, "2*cols", or "gated*n", n or 2*n by an option; what is added to it, "batch+1";
 * or what it is divided by: a number, "k/2", or a field, "k/group", which says 0 for the size itself. What a size
 * follows may have another size for a factor, "nodes*batch", and behind one, "4*rows/64+4*batch". */
typedef struct shape_term {
    int64_t factor, more, divisor;
    call_field *size;
    const call_field *by;      /* NULL: the divisor is a number */
    const call_field *more_of; /* NULL: more is a number */
} shape_term;

enum { TERMS = 8 };

/* The field whose name is the first `length` characters, or NULL. */
static call_field *find_named(const operator_call *call, const char *name, size_t length) {
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        const char *candidate = call->op->fields[i].name;
        if (strlen(candidate) == length && memcmp(candidate, name, length) == 0) return &call->fields[i];
    }
    return NULL;
}

/* The description's "rows,cols|rows,2*cols": the shape after the bar holds if an optional input is not given. Of
 * "layout:n,k|k,n" that one holds whose number is the option's choice, or the last. */
static const char *shape_of(const operator_call *call, const char *shape) {
    const char *bar = strchr(shape, '|'), *colon = strchr(shape, ':');
    if (!bar) return shape;
    if (colon) {
        const call_field *option = find_named(call, shape, (size_t)(colon - shape));
        shape = colon + 1;
        for (int64_t i = option ? option->value : 0; i > 0 && bar; i--, bar = strchr(shape, '|'))
            shape = bar + 1;
        return shape;
    }
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        const kiln_field *other = &call->op->fields[i];
        if (other->role == KILN_FIELD_INPUT && other->optional && !call->fields[i].given) return bar + 1;
    }
    return shape;
}

/* Gives the number of terms; they end at a bar or at the end of the text. */
static size_t parse(operator_call *call, const kiln_field *field, const char *shape, shape_term terms[TERMS]) {
    const char *at = shape_of(call, shape);
    size_t count = 0;
    while (*at && *at != '|' && count < TERMS) {
        char *name;
        shape_term term = {.factor = strtoll(at, &name, 10)};
        size_t length = strcspn(at, "*,|");
        const call_field *by = at[length] == '*' ? find_named(call, at, length) : NULL;
        if (by) term.factor = by->description->role == KILN_FIELD_OPTION ? by->value + 1 : by->value;
        if (at[length] == '*')
            at += length + 1;
        else
            term.factor = 1;
        length = strcspn(at, "+/,|");
        term.divisor = 1;
        term.size = find_named(call, at, length);
        at += length;
        if (*at == '/') {
            length = strcspn(at + 1, "+,|");
            term.by = find_named(call, at + 1, length);
            if (!term.by) term.divisor = strtoll(at + 1, NULL, 10);
            at += 1 + length;
        }
        if (*at == '+') {
            term.more = strtoll(at + 1, &name, 10);
            at = name;
            length = *at == '*' ? strcspn(at + 1, ",|") : 0;
            if (length) term.more_of = find_named(call, at + 1, length);
            if (term.more_of) at += 1 + length;
        }
        const bool right = term.size && (by || term.factor >= 1) && term.more >= 0 && term.divisor >= 1;
        if (!right || !strchr(",|", *at))
            exit(cli_error(CLI_SYSTEM, "%s: the description of %s has an unknown shape %s", call->op->name, field->name,
                           shape));
        terms[count++] = term;
        at += *at == ',';
    }
    return count;
}

static size_t parse_shape(operator_call *call, const kiln_field *field, shape_term terms[TERMS]) {
    return parse(call, field, field->shape, terms);
}

/* How many dimensions of an array fold into the first of so many names. */
static uint32_t folded(const npy_header *array, size_t terms) {
    return array->dimensions >= terms ? array->dimensions - (uint32_t)terms + 1 : 0;
}

/* Whether the dimension that arrays have there is the size itself. */
static bool is_plain(const shape_term *term) {
    return term->factor == 1 && term->more == 0 && term->divisor == 1 && !term->by;
}

/* The dimension that a size makes; true if it is beyond int64_t. What is divided is rounded up. */
static bool dimension_of(const shape_term *term, int64_t *out_dimension) {
    const int64_t size = term->size->value;
    int64_t divisor = term->by ? term->by->value : term->divisor, more;
    if (divisor < 1) divisor = size > 0 ? size : 1;
    return __builtin_mul_overflow(size / divisor + (size % divisor > 0), term->factor, out_dimension) ||
           __builtin_mul_overflow(term->more, term->more_of ? term->more_of->value : 1, &more) ||
           __builtin_add_overflow(*out_dimension, more, out_dimension);
}

int64_t call_number(operator_call *call, const kiln_field *field, const char *text) {
    shape_term terms[TERMS];
    int64_t number;
    parse(call, field, text, terms);
    return dimension_of(&terms[0], &number) ? INT64_MAX : number;
}

void call_follow(operator_call *call) {
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        call_field *field = &call->fields[i];
        if (field->follows) field->value = call_number(call, field->description, field->description->follows);
    }
}

/* Checks a dimension that a size makes by division, and takes the size from it if the divisor is a number and no other
 * array says it. */
static int take_quotient(const operator_call *call, const call_field *tensor, const shape_term *term,
                         int64_t dimension) {
    const char *function = call->function->name, *name = tensor->description->name;
    const char *size = term->size->description->name;
    char shape[SHAPE_TEXT_SIZE], divisor[32];
    int64_t expected;
    shape_text(&tensor->array, shape);
    if (!term->size->given && term->by)
        return cli_error(CLI_USAGE, "%s: no input before %s says what %s is", function, name, size);
    if (!term->size->given && !__builtin_mul_overflow(dimension, term->divisor, &expected)) {
        term->size->given = true;
        term->size->value = expected;
        term->size->source = tensor;
        return CLI_OK;
    }
    if (!dimension_of(term, &expected) && expected == dimension) return CLI_OK;
    snprintf(divisor, sizeof divisor, "%" PRId64, term->divisor);
    return cli_error(CLI_USAGE, "%s: %s is %s: %" PRId64 " must be %s / %s, %" PRId64, function, name, shape, dimension,
                     size, term->by ? term->by->description->name : divisor, expected);
}

/* Takes a size from a dimension, or checks it against what is known. */
static int take_size(operator_call *call, const call_field *tensor, const shape_term *term, int64_t dimension) {
    const char *function = call->function->name, *name = tensor->description->name;
    const char *size = term->size->description->name;
    char shape[SHAPE_TEXT_SIZE];
    if (term->by || term->divisor > 1) return take_quotient(call, tensor, term, dimension);
    shape_text(&tensor->array, shape);
    if (dimension < term->more)
        return cli_error(CLI_USAGE, "%s: %s is %s: %" PRId64 " must be %s + %" PRId64, function, name, shape, dimension,
                         size, term->more);
    if ((dimension - term->more) % term->factor)
        return cli_error(CLI_USAGE, "%s: %s is %s: %" PRId64 " must be %" PRId64 " * %s", function, name, shape,
                         dimension, term->factor, size);
    int64_t value = (dimension - term->more) / term->factor;
    if (!term->size->given) {
        term->size->given = true;
        term->size->value = value;
        term->size->source = tensor;
        return CLI_OK;
    }
    if (term->size->value == value) return CLI_OK;
    const call_field *source = term->size->source;
    return cli_error(CLI_USAGE, "%s: %s is %s, so %s is %" PRId64 ", but %s says %" PRId64, function, name, shape, size,
                     value, source ? source->description->name : "--set", term->size->value);
}

static int match_input(operator_call *call, call_field *tensor) {
    shape_term terms[TERMS];
    const npy_header *array = &tensor->array;
    size_t count = parse_shape(call, tensor->description, terms);
    uint32_t leading = folded(array, count);
    int64_t product = 1; /* no overflow: the header was checked */
    for (uint32_t i = 0; i < leading; i++)
        product *= array->shape[i];
    for (size_t i = 0; i < count; i++) {
        size_t behind = count - i; /* the dimension is the behind-th from the end */
        int64_t dimension = i == 0                       ? product
                            : array->dimensions < behind ? 1
                                                         : array->shape[array->dimensions - behind];
        int code = take_size(call, tensor, &terms[i], dimension);
        if (code != CLI_OK) return code;
    }
    if (!is_plain(&terms[0])) return CLI_OK;
    const call_field *other = terms[0].size->leading;
    if (!other) {
        terms[0].size->leading = tensor;
        return CLI_OK;
    }
    shape_term other_terms[TERMS];
    uint32_t other_leading = folded(&other->array, parse_shape(call, other->description, other_terms));
    if (leading == other_leading && memcmp(array->shape, other->array.shape, leading * sizeof *array->shape) == 0)
        return CLI_OK;
    char shape[SHAPE_TEXT_SIZE], other_shape[SHAPE_TEXT_SIZE];
    return cli_error(CLI_USAGE, "%s: %s is %s and %s is %s: they must agree in their leading dimensions",
                     call->function->name, tensor->description->name, shape_text(array, shape),
                     other->description->name, shape_text(&other->array, other_shape));
}

int call_shape(operator_call *call, call_field *tensor) {
    shape_term terms[TERMS], model_terms[TERMS];
    size_t count = parse_shape(call, tensor->description, terms), missing = 0;
    for (size_t i = 0; i < count; i++) {
        const call_field *size = terms[i].size;
        if (size->value || size->source) continue;
        return cli_error(CLI_USAGE, "%s: %s is 0: must be at least 1, as the shape of %s follows from it",
                         call->function->name, size->description->name, tensor->description->name);
    }
    npy_header *array = &tensor->array;
    npy_dtype dtype = call_dtype(call, tensor->description);
    array->dtype = dtype == NPY_BF16 ? call->bf16 : dtype;
    int64_t first, bytes = 0;
    bool overflow = dimension_of(&terms[0], &first);
    const call_field *model = is_plain(&terms[0]) ? terms[0].size->leading : NULL;
    if (model) {
        size_t model_count = parse_shape(call, model->description, model_terms);
        array->dimensions = folded(&model->array, model_count);
        memcpy(array->shape, model->array.shape, array->dimensions * sizeof *array->shape);
        if (model->array.dimensions + 1 < model_count) missing = model_count - 1 - model->array.dimensions;
    } else {
        array->shape[array->dimensions++] = first;
    }
    if (array->dimensions + count - 1 > NPY_DIMENSIONS)
        return cli_error(CLI_USAGE, "%s: %s would have more than %d dimensions", call->function->name,
                         tensor->description->name, NPY_DIMENSIONS);
    overflow |= __builtin_mul_overflow((int64_t)npy_dtype_size(array->dtype), first, &bytes);
    for (size_t i = 1; i < count; i++) {
        int64_t dimension;
        overflow |= dimension_of(&terms[i], &dimension);
        overflow |= __builtin_mul_overflow(bytes, dimension, &bytes);
        if (i > missing || dimension != 1) array->shape[array->dimensions++] = dimension;
    }
    if (overflow)
        return cli_error(CLI_USAGE, "%s: %s would have 2^63 bytes or more", call->function->name,
                         tensor->description->name);
    array->data_size = (uint64_t)bytes;
    return CLI_OK;
}

bool call_size_is_unused(operator_call *call, const call_field *size) {
    shape_term terms[TERMS];
    bool unused = false;
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        const call_field *tensor = &call->fields[i];
        if (!call_is_tensor(tensor->description)) continue;
        size_t count = parse_shape(call, tensor->description, terms);
        for (size_t term = 0; term < count; term++) {
            if (terms[term].size != size) continue;
            if (!tensor->description->optional || tensor->given) return false;
            unused = true;
        }
    }
    return unused;
}

/* A size that no array's shape has is the first of the leading dimensions of the tensor that it names, of which there
 * must be several: else 1. */
static void take_leading(operator_call *call, call_field *size) {
    shape_term terms[TERMS];
    for (uint32_t i = 0; i < call->op->field_count && !size->given; i++) {
        const call_field *tensor = &call->fields[i];
        if (!tensor->given || strcmp(tensor->description->name, size->description->shape) != 0) continue;
        size_t count = parse_shape(call, tensor->description, terms);
        size->given = true;
        size->value = folded(&tensor->array, count) > 1 ? tensor->array.shape[0] : 1;
        size->source = tensor;
    }
}

int call_resolve(operator_call *call) {
    const char *function = call->function->name;
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        call_field *field = &call->fields[i];
        const kiln_field *description = field->description;
        if (call_is_tensor(description) && !field->given && !description->optional)
            return cli_error(CLI_USAGE, "%s: %s is missing: --%s %s=FILE", function, description->name,
                             description->role == KILN_FIELD_OUTPUT ? "out" : "in", description->name);
        bool input = field->given && call_is_tensor(description) && description->role != KILN_FIELD_OUTPUT;
        int code = input ? match_input(call, field) : CLI_OK;
        if (code != CLI_OK) return code;
    }
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        call_field *field = &call->fields[i];
        if (field->description->role == KILN_FIELD_SIZE) take_leading(call, field);
        if (field->description->role == KILN_FIELD_SIZE && !field->given && !call_size_is_unused(call, field))
            return cli_error(CLI_USAGE, "%s: no input says what %s is: --set %s=NUMBER", function,
                             field->description->name, field->description->name);
    }
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        call_field *field = &call->fields[i];
        bool output = field->given && field->description->role == KILN_FIELD_OUTPUT;
        int code = output ? call_shape(call, field) : CLI_OK;
        if (code != CLI_OK) return code;
    }
    return CLI_OK;
}
