/* Memory that is freed all at once. */
#ifndef KILN_TESTS_SIM_PTX_ARENA_H
#define KILN_TESTS_SIM_PTX_ARENA_H

#include <stddef.h>

typedef struct ptx_arena ptx_arena;

ptx_arena *ptx_arena_new(void);
void ptx_arena_free(ptx_arena *arena);

/* Zeroed bytes, aligned for anything; ends the process without memory, as a simulator may. */
void *ptx_arena_take(ptx_arena *arena, size_t size);
char *ptx_arena_text(ptx_arena *arena, const char *bytes, size_t length);

#endif
