#include "triton_error.h"
#include <stdarg.h>
#include <stdio.h>

TRITONSERVER_Error *triton_error(TRITONSERVER_Error_Code code, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return TRITONSERVER_ErrorNew(code, text);
}

void triton_log_error(TRITONSERVER_Error *error, const char *what) {
    char text[1024];
    if (!error) return;
    snprintf(text, sizeof text, "kiln: %s: %s", what, TRITONSERVER_ErrorMessage(error));
    TRITONSERVER_ErrorDelete(error);
    error = TRITONSERVER_LogMessage(TRITONSERVER_LOG_ERROR, __FILE__, __LINE__, text);
    if (error) TRITONSERVER_ErrorDelete(error);
}
