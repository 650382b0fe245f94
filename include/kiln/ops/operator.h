/* Declarations shared by the operators' headers. ops.h has the rules for every operator. */
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

/* Declares kiln_<name>_workspace_size(stream, params, &size) in the same way. It computes the exact size in bytes of
 * the workspace that the call needs. It launches nothing and allocates no device memory; functions that have to load
 * the operator's image state this. Work may be divided differently on different devices, so the size is valid only for
 * streams of the same device. */
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

/* The type of the elements of a cache of keys and values. Operators on caches have a field cache_type. */
typedef enum kiln_cache_type {
    KILN_CACHE_OF_PRECISION, /* of the function's precision */
    KILN_CACHE_E4M3 /* codes in E4M3 (Open Compute Project, OFP8), one byte each: an element is its code's value
                     * times a scale. Strides and sizes still count elements */
} kiln_cache_type;

/* The layout of NVFP4's E4M3 scales, one for each 16 columns. */
typedef enum kiln_scale_layout {
    KILN_SCALES_LINEAR, /* row by row */
    KILN_SCALES_128X4   /* tiles of 128 rows by 4 scales, 512 bytes each, row by row; scale c of row r of a tile is its
                         * byte (r % 32) * 16 + (r / 32) * 4 + c: the layout that block-scaled matrix units read */
} kiln_scale_layout;

#ifdef __cplusplus
}
#endif

#endif
