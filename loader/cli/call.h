/* A call of an operator's function, built from the operator's description (kiln_operator): arrays are bound to tensor
 * fields, sizes are inferred from their shapes, and the params struct is filled from both.
 *
 * Shapes. A tensor of n names, like [rows, cols], takes an array of any number of dimensions: the last n - 1 dimensions
 * match the last n - 1 names and all before them fold into the first name, so that [2, 3, 64] has 6 rows; missing
 * leading dimensions are 1. Arrays whose leading dimensions fold into the same size must agree in them, except for
 * multiples of it ("3*batch"). Outputs get the inputs' leading dimensions; those missing there are missing in the
 * output too. Arrays are packed, so strides are never set. */
#ifndef KILN_CLI_CALL_H
#define KILN_CLI_CALL_H

#include "loader/cli/cli.h"
#include "loader/cli/npy.h"
#include <kiln/ops.h>

typedef struct call_field call_field;

/* One field of the params struct. */
struct call_field {
    const kiln_field *description;
    bool given;    /* tensor: bound, or a wanted output; size: known; else: set */
    bool wanted;   /* tensor: to be downloaded */
    bool left_out; /* optional tensor: omitted from a random call */
    bool scaling;  /* size in a random call: has no typical value */
    bool follows;  /* size in a random or planned call: derived from another size */
    int64_t value; /* size, option or integer; the bits of a real */

    npy_header array; /* tensor: dtype and shape; data_offset is unused */
    void *host;       /* input: its bytes; output: after call_download. Owned */
    void *device;     /* tensor: after call_upload */

    const call_field *source;  /* size: the tensor that determined it; NULL: set explicitly */
    const call_field *leading; /* size: the first tensor whose leading dimensions fold into it */
};

typedef struct operator_call {
    const kiln_operator *op;
    const kiln_operator_function *function;
    call_field *fields; /* op->field_count of them */
    void *params;
    void *workspace; /* after call_upload */
    size_t workspace_size;
    npy_dtype bf16; /* how bf16 outputs are written: like the inputs */
} operator_call;

/* Begins a call of the named function. Functions that return int return CLI_OK, or the exit code after a message. Call
 * call_free in any case. */
int call_begin(operator_call *call, const char *command, const char *function);

/* The field of that name, or NULL. */
call_field *call_find(const operator_call *call, const char *name);

/* Binds an array to an input. On success the call owns data. */
int call_bind(operator_call *call, const char *name, const npy_header *array, void *data);

/* Requests an output, or the final value of a tensor that is updated in place. *out_field is its field. */
int call_want(operator_call *call, const char *name, const call_field **out_field);

/* Sets an option to one of its choices, or a size, an integer or a real to a number. Error messages begin with option:
 * "--set " or "". */
int call_set(operator_call *call, const char *option, const char *name, const char *value);

/* Includes the optional tensor of that name in a planned call. False if there is none. */
bool call_give(operator_call *call, const char *name);

/* Omits an optional tensor from a random call. */
int call_leave_out(operator_call *call, const char *name);

/* Infers the sizes and the shapes of the outputs, once everything is bound, wanted and set. */
int call_resolve(operator_call *call);

/* Gives a tensor the dtype and the shape that follow from the sizes; call_resolve does it for the outputs. A size of 0
 * must come from an array: the operator may take one that was set explicitly to mean another size, for which the tensor
 * would be too small. */
int call_shape(operator_call *call, call_field *tensor);

/* Evaluates an expression of a description, like "rows" or "4*rows/64+4*batch", with the current sizes. INT64_MAX on
 * overflow, which call_shape reports as an error. */
int64_t call_number(operator_call *call, const kiln_field *field, const char *text);

/* Sets the sizes that are derived from others. */
void call_follow(operator_call *call);

/* Replaces binding and resolving: chooses the unset sizes so that the largest tensor has about size bytes, and fills
 * every input with reproducible random numbers or the integers that its description names, optional tensors too, unless
 * left out. Optional tensors of integers (lengths, indices, seeds) are filled as well but not given. */
int call_randomise(operator_call *call, uint64_t size);

/* Whether a size is used only by optional tensors, none of which is given; it is then 0. */
bool call_size_is_unused(operator_call *call, const call_field *size);

/* Replaces binding, resolving and uploading, for a stream from kiln_plan_open: sets the unset sizes to their typical
 * values, and gives the workspace and every tensor, except optional ones that are not given, an address with no memory
 * behind it. */
int call_plan(operator_call *call, kiln_stream *stream);

/* Allocates all tensors and the workspace on the stream's device, copies the inputs there and fills the params. */
int call_upload(operator_call *call, kiln_stream *stream);

/* Calls the function. */
kiln_status call_launch(operator_call *call, kiln_stream *stream);

/* Copies the outputs to call_field.host after waiting for the stream. */
int call_download(operator_call *call, kiln_stream *stream);

/* Releases everything. device is that of call_upload's stream, or NULL if it was not called. */
void call_free(operator_call *call, kiln_device *device);

/* The element type of a tensor field in this call. */
npy_dtype call_dtype(const operator_call *call, const kiln_field *field);

/* All types that it may have, depending on an option: "i32 or i64". The caller frees the text. */
char *call_dtype_names(const operator_call *call, const kiln_field *field);

/* The name of an option's current choice, which the caller frees. */
char *call_choice(const call_field *option);

bool call_is_tensor(const kiln_field *field);

/* "[2, 3, 64]" */
enum { SHAPE_TEXT_SIZE = 128 };
const char *shape_text(const npy_header *array, char text[SHAPE_TEXT_SIZE]);

/* Prints the parameters of the called function, as `kiln run --help FUNCTION` shows them. */
void call_print_help(const operator_call *call);

/* Prints the names of all functions, one line per operator. */
int call_print_functions(const char *command);

#endif
