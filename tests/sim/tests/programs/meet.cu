// HIP kernels that need each other, for tests/sim/tests/rocm/rocm_execute_test.c; scripts/sim_programs.sh. One thread waits until
// the flag is raised, or raises it.
struct arguments {
    unsigned *flag, *out;
    unsigned raises, padding;
};

extern "C" __attribute__((global)) void meet(const arguments args) {
    if (args.raises) {
        __hip_atomic_store(args.flag, args.raises, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
    } else {
        unsigned raised = 0;
        while (!raised) raised = __hip_atomic_load(args.flag, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM);
        *args.out = raised;
    }
}
