/* Where the cosine and sine of a pair's angle come from, and what of a call is aligned. */
#ifndef KILN_KERNELS_COMMON_ROTARY_TURN_SOURCE_H
#define KILN_KERNELS_COMMON_ROTARY_TURN_SOURCE_H

typedef enum kiln_turn_source {
    KILN_TURN_BY_FREQUENCY, /* the position times the pair's frequency: turn.h */
    KILN_TURN_BY_TABLE,     /* a row of a table of the tensor's elements */
    KILN_TURN_BY_TABLE_F32, /* a row of a table of f32 */
    KILN_TURN_BY_NOTHING    /* cosine 1 and sine 0 */
} kiln_turn_source;

/* What of a call is 16-byte aligned, as bits. */
typedef enum kiln_rotate_wide {
    KILN_ROTATE_WIDE_HEADS = 1,  /* heads and their halves */
    KILN_ROTATE_WIDE_TABLES = 2, /* rows of cosines and sines */
    KILN_ROTATE_BY_TABLE = 4     /* rope: both, with pairs of two halves, of which each thread has at most a vector */
} kiln_rotate_wide;

#endif
