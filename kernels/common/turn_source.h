/* Where the cosine and sine of a pair's angle come from. */
#ifndef KILN_KERNELS_COMMON_TURN_SOURCE_H
#define KILN_KERNELS_COMMON_TURN_SOURCE_H

typedef enum kiln_turn_source {
    KILN_TURN_BY_FREQUENCY, /* the position times the pair's frequency: turn.h */
    KILN_TURN_BY_TABLE,     /* a row of a table of the tensor's elements */
    KILN_TURN_BY_TABLE_F32, /* a row of a table of f32 */
    KILN_TURN_BY_NOTHING    /* cosine 1 and sine 0 */
} kiln_turn_source;

#endif
