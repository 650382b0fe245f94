/* Loops over the lanes of a mask, for the functions that run instructions. */
#ifndef KILN_TESTS_SIM_PTX_LANES_H
#define KILN_TESTS_SIM_PTX_LANES_H

#include "tests/sim/ptx/warp/ptx_warp.h"

/* The array of 32 at a place of the frame. */
#define PTX_ARRAY(type, place) ((type *)(void *)(warp->frame + (place)))
/* The mask of a predicate. */
#define PTX_MASK(place) (*(uint32_t *)(void *)(warp->frame + (place)))

/* Runs a statement for each lane l of mask. With all lanes the loop has no test, and compilers vectorise it. */
#define PTX_LANES(statement)                                     \
    do {                                                         \
        if (mask == 0xffffffffu) {                               \
            for (int l = 0; l < PTX_WARP; l++) {                 \
                statement;                                       \
            }                                                    \
        } else {                                                 \
            for (uint32_t rest = mask; rest; rest &= rest - 1) { \
                int l = __builtin_ctz(rest);                     \
                statement;                                       \
            }                                                    \
        }                                                        \
    } while (0)

/* Define run functions: the expression has the sources as a, b, c of the given type. */
#define PTX_UNARY(name, type, expression)                               \
    static void name(ptx_warp *warp, const ptx_op *op, uint32_t mask) { \
        type *d = PTX_ARRAY(type, op->d[0]);                            \
        const type *source = PTX_ARRAY(type, op->s[0]);                 \
        PTX_LANES(type a = source[l]; d[l] = (type)(expression));       \
    }
#define PTX_BINARY(name, type, expression)                                                  \
    static void name(ptx_warp *warp, const ptx_op *op, uint32_t mask) {                     \
        type *d = PTX_ARRAY(type, op->d[0]);                                                \
        const type *first = PTX_ARRAY(type, op->s[0]), *second = PTX_ARRAY(type, op->s[1]); \
        PTX_LANES(type a = first[l]; type b = second[l]; d[l] = (type)(expression));        \
    }
#define PTX_TERNARY(name, type, expression)                                                             \
    static void name(ptx_warp *warp, const ptx_op *op, uint32_t mask) {                                 \
        type *d = PTX_ARRAY(type, op->d[0]);                                                            \
        const type *first = PTX_ARRAY(type, op->s[0]), *second = PTX_ARRAY(type, op->s[1]),             \
                   *third = PTX_ARRAY(type, op->s[2]);                                                  \
        PTX_LANES(type a = first[l]; type b = second[l]; type c = third[l]; d[l] = (type)(expression)); \
    }

/* The nearest number of 32 bits: .sat of integers. */
static inline int32_t ptx_saturate(int64_t value) {
    return value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : (int32_t)value;
}

#endif
