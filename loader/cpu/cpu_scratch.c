#include "loader/cpu/cpu_scratch.h"
#include <stdlib.h>

enum { ALIGNMENT = 64 };
_Static_assert(KILN_CPU_SCRATCH % ALIGNMENT == 0, "each thread's is aligned");

kiln_status kiln__cpu_scratch_alloc(uint32_t count, void **out_scratch) {
    if (posix_memalign(out_scratch, ALIGNMENT, (size_t)count * KILN_CPU_SCRATCH) == 0) return KILN_OK;
    *out_scratch = NULL;
    return kiln__fail(KILN_ERROR_OUT_OF_MEMORY, "cpu: no memory for the scratch of %u threads", count);
}
