// Kernels at the limits of what the ROCm backend takes, and beyond: whole takes 512 bytes of arguments, wide one more,
// bare none, recursive a stack whose size only the run knows.
#define KERNEL extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, 64)))

struct whole_arguments {
    unsigned words[128];
};

struct wide_arguments {
    unsigned char bytes[513];
};

KERNEL void whole(whole_arguments a) {
    unsigned *out = *(unsigned **)a.words;
    out[__builtin_amdgcn_workitem_id_x()] = a.words[127];
}

KERNEL void wide(wide_arguments a) {
    unsigned char *out = *(unsigned char **)a.bytes;
    out[__builtin_amdgcn_workitem_id_x()] = a.bytes[512];
}

KERNEL void bare() {
}

static __attribute__((device, noinline)) unsigned ackermann(unsigned m, unsigned n) {
    if (!m) return n + 1;
    return ackermann(m - 1, n ? ackermann(m, n - 1) : 1);
}

KERNEL void recursive(unsigned *out, unsigned m) {
    out[__builtin_amdgcn_workitem_id_x()] = ackermann(m, out[0]);
}
