#include "loader/dl.h"
#include <dlfcn.h>
#include <string.h>

void *kiln__dl_open(const char *const *names, kiln__text *tried, const char **out_name) {
    *out_name = NULL;
    for (size_t i = 0; names[i]; i++) {
        void *handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
        if (handle) {
            *out_name = names[i];
            return handle;
        }
    }
    for (size_t i = 0; names[i]; i++) {
        void *handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (handle) {
            *out_name = names[i];
            return handle;
        }
        const char *reason = dlerror();
        kiln__text_add(tried, "%s%s", tried->length ? "; " : "", reason ? reason : names[i]);
    }
    return NULL;
}

void kiln__dl_stay(const void *address) {
    Dl_info info;
    if (dladdr(address, &info) && info.dli_fname) dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

kiln_status kiln__dl_symbols(void *handle, const char *library, const kiln__symbol *symbols, size_t count,
                             void *table) {
    for (size_t i = 0; i < count; i++) {
        void *function = dlsym(handle, symbols[i].name);
        if (!function && symbols[i].required)
            return kiln__fail(KILN_ERROR_DRIVER_TOO_OLD, "%s has no function %s, which kiln needs", library,
                              symbols[i].name);
        memcpy((char *)table + symbols[i].offset, &function, sizeof function);
    }
    return KILN_OK;
}
