// The same three kernels; turn has hidden arguments, mixed spills.
#define KERNEL extern "C" __attribute__((global))

struct arguments {
    const float *x;
    float *y;
    unsigned count;
    unsigned reserved;
};

KERNEL __attribute__((amdgpu_flat_work_group_size(1, 256))) void scale(arguments a) {
    unsigned i = __builtin_amdgcn_workitem_id_x() + 256 * __builtin_amdgcn_workgroup_id_x();
    if (i < a.count) a.y[i] = a.x[i] * 2;
}

KERNEL void turn(float *x, int factor) {
    static __attribute__((shared)) float tile[64];
    unsigned i = __builtin_amdgcn_workitem_id_x();
    tile[i & 63] = x[i];
    __builtin_amdgcn_s_barrier();
    x[i] = tile[(i + 1) & 63] * factor * __builtin_amdgcn_workgroup_size_x();
}

KERNEL __attribute__((amdgpu_num_vgpr(8))) void mixed(float *x, double d, char c, short s) {
    float v[12];
#pragma unroll
    for (int i = 0; i < 12; i++) v[i] = x[i * s + __builtin_amdgcn_workitem_id_x()];
    __builtin_amdgcn_s_barrier();
#pragma unroll
    for (int i = 0; i < 12; i++) x[i + c] = v[i] * v[(i + 5) % 12] + (float)d;
}
