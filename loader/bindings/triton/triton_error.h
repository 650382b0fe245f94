/* Errors of the server's, and what a function does with one. */
#ifndef KILN_TRITON_ERROR_H
#define KILN_TRITON_ERROR_H

#include "triton_abi.h"

/* Returns from a function with the error of a call that failed. */
#define TRITON_TRY(call)                        \
    do {                                        \
        TRITONSERVER_Error *try_error = (call); \
        if (try_error) return try_error;        \
    } while (0)

/* A new error; the text is cut to 1023 bytes. */
__attribute__((format(printf, 2, 3))) TRITONSERVER_Error *triton_error(TRITONSERVER_Error_Code code, const char *format,
                                                                       ...);

/* Logs an error that nobody can be told of, and deletes it. NULL is accepted. */
void triton_log_error(TRITONSERVER_Error *error, const char *what);

#endif
