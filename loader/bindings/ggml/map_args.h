/* map: the one argument of the binding's own kernel, on every backend.
 *
 *     y[i] = a[i] * b[i] + c[i]     with one fused multiply-add in f32
 *
 * over an index i of four dimensions, the first the fastest. b is scale where it is absent, and c is offset. Operands
 * have strides and types of their own, and repeat where they are smaller than the result, as ggml's do. With ids the
 * second index of a, or where scatter says so that of y, is ids[i1, i2, i3]; what lies beyond limit is left out. */
#ifndef GGML_KILN_MAP_ARGS_H
#define GGML_KILN_MAP_ARGS_H

#include "kernels/common/geometry.h"

/* Types that operands are read from: (ggml's name, elements of a block, bytes of a block). The first three can be
 * written. The blocks are ggml's: a scale in f16, with Q4_1 a minimum, then the integers. */
#define GGML_KILN_TYPE_MAP(X) \
    X(F32, 1, 4)              \
    X(F16, 1, 2)              \
    X(BF16, 1, 2)             \
    X(Q4_0, 32, 18)           \
    X(Q4_1, 32, 20)           \
    X(Q8_0, 32, 34)

typedef enum ggml_kiln_type {
#define GGML_KILN_TYPE_ENUM(name, elements, bytes) GGML_KILN_##name,
    GGML_KILN_TYPE_MAP(GGML_KILN_TYPE_ENUM)
#undef GGML_KILN_TYPE_ENUM
        GGML_KILN_TYPE_COUNT
} ggml_kiln_type;

KILN_ARGS_BEGIN
typedef struct ggml_kiln_operand {
    void *data;        /* NULL: absent */
    int64_t stride[4]; /* bytes; the first between blocks, for most types of one element */
    uint32_t size[4];  /* elements, from where on it repeats */
    uint32_t type;     /* ggml_kiln_type */
    uint32_t padding;
} ggml_kiln_operand;

typedef struct ggml_kiln_map_args {
    ggml_kiln_operand y;
    ggml_kiln_operand a;
    ggml_kiln_operand b;
    ggml_kiln_operand c;
    const void *ids; /* NULL: none */
    int64_t ids_stride[3];
    uint32_t ids_size[3];
    uint32_t ids_wide; /* non-zero: of 64 bits, else of 32 */
    uint32_t size[4];  /* of the index */
    uint32_t rows;     /* size[1] * size[2] * size[3] */
    uint32_t lanes_log2;
    uint32_t limit;
    uint32_t scatter;
    float scale;
    float offset;
} ggml_kiln_map_args;
KILN_ARGS_END

enum { GGML_KILN_THREAD_ELEMENTS = 4 }; /* of a row, for each of the threads that share it */

#endif
