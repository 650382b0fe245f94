/* What the operators' headers share. ops.h has the rules for every operator. */
#ifndef KILN_OPS_OPERATOR_H
#define KILN_OPS_OPERATOR_H

#include <kiln/kiln.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Declares kiln_<name>(stream, params) and the exported function that it calls. */
#define KILN_OPERATOR_FUNCTION(name, params_type)                                                                 \
    KILN_API kiln_status kiln_##name##_sized(kiln_stream *stream, const params_type *params, size_t params_size); \
    static inline kiln_status kiln_##name(kiln_stream *stream, const params_type *params) {                       \
        return kiln_##name##_sized(stream, params, sizeof(params_type));                                          \
    }

/* Declares kiln_<name>_workspace_size(stream, params, &size) likewise: it computes the exact bytes of workspace that
 * the call would need. It launches nothing and allocates no device memory; those that have to load the operator's image
 * say so. Work may be divided differently on different devices, so the size is valid for streams of this device. */
#define KILN_WORKSPACE_FUNCTION(name, params_type)                                                          \
    KILN_API kiln_status kiln_##name##_workspace_size_sized(kiln_stream *stream, const params_type *params, \
                                                            size_t params_size, size_t *out_size);          \
    static inline kiln_status kiln_##name##_workspace_size(kiln_stream *stream, const params_type *params,  \
                                                           size_t *out_size) {                              \
        return kiln_##name##_workspace_size_sized(stream, params, sizeof(params_type), out_size);           \
    }

/* The type of the elements of a tensor of ids, positions or slots. Operators that accept both types have a field
 * index_type. */
typedef enum kiln_index_type { KILN_INDEX_I32, KILN_INDEX_I64 } kiln_index_type;

/* What the elements of a cache of keys and values are. Operators on caches have a field cache_type. */
typedef enum kiln_cache_type {
    KILN_CACHE_OF_PRECISION, /* of the function's precision */
    KILN_CACHE_E4M3 /* codes in E4M3 (Open Compute Project, OFP8), one byte each: an element is its code's value
                     * times a scale. Strides and sizes still count elements */
} kiln_cache_type;

/* The order of NVFP4's scales of E4M3, one for each 16 columns. */
typedef enum kiln_scale_layout {
    KILN_SCALES_LINEAR, /* row by row */
    KILN_SCALES_128X4   /* tiles of 128 rows by 4 scales, 512 bytes each, row by row; scale c of row r of a tile is byte
                         * (r % 32) * 16 + (r / 32) * 4 + c of it: what block-scaled matrix units read */
} kiln_scale_layout;

#ifdef __cplusplus
}
#endif

#endif
