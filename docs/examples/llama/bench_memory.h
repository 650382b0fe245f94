/* Memory of the device that is freed together. */
#ifndef LLAMA_BENCH_MEMORY_H
#define LLAMA_BENCH_MEMORY_H

#include <kiln/kiln.h>

enum { BENCH_BLOCKS = 32 };
typedef struct bench_memory {
    kiln_device *device;
    void *blocks[BENCH_BLOCKS];
    size_t count;
} bench_memory;

kiln_status bench_allocate(bench_memory *memory, uint64_t size, void **out);
void bench_free(bench_memory *memory);

#endif
