#include "tests/sim/ptx/parse/ptx_syntax.h"
#include <string.h>

static const struct {
    const char *name;
    uint32_t bits;
    ptx_type_class class;
} types[PTX_TYPE_COUNT] = {
    [PTX_NO_TYPE] = {"", 0, PTX_CLASS_NONE},
#define PTX_TYPE(name, bits, class) [PTX_##name] = {#name, bits, PTX_CLASS_##class},
#include "tests/sim/ptx/parse/ptx_types.def"
#undef PTX_TYPE
};

ptx_type ptx_type_find(const char *name, size_t length) {
    for (int i = PTX_NO_TYPE + 1; i < PTX_TYPE_COUNT; i++)
        if (strlen(types[i].name) == length && memcmp(types[i].name, name, length) == 0) return (ptx_type)i;
    return PTX_NO_TYPE;
}

const char *ptx_type_name(ptx_type type) {
    return types[type].name;
}

uint32_t ptx_type_bits(ptx_type type) {
    return types[type].bits;
}

ptx_type_class ptx_type_class_of(ptx_type type) {
    return types[type].class;
}
