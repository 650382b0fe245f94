/* kv_store on the CPU: the operator's definition. kv_store_gpu.c says what its blocks do.
 *
 * Floor: one read and one write of both tensors at memory bandwidth, of a byte per element where they become codes.
 * Test: build/tests/ops/kv_store_test. Bench: build/kiln bench kv_store --device cpu */
#include "kernels/common/quantize/store_codes_cpu.h"

#include "kernels/common/index.h"
#include "kernels/kv_store/kv_store_args.h"

KILN_OUTLINED void kv_store(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_kv_store_args args = *(const kiln_kv_store_args *)arguments; /* a copy, which no store can change */
    bool nontemporal = kiln_is_nontemporal(&args.shape, dtype);
    for (uint64_t block = span->begin; block < span->end; block++)
        for (kiln_cpu_work work = kiln_work_of(&args.shape, span, block); work.row < work.row_end; work.row++) {
            uint64_t slot = kiln_index(args.slot_mapping, args.slots_64, work.row);
            size_t size = (work.col_end - work.col) * kiln_dtype_size(dtype);
            if (slot >= (uint64_t)args.capacity) continue;
            kiln_row_copy(kiln_at_mut(args.key_cache, slot * (uint64_t)args.key_cache_stride + work.col, dtype),
                          kiln_at(args.key, work.row * (uint64_t)args.key_stride + work.col, dtype), size, nontemporal);
            kiln_row_copy(kiln_at_mut(args.value_cache, slot * (uint64_t)args.value_cache_stride + work.col, dtype),
                          kiln_at(args.value, work.row * (uint64_t)args.value_stride + work.col, dtype), size,
                          nontemporal);
        }
    if (nontemporal) kiln_nontemporal_fence();
}
KILN_CPU_KERNEL(kv_store)

KILN_OUTLINED void kv_store_e4m3(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_kv_store_args args = *(const kiln_kv_store_args *)arguments; /* a copy, which no store can change */
    float tile[KILN_TILE];
    for (uint64_t block = span->begin; block < span->end; block++)
        for (kiln_cpu_work work = kiln_work_of(&args.shape, span, block); work.row < work.row_end; work.row++) {
            uint64_t token = work.row / args.heads, head = work.row % args.heads;
            uint64_t slot = kiln_index(args.slot_mapping, args.slots_64, token);
            uint64_t col = head * (uint64_t)args.shape.cols + work.col;
            size_t count = work.col_end - work.col;
            if (slot >= (uint64_t)args.capacity) continue;
            kiln_store_codes(tile, (uint8_t *)args.key_cache + slot * (uint64_t)args.key_cache_stride + col,
                             kiln_at(args.key, token * (uint64_t)args.key_stride + col, dtype), count,
                             kiln_store_factor(args.k_scale, head), dtype);
            kiln_store_codes(tile, (uint8_t *)args.value_cache + slot * (uint64_t)args.value_cache_stride + col,
                             kiln_at(args.value, token * (uint64_t)args.value_stride + col, dtype), count,
                             kiln_store_factor(args.v_scale, head), dtype);
        }
}
KILN_CPU_KERNEL(kv_store_e4m3)
