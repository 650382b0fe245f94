/* Programmatic dependent launch on sm_90a (PTX ISA, "griddepcontrol"): kernels that may be launched before the
 * preceding kernel has ended. Include this before the kernels' sources: then each KILN_ENTRY starts with
 * kiln_sm90a_early and kiln_sm90a_begin, in every thread. What a kernel prefetches before the wait is said by an
 * overload of kiln_sm90a_early for its arguments, in front of its source. An entry with its own head calls
 * kiln_sm90a_begin itself.
 *
 * KILN_PROGRAMMATIC(kernel), a row like those of kernels/common/tuned.h, states it to the scripts that fire the source.
 * The loader launches no other kernel programmatically. */
#ifndef KILN_KERNELS_ARCH_SM90A_PROGRAMMATIC_H
#define KILN_KERNELS_ARCH_SM90A_PROGRAMMATIC_H

#include "kernels/arch/sm90a.h"
#include "kernels/common/device.h"

#define KILN_PROGRAMMATIC(kernel)

/* Waits until all preceding work has completed and its writes are visible. Before it a kernel may read nothing that
 * another kernel writes, and write nothing. The next kernel starts as this one's blocks end. To let it start earlier,
 * by griddepcontrol.launch_dependents, was slower: with that after the wait in every kernel, a step of the Llama-3-8B
 * shape took 7.77 ms instead of 6.99 at batch 16 on an H100 (driver 580.159.04, 2026-11-26); in front of the wait 9.34;
 * in all kernels but gemm's 7.07; as it is 6.93. At batch 1: 5.91, 6.96, 5.84 and 5.86, and 5.90 without overlap. */
KILN_SM90A void kiln_sm90a_begin(void) {
    kiln_sm90a_depend();
}

/* What a kernel does before it waits. */
template <class args_type> KILN_SM90A void kiln_sm90a_early(const args_type &) {}

/* Prefetches into L2, which is coherent: allowed before kiln_sm90a_begin. `bytes` from `from` on, which may be NULL, by
 * the first block of a grid for all of them; and a box of a tensor. */
KILN_SM90A void kiln_sm90a_prefetch(const void *from, uint64_t bytes) {
    if (!from || kiln_tile() || kiln_block()) return;
    KILN_LOOP
    for (uint64_t at = kiln_thread() * 128u; at < bytes; at += KILN_BLOCK * 128u)
        asm volatile("prefetch.global.L2 [%0];" ::"l"((const char *)from + at) : "memory");
}
KILN_SM90A void kiln_sm90a_prefetch_3d(const void *map, int32_t x, int32_t y, int32_t z) {
    asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global [%0, {%1, %2, %3}];" ::"l"(map), "r"(x), "r"(y), "r"(z)
                 : "memory");
}

#undef KILN_ENTRY_PASTE
#define KILN_ENTRY_PASTE(kernel, part, args_type)                                    \
    __device__ __forceinline__ void kiln_##kernel##_begun(const args_type &args);    \
    KILN_ENTRY_HEAD kiln_##kernel##_##part(const __grid_constant__ args_type args) { \
        kiln_sm90a_early(args);                                                      \
        kiln_sm90a_begin();                                                          \
        kiln_##kernel##_begun(args);                                                 \
    }                                                                                \
    __device__ __forceinline__ void kiln_##kernel##_begun(const args_type &args)

#endif
