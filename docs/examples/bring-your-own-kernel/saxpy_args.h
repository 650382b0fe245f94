/* The one argument of the kernel, for the host and every device compiler: natural alignment, padding written out. */
#ifndef SAXPY_ARGS_H
#define SAXPY_ARGS_H

#include <stdint.h>

typedef struct saxpy_args {
    float *y;       /* y = a * x + y */
    const float *x; /* may not overlap y */
    uint64_t count;
    float a;
    uint32_t reserved;
} saxpy_args;

enum { SAXPY_BLOCK = 256 }; /* threads of a block; each computes one element */

#endif
