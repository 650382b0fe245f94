/* gemm on the CPU with gates, and of few rows that are normalised: gemm_fused.h says what the kernels and blocks do.
 *
 * Included once, by gemm_cpu.c. */

/* gates[i] * ups[i], of count elements, once the gates have gone through the activation. */
KILN_INLINE void gate(const kiln_gemm_args *args, float *results, const float *gates, const float *ups, size_t count) {
    if (args->gated) {
        KILN_INDEPENDENT
        for (size_t i = 0; i < count; i++)
            results[i] = kiln_gated(gates[i], args->bound, args->coefficients, KILN_GEMM_COEFFICIENTS) * ups[i];
    } else {
        KILN_INDEPENDENT
        for (size_t i = 0; i < count; i++)
            results[i] = gates[i] * ups[i];
    }
}

/* ---- gemm_rows_fused ---- */

/* Scales half of a row's sums, and adds the bias from `col` on. */
KILN_INLINE void finish_half(finish_tiles *tiles, const kiln_gemm_args *args, float *sums, uint64_t col, size_t count,
                             kiln_cpu_dtype dtype) {
    for (size_t i = 0; i < count; i++)
        sums[i] *= args->scale;
    kiln_matmul_add_bias(sums, tiles->addends, args->bias, col, count, dtype);
}

/* finish of a gated product. */
KILN_OUTLINED void finish_halves(finish_tiles *tiles, const kiln_gemm_args *args, float *gates, float *ups,
                                 uint32_t batch, uint64_t row, uint64_t col, size_t count, kiln_cpu_dtype dtype) {
    uint64_t place = batch * (uint64_t)args->d_batch_stride + row * (uint64_t)args->d_stride + col;
    void *d = kiln_at_mut(args->d, place, dtype);
    float *results = kiln_tile_target(tiles->results, d, dtype, false);
    finish_half(tiles, args, gates, col, count, dtype);
    finish_half(tiles, args, ups, (uint64_t)args->n + col, count, dtype);
    gate(args, results, gates, ups, count);
    kiln_tile_write(d, results, count, dtype, false);
}

/* A block's sums with its rows of b, or with those n further. */
KILN_INLINE void rows_half(rows_scratch *scratch, float (*sums)[COLUMNS], const kiln_gemm_fused_args *args,
                           const rows_norm *norm, uint32_t batch, uint64_t first, bool second, kiln_cpu_dtype dtype) {
    kiln_gemm_args plain = args->plain;
    if (second) plain.b = kiln_at(plain.b, (uint64_t)plain.n * (uint64_t)plain.b_stride, dtype);
    if (args->halves) plain.n = (int64_t)kiln_min((uint64_t)plain.n, first + COLUMNS / 2);
    rows_plain(scratch, sums, &plain, norm, batch, first, dtype);
}

KILN_INLINE void gemm_rows_fused(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_gemm_fused_args args = *(const kiln_gemm_fused_args *)arguments; /* a copy, which no store can change */
    const kiln_gemm_args *plain = &args.plain;
    const uint64_t columns = args.halves ? COLUMNS / 2 : COLUMNS;
    rows_scratch *scratch = span->scratch;
    for (uint64_t block = span->begin; block < span->end; block++) {
        const uint32_t batch = (uint32_t)(block / span->grid[0]);
        const uint64_t first = block % span->grid[0] * columns;
        if (batch >= plain->batch) break;
        const size_t count = kiln_min((uint64_t)plain->n - first, columns);
        float sums[KILN_GEMM_ROWS][COLUMNS] = {{0}}, ups[KILN_GEMM_ROWS][COLUMNS] = {{0}};
        rows_norm norm = {.weight = args.norm_weight};
        for (uint64_t row = 0; args.norm_weight && row < (uint64_t)plain->m; row++) {
            const uint64_t a = batch * (uint64_t)plain->a_batch_stride + row * (uint64_t)plain->a_stride;
            norm.scales[row] = norm_scale(&args, kiln_at(plain->a, a, dtype), dtype);
        }
        const rows_norm *given = args.norm_weight ? &norm : NULL;
        for (int half = 0; half <= (args.halves != 0); half++)
            rows_half(scratch, half ? ups : sums, &args, given, batch, first, half, dtype);
        for (uint64_t row = 0; row < (uint64_t)plain->m; row++) {
            if (args.halves)
                finish_halves(&scratch->tiles, plain, sums[row], ups[row], batch, row, first, count, dtype);
            else
                finish(&scratch->tiles, plain, sums[row], batch, row, first, count, dtype);
        }
    }
}
KILN_CPU_KERNEL(gemm_rows_fused)

/* ---- gemm_gate ---- */

KILN_OUTLINED void gemm_gate(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_gemm_fused_args args = *(const kiln_gemm_fused_args *)arguments; /* a copy, which no store can change */
    const uint64_t m = (uint64_t)args.plain.m, n = (uint64_t)args.plain.n;
    const uint64_t columns = KILN_BLOCK * (KILN_VECTOR_BYTES / kiln_dtype_size(dtype)); /* of a block */
    float gate_tile[KILN_TILE], up_tile[KILN_TILE];
    for (uint64_t block = span->begin; block < span->end; block++) {
        const uint64_t first = block % span->grid[0] * columns, row = block / span->grid[0];
        if (row >= m * args.plain.batch) break;
        const uint64_t place = row / m * (uint64_t)args.plain.d_batch_stride + row % m * (uint64_t)args.plain.d_stride;
        for (uint64_t col = first, count; col < kiln_min(n, first + columns); col += count) {
            count = kiln_min(kiln_min(n, first + columns) - col, KILN_TILE);
            const float *gates =
                kiln_tile_load(gate_tile, kiln_at(args.packed, row * 2 * n + col, dtype), count, dtype);
            const float *ups =
                kiln_tile_load(up_tile, kiln_at(args.packed, row * 2 * n + n + col, dtype), count, dtype);
            void *d = kiln_at_mut(args.plain.d, place + col, dtype);
            float *results = kiln_tile_target(gate_tile, d, dtype, false);
            gate(&args.plain, results, gates, ups, count);
            kiln_tile_write(d, results, count, dtype, false);
        }
    }
}
KILN_CPU_KERNEL(gemm_gate)
