/* saxpy on the CPU: the blocks of a span, one after the other. */
#include "saxpy_args.h"
#include <kiln/kiln.h>
#include <math.h>

void saxpy_cpu(const void *arguments, const kiln_cpu_span *span);

void saxpy_cpu(const void *arguments, const kiln_cpu_span *span) {
    const saxpy_args *args = arguments;
    uint64_t end = span->end * SAXPY_BLOCK < args->count ? span->end * SAXPY_BLOCK : args->count;
    for (uint64_t i = span->begin * SAXPY_BLOCK; i < end; i++)
        args->y[i] = fmaf(args->a, args->x[i], args->y[i]);
}
