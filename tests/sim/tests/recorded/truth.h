/* The cases of tests/sim/recorded/h100: a kernel, its inputs, and the bytes that an H100 left behind. README.md there
 * gives the format, whose structs these are. */
#ifndef KILN_TESTS_SIM_TRUTH_H
#define KILN_TESTS_SIM_TRUTH_H

#include <stddef.h>
#include <stdint.h>

#define TRUTH_FOLDER "tests/sim/recorded/h100"

typedef struct truth_head {
    char magic[8];
    uint32_t grid[3], block[3], cluster[3]; /* cluster 0: no attribute */
    uint32_t shared_bytes;
    uint32_t flags; /* 1: the attribute of programmatic stream serialization */
    uint32_t error; /* 0, or the CUresult that the launch ends in */
    uint32_t field_count, buffer_count, block_bytes, parameter_count;
    char ptx[64], kernel[64];
} truth_head;

typedef enum truth_fill { TRUTH_BYTES, TRUTH_REPEATED, TRUTH_STEPS } truth_fill;
enum { TRUTH_OUTPUT = 1, TRUTH_OPAQUE = 2 };

typedef struct truth_buffer {
    uint64_t size;
    uint32_t fill; /* truth_fill */
    uint32_t flags;
    uint64_t initial, expected; /* offsets in the file; of TRUTH_REPEATED the byte */
} truth_buffer;

typedef enum truth_kind { TRUTH_VALUE, TRUTH_ADDRESS, TRUTH_MAP } truth_kind;

typedef struct truth_field {
    uint32_t kind; /* truth_kind */
    uint32_t parameter, offset, size;
    uint64_t value;
    uint32_t buffer, inner;
    uint64_t zero;
} truth_field;

/* A tensor map that a field asks for; im2col: lower to pixels, else box. */
typedef struct truth_map {
    uint32_t im2col, type, rank, interleave, swizzle, promotion, fill, zero;
    uint64_t dims[5], strides[4];
    uint32_t box[5], steps[5];
    int32_t lower[3], upper[3];
    uint32_t channels, pixels;
    uint64_t offset;
} truth_map;

typedef struct truth_case {
    uint8_t *bytes; /* of the file; the other pointers point into it */
    size_t size;
    const truth_head *head;
    const truth_buffer *buffers;
    const truth_field *fields;
} truth_case;

/* Reads a file, and fails the running test if it is not as the format says. To be freed with truth_free. */
truth_case truth_read(const char *path);
void truth_free(truth_case *x);

/* Fills size bytes at memory as a buffer begins. */
void truth_fill_buffer(const truth_case *x, const truth_buffer *buffer, uint8_t *memory);

/* What truth_compare finds. */
typedef struct truth_verdict {
    uint64_t within; /* approximations in their bounds, of other bits */
    char wrong[256]; /* the first element that is neither that nor equal; "" */
} truth_verdict;

/* Compares the results of one instruction, "ex2.approx.f32", and the first operands of which they were made. */
void truth_compare_results(const char *name, const uint8_t *operands, const uint8_t *wanted, const uint8_t *got,
                           uint64_t size, truth_verdict *verdict);

/* Compares what a kernel left in a buffer with what the device left. Where the comment of the kernel's text names the
 * instructions whose results stand one after the other, and they are approximations, twice the error that the ISA
 * states is allowed, since both sides have it; where it states none, anything. operands: their first ones. */
void truth_compare(const char *text, const uint8_t *operands, const uint8_t *recorded, const uint8_t *simulated,
                   uint64_t size, truth_verdict *verdict);

#endif
