/* How many blocks fit on a compute unit. The runtime has no call for this; it follows from wave slots, vector registers
 * and LDS. (LLVM, "User Guide for AMDGPU Backend", and the sizes that its register allocator uses.) */
#include "loader/rocm/rocm_backend.h"
#include <string.h>

/* Vector registers of a SIMD for each lane, and the granule that they are handed out in, for waves of 32; waves of 64
 * have half of both. gfx9 runs waves of 64 alone, and its rows say it. The first prefix that matches counts. */
static const struct {
    const char *prefix;
    uint32_t vgprs, granule, wave_size;
} register_files[] = {
    {"gfx90a", 512, 8, 64},    {"gfx94", 512, 8, 64},     {"gfx95", 512, 8, 64},   {"gfx9-4", 512, 8, 64},
    {"gfx9", 256, 4, 64},      {"gfx103", 1024, 16, 32},  {"gfx10", 1024, 8, 32},  {"gfx1100", 1536, 24, 32},
    {"gfx1101", 1536, 24, 32}, {"gfx1151", 1536, 24, 32}, {"gfx11", 1024, 16, 32}, {"gfx12", 1536, 24, 32},
};

/* Waves that a SIMD's vector registers hold; a processor of no row is not limited by them. */
static uint32_t waves_by_registers(const char *processor, const kiln__rocm_kernel *function) {
    for (size_t i = 0; i < sizeof register_files / sizeof *register_files; i++) {
        if (strncmp(processor, register_files[i].prefix, strlen(register_files[i].prefix)) != 0) continue;
        const uint32_t halves = function->wave_size > register_files[i].wave_size ? 2 : 1;
        const uint32_t granule = register_files[i].granule / halves;
        const uint32_t used = (function->vgprs + granule - 1) / granule * granule;
        return used ? register_files[i].vgprs / halves / used : UINT32_MAX;
    }
    return UINT32_MAX;
}

kiln_status kiln__rocm_kernel_occupancy(const kiln_kernel *kernel, uint32_t threads, uint32_t dynamic_shared_bytes,
                                        uint32_t *out_blocks) {
    const kiln__rocm_device *rocm = kernel->device->native;
    const kiln__rocm_kernel *function = kernel->function;
    *out_blocks = 0;
    if (threads > function->threads_max || dynamic_shared_bytes > function->dynamic_max) return KILN_OK;
    const uint32_t block_waves = (threads + function->wave_size - 1) / function->wave_size;
    uint32_t simd_waves = rocm->waves_per_unit / rocm->simds_per_unit;
    const uint32_t register_waves = waves_by_registers(kernel->device->info.target.processor, function);
    if (register_waves < simd_waves) simd_waves = register_waves;
    uint32_t blocks = simd_waves * rocm->simds_per_unit / block_waves;
    const uint32_t lds = function->lds_bytes + dynamic_shared_bytes;
    if (lds && (uint32_t)kernel->device->info.max_shared_bytes / lds < blocks)
        blocks = (uint32_t)kernel->device->info.max_shared_bytes / lds;
    *out_blocks = blocks;
    return KILN_OK;
}
