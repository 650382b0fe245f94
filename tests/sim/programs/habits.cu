// HIP of which clang makes what no other program here has, for tests/sim/amdgcn_habits_test.c; scripts/sim_programs.sh.
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

#if defined(__gfx90a__) || defined(__gfx942__)
typedef double doubles __attribute__((ext_vector_type(4)));

// A product of matrices of 16 x 4 and 4 x 16, whose operands die with it.
KERNEL void tile(const double *in, doubles *out) {
    doubles sum = {0.0, 0.0, 0.0, 0.0};
    out[THREAD] = __builtin_amdgcn_mfma_f64_16x16x4f64(in[THREAD], in[THREAD + 64], sum, 0, 0, 0);
}
#endif
