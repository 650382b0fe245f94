/* Returns from a function with the status of a call that failed. */
#ifndef LLAMA_TRY_H
#define LLAMA_TRY_H

#define TRY(call)                                     \
    do {                                              \
        kiln_status try_status = (call);              \
        if (try_status != KILN_OK) return try_status; \
    } while (0)

#endif
