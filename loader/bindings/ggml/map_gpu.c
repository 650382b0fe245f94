/* map on GPUs, for both vendors: map_args.h says what it computes.
 *
 * 1 << lanes_log2 threads share a row, each with GGML_KILN_THREAD_ELEMENTS elements, side by side with its neighbours':
 * whatever strides and types operands have, those that are contiguous are read and written in whole sectors. The index
 * of a row is divided out once a thread.
 *
 * Floor: the operands at memory bandwidth. Accesses are of one element each, so the instructions weigh as well; not
 * measured.
 * Test: make check-ggml. */
#include "kernels/common/device.h"

#define ggml_kiln_half kiln_f16_to_f32
#include "loader/bindings/ggml/map_index.h"

KILN_ENTRY_HEAD ggml_kiln_map(const ggml_kiln_map_args args) {
    uint32_t lanes = 1u << args.lanes_log2;
    uint64_t row = (kiln_block() << (KILN_BLOCK_LOG2 - args.lanes_log2)) + (kiln_thread() >> args.lanes_log2);
    if (row >= args.rows) return;
    ggml_kiln_row r = ggml_kiln_row_of(&args, (uint32_t)row);
    if (r.absent) return;
    char *y = ggml_kiln_at(&args.y, args.scatter ? r.named : r.index[0], &r);
    const char *a = ggml_kiln_at(&args.a, args.scatter ? r.index[0] : r.named, &r);
    const char *b = ggml_kiln_at(&args.b, r.index[0], &r);
    const char *c = ggml_kiln_at(&args.c, r.index[0], &r);

    uint32_t start = kiln_tile() * (GGML_KILN_THREAD_ELEMENTS << args.lanes_log2) + (kiln_thread() & (lanes - 1));
    KILN_LOOP
    for (uint32_t n = 0; n < GGML_KILN_THREAD_ELEMENTS; n++) {
        uint32_t i = start + n * lanes;
        if (i >= args.size[0]) return;
        float factor = args.b.data ? ggml_kiln_read(&args.b, b, i) : args.scale;
        float addend = args.c.data ? ggml_kiln_read(&args.c, c, i) : args.offset;
        float value = KILN_FMA(ggml_kiln_read(&args.a, a, i), factor, addend);
        char *target = y + i * args.y.stride[0];
        if (args.y.type == GGML_KILN_F32)
            *(uint32_t *)(void *)target = kiln_bits(value);
        else
            *(uint16_t *)(void *)target =
                args.y.type == GGML_KILN_F16 ? kiln_f32_to_f16(value) : kiln_f32_to_bf16(value);
    }
}
