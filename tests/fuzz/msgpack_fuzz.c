#include "loader/image/msgpack.h"
#include "tests/fuzz/targets.h"

/* Reads the values one by one, expecting each type in turn, and skips what is left. */
void fuzz_msgpack(const uint8_t *bytes, size_t size) {
    static volatile uint64_t sum;
    kiln__bytes rest = {bytes, size};
    while (!kiln__msgpack_skip(&rest) && rest.size > 0)
        sum++;
    rest = (kiln__bytes){bytes, size};
    for (unsigned i = 0; rest.size > 0; i++) {
        kiln__msgpack_value value;
        kiln__bytes again = rest;
        if (kiln__msgpack_next(&rest, &value)) return;
        if ((value.type == KILN__MSGPACK_STRING || value.type == KILN__MSGPACK_BINARY) && value.bytes.size)
            sum += (uint64_t)value.bytes.at[0] + value.bytes.at[value.bytes.size - 1];
        sum += kiln__msgpack_is(&value, "amdhsa.kernels");
        if (kiln__msgpack_expect(&again, (kiln__msgpack_type)(i % (KILN__MSGPACK_MAP + 1)), "a value", &value)) sum++;
    }
}
