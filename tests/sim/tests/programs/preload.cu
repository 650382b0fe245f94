// HIP with its first arguments preloaded into registers, for tests/sim/tests/amdgcn/amdgcn_launch_test.c; scripts/sim_programs.sh.
extern "C" __attribute__((global)) void preloaded(unsigned *out, const unsigned *in, unsigned n, unsigned add) {
    unsigned i = __builtin_amdgcn_workitem_id_x();
    if (i < n) out[i] = in[i] + add;
}
