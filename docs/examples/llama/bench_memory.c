#include "bench_memory.h"
#include "try.h"
#include <stdlib.h>

kiln_status bench_allocate(bench_memory *memory, uint64_t size, void **out) {
    *out = NULL;
    if (memory->count == BENCH_BLOCKS) abort();
    TRY(kiln_memory_alloc(memory->device, size, out));
    memory->blocks[memory->count++] = *out;
    return KILN_OK;
}

void bench_free(bench_memory *memory) {
    while (memory->count)
        kiln_memory_free(memory->device, memory->blocks[--memory->count]);
}
