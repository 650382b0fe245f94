/* Sequences whose tokens follow one another, as a member of an operator's arguments: varlen.h finds them. */
#ifndef KILN_KERNELS_COMMON_VARLEN_ARGS_H
#define KILN_KERNELS_COMMON_VARLEN_ARGS_H

#include "kernels/common/args.h"

KILN_ARGS_BEGIN
typedef struct kiln_varlen {
    const int32_t *cu_seqlens; /* [batch + 1]: where each begins, and the end of the last; NULL: all have seqlen */
    uint32_t batch;
    uint32_t seqlen;
} kiln_varlen;
KILN_ARGS_END

#endif
