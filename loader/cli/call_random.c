/* A call without files, for measuring: its sizes and inputs are generated. */
#include "loader/cli/call.h"

static uint32_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 32);
}

/* Fills with numbers of magnitude 0.125 to 4 in either sign, made of their bits; integers with 0 to 4095. */
static void fill_random(void *bytes, npy_dtype dtype, uint64_t size, uint64_t *state) {
    uint32_t *words = bytes;
    for (uint64_t i = 0; i < size / 4; i++) {
        uint32_t random = next_random(state), sign = random & 0x80008000u;
        uint32_t high = random >> 16 & 0x7fffu, low = random & 0x7fffu;
        if (dtype == NPY_F32) random = (random & 0x80000000u) + 0x3e000000u + (random & 0x7fffffffu) % 0x02800000u;
        if (dtype == NPY_F16) random = sign + ((0x3000u + high % 0x1400u) << 16) + 0x3000u + low % 0x1400u;
        if (dtype == NPY_BF16) random = sign + ((0x3e00u + high % 0x280u) << 16) + 0x3e00u + low % 0x280u;
        if (dtype == NPY_I32) random %= 4096;
        words[i] = random;
    }
}

/* Fills with the integers that the description names: "<rows", "=rows", "/rows" or "//rows". */
static void fill_integers(operator_call *call, const call_field *field, uint64_t *state) {
    const npy_header *array = &field->array;
    const char *text = field->description->integers;
    const bool all_rows = text[1] == '/';
    const int64_t number = call_number(call, field->description, text + 1 + all_rows);
    const uint64_t size = npy_dtype_size(array->dtype), count = array->data_size / size;
    const uint64_t row = all_rows ? count : (uint64_t)array->shape[array->dimensions - 1];
    for (uint64_t i = 0; i < count; i++) {
        int64_t value = number;
        if (*text == '/') value = (int64_t)(i % row * (uint64_t)number / row);
        if (*text == '<') value = number > 0 ? next_random(state) % number : 0;
        if (size == sizeof(int64_t))
            ((int64_t *)field->host)[i] = value;
        else
            ((int32_t *)field->host)[i] = (int32_t)value;
    }
}

/* Sets the sizes without a typical value, which are all the same, and those that follow them. Says whether there is
 * one.
 */
static bool scale(operator_call *call, int64_t value) {
    bool found = false;
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        call_field *field = &call->fields[i];
        if (!field->scaling) continue;
        field->value = value;
        found = true;
    }
    call_follow(call);
    return found;
}

/* The bytes of the largest of the tensors whose size depends on such sizes, for each unit of them. */
static int unit_bytes(operator_call *call, uint64_t *out_unit) {
    *out_unit = 1;
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        uint64_t bytes[2];
        if (!call_is_tensor(call->fields[i].description) || !call->fields[i].given) continue;
        for (int value = 1; value <= 2; value++) {
            call_field copy = call->fields[i];
            scale(call, value);
            int code = call_shape(call, &copy);
            if (code != CLI_OK) return code;
            bytes[value - 1] = copy.array.data_size;
        }
        if (bytes[1] - bytes[0] > *out_unit) *out_unit = bytes[1] - bytes[0];
    }
    return CLI_OK;
}

/* The sizes that --set leaves open: what is typical, and as much of those without such a value as makes the largest
 * tensor about size bytes. */
static int choose_sizes(operator_call *call, uint64_t size) {
    uint64_t unit;
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        call_field *field = &call->fields[i];
        if (field->description->role != KILN_FIELD_SIZE || field->given) continue;
        if (!*field->description->shape && call_size_is_unused(call, field)) continue;
        field->given = true;
        field->value = field->description->typical;
        field->follows = field->description->follows != NULL;
        field->scaling = !field->value && !field->follows;
    }
    if (!scale(call, 1)) return CLI_OK;
    int code = unit_bytes(call, &unit);
    scale(call, size < unit ? 1 : (int64_t)(size / unit));
    return code;
}

int call_randomise(operator_call *call, uint64_t size) {
    uint64_t state = 1;
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        call_field *field = &call->fields[i];
        field->given |= call_is_tensor(field->description) && !field->left_out;
    }
    int chosen = choose_sizes(call, size);
    if (chosen != CLI_OK) return chosen;
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        call_field *field = &call->fields[i];
        if (!call_is_tensor(field->description) || !field->given) continue;
        int code = call_shape(call, field);
        if (code != CLI_OK) return code;
        if (field->description->role == KILN_FIELD_OUTPUT) continue;
        field->host = cli_allocate((size_t)field->array.data_size, 1);
        if (field->description->integers)
            fill_integers(call, field, &state);
        else
            fill_random(field->host, field->array.dtype, field->array.data_size, &state);
        /* lengths, indices and seeds, which random numbers are not, are the caller's to give */
        if (field->description->optional && (field->array.dtype == NPY_I32 || field->array.dtype == NPY_I64))
            field->given = false;
    }
    return CLI_OK;
}
