/* Where the elements of map's operands lie, and what those of ggml's types are. The includer (device.h, cpu.h) defines
 * KILN_INLINE, and ggml_kiln_half, which reads an f16. */
#ifndef GGML_KILN_MAP_INDEX_H
#define GGML_KILN_MAP_INDEX_H

#include "loader/bindings/ggml/map_args.h"

/* A row of the index, and what ids say of it. */
typedef struct ggml_kiln_row {
    uint32_t index[3];
    uint32_t named; /* ids' row, or index[0] */
    uint32_t absent;
} ggml_kiln_row;

KILN_INLINE uint32_t ggml_kiln_repeat(uint32_t index, uint32_t size) {
    return index < size ? index : index % size;
}

KILN_INLINE ggml_kiln_row ggml_kiln_row_of(const ggml_kiln_map_args *args, uint32_t row) {
    ggml_kiln_row r;
    uint32_t upper = row / args->size[1];
    r.index[0] = row - upper * args->size[1];
    r.index[2] = upper / args->size[2];
    r.index[1] = upper - r.index[2] * args->size[2];
    r.named = r.index[0];
    r.absent = 0;
    if (args->ids) {
        const char *id = (const char *)args->ids;
        for (int i = 0; i < 3; i++)
            id += ggml_kiln_repeat(r.index[i], args->ids_size[i]) * args->ids_stride[i];
        uint64_t named = args->ids_wide ? *(const uint64_t *)(const void *)id : *(const uint32_t *)(const void *)id;
        r.named = (uint32_t)named;
        r.absent = named >= args->limit;
    }
    return r;
}

/* The address of an operand's row. */
KILN_INLINE char *ggml_kiln_at(const ggml_kiln_operand *o, uint32_t i1, const ggml_kiln_row *r) {
    return (char *)o->data + ggml_kiln_repeat(i1, o->size[1]) * o->stride[1] +
           ggml_kiln_repeat(r->index[1], o->size[2]) * o->stride[2] +
           ggml_kiln_repeat(r->index[2], o->size[3]) * o->stride[3];
}

/* Element number i of a row, as f32. */
KILN_INLINE float ggml_kiln_read(const ggml_kiln_operand *o, const char *row, uint32_t i) {
    i = ggml_kiln_repeat(i, o->size[0]);
    if (o->type <= GGML_KILN_BF16) {
        const char *element = row + i * o->stride[0];
        if (o->type == GGML_KILN_F32) return kiln_float(*(const uint32_t *)(const void *)element);
        uint16_t half = *(const uint16_t *)(const void *)element;
        return o->type == GGML_KILN_F16 ? ggml_kiln_half(half) : kiln_bf16_to_f32(half);
    }
    const char *block = row + (i >> 5) * o->stride[0];
    float scale = ggml_kiln_half(*(const uint16_t *)(const void *)block);
    i &= 31;
    if (o->type == GGML_KILN_Q8_0) return (float)((const int8_t *)block)[2 + i] * scale;
    const uint8_t *codes = (const uint8_t *)block + (o->type == GGML_KILN_Q4_0 ? 2 : 4);
    uint32_t code = codes[i & 15] >> (i >> 4) * 4 & 15;
    if (o->type == GGML_KILN_Q4_0) return (float)((int32_t)code - 8) * scale;
    return (float)code * scale + ggml_kiln_half(((const uint16_t *)(const void *)block)[1]);
}

#endif
