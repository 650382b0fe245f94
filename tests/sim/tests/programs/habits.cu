// HIP of which clang makes what no other program here has, for tests/sim/tests/amdgcn/amdgcn_habits_test.c; scripts/sim_programs.sh.
#define KERNEL extern "C" __attribute__((global))
#define SHARED __attribute__((shared)) static
#define THREAD __builtin_amdgcn_workitem_id_x()
typedef unsigned int uint;

__attribute__((device)) inline void meet() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

// The product of all numbers, by a loop of loads and compare-and-swaps in LDS that every wave goes through.
KERNEL void product(const uint *in, uint *out) {
    SHARED uint all;
    if (THREAD == 0) all = 1;
    meet();
    uint old = __hip_atomic_load(&all, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
    while (!__hip_atomic_compare_exchange_weak(&all, &old, old * in[THREAD], __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                               __HIP_MEMORY_SCOPE_WORKGROUP)) {}
    meet();
    if (THREAD == 0) *out = all;
}

typedef short shorts __attribute__((ext_vector_type(4)));

// 1 or 2 as bf16, four at a time: the addend is the upper half of the constant 1.0.
KERNEL void brain(const uint *in, shorts *out) {
    shorts x;
    for (int i = 0; i < 4; i++) x[i] = (short)(0x3f80 + (in[THREAD + i] & 1) * 0x80);
    out[THREAD] = x;
}

// A trap that is not come to unless an argument is zero.
KERNEL void checked(const uint *in, uint *out, uint divisor) {
    if (!divisor) __builtin_trap();
    out[THREAD] = in[THREAD] / divisor;
}

// Made for groups of 64.
KERNEL __attribute__((amdgpu_flat_work_group_size(1, 64))) void bounded(const uint *in, uint *out) { out[THREAD] = in[THREAD]; }

#if defined(__gfx90a__) || defined(__gfx942__)
typedef double doubles __attribute__((ext_vector_type(4)));

// A product of matrices of 16 x 4 and 4 x 16, whose operands die with it.
KERNEL void tile(const double *in, doubles *out) {
    doubles sum = {0.0, 0.0, 0.0, 0.0};
    out[THREAD] = __builtin_amdgcn_mfma_f64_16x16x4f64(in[THREAD], in[THREAD + 64], sum, 0, 0, 0);
}

// A product of matrices of 32 x depth and depth x 32, B transposed behind A, by four waves: while four columns are
// multiplied the next are on their way to the other half of LDS.
KERNEL void stages(const double *in, double *out, uint depth) {
    SHARED double a[2][32][4], b[2][32][4];
    uint lane = THREAD % 64, wave = THREAD / 64, row = wave % 2 * 16, column = wave / 2 * 16, now = 0;
    const double *other = in + 32 * depth;
    doubles sum = {};
    for (uint i = THREAD; i < 128; i += 256) {
        a[0][i / 4][i % 4] = in[i / 4 * depth + i % 4];
        b[0][i / 4][i % 4] = other[i / 4 * depth + i % 4];
    }
    meet();
    for (uint k = 0; k < depth; k += 4) {
        double next_a[1], next_b[1];
        uint count = 0;
        bool more = k + 4 < depth;
        if (more)
            for (uint i = THREAD; i < 128; i += 256, count++) {
                next_a[count] = in[i / 4 * depth + k + 4 + i % 4];
                next_b[count] = other[i / 4 * depth + k + 4 + i % 4];
            }
        sum = __builtin_amdgcn_mfma_f64_16x16x4f64(a[now][row + lane % 16][lane / 16], b[now][column + lane % 16][lane / 16],
                                                   sum, 0, 0, 0);
        if (more) {
            count = 0;
            for (uint i = THREAD; i < 128; i += 256, count++) {
                a[now ^ 1][i / 4][i % 4] = next_a[count];
                b[now ^ 1][i / 4][i % 4] = next_b[count];
            }
            meet();
            now ^= 1;
        }
    }
    for (uint r = 0; r < 4; r++) out[(row + lane / 16 + 4 * r) * 32 + column + lane % 16] = sum[r];
}
#endif
