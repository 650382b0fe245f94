/* The host side of map: operands from tensors, dimensions put together, and the launch. */
#include "loader/bindings/ggml/backend.h"
#include <string.h>

static const struct {
    enum ggml_type type;
    uint32_t elements, bytes;
} types[GGML_KILN_TYPE_COUNT] = {
#define TYPE(name, elements, bytes) {GGML_TYPE_##name, elements, bytes},
    GGML_KILN_TYPE_MAP(TYPE)
#undef TYPE
};

ggml_kiln_type ggml_kiln_type_of(enum ggml_type type) {
    unsigned number = 0;
    while (number < GGML_KILN_TYPE_COUNT && types[number].type != type)
        number++;
    return (ggml_kiln_type)number;
}

bool ggml_kiln_is_read(enum ggml_type type) {
    return ggml_kiln_type_of(type) != GGML_KILN_TYPE_COUNT;
}

bool ggml_kiln_is_written(enum ggml_type type) {
    return ggml_kiln_type_of(type) <= GGML_KILN_BF16;
}

bool ggml_kiln_is_operand(const struct ggml_tensor *t) {
    if (!ggml_kiln_is_read(t->type) || t->ne[0] > INT32_MAX || ggml_nrows(t) > INT32_MAX) return false;
    size_t alignment = t->type == GGML_TYPE_F32 ? 4 : 2;
    if (!ggml_kiln_is_written(t->type) && t->nb[0] != ggml_type_size(t->type)) return false;
    for (int i = 0; i < GGML_MAX_DIMS; i++)
        if (t->nb[i] % alignment) return false;
    return true;
}

ggml_kiln_operand ggml_kiln_operand_of(const struct ggml_tensor *t) {
    ggml_kiln_operand operand = {.data = t->data, .type = ggml_kiln_type_of(t->type)};
    for (int i = 0; i < GGML_MAX_DIMS; i++) {
        operand.stride[i] = (int64_t)t->nb[i];
        operand.size[i] = (uint32_t)t->ne[i];
    }
    return operand;
}

ggml_kiln_operand ggml_kiln_packed(void *data, ggml_kiln_type type, const struct ggml_tensor *t) {
    ggml_kiln_operand operand = {.data = data, .type = type, .stride[0] = types[type].bytes};
    for (int i = 0; i < GGML_MAX_DIMS; i++) {
        operand.size[i] = (uint32_t)t->ne[i];
        if (i) operand.stride[i] = operand.stride[i - 1] * t->ne[i - 1];
    }
    return operand;
}

size_t ggml_kiln_place(size_t *size, const struct ggml_tensor *t, ggml_kiln_type type, bool in_place) {
    const size_t alignment = 256, at = *size;
    if (in_place) return GGML_KILN_IN_PLACE;
    *size += ((size_t)ggml_nelements(t) * types[type].bytes + alignment - 1) & ~(alignment - 1);
    return at;
}

ggml_kiln_operand ggml_kiln_permuted(ggml_kiln_operand operand, int one, int other) {
    ggml_kiln_operand result = operand;
    result.size[one] = operand.size[other];
    result.size[other] = operand.size[one];
    result.stride[one] = operand.stride[other];
    result.stride[other] = operand.stride[one];
    return result;
}

/* Whether dimension i + 1 of an operand goes on where dimension i ends, is none, or has with it one element for all. */
static bool goes_on(const ggml_kiln_operand *o, const uint32_t size[4], int i) {
    if (!o->data) return true;
    if (o->size[i + 1] == 1 && (o->size[i] == 1 || size[i + 1] == 1)) return true;
    int64_t blocks = i == 0 ? o->size[0] / types[o->type].elements : o->size[i];
    return o->size[i] == size[i] && o->size[i + 1] == size[i + 1] && o->stride[i + 1] == o->stride[i] * blocks;
}

static void join(ggml_kiln_operand *o, int i) {
    o->size[i] *= o->size[i + 1];
    for (int j = i + 1; j < 3; j++) {
        o->size[j] = o->size[j + 1];
        o->stride[j] = o->stride[j + 1];
    }
    o->stride[3] = o->stride[2] * o->size[2];
    o->size[3] = 1;
}

/* Makes rows as long as the operands allow: tensors that are contiguous throughout become one row. */
static void join_dimensions(ggml_kiln_map_args *args) {
    ggml_kiln_operand *operands[] = {&args->y, &args->a, &args->b, &args->c};
    for (int i = 0, joined = 0; i < 3 && joined < 3;) {
        bool can = (uint64_t)args->size[i] * args->size[i + 1] <= INT32_MAX;
        for (int o = 0; o < 4; o++)
            can = can && goes_on(operands[o], args->size, i);
        if (!can) {
            i++;
            continue;
        }
        for (int o = 0; o < 4; o++)
            join(operands[o], i);
        args->size[i] *= args->size[i + 1];
        for (int j = i + 1; j < 3; j++)
            args->size[j] = args->size[j + 1];
        args->size[3] = 1;
        joined++;
    }
}

/* What stands for an absent operand; its address is computed, and not read. */
static void complete(ggml_kiln_operand *o) {
    if (o->data) return;
    for (int i = 0; i < 4; i++)
        o->size[i] = 1;
}

kiln_status ggml_kiln_map(ggml_kiln_backend *backend, ggml_kiln_map_args *args) {
    complete(&args->b);
    complete(&args->c);
    if (!args->ids) {
        memcpy(args->size, args->y.size, sizeof args->size);
        join_dimensions(args);
    }
    args->rows = args->size[1] * args->size[2] * args->size[3];
    if (!args->size[0] || !args->rows) return KILN_OK;
    while (args->lanes_log2 < KILN_BLOCK_LOG2 &&
           (uint64_t)GGML_KILN_THREAD_ELEMENTS << args->lanes_log2 < args->size[0])
        args->lanes_log2++;
    uint32_t tile = GGML_KILN_THREAD_ELEMENTS << args->lanes_log2, rows = KILN_BLOCK >> args->lanes_log2;
    uint32_t tiles = (uint32_t)(((uint64_t)args->size[0] + tile - 1) / tile);
    uint32_t blocks = (uint32_t)(((uint64_t)args->rows + rows - 1) / rows);
    kiln_launch_config config = {
        .grid = {tiles, blocks < KILN_GRID_BLOCKS ? blocks : KILN_GRID_BLOCKS,
                 (blocks + KILN_GRID_BLOCKS - 1) >> KILN_GRID_BLOCKS_LOG2},
        .block = {KILN_BLOCK},
    };
    return kiln_launch(&backend->stream, backend->device->map, &config, args, sizeof *args);
}

kiln_status ggml_kiln_copy(ggml_kiln_backend *backend, ggml_kiln_operand y, ggml_kiln_operand x) {
    return ggml_kiln_map(backend, &(ggml_kiln_map_args){.y = y, .a = x, .scale = 1, .offset = -0.0F});
}
