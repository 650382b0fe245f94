/* Models of one operator: a function of kiln's behind the server, its tensors as they are described. */
#ifndef KILN_TRITON_OPERATOR_MODEL_H
#define KILN_TRITON_OPERATOR_MODEL_H

#include "operator_call.h"

typedef struct operator_model operator_model;
typedef struct operator_instance operator_instance;

/* Takes the configuration, of which the parameter function names the operator, and completes that of the server where
 * it is asked to. */
TRITONSERVER_Error *operator_model_open(TRITONBACKEND_Model *handle, model_config *config, operator_model **out);
void operator_model_close(operator_model *model);

/* Opens the instance's device and loads the function's kernels. */
TRITONSERVER_Error *operator_instance_open(operator_model *model, TRITONBACKEND_ModelInstance *handle,
                                           operator_instance **out);
void operator_instance_close(operator_instance *instance);

/* Answers a request before it returns. */
void operator_instance_execute(operator_instance *instance, TRITONBACKEND_Request *request);

#endif
