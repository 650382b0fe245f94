// HIP with kernels of both wave sizes in one object, for tests/sim/tests/amdgcn/amdgcn_launch_test.c; scripts/sim_programs.sh.
#define KERNEL   extern "C" __attribute__((global))
#define LANES_ON (unsigned)__builtin_popcountll(__builtin_amdgcn_read_exec())

KERNEL void waves_32(unsigned *out) { out[__builtin_amdgcn_workitem_id_x()] = LANES_ON; }

KERNEL __attribute__((target("wavefrontsize64"))) void waves_64(unsigned *out) {
    out[__builtin_amdgcn_workitem_id_x()] = LANES_ON;
}
