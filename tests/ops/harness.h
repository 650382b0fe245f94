/* What the operator tests share: devices to run on, matrices between guard pages, and comparison with f64 references.
 *
 * A test runs on every device of a list: by default each CPU level of this machine with 1, 2, 3 and 7 threads; else
 * what the environment's KILN_TEST_DEVICES names ("cuda:0 rocm:1"). Its body must make the same calls in the same order
 * on each: inputs come from a generator that starts anew for every device, and results of one level must be equal bit
 * for bit whatever the number of threads. The seed is printed; KILN_TEST_SEED replays it.
 *
 * With KILN_TEST_LOG kiln's log is printed: it names the images that are chosen.
 *
 * Not thread safe: one test runs at a time. A failure ends the test through cmocka, with the device, the seed and what
 * harness_describe said in its text. */
#ifndef KILN_TESTS_OPS_HARNESS_H
#define KILN_TESTS_OPS_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <kiln/ops.h>
#include <stdbool.h>

/* ---- Devices ----------------------------------------------------------------------------------------------------- */

/* Runs body on each device of the list, with a stream of it. */
typedef void (*harness_body)(kiln_stream *stream);
void harness_on_each_device(harness_body body);

/* The same on the last device of the list alone (the CPU's best level, 7 threads): for what is too big for all. */
void harness_on_one_device(harness_body body);

/* cmocka's tests that do so, as on_each_device(test_sizes) among those of cmocka_run_group_tests; *state is a body. */
void harness_each_device_test(void **state);
void harness_one_device_test(void **state);
#define on_each_device(body)                                                                     \
    {                                                                                            \
        .name = #body, .test_func = harness_each_device_test, .initial_state = &(harness_body) { \
            body                                                                                 \
        }                                                                                        \
    }
#define on_one_device(body)                                                                     \
    {                                                                                           \
        .name = #body, .test_func = harness_one_device_test, .initial_state = &(harness_body) { \
            body                                                                                \
        }                                                                                       \
    }

/* Whether results are held against a reference, which need not be made otherwise: on the first device of each level.
 * Those of its other numbers of threads must have the same bits, and matrix_expect looks at nothing else. */
bool harness_needs_reference(void);

/* For what only the CPU does in a way of its own, and would take simulated GPUs long. */
bool harness_on_cpu(const kiln_stream *stream);

/* How often to repeat a random test: many times on the CPU, a quarter as often on GPUs, which may be simulated. */
int harness_rounds(const kiln_stream *stream, int many);

/* Says what is being tested, for failures: "softmax_f16 5 x 17". */
void harness_describe(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the test as failed, with the description. */
void harness_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Fails unless status is KILN_OK, with kiln's error text. */
void harness_ok(kiln_status status);

/* ---- Random numbers ---------------------------------------------------------------------------------------------- */

/* 64 random bits; a whole number of [low, high]; a number of [low, high). */
uint64_t random_bits(void);
int64_t random_integer(int64_t low, int64_t high);
double random_number(double low, double high);

/* The sum of the products of count numbers in f64, and that of their magnitudes: in parts, so that no addition waits
 * for the one before. */
void harness_dot(const double *a, const double *b, int64_t count, double *out_sum, double *out_magnitude);

/* ---- Precisions -------------------------------------------------------------------------------------------------- */

/* I32, I64, U8 and I8, which are none, are for matrices of integers. */
typedef enum precision { F32, F16, BF16, PRECISION_COUNT, I32 = PRECISION_COUNT, I64, U8, I8 } precision;

/* Whether the image of a bundle that the stream's device chose has tuned kernels of this precision. */
bool harness_has_tuned(const kiln_stream *stream, const kiln_bundle *bundle, precision p);
/* What that image's table says of a kernel; false where the image does not have it. */
bool harness_find_kernel(const kiln_stream *stream, const kiln_bundle *bundle, precision p, const char *name,
                         kiln_kernel_info *out_info);

/* What a test runs through, from the first to before the end: all, or the one that KILN_TEST_PRECISION names. */
precision precision_first(void);
precision precision_end(void);

/* "f32"; bytes of an element. */
const char *precision_name(precision p);
size_t precision_size(precision p);

/* The number nearest to value (ties to even) that p can hold, infinities where it is too large. */
double precision_round(precision p, double value);

/* Half the distance between the numbers of p around value: the error that one rounding may make. */
double precision_half_ulp(precision p, double value);

/* ---- Matrices ---------------------------------------------------------------------------------------------------- */

/* Where a matrix lies in its memory, whose ends are guard pages (on the CPU) and which is poisoned around it. */
enum {
    AT_END = -1
}; /* its last element is the last of the memory; else: elements after the memory's page-aligned start */

typedef struct matrix {
    precision p;
    int64_t rows, cols;
    int64_t stride; /* elements from row to row, at least cols */
    void *data;     /* element 0, on the device */
    double *values; /* [rows, cols], after matrix_set and matrix_get */

    kiln_stream *stream;
    unsigned char *mirror; /* the memory as it should be, or as it was found */
    unsigned char *memory;
    size_t size, start; /* bytes of memory; where element 0 lies in it */
    void *mapping;
} matrix;

/* One of the places at which an operator may go about its vectors in its own way. */
int64_t random_place(void);

/* Makes a poisoned matrix on the stream's device. stride 0: cols. Destroy it in the same test. */
matrix matrix_create(kiln_stream *stream, precision p, int64_t rows, int64_t cols, int64_t stride, int64_t place);
void matrix_destroy(matrix *m);

/* Rounds values [rows, cols] to the precision and writes them; m->values are then the rounded ones. */
void matrix_set(matrix *m, const double *values);

/* The same with a generator of values. */
void matrix_fill(matrix *m, double (*value)(void));

/* Poisons the elements, for outputs; before it and after it the rest of the memory is poison. */
void matrix_poison(matrix *m);

/* Waits for the stream and reads the elements into m->values. Fails if a byte between the rows or around them changed.
 */
void matrix_get(matrix *m);

/* Fails unless the memory is as matrix_set or matrix_poison left it. */
void matrix_expect_unchanged(matrix *m);

/* Reads m and fails unless each element is within allowed of expected plus half an ulp of the precision (one per cent
 * more, for the double rounding). Where NaN is expected any NaN will do; infinities must be equal. */
void matrix_expect(matrix *m, const double *expected, const double *allowed);

/* Reads m and fails unless its elements are bit for bit what expected rounds to. NaN as in matrix_expect. */
void matrix_expect_exact(matrix *m, const double *expected);

/* ---- Operators --------------------------------------------------------------------------------------------------- */

/* The operators' descriptions, kiln__operator_<op>: a test is linked with those that it names, and no others' images.
 */
#define KILN_OPERATOR(name) extern const kiln_operator kiln__operator_##name;
#include "kernels/ops.def"
#undef KILN_OPERATOR

/* An operator's function for a precision. Fails if there is none. */
const kiln_operator_function *operator_function(const kiln_operator *op, precision p);

/* Calls the function and fails unless it refuses with KILN_ERROR_INVALID_ARGUMENT, naming itself and the parameter. */
void expect_refusal(kiln_stream *stream, const kiln_operator_function *function, const void *params, size_t params_size,
                    const char *parameter);

#endif
