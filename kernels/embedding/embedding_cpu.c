/* embedding on the CPU: the operator's definition. embedding_gpu.c says what its blocks do.
 *
 * Floor: one read and one write of the result at memory bandwidth.
 * Test: build/tests/ops/embedding_test. Bench: build/kiln bench embedding --device cpu */
#include "kernels/common/cpu.h"

#include "kernels/common/index.h"
#include "kernels/embedding/embedding_args.h"

KILN_OUTLINED void embedding(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_embedding_args args = *(const kiln_embedding_args *)arguments; /* a copy, which no store can change */
    bool nontemporal = kiln_is_nontemporal(&args.shape, dtype);
    for (uint64_t block = span->begin; block < span->end; block++)
        for (kiln_cpu_work work = kiln_work_of(&args.shape, span, block); work.row < work.row_end; work.row++) {
            void *y = kiln_at_mut(args.y, work.row * (uint64_t)args.y_stride + work.col, dtype);
            size_t size = (work.col_end - work.col) * kiln_dtype_size(dtype);
            uint64_t row = kiln_index(args.ids, args.ids_64, work.row) - (uint64_t)args.first;
            if (row < (uint64_t)args.vocabulary)
                kiln_row_copy(y, kiln_at(args.table, row * (uint64_t)args.table_stride + work.col, dtype), size,
                              nontemporal);
            else
                memset(y, 0, size);
        }
    if (nontemporal) kiln_nontemporal_fence();
}
KILN_CPU_KERNEL(embedding)
