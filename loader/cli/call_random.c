/* A call without files: sizes and inputs made up, for measuring. */
#include "loader/cli/call.h"

/* Fills with numbers of magnitude 0.125 to 4 in either sign, made of their bits; integers get any bits. */
static void fill_random(void *bytes, npy_dtype dtype, uint64_t size, uint64_t *state) {
    uint32_t *words = bytes;
    for (uint64_t i = 0; i < size / 4; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        uint32_t random = (uint32_t)(*state >> 32), sign = random & 0x80008000u;
        uint32_t high = random >> 16 & 0x7fffu, low = random & 0x7fffu;
        if (dtype == NPY_F32) random = (random & 0x80000000u) + 0x3e000000u + (random & 0x7fffffffu) % 0x02800000u;
        if (dtype == NPY_F16) random = sign + ((0x3000u + high % 0x1400u) << 16) + 0x3000u + low % 0x1400u;
        if (dtype == NPY_BF16) random = sign + ((0x3e00u + high % 0x280u) << 16) + 0x3e00u + low % 0x280u;
        words[i] = random;
    }
}

/* The sizes that --set leaves open: all but the first are 4096, the first makes an element of so many bytes in each of
 * size bytes. */
static void choose_sizes(operator_call *call, uint64_t size) {
    const int64_t inner = 4096;
    call_field *first = NULL;
    int64_t columns = 1;
    npy_dtype dtype = npy_dtype_find(call->function->part);
    uint64_t element = dtype == NPY_DTYPE_COUNT ? 1 : npy_dtype_size(dtype);
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        call_field *field = &call->fields[i];
        if (field->description->role != KILN_FIELD_SIZE) continue;
        if (!first) {
            first = field;
            continue;
        }
        if (!field->given) field->value = inner;
        field->given = true;
        columns = field->value;
    }
    if (!first || first->given) return;
    int64_t rows = (int64_t)(size / element) / (columns > 0 ? columns : 1);
    first->value = rows > 0 ? rows : 1;
    first->given = true;
}

int call_randomise(operator_call *call, uint64_t size) {
    uint64_t state = 1;
    choose_sizes(call, size);
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        call_field *field = &call->fields[i];
        if (!call_is_tensor(field->description)) continue;
        field->given = true;
    }
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        call_field *field = &call->fields[i];
        if (!call_is_tensor(field->description)) continue;
        int code = call_shape(call, field);
        if (code != CLI_OK) return code;
        if (field->description->role == KILN_FIELD_OUTPUT) continue;
        field->host = cli_allocate((size_t)field->array.data_size, 1);
        fill_random(field->host, field->array.dtype, field->array.data_size, &state);
    }
    return CLI_OK;
}
