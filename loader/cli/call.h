/* A call of an operator's function, built from its description (kiln_operator): arrays are bound to the tensor fields,
 * the sizes follow from their shapes, and the params struct from both.
 *
 * Shapes. A tensor of n names, like [rows, cols], takes an array of any number of dimensions: the last n - 1 dimensions
 * stand for the last n - 1 names and all before them fold into the first name, so that [2, 3, 64] has 6 rows;
 * dimensions that are missing in front are 1. Arrays whose leading dimensions make the same size must agree in them,
 * but for a multiple of it ("3*batch"), and an output gets them back; it lacks those that the input lacks. Arrays are
 * packed, so strides are never set. */
#ifndef KILN_CLI_CALL_H
#define KILN_CLI_CALL_H

#include "loader/cli/cli.h"
#include "loader/cli/npy.h"
#include <kiln/ops.h>

typedef struct call_field call_field;

/* One field of the params struct. */
struct call_field {
    const kiln_field *description;
    bool given;    /* tensor: bound, or an output that is wanted; size: known; else: set */
    bool wanted;   /* tensor: to be downloaded */
    bool left_out; /* optional tensor: of a random call */
    bool scaling;  /* size: of a random call, without a typical value */
    bool follows;  /* size: of a random or a planned call, taken from another size */
    int64_t value; /* size, option, integer; of a real its bits */

    npy_header array; /* tensor: dtype and shape; data_offset is unused */
    void *host;       /* input: its bytes; output: after call_download. Owned */
    void *device;     /* tensor: after call_upload */

    const call_field *source;  /* size: the tensor that it was taken from; NULL: set by hand */
    const call_field *leading; /* size: the first tensor whose leading dimensions make it */
};

typedef struct operator_call {
    const kiln_operator *op;
    const kiln_operator_function *function;
    call_field *fields; /* op->field_count of them */
    void *params;
    void *workspace; /* after call_upload */
    size_t workspace_size;
    npy_dtype bf16; /* how bf16 outputs are written: as the inputs are */
} operator_call;

/* Begins a call of the function of that name. The functions that return int give CLI_OK, or the exit code after a
 * message; a call is to be freed in any case. */
int call_begin(operator_call *call, const char *command, const char *function);

/* The field of that name, or NULL. */
call_field *call_find(const operator_call *call, const char *name);

/* Binds an array to an input; data becomes the call's if this succeeds. */
int call_bind(operator_call *call, const char *name, const npy_header *array, void *data);

/* Wants an output, or what becomes of a tensor that is updated. *out_field is the field. */
int call_want(operator_call *call, const char *name, const call_field **out_field);

/* Sets an option to one of its choices, or a size, an integer or a real to a number. Errors begin with the command
 * line's option, "--set " or "". */
int call_set(operator_call *call, const char *option, const char *name, const char *value);

/* Whether there is an optional tensor of that name; a planned call then has it. */
bool call_give(operator_call *call, const char *name);

/* Leaves an optional tensor out of a random call. */
int call_leave_out(operator_call *call, const char *name);

/* Finds the sizes and the shapes of the outputs. Everything must be bound, wanted and set. */
int call_resolve(operator_call *call);

/* Gives a tensor the dtype and the shape that follow from the sizes; call_resolve does it for the outputs. A size of 0
 * must be that of an array: where it is set, the operator may take it for another, which the tensor would lack. */
int call_shape(operator_call *call, call_field *tensor);

/* What a text like those of a description, "rows" or "4*rows/64+4*batch", says with the sizes as they are; INT64_MAX,
 * of which call_shape makes an error, if it is more. */
int64_t call_number(operator_call *call, const kiln_field *field, const char *text);

/* Gives the sizes that follow others their values. */
void call_follow(operator_call *call);

/* Instead of binding and resolving: gives the sizes that are not set values with which the largest tensor has about
 * size bytes, and every input random numbers, always the same, or the integers that its description names; optional
 * tensors too, unless they are left out. Those of integers, which are lengths, indices and seeds, have random numbers
 * as well, but are not given. */
int call_randomise(operator_call *call, uint64_t size);

/* Whether a size is of optional tensors alone, none of which is given: then it is 0. */
bool call_size_is_unused(operator_call *call, const call_field *size);

/* Instead of binding, resolving and uploading, for a stream of kiln_plan_open: gives the sizes that are not set their
 * typical values, and every tensor, but of the optional ones those alone that are given, and the workspace, an address
 * at which nothing is. */
int call_plan(operator_call *call, kiln_stream *stream);

/* Allocates all tensors and the workspace on the stream's device, copies the inputs there and fills the params. */
int call_upload(operator_call *call, kiln_stream *stream);

/* Calls the function. */
kiln_status call_launch(operator_call *call, kiln_stream *stream);

/* Copies the outputs to call_field.host after waiting for the stream. */
int call_download(operator_call *call, kiln_stream *stream);

/* Releases everything; device is that of call_upload's stream, or NULL if there was none. */
void call_free(operator_call *call, kiln_device *device);

/* The element type of a tensor field in this call. */
npy_dtype call_dtype(const operator_call *call, const kiln_field *field);

/* All that it may be, by an option of the call: "i32 or i64". The caller frees it. */
char *call_dtype_names(const operator_call *call, const kiln_field *field);

/* The name of the choice that an option has, which the caller frees. */
char *call_choice(const call_field *option);

bool call_is_tensor(const kiln_field *field);

/* "[2, 3, 64]" */
enum { SHAPE_TEXT_SIZE = 128 };
const char *shape_text(const npy_header *array, char text[SHAPE_TEXT_SIZE]);

/* Prints the parameters of the called function, as `kiln run --help FUNCTION` shows them. */
void call_print_help(const operator_call *call);

/* Prints the names of all functions, a line for each operator. */
int call_print_functions(const char *command);

#endif
