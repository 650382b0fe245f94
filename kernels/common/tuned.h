/* What a tuned source, <op>_<target>.cu or .c, says of itself to the scripts that fire it, each on a line of its own:
 *
 * KILN_TUNED_PARTS(f16 bf16)     the parts it is for; the portable source serves the others
 * KILN_SHAPE(kernel, rows, cols, depth, stage_bytes, rate)
 *                                a kernel's tile of the result, the depth of k that it has in shared memory at a time,
 *                                the dynamic shared memory of one such stage, and the relative work that a
 *                                multiprocessor does with it in the same time: kiln_kernel_info has them */
#ifndef KILN_KERNELS_COMMON_TUNED_H
#define KILN_KERNELS_COMMON_TUNED_H

#define KILN_TUNED_PARTS(parts)
#define KILN_SHAPE(kernel, rows, cols, depth, stage_bytes, rate)

#endif
