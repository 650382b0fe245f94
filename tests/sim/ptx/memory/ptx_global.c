/* Global memory, with every check: bounds, what is constant, what was never written or not seen yet. */
#include "tests/sim/ptx/memory/ptx_heap.h"
#include "tests/sim/ptx/memory/ptx_overlap.h"
#include "tests/sim/ptx/memory/ptx_written.h"
#include "tests/sim/ptx/warp/ptx_warp.h"

bool ptx_region_find(const ptx_launch *launch, uint64_t address, sim_region *out_region) {
    uint64_t workspace = (uintptr_t)launch->workspace;
    if (workspace && address - workspace < PTX_WORKSPACE) {
        *out_region = (sim_region){.base = workspace, .size = PTX_WORKSPACE};
        return true;
    }
    return (launch->heap && ptx_heap_find(launch->heap, address, out_region)) ||
           launch->find(launch->find_context, address, out_region);
}

/* The bytes of global memory, within an allocation. NULL after a fault. */
static uint8_t *global_bounds(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint64_t size,
                              bool write) {
    sim_region *region = &warp->block->region;
    if (address - region->base >= region->size || size > region->size - (address - region->base)) {
        const ptx_launch *launch = warp->block->launch;
        if (!ptx_region_find(launch, address, region) || size > region->size - (address - region->base)) {
            *region = (sim_region){0};
            ptx_fault(warp, op, SIM_FAULT_OUT_OF_BOUNDS, lane, address, "%s of %llu bytes", write ? "store" : "load",
                      (unsigned long long)size);
            return NULL;
        }
    }
    if (write && region->constant) {
        ptx_fault(warp, op, SIM_FAULT_STORE_TO_CONSTANT, lane, address, "store of %llu bytes",
                  (unsigned long long)size);
        return NULL;
    }
    return (uint8_t *)(uintptr_t)address;
}

uint8_t *ptx_global_bytes(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint64_t size, bool read,
                          bool write) {
    uint8_t *bytes = global_bounds(warp, op, lane, address, size, write);
    if (!bytes) return NULL;
    if (read && !ptx_written(&warp->block->region, address, size)) {
        ptx_fault(warp, op, SIM_FAULT_UNINITIALISED, lane, address, "load of %llu bytes", (unsigned long long)size);
        return NULL;
    }
    const ptx_launch *launch = warp->block->launch;
    if (launch->unseen && !(warp->waited >> lane & 1) && ptx_writes_meet(launch->unseen, address, size)) {
        ptx_fault(warp, op, SIM_FAULT_EARLY, lane, address, "%s of %llu bytes before griddepcontrol.wait",
                  write ? "store" : "load", (unsigned long long)size);
        return NULL;
    }
    if (write && warp->block->copies_in_flight && ptx_async_reads(warp->block, address, size)) {
        ptx_fault(warp, op, SIM_FAULT_IN_FLIGHT, lane, address, "store of %llu bytes to a copy's source",
                  (unsigned long long)size);
        return NULL;
    }
    if (write) ptx_written_mark(&warp->block->region, address, size);
    warp->block->moved |= write && !read;
    if (write && launch->writes) ptx_writes_add(launch->writes, address, size);
    return bytes;
}

bool ptx_global_discard(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint32_t size) {
    if (address % size) {
        ptx_fault(warp, op, SIM_FAULT_MISALIGNED, lane, address, "discard of %u bytes", size);
        return false;
    }
    if (!ptx_global_bytes(warp, op, lane, address, size, false, true)) return false;
    ptx_written_forget(&warp->block->region, address, size);
    return true;
}
