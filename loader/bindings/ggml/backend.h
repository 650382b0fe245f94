/* libggml-kiln.so, a backend of ggml that is loaded at run time: what its files share.
 *
 * A ggml device is a kiln device; a ggml backend is a stream of it with workspace. Each operator of ggml has a row in
 * operators.def: whether kiln does it, the workspace that it needs, and the calls that do it. */
#ifndef GGML_KILN_BACKEND_H
#define GGML_KILN_BACKEND_H

#include "loader/bindings/ggml/map_args.h"
#include <ggml-backend-impl.h>
#include <ggml-impl.h>
#include <kiln/ops.h>
#include <kiln/w4a16.h>
#include <pthread.h>

#define GGML_KILN_TRY(call)          \
    do {                             \
        kiln_status status_ = call;  \
        if (status_) return status_; \
    } while (0)

/* ggml's functions that return nothing have no other way to tell of a failure. */
#define GGML_KILN_MUST(call)                                 \
    do {                                                     \
        if (call) GGML_ABORT("kiln: %s", kiln_last_error()); \
    } while (0)

/* kiln's function of an operator for a type that map writes, and that for its workspace. */
#define GGML_KILN_CALL(operator, type, stream, params)                   \
    ((type) == GGML_KILN_F16    ? kiln_##operator##_f16(stream, params)  \
     : (type) == GGML_KILN_BF16 ? kiln_##operator##_bf16(stream, params) \
                                : kiln_##                                \
                                  operator##_f32(stream, params))
#define GGML_KILN_WORKSPACE(operator, type, stream, params, out_size)                             \
    ((type) == GGML_KILN_F16    ? kiln_##operator##_f16_workspace_size(stream, params, out_size)  \
     : (type) == GGML_KILN_BF16 ? kiln_##operator##_bf16_workspace_size(stream, params, out_size) \
                                : kiln_##                                                         \
                                  operator##_f32_workspace_size(stream, params, out_size))

enum { GGML_KILN_DEVICES = 16 };

/* Weights of 4 bits as gemm_w4a16 takes them. */
typedef struct ggml_kiln_w4a16 {
    struct ggml_kiln_w4a16 *next;
    const void *blocks; /* ggml's, which they were made of; `size` bytes, n rows */
    size_t size;
    int64_t n;
    enum ggml_type blocks_type;
    ggml_kiln_type type; /* of scales and zeros, and of the product: f16 or f32 */
    kiln_w4a16_layout layout;
    char *memory; /* the weights, and from these bytes on scales, and zeros of Q4_1 */
    size_t scales, zeros;
} ggml_kiln_w4a16;

typedef struct ggml_kiln_device {
    kiln_device *device;
    const kiln_kernel *map, *mul_vec;
    kiln_device_info info;
    char name[16], id[16];
    struct ggml_backend_device base;
    struct ggml_backend_buffer_type memory, host; /* host: pinned; the CPU's memory is the host's anyhow */
    pthread_mutex_t lock;
    kiln_stream stream;     /* of the buffers' own copies, under the lock */
    ggml_kiln_w4a16 *w4a16; /* those there are, under the lock */
} ggml_kiln_device;

/* What turns the pairs of a head: the frequencies of one rotation, in device memory. */
typedef struct ggml_kiln_rotation {
    struct ggml_kiln_rotation *next;
    int32_t op_params[GGML_MAX_OP_PARAMS / sizeof(int32_t)];
    const void *factors; /* the tensor that divides them; NULL: none */
    uint64_t graph;      /* for which they were made */
    int64_t *frequencies;
} ggml_kiln_rotation;

typedef struct ggml_kiln_backend {
    ggml_kiln_device *device;
    kiln_stream stream;
    kiln_event *done; /* recorded where another stream waits for this one */
    char *workspace;
    size_t workspace_size;
    ggml_kiln_rotation *rotations;
    uint64_t graph; /* how many were computed */
    struct ggml_backend base;
} ggml_kiln_backend;

/* ---- Devices and buffers ----------------------------------------------------------------------------------------- */

/* Opens a device under the number; false, with a line in ggml's log, if that fails. */
bool ggml_kiln_device_open(ggml_kiln_device *device, kiln_backend_id backend, int ordinal, int number,
                           ggml_backend_reg_t reg);
bool ggml_kiln_on_cpu(const ggml_kiln_device *device);

void ggml_kiln_buffers_describe(ggml_kiln_device *device);

/* On the CPU alone. */
ggml_backend_buffer_t ggml_kiln_buffer_from_host(ggml_kiln_device *device, void *memory, size_t size);

/* Whether a buffer is memory of the device. */
bool ggml_kiln_buffer_is_of(const struct ggml_backend_buffer *buffer, const ggml_kiln_device *device);

/* Makes what gemm_w4a16 takes of a graph's weights of 4 bits, if it was not made before: allocates, and waits. Where
 * there is no memory for it, and for other tensors, it does nothing. */
kiln_status ggml_kiln_w4a16_prepare(ggml_kiln_backend *backend, const struct ggml_tensor *weights);

/* What was made, as long as the blocks are not written; NULL: nothing. */
const ggml_kiln_w4a16 *ggml_kiln_w4a16_find(const ggml_kiln_backend *backend, const struct ggml_tensor *weights);

/* Memory of the device is written, or freed. Nothing that reads it is in flight. */
void ggml_kiln_w4a16_forget(ggml_kiln_device *device, const void *memory, size_t size);

ggml_backend_t ggml_kiln_backend_create(ggml_kiln_device *device);

/* ---- Operators --------------------------------------------------------------------------------------------------- */

typedef struct ggml_kiln_operator {
    bool (*supports)(const struct ggml_tensor *op);
    /* How much workspace run needs; readies what run must not allocate. */
    kiln_status (*prepare)(ggml_kiln_backend *backend, const struct ggml_tensor *op, size_t *out_workspace);
    kiln_status (*run)(ggml_kiln_backend *backend, const struct ggml_tensor *op);
} ggml_kiln_operator;

/* NULL: kiln does not do it with these shapes, types, strides and parameters. */
const ggml_kiln_operator *ggml_kiln_operator_of(const struct ggml_tensor *op);

/* Does the calls of an operator that kiln does. */
kiln_status ggml_kiln_run(ggml_kiln_backend *backend, const struct ggml_tensor *op);

/* Does the RMS norm, alone or behind a sum, that begins at a node of the graph together with the product by a weight
 * behind it, in one call. *out_count is how many nodes were done: 0 where there is no such thing. */
kiln_status ggml_kiln_norm_fused(ggml_kiln_backend *backend, struct ggml_cgraph *graph, int node, int *out_count);

/* Does the tensor have an element to compute, and is it no view of another? */
bool ggml_kiln_computes(const struct ggml_tensor *op);

/* ---- Types and shapes -------------------------------------------------------------------------------------------- */

/* Whether map reads tensors of this type, and whether it writes them; their number in map_args.h. */
bool ggml_kiln_is_read(enum ggml_type type);
bool ggml_kiln_is_written(enum ggml_type type);
ggml_kiln_type ggml_kiln_type_of(enum ggml_type type);

/* Whether map can be given the tensor: a type that it reads, elements on their alignment, less than 2^31 of them in a
 * row and rows in all. */
bool ggml_kiln_is_operand(const struct ggml_tensor *t);

/* Whether the rows of a tensor lie one behind the other with one stride, each contiguous and none in another, so that
 * it is a matrix of ggml_nrows(t) rows to kiln; and that stride, in elements. */
bool ggml_kiln_is_matrix(const struct ggml_tensor *t);
int64_t ggml_kiln_row_stride(const struct ggml_tensor *t);

float ggml_kiln_param(const struct ggml_tensor *op, int number);

/* Whether the result is such a matrix, of a tensor of its type. */
bool ggml_kiln_is_row_operator(const struct ggml_tensor *op);

/* A matrix that a call reads. */
typedef struct ggml_kiln_rows {
    void *data;
    int64_t stride;
} ggml_kiln_rows;

/* The source of a row operator: where it is no matrix it is copied to the result, and done in place. */
kiln_status ggml_kiln_source_rows(ggml_kiln_backend *backend, const struct ggml_tensor *op, ggml_kiln_rows *out_x);

/* ---- map --------------------------------------------------------------------------------------------------------- */

ggml_kiln_operand ggml_kiln_operand_of(const struct ggml_tensor *t);

/* A packed tensor of a type that is written, of the shape of t. */
ggml_kiln_operand ggml_kiln_packed(void *data, ggml_kiln_type type, const struct ggml_tensor *t);

/* Finds a place in workspace, of which *size is taken, for a tensor of a type that is written; GGML_KILN_IN_PLACE where
 * a call reads or writes the tensor itself. */
#define GGML_KILN_IN_PLACE SIZE_MAX
size_t ggml_kiln_place(size_t *size, const struct ggml_tensor *t, ggml_kiln_type type, bool in_place);

/* Exchanges two dimensions. */
ggml_kiln_operand ggml_kiln_permuted(ggml_kiln_operand operand, int one, int other);

/* Launches map. args has the operands, y's size being the index's unless rows are named; the rest is filled in. A scale
 * and an offset of 0 are meant as such. */
kiln_status ggml_kiln_map(ggml_kiln_backend *backend, ggml_kiln_map_args *args);

/* y = x, converted. */
kiln_status ggml_kiln_copy(ggml_kiln_backend *backend, ggml_kiln_operand y, ggml_kiln_operand x);

#endif
