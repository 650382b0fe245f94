/* What device kernels are written with, for both vendors: the one place that tells them apart.
 *
 * KILN_ENTRY(kernel, args_type)    head of an entry point kiln_<kernel>_<part> with one argument struct, args
 * KILN_INLINE                      a device function, always inlined
 * KILN_FMA(a, b, c)                fused multiply-add
 * KILN_UNROLL, KILN_LOOP           before a loop: unrolled whole, or kept as it is, for the size of the image
 * KILN_SHARED                      a static array in shared memory
 * KILN_DYNAMIC_SHARED(type, name)  the launch's dynamic shared memory
 * kiln_thread()                    of the block
 * kiln_tile(), kiln_block()        of the grid: geometry.h
 * kiln_barrier()                   of the block, with its memory
 * kiln_shuffle_xor(value, mask)    the value of thread ^ mask, mask < KILN_SUBGROUP; all threads take part
 * kiln_f16_to_f32, kiln_f32_to_f16 in hardware
 *
 * Nothing here reads the grid's size or the block's: on AMD that would add hidden arguments. */
#ifndef KILN_KERNELS_COMMON_DEVICE_H
#define KILN_KERNELS_COMMON_DEVICE_H

#include "kernels/common/geometry.h"

#define KILN_UNROLL _Pragma("unroll")
#define KILN_LOOP   _Pragma("unroll 1")

#if defined(__CUDACC__)

#include "kernels/arch/ptx.h"

#define KILN_INLINE                     static __device__ __forceinline__
#define KILN_ENTRY_HEAD                 extern "C" __global__ __launch_bounds__(KILN_BLOCK) void
#define KILN_FMA(a, b, c)               __fmaf_rn(a, b, c)
#define KILN_SHARED                     __shared__
#define KILN_DYNAMIC_SHARED(type, name) extern __shared__ type name[]

KILN_INLINE uint32_t kiln_thread(void) {
    return threadIdx.x;
}
KILN_INLINE uint32_t kiln_tile(void) {
    return blockIdx.x;
}
KILN_INLINE uint64_t kiln_block(void) {
    return (uint64_t)blockIdx.z << KILN_GRID_BLOCKS_LOG2 | blockIdx.y;
}
KILN_INLINE void kiln_barrier(void) {
    __syncthreads();
}
KILN_INLINE float kiln_shuffle_xor(float value, uint32_t mask) {
    return __shfl_xor_sync(0xffffffffu, value, (int)mask);
}
KILN_INLINE float kiln_f16_to_f32(uint16_t half) {
    return kiln_ptx_cvt_f32_f16(half);
}
KILN_INLINE uint16_t kiln_f32_to_f16(float value) {
    return kiln_ptx_cvt_rn_f16_f32(value);
}

#elif defined(__HIP__)

#define KILN_INLINE                     static __attribute__((device, always_inline)) inline
#define KILN_ENTRY_HEAD                 extern "C" __attribute__((global, amdgpu_flat_work_group_size(KILN_BLOCK, KILN_BLOCK))) void
#define KILN_FMA(a, b, c)               __builtin_fmaf(a, b, c)
#define KILN_SHARED                     __attribute__((shared))
#define KILN_DYNAMIC_SHARED(type, name) extern __attribute__((shared)) type name[]

KILN_INLINE uint32_t kiln_thread(void) {
    return __builtin_amdgcn_workitem_id_x();
}
KILN_INLINE uint32_t kiln_tile(void) {
    return __builtin_amdgcn_workgroup_id_x();
}
KILN_INLINE uint64_t kiln_block(void) {
    return (uint64_t)__builtin_amdgcn_workgroup_id_z() << KILN_GRID_BLOCKS_LOG2 | __builtin_amdgcn_workgroup_id_y();
}
KILN_INLINE void kiln_barrier(void) {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
KILN_INLINE float kiln_shuffle_xor(float value, uint32_t mask) {
    uint32_t lane = kiln_thread() & (__builtin_amdgcn_wavefrontsize() - 1);
    return __builtin_bit_cast(float,
                              __builtin_amdgcn_ds_bpermute((int)((lane ^ mask) * 4), __builtin_bit_cast(int, value)));
}
KILN_INLINE float kiln_f16_to_f32(uint16_t half) {
    return (float)__builtin_bit_cast(_Float16, half);
}
KILN_INLINE uint16_t kiln_f32_to_f16(float value) {
    return __builtin_bit_cast(uint16_t, (_Float16)value);
}

#endif

#include "kernels/common/element.h"

#define KILN_ENTRY_PASTE(kernel, part, args_type)   KILN_ENTRY_HEAD kiln_##kernel##_##part(const args_type args)
#define KILN_ENTRY_OF_PART(kernel, part, args_type) KILN_ENTRY_PASTE(kernel, part, args_type)
#define KILN_ENTRY(kernel, args_type)               KILN_ENTRY_OF_PART(kernel, KILN_PART, args_type)

#endif
