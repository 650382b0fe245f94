/* Descriptions of the operators as data, for tools and bindings. ops.h has the rules for every operator. */
#ifndef KILN_OPS_DESCRIBE_H
#define KILN_OPS_DESCRIBE_H

#include <kiln/kiln.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Descriptions: the operators as data, for tools and bindings ------------------------------------------------- */

typedef enum kiln_field_role {
    KILN_FIELD_INPUT,          /* tensor, read */
    KILN_FIELD_OUTPUT,         /* tensor, written */
    KILN_FIELD_UPDATE,         /* tensor, partly written */
    KILN_FIELD_SIZE,           /* int64_t, determined by the tensors' shapes */
    KILN_FIELD_STRIDE,         /* int64_t, of the tensor named by shape */
    KILN_FIELD_OPTION,         /* int32_t, one of the named choices */
    KILN_FIELD_INTEGER,        /* int64_t, any number */
    KILN_FIELD_REAL,           /* float, finite */
    KILN_FIELD_WORKSPACE,      /* pointer */
    KILN_FIELD_WORKSPACE_SIZE, /* size_t */
} kiln_field_role;

/* One field of an operator's params. */
typedef struct kiln_field {
    const char *name;
    kiln_field_role role;
    uint32_t offset;      /* bytes from the start of the params struct */
    uint32_t size;        /* bytes of the field */
    uint32_t optional;    /* non-zero: a tensor that may be NULL */
    const char *dtype;    /* tensors: "part" (the function's precision), a fixed one ("i32"), or the option whose choice
                           * is the dtype ("index_type"); else "" */
    const char *shape;    /* tensors: names of size fields, "rows,cols", also "2*cols" and "batch+1". In
                           * "rows,cols|rows,2*cols" the shape after the bar applies if an optional input is NULL.
                           * Strides: the tensor's name. Sizes: "", or the tensor whose leading dimensions, if it has
                           * several, start with this size and no other tensor has it */
    const char *choices;  /* options: "erf,tanh,quick", in the order of their values; else "" */
    int64_t typical;      /* sizes: the value that benchmarks use; 0: derived from the requested size of the tensors */
    const char *text;     /* one line of help text */
    const char *instead;  /* tensors: the optional tensor that is required if this one is NULL; else NULL */
    const char *follows;  /* sizes: the other size from which benchmarks derive it, "rows", "nodes*batch" or
                           * "4*cols/64+4*rows", where quotients are rounded up; "option:a|b|c": one for each choice of
                           * that option; else NULL */
    const char *integers; /* inputs of indices or lengths: the values that benchmarks pass, "<rows": random numbers
                           * below rows; "=rows": rows each; "/rows": ascending numbers below rows in each row,
                           * "//rows": in the whole tensor; else NULL */
    const void *reserved[1];
} kiln_field;

typedef kiln_status (*kiln_operator_call)(kiln_stream *stream, const void *params, size_t params_size);
typedef kiln_status (*kiln_workspace_call)(kiln_stream *stream, const void *params, size_t params_size,
                                           size_t *out_size);

/* One typed function of an operator. */
typedef struct kiln_operator_function {
    const char *name; /* "softmax_f16" */
    const char *part; /* "f16" */
    kiln_operator_call call;
    kiln_workspace_call workspace_size; /* NULL: the operator needs no workspace */
    const void *reserved[2];
} kiln_operator_function;

typedef struct kiln_operator {
    const char *name;    /* "softmax" */
    const char *summary; /* one line */
    const kiln_bundle *bundle;
    const kiln_field *fields;
    const kiln_operator_function *functions;
    uint32_t field_count;
    uint32_t function_count;
    uint32_t params_size;
    uint32_t reserved;
} kiln_operator;

/* Lists all operators of the library, in the order of kernels/ops.def. *out_operators points to static storage. A
 * program that calls this function links the images of every operator, so it is intended for tools only. Returns
 * KILN_OK or KILN_ERROR_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_all_operators(const kiln_operator *const **out_operators, size_t *out_count);

#ifdef __cplusplus
}
#endif

#endif
