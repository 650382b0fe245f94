/* How many blocks a multiprocessor has room for. The limits are those of processors.def; what a warp and a block take
 * of registers and of shared memory comes in granules, and a warp's registers are all of one of the four partitions.
 * (CUDA C++ Programming Guide, "Hardware Multithreading".) */
#include "tests/sim/cuda/sim_cuda.h"

enum { WARP = 32, REGISTERS = 65536, PARTITIONS = 4, REGISTER_GRANULE = 256 };

static uint32_t rounded(uint32_t value, uint32_t granule) {
    return (value + granule - 1) / granule * granule;
}

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* Warps that have room beside each other with so many registers to a thread. */
static uint32_t warps_of(uint32_t registers) {
    return REGISTERS / PARTITIONS / rounded(registers * WARP, REGISTER_GRANULE) * PARTITIONS;
}

uint32_t sim_cuda_threads_with(uint32_t registers) {
    return warps_of(registers) * WARP;
}

static uint32_t blocks_of(const sim_processor *processor, const sim_entry *entry, uint32_t threads, uint32_t shared) {
    const uint32_t warps = (threads + WARP - 1) / WARP;
    uint32_t blocks = least(processor->warps / warps, processor->blocks);
    if (entry->registers) blocks = least(blocks, warps_of(entry->registers) / warps);
    shared = rounded(shared + processor->reserved, processor->capability < 80 ? 256 : 128);
    if (shared) blocks = least(blocks, (processor->shared + processor->reserved) / shared);
    return blocks;
}

uint32_t sim_cuda_blocks_of(kiln__cu_device device, const sim_entry *entry, uint32_t threads, size_t shared) {
    const sim_processor *processor = sim_cuda_processor(device);
    if (threads > entry->max_threads || shared > processor->shared) return 0;
    return blocks_of(processor, entry, threads, entry->shared_bytes + (uint32_t)shared);
}

kiln__cu_result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out_blocks, kiln__cu_function function, int block_size,
                                                            size_t dynamic_shared_bytes) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(out_blocks && sim_object_live(".function", function), SIM_CUDA_INVALID_HANDLE,
                  "cuOccupancyMaxActiveBlocksPerMultiprocessor: %p is no function, or the result is NULL",
                  (void *)function);
    if (block_size <= 0) return SIM_CUDA_INVALID_VALUE;
    *out_blocks = (int)sim_cuda_blocks_of(context->device, function->entry, (uint32_t)block_size, dynamic_shared_bytes);
    return SIM_CUDA_SUCCESS;
}

/* The size, of whole warps but for the limit itself, with which most threads are resident; of equals the largest. */
kiln__cu_result cuOccupancyMaxPotentialBlockSize(int *out_grid, int *out_block, kiln__cu_function function,
                                                 size_t (*shared_of)(int block_size), size_t dynamic_shared_bytes,
                                                 int limit) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(out_grid && out_block && sim_object_live(".function", function), SIM_CUDA_INVALID_HANDLE,
                  "cuOccupancyMaxPotentialBlockSize: %p is no function, or a result is NULL", (void *)function);
    SIM_CUDA_RULE(limit >= 0, SIM_CUDA_INVALID_VALUE, "cuOccupancyMaxPotentialBlockSize: a limit of %d", limit);
    const uint32_t largest =
        limit ? least((uint32_t)limit, function->entry->max_threads) : function->entry->max_threads;
    uint32_t best_threads = 0, best_blocks = 0;
    for (uint32_t threads = largest; threads; threads = (threads - 1) / WARP * WARP) {
        const size_t shared = shared_of ? shared_of((int)threads) : dynamic_shared_bytes;
        const uint32_t blocks = sim_cuda_blocks_of(context->device, function->entry, threads, shared);
        if (blocks * threads <= best_blocks * best_threads) continue;
        best_threads = threads;
        best_blocks = blocks;
    }
    *out_block = (int)best_threads;
    *out_grid = (int)(best_blocks * sim_multiprocessors((uint32_t)sim_cuda_processor(context->device)->count));
    return SIM_CUDA_SUCCESS;
}
