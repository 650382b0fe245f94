/* add: y = a + b element by element, in f32 with one rounding.
 *
 * The tensors are one row. A block computes one tile of it, of which each thread takes up to four vectors of 16 bytes,
 * 4 KiB apart. Without 16-byte alignment, and at the end, consecutive threads take consecutive elements.
 *
 * Floor: two reads and one write of the tensor at memory bandwidth, 12 bytes an element of f32, 6 of 16 bits;
 * docs/kernel-report.md has the instruction counts and the time that they take.
 * Test: build/tests/ops/add_test. Bench: build/kiln bench add */
#include "kernels/add/add_args.h"
#include "kernels/common/span.h"
#include "kernels/common/values.h"

KILN_ENTRY(add, kiln_add_args) {
    kiln_span s = kiln_span_of(&args.shape);
    if (!s.count) return;
    const kiln_element *a = (const kiln_element *)args.a + s.start;
    const kiln_element *b = (const kiln_element *)args.b + s.start;
    kiln_element *y = (kiln_element *)args.y + s.start;

    KILN_LOOP
    KILN_FOR_WHOLE(s, vector) {
        float af[KILN_VECTOR], bf[KILN_VECTOR];
        kiln_vector_values(af, kiln_vector_load(a + vector * KILN_VECTOR));
        kiln_vector_values(bf, kiln_vector_load(b + vector * KILN_VECTOR));
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR; i++)
            af[i] += bf[i];
        kiln_vector_store(y + vector * KILN_VECTOR, kiln_vector_of(af));
    }
    KILN_LOOP
    KILN_FOR_REST(s, i)
    y[i] = kiln_element_from_f32(kiln_element_to_f32(a[i]) + kiln_element_to_f32(b[i]));
}
