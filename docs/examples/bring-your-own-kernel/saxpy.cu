// saxpy for NVIDIA GPUs; README.md has the commands.
#include "saxpy_args.h"

extern "C" __global__ void __launch_bounds__(SAXPY_BLOCK) saxpy(saxpy_args args) {
    uint64_t i = (uint64_t)blockIdx.x * SAXPY_BLOCK + threadIdx.x;
    if (i < args.count) args.y[i] = fmaf(args.a, args.x[i], args.y[i]);
}
