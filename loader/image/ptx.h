/* What PTX source states about itself: its header and entry points. (NVIDIA, "Parallel Thread Execution ISA".)
 *
 * One pass over the text tokenises it, reads the declarations and skips the instructions.
 * The text is not trusted; it need not end with NUL, and a NUL byte in it is refused, because a driver would stop
 * there. */
#ifndef KILN_LOADER_IMAGE_PTX_H
#define KILN_LOADER_IMAGE_PTX_H

#include "loader/image/bytes.h"
#include "loader/status.h"
#include <kiln/inspect.h>

/* A place in the text, between tokens. */
typedef struct kiln__ptx_place {
    kiln__bytes rest;
    uint32_t line;
} kiln__ptx_place;

typedef struct kiln__ptx {
    int32_t version;       /* of the ISA, major * 10 + minor */
    char target[16];       /* "sm_90a" */
    uint32_t kernel_count; /* entry points with a body that the driver finds by name: .visible or .weak */
    bool module_shared;    /* has module-scope static shared memory: the kernels' use of it is unknown */
    kiln__ptx_place body;  /* after the header */
} kiln__ptx;

/* Whether the text, after white space and comments, begins as PTX must. */
bool kiln__ptx_is(const void *bytes, size_t size);

/* Reads the header and all declarations.
 * Returns KILN_OK, KILN_ERROR_CORRUPT_IMAGE (the error text has the line), KILN_ERROR_UNSUPPORTED (32-bit addresses, an
 * unknown parameter type, a parameter aligned to more than 16 bytes). */
kiln_status kiln__ptx_read(const void *bytes, size_t size, kiln__ptx *out_ptx);

/* Reads the next kernel and advances *place, initially ptx->body; kernel_count calls read all. Returns as
 * kiln__ptx_read; KILN_ERROR_NOT_FOUND if there are no more. */
kiln_status kiln__ptx_kernel_next(const kiln__ptx *ptx, kiln__ptx_place *place, kiln_kernel_facts *out_kernel);

/* Finds the first function that the text declares .extern and refers to, but that neither it defines nor the driver
 * provides (vprintf, malloc, free, __assertfail). The text is loaded alone, so the driver would refuse it. *out_name is
 * empty if there is none. Returns KILN_OK; KILN_ERROR_UNSUPPORTED (more than 1000 declarations). */
kiln_status kiln__ptx_unresolved(const kiln__ptx *ptx, kiln__bytes *out_name);

#endif
