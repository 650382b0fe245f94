/* Grids that may begin before those in front of them have ended: what these wrote may not be there before
 * griddepcontrol.wait. */
#ifndef KILN_TESTS_SIM_PTX_OVERLAP_H
#define KILN_TESTS_SIM_PTX_OVERLAP_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of global memory that grids wrote. */
typedef struct ptx_writes ptx_writes;

/* NULL without memory. */
ptx_writes *ptx_writes_new(void);
/* Takes NULL. */
void ptx_writes_free(ptx_writes *writes);
/* Called by any thread. */
void ptx_writes_add(ptx_writes *writes, uint64_t address, uint64_t size);
/* Whether any of these bytes was written. No thread may add meanwhile. */
bool ptx_writes_meet(const ptx_writes *writes, uint64_t address, uint64_t size);

/* A block of the grid that wrote these lets the next grid begin only after it has waited itself. */
void ptx_writes_waited(ptx_writes *writes);
/* Adds what was written in front of that grid, unless it waited for it before the next begins. */
void ptx_writes_follow(ptx_writes *writes, const ptx_writes *front);

#endif
