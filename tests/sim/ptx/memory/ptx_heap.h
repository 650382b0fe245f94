/* The memory that malloc in kernels takes from: one stretch for a context, whose parts are found as other allocations
 * are. What was freed is taken again as late as may be, with a gap between neighbours, so that stray accesses show.
 * Any thread may call. */
#ifndef KILN_TESTS_SIM_PTX_HEAP_H
#define KILN_TESTS_SIM_PTX_HEAP_H

#include "tests/sim/core/sim_space.h"

typedef struct ptx_heap ptx_heap;

/* NULL without memory. */
ptx_heap *ptx_heap_new(uint64_t bytes);
void ptx_heap_free(ptx_heap *heap);

/* size bytes that were never written, aligned to 16; 0 if there is no room for them, or size is 0. */
uint64_t ptx_heap_take(ptx_heap *heap, uint64_t size);
/* Gives back what was taken; false if nothing begins at the address. */
bool ptx_heap_give(ptx_heap *heap, uint64_t address);
/* What was taken and holds an address; false if nothing does. */
bool ptx_heap_find(ptx_heap *heap, uint64_t address, sim_region *out_region);

#endif
