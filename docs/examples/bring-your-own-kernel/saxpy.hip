// saxpy for AMD GPUs; README.md has the commands. Built-in names alone, so that it needs clang and no HIP headers.
#include "saxpy_args.h"

extern "C" __attribute__((global, amdgpu_flat_work_group_size(SAXPY_BLOCK, SAXPY_BLOCK))) void saxpy(saxpy_args args) {
    uint64_t i = (uint64_t)__builtin_amdgcn_workgroup_id_x() * SAXPY_BLOCK + __builtin_amdgcn_workitem_id_x();
    if (i < args.count) args.y[i] = __builtin_fmaf(args.a, args.x[i], args.y[i]);
}
