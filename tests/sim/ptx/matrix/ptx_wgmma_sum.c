/* The products of a warp's 16 rows with all columns of B, eight columns at a time. */
#include "tests/sim/ptx/alu/ptx_float.h"
#include "tests/sim/ptx/matrix/ptx_wgmma.h"
#include <math.h>
#include <string.h>

enum { ROWS = PTX_WGMMA_ROWS, BYTES = PTX_WGMMA_BYTES, EIGHT = 8, BLOCKS = PTX_WGMMA_N / EIGHT, WORDS = BYTES / 8 };

/* What an H100 does, and the mode "truncating": all products of an instruction at once. */
static const ptx_matrix_unit wide = {.capability = 90, .terms = BYTES, .fraction = 25, .kept = 23};
static const ptx_matrix_unit of_bytes = {.capability = 90, .terms = BYTES, .fraction = 13, .kept = 13};

/* ---- Registers ---- */

/* The lane that has an element of D; rows are 0 to 15. */
static uint32_t lane_of(uint32_t row, uint32_t column) {
    return row % 8 * 4 + column % 8 / 2;
}

static uint32_t get_word(const ptx_warp *warp, const ptx_wgmma *x, uint32_t row, uint32_t column) {
    uint32_t r = column / 8 * 4 + row / 8 * 2 + column % 2;
    return PTX_ARRAY(uint32_t, x->d[r].place)[lane_of(row, column)];
}

static void set_word(ptx_warp *warp, const ptx_wgmma *x, uint32_t row, uint32_t column, uint32_t bits) {
    uint32_t r = column / 8 * 4 + row / 8 * 2 + column % 2;
    PTX_ARRAY(uint32_t, x->d[r].place)[lane_of(row, column)] = bits;
}

/* The same of f16, of which a register has two columns. */
static uint16_t *half_at(const ptx_warp *warp, const ptx_wgmma *x, uint32_t row, uint32_t column) {
    uint32_t r = column / 8 * 2 + row / 8;
    return &PTX_ARRAY(uint16_t, x->d[r].place)[lane_of(row, column) * 2 + column % 2];
}

/* ---- Floating point ---- */

/* Numbers of eight columns (or rows, of A): the k-th of each. */
typedef struct eight {
    double values[BYTES][EIGHT];
    int16_t exponents[BYTES][EIGHT];
    bool special[EIGHT]; /* infinity or NaN among them */
} eight;

static uint32_t element_at(const uint8_t *line, uint32_t bits, uint32_t k) {
    uint32_t value = 0;
    memcpy(&value, line + k * bits / 8, bits / 8);
    return value;
}

/* The numbers of f16 or bf16 in a line, as f32, which has them all. */
static inline __attribute__((always_inline)) void singles_of(sim_format format, const ptx_wgmma_line line,
                                                             float *values) {
    uint16_t words[BYTES / 2];
    uint32_t bits[BYTES / 2];
    memcpy(words, line, sizeof words);
    for (uint32_t k = 0; k < BYTES / 2; k++)
        bits[k] = format == SIM_bf16 ? (uint32_t)words[k] << 16 : (words[k] & 0x7fffu) << 13;
    memcpy(values, bits, sizeof bits);
    for (uint32_t k = 0; format == SIM_f16 && k < BYTES / 2; k++) {
        const uint32_t magnitude = words[k] & 0x7fff;
        const float value = magnitude > 0x7c00 ? NAN : magnitude == 0x7c00 ? INFINITY : values[k] * 0x1p112f;
        values[k] = words[k] >> 15 ? -value : value;
    }
}

/* Their exponents: of subnormal ones the least, of infinities and NaNs one beyond all. */
static inline __attribute__((always_inline)) void exponents_of(sim_format format, const float *values,
                                                               int16_t *exponents) {
    enum { BIAS = 127, INFINITE = 1024 };
    const int32_t least = format == SIM_f16 ? -14 : -126;
    uint32_t bits[BYTES / 2];
    memcpy(bits, values, sizeof bits);
    for (uint32_t k = 0; k < BYTES / 2; k++) {
        const int32_t biased = (int32_t)(bits[k] >> 23 & 0xff), own = biased - BIAS;
        const int32_t exponent = biased == 0xff ? INFINITE : own < least ? least : own;
        exponents[k] = (int16_t)(bits[k] << 1 ? exponent : PTX_MATRIX_NO_EXPONENT);
    }
}

static inline __attribute__((always_inline)) void numbers_of_16(sim_format format, bool negated,
                                                                const ptx_wgmma_line *lines, eight *out) {
    for (uint32_t i = 0; i < EIGHT; i++) {
        float values[BYTES / 2];
        int16_t exponents[BYTES / 2];
        singles_of(format, lines[i], values);
        exponents_of(format, values, exponents);
        out->special[i] = false;
        for (uint32_t k = 0; k < BYTES / 2; k++) {
            out->values[k][i] = negated ? -(double)values[k] : (double)values[k];
            out->exponents[k][i] = exponents[k];
            out->special[i] |= !isfinite(values[k]);
        }
    }
}

static void numbers_of(ptx_type type, bool negated, uint32_t k_count, const ptx_wgmma_line *lines, eight *out) {
    uint32_t width = ptx_type_bits(type);
    if (type == PTX_f16) {
        numbers_of_16(SIM_f16, negated, lines, out);
        return;
    }
    if (type == PTX_bf16) {
        numbers_of_16(SIM_bf16, negated, lines, out);
        return;
    }
    for (uint32_t i = 0; i < EIGHT; i++) {
        uint64_t bits[BYTES];
        ptx_matrix_number numbers[BYTES];
        for (uint32_t k = 0; k < k_count; k++)
            bits[k] = element_at(lines[i], width, k);
        ptx_matrix_numbers_of(ptx_matrix_format(type), bits, numbers, k_count);
        out->special[i] = false;
        for (uint32_t k = 0; k < k_count; k++) {
            out->values[k][i] = negated ? -numbers[k].value : numbers[k].value;
            out->exponents[k][i] = (int16_t)numbers[k].exponent;
            out->special[i] |= !isfinite(numbers[k].value);
        }
    }
}

static double power(int exponent) {
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The result of a finite sum: of f16 rounded to nearest, of f32 cut off to the kept bits of fraction. A zero is +0. */
static uint32_t result_of(const ptx_matrix_unit *unit, sim_format format, double value) {
    if (format == SIM_f16) {
        uint32_t half = ptx_narrow_store(SIM_f16, value, SIM_ROUND_NEAREST_EVEN, 0);
        return half == 0x8000 ? 0 : half;
    }
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    if (fabs((double)narrow) > fabs(value) && fabs(value) < 0x1p128) bits--;
    bits &= ~((1u << (23 - unit->kept)) - 1);
    return bits == 1u << 31 ? 0 : bits;
}

/* One row of A with eight columns of B, all of them finite. c and sums have the addends and the results. */
static inline __attribute__((always_inline)) void sum_eight(const ptx_matrix_unit *unit, uint32_t k_count,
                                                            const double *a, const int16_t *a_exponents, const eight *b,
                                                            const ptx_matrix_number *c, double *sums) {
    int16_t most[EIGHT];
    int32_t units[EIGHT] = {0};
    double per_unit[EIGHT];
    for (uint32_t j = 0; j < EIGHT; j++)
        most[j] = (int16_t)c[j].exponent;
    for (uint32_t k = 0; k < k_count; k++) {
        for (uint32_t j = 0; j < EIGHT; j++) {
            int16_t exponent = (int16_t)(a_exponents[k] + b->exponents[k][j]);
            most[j] = exponent > most[j] ? exponent : most[j];
        }
    }
    for (uint32_t j = 0; j < EIGHT; j++) {
        if (most[j] < PTX_MATRIX_LEAST_EXPONENT) most[j] = 0;
        per_unit[j] = power(unit->fraction - most[j]);
    }
    for (uint32_t k = 0; k < k_count; k++)
        for (uint32_t j = 0; j < EIGHT; j++)
            units[j] += (int32_t)(a[k] * b->values[k][j] * per_unit[j]);
    for (uint32_t j = 0; j < EIGHT; j++) {
        double whole = (double)((int64_t)units[j] + (int64_t)(c[j].value * per_unit[j]));
        sums[j] = whole * power(most[j] - unit->fraction);
    }
}

/* One element by itself, in any mode. */
static uint32_t sum_one(sim_sum_mode mode, const ptx_matrix_unit *unit, sim_format result, uint32_t k_count,
                        const eight *a, uint32_t row, const eight *b, uint32_t column, ptx_matrix_number c) {
    ptx_matrix_number x[BYTES], y[BYTES];
    for (uint32_t k = 0; k < k_count; k++) {
        x[k] = (ptx_matrix_number){a->values[k][row], a->exponents[k][row]};
        y[k] = (ptx_matrix_number){b->values[k][column], b->exponents[k][column]};
    }
    return ptx_matrix_sum_at_once(mode, unit, result, c, x, y, k_count);
}

/* Row row of a with the columns from 8 * block on. */
static inline __attribute__((always_inline)) void multiply_floats(ptx_warp *warp, const ptx_wgmma *x, const eight *a,
                                                                  uint32_t row, const eight *b, uint32_t block,
                                                                  bool scaled) {
    const sim_sum_mode mode = warp->block->launch->sum_mode;
    const bool bytes = ptx_type_bits(x->a_type) == 8, half = x->d_type == PTX_f16;
    const ptx_matrix_unit *unit = bytes ? &of_bytes : &wide;
    const sim_format format = half ? SIM_f16 : SIM_f32;
    uint64_t words[EIGHT] = {0};
    ptx_matrix_number c[EIGHT];
    double row_values[BYTES], sums[EIGHT];
    int16_t row_exponents[BYTES];
    bool plain = (mode == SIM_SUM_HOPPER || mode == SIM_SUM_TRUNCATING) && !a->special[row % 8];
    for (uint32_t j = 0; scaled && j < EIGHT; j++) {
        uint32_t column = block * EIGHT + j;
        words[j] = half ? *half_at(warp, x, row, column) : get_word(warp, x, row, column);
    }
    ptx_matrix_numbers_of(format, words, c, EIGHT);
    for (uint32_t j = 0; j < EIGHT; j++)
        plain &= !b->special[j] && isfinite(c[j].value);
    for (uint32_t k = 0; plain && k < x->k; k++) {
        row_values[k] = a->values[k][row % 8];
        row_exponents[k] = a->exponents[k][row % 8];
    }
    if (plain) sum_eight(unit, x->k, row_values, row_exponents, b, c, sums);
    for (uint32_t j = 0; j < EIGHT; j++) {
        uint32_t column = block * EIGHT + j, bits;
        if (!plain)
            bits = sum_one(mode, unit, format, x->k, a, row % 8, b, j, c[j]);
        else
            bits = result_of(unit, format, sums[j]);
        if (half)
            *half_at(warp, x, row, column) = (uint16_t)bits;
        else
            set_word(warp, x, row, column, bits);
    }
}

static inline __attribute__((always_inline)) void
multiply_lines(ptx_warp *warp, const ptx_wgmma *x, const ptx_wgmma_line *a, const ptx_wgmma_line *b, bool scaled) {
    eight rows[ROWS / EIGHT], columns;
    for (uint32_t i = 0; i < ROWS / EIGHT; i++)
        numbers_of(x->a_type, x->negated[0], x->k, a + i * EIGHT, &rows[i]);
    for (uint32_t block = 0; block < x->n / EIGHT; block++) {
        numbers_of(x->b_type, x->negated[1], x->k, b + block * EIGHT, &columns);
        for (uint32_t row = 0; row < ROWS; row++)
            multiply_floats(warp, x, &rows[row / EIGHT], row, &columns, block, scaled);
    }
}

#ifdef __x86_64__
/* Twice as many numbers side by side as a baseline x86-64 has, and four times as many. */
__attribute__((target("avx2"))) static void
multiply_lines_avx2(ptx_warp *warp, const ptx_wgmma *x, const ptx_wgmma_line *a, const ptx_wgmma_line *b, bool scaled) {
    multiply_lines(warp, x, a, b, scaled);
}

#ifdef __clang__
#define WIDEST "avx512f,avx512vl,avx512dq,avx512bw"
#else
#define WIDEST "avx512f,avx512vl,avx512dq,avx512bw,prefer-vector-width=512" /* GCC would use half of it */
#endif
__attribute__((target(WIDEST))) static void multiply_lines_avx512(ptx_warp *warp, const ptx_wgmma *x,
                                                                  const ptx_wgmma_line *a, const ptx_wgmma_line *b,
                                                                  bool scaled) {
    multiply_lines(warp, x, a, b, scaled);
}
#endif

static void run_floats(ptx_warp *warp, const ptx_wgmma *x, const ptx_wgmma_line *a, const ptx_wgmma_line *b,
                       bool scaled) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw")) {
        multiply_lines_avx512(warp, x, a, b, scaled);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        multiply_lines_avx2(warp, x, a, b, scaled);
        return;
    }
#endif
    multiply_lines(warp, x, a, b, scaled);
}

/* ---- Integers ---- */

static void integers_of(ptx_type type, const ptx_wgmma_line line, int16_t *out) {
    for (uint32_t k = 0; k < BYTES; k++)
        out[k] = type == PTX_s8 ? (int8_t)line[k] : line[k];
}

static int32_t dot(const int16_t *a, const int16_t *b) {
    int32_t sum = 0;
    for (uint32_t k = 0; k < BYTES; k++)
        sum += a[k] * b[k];
    return sum;
}

static int32_t common_bits(const ptx_wgmma_line a, const ptx_wgmma_line b) {
    uint64_t x[WORDS], y[WORDS];
    int32_t sum = 0;
    memcpy(x, a, BYTES);
    memcpy(y, b, BYTES);
    for (uint32_t i = 0; i < WORDS; i++)
        sum += __builtin_popcountll(x[i] & y[i]);
    return sum;
}

static void run_integers(ptx_warp *warp, const ptx_op *op, const ptx_wgmma_line *a, const ptx_wgmma_line *b,
                         bool scaled) {
    const ptx_wgmma *x = op->product;
    int16_t rows[ROWS][BYTES], line[BYTES];
    for (uint32_t row = 0; row < ROWS; row++)
        integers_of(x->a_type, a[row], rows[row]);
    for (uint32_t column = 0; column < x->n; column++) {
        integers_of(x->b_type, b[column], line);
        for (uint32_t row = 0; row < ROWS; row++) {
            int32_t product = x->a_type == PTX_b1 ? common_bits(a[row], b[column]) : dot(rows[row], line);
            int64_t sum = (int64_t)product + (scaled ? (int32_t)get_word(warp, x, row, column) : 0);
            set_word(warp, x, row, column, (uint32_t)(op->flags & PTX_F_SATFINITE ? ptx_saturate(sum) : (int32_t)sum));
        }
    }
}

void ptx_wgmma_multiply(ptx_warp *warp, const ptx_op *op, const ptx_wgmma_line *a, const ptx_wgmma_line *b,
                        bool scaled) {
    if (op->product->d_type == PTX_s32)
        run_integers(warp, op, a, b, scaled);
    else
        run_floats(warp, op->product, a, b, scaled);
}
