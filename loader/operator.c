#include "loader/operator.h"
#include <string.h>

kiln_status kiln__operator_load(kiln_stream *stream, unsigned slot, const kiln_bundle *bundle, const char *part) {
    const kiln_module *module;
    KILN__TRY(kiln__module_get_on(stream, bundle, part, &module));
    atomic_store_explicit(&stream->device->operators[slot], module, memory_order_release);
    return KILN_OK;
}

kiln_status kiln__params_copy(const char *name, const char *argument, void *copy, size_t size, const void *params,
                              size_t params_size) {
    size_t common = params_size < size ? params_size : size;
    for (size_t i = common; i < params_size; i++)
        KILN__REQUIRE(!((const char *)params)[i],
                      "%s: %s has %zu bytes, this kiln knows %zu, and a byte beyond them is not zero", name, argument,
                      params_size, size);
    memset(copy, 0, size);
    memcpy(copy, params, common);
    return KILN_OK;
}
