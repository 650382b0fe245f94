/* A call of an operator's function by tensors alone, built from its description (kiln_operator): sizes follow from the
 * shapes of the inputs, those of the outputs from the sizes. A tensor has the dimensions that its description names,
 * and rows are packed. What the description calls options, integers and reals is set once, by name. Knows no device. */
#ifndef KILN_TRITON_OPERATOR_CALL_H
#define KILN_TRITON_OPERATOR_CALL_H

#include "model_config.h"
#include <kiln/ops.h>

enum { CALL_DIMENSIONS = 8 };

/* What a call has of a field of the description. */
typedef struct call_field {
    bool given;                 /* tensor: bound or wanted; size: known */
    bool set;                   /* option, integer, real or size: by the model's configuration */
    int64_t value;              /* option, size */
    TRITONSERVER_DataType type; /* tensor */
    uint32_t dimensions;
    int64_t shape[CALL_DIMENSIONS];
    uint64_t size; /* bytes */
} call_field;

typedef struct operator_call {
    const kiln_operator *op;
    const kiln_operator_function *function;
    call_field *fields;  /* [op->field_count] */
    uint8_t *params;     /* of the call, but for tensors and workspace */
    uint8_t *set_params; /* what is set, and else zeros */
} operator_call;

/* Finds a function. Refused are those that update a tensor in place, which no request has. */
TRITONSERVER_Error *operator_call_create(const char *function, operator_call *out);
void operator_call_free(operator_call *call);

/* Sets a field to a number or to one of its choices. */
TRITONSERVER_Error *operator_call_set(operator_call *call, const char *name, const char *value);

/* Writes the inputs and outputs for a configuration. */
void operator_call_describe(const operator_call *call, json_writer *json);

bool operator_call_is_input(const operator_call *call, uint32_t field);
bool operator_call_is_output(const operator_call *call, uint32_t field);

/* Begins anew: no tensor is bound or wanted. */
void operator_call_begin(operator_call *call);

/* Binds an input by name, and says which field it is. */
TRITONSERVER_Error *operator_call_bind(operator_call *call, const char *name, TRITONSERVER_DataType type,
                                       const int64_t *shape, uint32_t dimensions, uint32_t *out_field);

/* Finds the sizes and the shapes of the outputs that are wanted, and fills the params. */
TRITONSERVER_Error *operator_call_resolve(operator_call *call);

#endif
