/* dlopen, with a record of everything that was tried. */
#ifndef KILN_LOADER_DL_H
#define KILN_LOADER_DL_H

#include "loader/status.h"

/* One function of a driver: its exported name, where its pointer goes, and whether it is required. */
typedef struct kiln__symbol {
    const char *name;
    size_t offset; /* of the pointer in the backend's table */
    bool required;
} kiln__symbol;

/* Opens a driver: first each name with RTLD_NOLOAD (the application may have loaded it), then each name without it.
 * names ends with NULL. Appends each attempt to tried ("libcuda.so.1: cannot open ...; ..."). The handle is never
 * closed: drivers have threads and exit handlers. Returns NULL if none could be opened; *out_name is the name that
 * worked. */
void *kiln__dl_open(const char *const *names, kiln__text *tried, const char **out_name);

/* Keeps the shared object that contains address loaded until exit, even if it is closed. No effect for the main
 * program. */
void kiln__dl_stay(const void *address);

/* Fills a table of function pointers from the handle with dlsym. Missing optional functions become NULL.
 * Returns KILN_OK, or KILN_ERROR_DRIVER_TOO_OLD naming the first missing required function. */
kiln_status kiln__dl_symbols(void *handle, const char *library, const kiln__symbol *symbols, size_t count, void *table);

#endif
