/* What CPU kernels use. An <op>_cpu.c is compiled once for each level of loader/targets.def, with
 * -DKILN_CPU_LEVEL=x86_64_v3 and the level's compiler flags; its loops are plain C that the compiler vectorises.
 *
 * KILN_CPU_KERNEL(kernel) defines kiln__cpu_<kernel>_<dtype>_<level> for each dtype, over
 *
 *     KILN_OUTLINED void kernel(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype)
 *
 * which gets the dtype as it runs: tiles are converted a call at a time, and the loops over them are the same for all.
 * With KILN_INLINE in its place it is compiled for each dtype, which is then a constant in it: for products, attention
 * and the few others that are faster so. Its loops go over tiles: kiln_tile_load or kiln_tile_read gives a tile's
 * elements as f32, kiln_tile_target says where to put the results, and kiln_tile_write stores them in the tensor.
 *
 * Stack frames stay under 4 KB, since a caller's thread may have a small stack: larger arrays lie in span->scratch.
 *
 * Results depend neither on the span nor on the number of threads: a block is computed the same way everywhere. */
#ifndef KILN_KERNELS_COMMON_CPU_H
#define KILN_KERNELS_COMMON_CPU_H

#include "kernels/common/geometry.h"
#include <kiln/kiln.h>
#include <stdbool.h>
#include <string.h>

/* Not immintrin.h, which takes a compiler longer to read than most of the files that include this take without it. */
#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define KILN_INLINE static inline __attribute__((always_inline))

/* A function of which there is one copy for all dtypes, where a call is nothing beside what it computes: those that
 * depend on the dtype get it at run time. Copies for each dtype took twice the time to compile. */
#if defined(__clang__)
#define KILN_OUTLINED static __attribute__((noinline, unused))
#else
#define KILN_OUTLINED static __attribute__((noinline, noclone, unused))
#endif

#if defined(__FMA__) || defined(__aarch64__)
#define KILN_FMA(a, b, c) __builtin_fmaf(a, b, c)
#else
#define KILN_FMA(a, b, c) ((a) * (b) + (c))
#endif

/* Stands before a loop whose iterations do not depend on each other even if its pointers are equal. */
#if defined(__clang__)
#define KILN_UNROLL      _Pragma("unroll")
#define KILN_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
/* Sanitizers, low levels and low optimisation leave some of these loops scalar: slower, but as correct. */
#pragma clang diagnostic ignored "-Wpass-failed"
#else
#define KILN_UNROLL      _Pragma("GCC unroll 16")
#define KILN_INDEPENDENT _Pragma("GCC ivdep")
#endif

#include "kernels/common/math/math.h"

/* a * b + c with one rounding on every level. Without such an instruction, the product is exact in f64, and the sum is
 * rounded to odd there (its last bit is set if it is inexact), so that rounding again to f32 gives the correct result.
 */
KILN_INLINE float kiln_fused(float a, float b, float c) {
#if defined(__FMA__) || defined(__aarch64__)
    return __builtin_fmaf(a, b, c);
#else
    double product = (double)a * (double)b, sum = product + (double)c;
    double back = sum - product;
    double error = (product - (sum - back)) + ((double)c - back);
    int64_t bits, error_bits;
    memcpy(&bits, &sum, sizeof bits);
    memcpy(&error_bits, &error, sizeof error_bits);
    int64_t towards = error_bits >> 63 == bits >> 63 ? 1 : -1;
    bits += error != 0.0 && !(bits & 1) && error == error ? towards : 0;
    memcpy(&sum, &bits, sizeof sum);
    return (float)sum;
#endif
}

typedef enum kiln_cpu_dtype { KILN_CPU_f32, KILN_CPU_f16, KILN_CPU_bf16 } kiln_cpu_dtype;

#define KILN_CPU_NAME_PASTE(kernel, dtype, level) kiln__cpu_##kernel##_##dtype##_##level
#define KILN_CPU_NAME(kernel, dtype, level)       KILN_CPU_NAME_PASTE(kernel, dtype, level)
#define KILN_CPU_FUNCTION(kernel, dtype)                                                                  \
    extern kiln_cpu_function_type KILN_CPU_NAME(kernel, dtype, KILN_CPU_LEVEL);                           \
    void KILN_CPU_NAME(kernel, dtype, KILN_CPU_LEVEL)(const void *arguments, const kiln_cpu_span *span) { \
        kernel(arguments, span, KILN_CPU_##dtype);                                                        \
    }
#define KILN_CPU_KERNEL(kernel)    \
    KILN_CPU_FUNCTION(kernel, f32) \
    KILN_CPU_FUNCTION(kernel, f16) \
    KILN_CPU_FUNCTION(kernel, bf16)

typedef void kiln_cpu_function_type(const void *arguments, const kiln_cpu_span *span);

/* The name of a function that all kernels of a level call: kernels/common/<noun>_cpu.c is compiled once for each level.
 */
#define KILN_CPU_COMMON_PASTE(name, level) kiln__cpu_##name##_##level
#define KILN_CPU_COMMON_OF(name, level)    KILN_CPU_COMMON_PASTE(name, level)
#define KILN_CPU_COMMON(name)              KILN_CPU_COMMON_OF(name, KILN_CPU_LEVEL)

/* A tile is the set of elements that is computed at a time, in the first-level cache. In an elementwise operator a tile
 * has KILN_TILE_BYTES: so few that while one is being computed the processor, out of order, still writes the previous
 * one and already reads the next one. */
enum {
    KILN_TILE = 256,                  /* elements at most */
    KILN_TILE_BYTES = 512,            /* of a tensor */
    KILN_NONTEMPORAL_BYTES = 8 << 20, /* results of this size are stored non-temporally */
    KILN_PREFETCH_BYTES = 4096,       /* how far ahead tiles are prefetched */
    KILN_LANES = 32                   /* accumulators of a reduction; the same on every level */
};

KILN_INLINE size_t kiln_dtype_size(kiln_cpu_dtype dtype) {
    return dtype == KILN_CPU_f32 ? 4 : 2;
}

KILN_INLINE uint64_t kiln_min(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* The address of an element. */
KILN_INLINE const void *kiln_at(const void *base, uint64_t index, kiln_cpu_dtype dtype) {
    return (const char *)base + index * kiln_dtype_size(dtype);
}
KILN_INLINE void *kiln_at_mut(void *base, uint64_t index, kiln_cpu_dtype dtype) {
    return (char *)base + index * kiln_dtype_size(dtype);
}

#if defined(__F16C__)
#if defined(__AVX512F__)
enum { KILN_F16_VECTOR = 16 };
#else
enum { KILN_F16_VECTOR = 8 };
#endif
typedef float kiln_f32_vector __attribute__((vector_size(4 * KILN_F16_VECTOR)));
typedef uint16_t kiln_f16_vector __attribute__((vector_size(2 * KILN_F16_VECTOR)));

KILN_INLINE void kiln_f16_load_vector(float *tile, const uint16_t *source) {
    kiln_f16_vector halves;
    kiln_f32_vector values;
    memcpy(&halves, source, sizeof halves);
    __asm__("vcvtph2ps %1, %0" : "=v"(values) : "v"(halves));
    memcpy(tile, &values, sizeof values);
}

KILN_INLINE void kiln_f16_store_vector(uint16_t *target, const float *tile) {
    kiln_f16_vector halves;
    kiln_f32_vector values;
    memcpy(&values, tile, sizeof values);
    __asm__("vcvtps2ph $0, %1, %0" : "=v"(halves) : "v"(values)); /* 0: to the nearest, ties to even */
    memcpy(target, &halves, sizeof halves);
}
#endif

KILN_INLINE void kiln_f16_load(float *tile, const uint16_t *source, size_t count) {
    size_t i = 0;
#if defined(__F16C__)
    for (; i + KILN_F16_VECTOR <= count; i += KILN_F16_VECTOR)
        kiln_f16_load_vector(tile + i, source + i);
#elif defined(__aarch64__)
    for (; i + 4 <= count; i += 4)
        vst1q_f32(tile + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(source + i))));
#endif
    for (; i < count; i++)
        tile[i] = kiln_f16_to_f32_soft(source[i]);
}

KILN_INLINE void kiln_f16_store(uint16_t *target, const float *tile, size_t count) {
    size_t i = 0;
#if defined(__F16C__)
    for (; i + KILN_F16_VECTOR <= count; i += KILN_F16_VECTOR)
        kiln_f16_store_vector(target + i, tile + i);
#elif defined(__aarch64__)
    for (; i + 4 <= count; i += 4)
        vst1_u16(target + i, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(tile + i))));
#endif
    for (; i < count; i++)
        target[i] = kiln_f32_to_f16_soft(tile[i]);
}

/* count elements of f16 or bf16 as f32. */
KILN_INLINE void kiln_halves_load(float *tile, const void *source, size_t count, kiln_cpu_dtype dtype) {
    if (dtype == KILN_CPU_f16) {
        kiln_f16_load(tile, source, count);
    } else {
        for (size_t i = 0; i < count; i++)
            tile[i] = kiln_bf16_to_f32(((const uint16_t *)source)[i]);
    }
}

/* The same for a tile. */
#define kiln_tile_convert KILN_CPU_COMMON(tile_convert)
void kiln_tile_convert(float *tile, const void *source, size_t count, kiln_cpu_dtype dtype);

/* An element as f32. */
KILN_INLINE float kiln_element_load(const void *source, kiln_cpu_dtype dtype) {
    float value;
    if (dtype == KILN_CPU_f32)
        memcpy(&value, source, sizeof value);
    else
        kiln_halves_load(&value, source, 1, dtype);
    return value;
}

/* count elements as f32, at most KILN_TILE: those of the tensor itself, or converted into tile. */
KILN_INLINE const float *kiln_tile_load(float *tile, const void *source, size_t count, kiln_cpu_dtype dtype) {
    if (dtype == KILN_CPU_f32) return source;
    kiln_tile_convert(tile, source, count, dtype);
    return tile;
}

/* Prefetches what lies `ahead` bytes from source, into the second-level cache: the first-level cache can have too few
 * requests open at a time to share them with stores. An address beyond the tensor does no harm. */
KILN_INLINE void kiln_prefetch(const void *source, size_t size, size_t ahead) {
    for (size_t i = 0; i < size; i += 64)
        __builtin_prefetch((const char *)source + ahead + i, 0, 2);
}

/* The same for a tensor that is read once, from front to back: prefetches what a later tile will read, so that it
 * arrives while this one is being computed. An address beyond the tensor does no harm. */
KILN_INLINE const float *kiln_tile_read(float *tile, const void *source, size_t count, kiln_cpu_dtype dtype) {
    for (size_t i = 0; i < count * kiln_dtype_size(dtype); i += 64)
        __builtin_prefetch((const char *)source + KILN_PREFETCH_BYTES + i);
    return kiln_tile_load(tile, source, count, dtype);
}

/* Large results, which would not stay in the caches, are stored non-temporally: a store that goes through the caches
 * first reads the line that it overwrites. */
KILN_INLINE bool kiln_is_nontemporal(const kiln_shape *shape, kiln_cpu_dtype dtype) {
    return (uint64_t)shape->rows * (uint64_t)shape->cols * kiln_dtype_size(dtype) >= KILN_NONTEMPORAL_BYTES;
}

/* memcpy of a tile, with non-temporal stores. If a tile starts inside a cache line, the previous tile has written the
 * rest of the line: as vectors of 16 bytes, both are combined on the way to memory, and if these are not aligned
 * either, the line goes through the caches. Needs kiln_nontemporal_fence at the end. */
#define kiln_nontemporal_copy KILN_CPU_COMMON(nontemporal_copy)
void kiln_nontemporal_copy(void *target, const void *source, size_t size);

/* Orders non-temporal stores before whatever tells other threads that the work is done. */
KILN_INLINE void kiln_nontemporal_fence(void) {
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

/* memcpy of bytes that are read once. nontemporal: the stores are, and kiln_nontemporal_fence is needed at the end. */
KILN_INLINE void kiln_row_copy(void *target, const void *source, size_t size, bool nontemporal) {
    if (!nontemporal) {
        memcpy(target, source, size);
        return;
    }
    for (size_t i = 0; i < size; i += KILN_TILE_BYTES) {
        size_t count = kiln_min(size - i, KILN_TILE_BYTES);
        kiln_prefetch((const char *)source + i, count, KILN_PREFETCH_BYTES);
        kiln_nontemporal_copy((char *)target + i, (const char *)source + i, count);
    }
}

/* Where to compute a result: in the tensor itself, or in tile, which kiln_tile_write then converts or copies. */
KILN_INLINE float *kiln_tile_target(float *tile, void *target, kiln_cpu_dtype dtype, bool nontemporal) {
    return dtype == KILN_CPU_f32 && !nontemporal ? target : tile;
}

/* kiln_tile_write for f16 and bf16. */
#define kiln_halves_write KILN_CPU_COMMON(halves_write)
void kiln_halves_write(void *target, const float *tile, size_t count, kiln_cpu_dtype dtype, bool nontemporal);

KILN_INLINE void kiln_tile_write(void *target, const float *tile, size_t count, kiln_cpu_dtype dtype,
                                 bool nontemporal) {
    if (dtype != KILN_CPU_f32)
        kiln_halves_write(target, tile, count, dtype, nontemporal);
    else if (nontemporal)
        kiln_nontemporal_copy(target, tile, count * sizeof *tile);
}

/* A block's share of an operator's rows: empty if the block is beyond the last row. */
typedef struct kiln_cpu_work {
    uint64_t tile;
    uint64_t row, row_end;
    uint64_t col, col_end;
} kiln_cpu_work;

KILN_INLINE kiln_cpu_work kiln_work_of(const kiln_shape *shape, const kiln_cpu_span *span, uint64_t block) {
    uint64_t tile = block % span->grid[0], rows = KILN_BLOCK >> shape->lanes_log2;
    uint64_t row = block / span->grid[0] * rows, col = tile * shape->tile;
    uint64_t row_end = row + rows, col_end = col + shape->tile;
    kiln_cpu_work work = {tile, row, row_end < (uint64_t)shape->rows ? row_end : (uint64_t)shape->rows, col,
                          col_end < (uint64_t)shape->cols ? col_end : (uint64_t)shape->cols};
    return work;
}

/* The loop over a span's tiles: count elements of work.row from col on. */
#define KILN_FOR_TILES(shape, span, dtype, work, col, count)                                                   \
    for (uint64_t block = (span)->begin; block < (span)->end; block++)                                         \
        for (kiln_cpu_work work = kiln_work_of(shape, span, block); (work).row < (work).row_end; (work).row++) \
            for (uint64_t col = (work).col, most = KILN_TILE_BYTES / kiln_dtype_size(dtype),                   \
                          count = kiln_min((work).col_end - col, most);                                        \
                 count; col += count, count = kiln_min((work).col_end - col, most))

#endif
