/* The part of DLPack's C exchange interface that fast calls use, in our own words (dlpack.h of DLPack 1.3): what a type
 * of arrays offers as __dlpack_c_exchange_api__. */
#ifndef KILN_DLPACK_H
#define KILN_DLPACK_H

#include <stdint.h>

enum { DLPACK_MAJOR = 1, DLPACK_CPU = 1 };

typedef struct dlpack_tensor {
    void *data;
    int32_t device_type;
    int32_t device_id;
    int32_t rank;
    uint8_t code; /* of the element's kind */
    uint8_t bits;
    uint16_t lanes;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: packed */
    uint64_t byte_offset;
} dlpack_tensor;

typedef struct dlpack_exchange {
    uint32_t major;
    uint32_t minor;
    struct dlpack_exchange *older;
    void (*unused[3])(void);
    int (*view)(void *array, dlpack_tensor *out_tensor); /* shape and strides are the array's; NULL: there is none */
    int (*current_stream)(int32_t device_type, int32_t device_id, void **out_stream);
} dlpack_exchange;

#endif
