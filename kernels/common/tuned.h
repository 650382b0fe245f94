/* What a tuned source, <op>_<target>.cu or .c, says of itself to the scripts that fire it, each on a line of its own:
 *
 * KILN_TUNED_PARTS(f16 bf16)     the parts it is for; the portable source serves the others
 * KILN_SHAPE(kernel, rows, cols, depth, stage_bytes, rate)
 *                                a kernel's tile of the result, the depth of k that it has in shared memory at a time,
 *                                the dynamic shared memory of one such stage, and the relative work that a
 *                                multiprocessor does with it in the same time: kiln_kernel_info has them
 * KILN_STAGES(kernel, count)     how many stages it has, where the host side does not choose
 * KILN_CLUSTER(kernel, blocks)   the blocks of a cluster, which the kernel itself is compiled for (__cluster_dims__)
 * KILN_TENSOR_MAPS(kernel, offset, box, ...)
 *                                that it takes tensor maps, in the order of the operator's tensors, from that offset of
 *                                its arguments on, and of each the elements that one copy takes, the innermost
 *                                dimension first: 64x128, 64x1x64. On sm_90 an offset is 48 more than a multiple of
 *                                64: kernels/common/tensor_map.h */
#ifndef KILN_KERNELS_COMMON_TUNED_H
#define KILN_KERNELS_COMMON_TUNED_H

#define KILN_TUNED_PARTS(parts)
#define KILN_SHAPE(kernel, rows, cols, depth, stage_bytes, rate)
#define KILN_STAGES(kernel, count)
#define KILN_CLUSTER(kernel, blocks)
#define KILN_TENSOR_MAPS(kernel, offset, ...)

#endif
