/* Weights of Q4_0 and Q4_1 in the form that gemm_w4a16 takes, beside the buffers that have ggml's blocks: made by the
 * host when a graph first multiplies by them, and forgotten when the blocks are written or freed. */
#include "loader/bindings/ggml/backend.h"

enum { GROUP = 32, ALIGNMENT = 256 };

static const struct ggml_backend_buffer *buffer_of(const struct ggml_tensor *t) {
    return t->view_src ? t->view_src->buffer : t->buffer;
}

/* Whether the tensor is a matrix of such blocks, and whoever writes to it has to tell. */
static bool is_weights(const ggml_kiln_device *device, const struct ggml_tensor *t) {
    return (t->type == GGML_TYPE_Q4_0 || t->type == GGML_TYPE_Q4_1) && t->op == GGML_OP_NONE && !t->view_src &&
           ggml_is_contiguous(t) && t->ne[2] == 1 && t->ne[3] == 1 && t->ne[0] <= INT32_MAX && t->ne[1] <= INT32_MAX &&
           ggml_kiln_buffer_is_of(buffer_of(t), device);
}

static ggml_kiln_w4a16 *find(const ggml_kiln_device *device, const struct ggml_tensor *t) {
    for (ggml_kiln_w4a16 *w = device->w4a16; w; w = w->next)
        if (w->blocks == t->data && w->size == ggml_nbytes(t) && w->n == t->ne[1] && w->blocks_type == t->type)
            return w;
    return NULL;
}

/* ---- Making ------------------------------------------------------------------------------------------------------ */

static size_t aligned(size_t size) {
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Converts blocks on the host; memory there has room for what the device is to have, and scratch for the weights. */
static kiln_status convert(const struct ggml_tensor *t, const ggml_kiln_w4a16 *w, const void *blocks, char *memory,
                           uint8_t *scratch) {
    const kiln_w4a16_target target = {
        .weights = scratch,
        .scales = memory + w->scales,
        .zeros = memory + w->zeros,
        .n = t->ne[1],
        .k = t->ne[0],
        .group = GROUP,
        .type = w->type == GGML_KILN_F16 ? KILN_W4A16_F16 : KILN_W4A16_F32,
    };
    if (t->type == GGML_TYPE_Q4_0)
        GGML_KILN_TRY(kiln_w4a16_from_q4_0(&target, blocks));
    else
        GGML_KILN_TRY(kiln_w4a16_from_q4_1(&target, blocks));
    return kiln_w4a16_repack(w->layout, t->ne[1], t->ne[0], scratch, (uint8_t *)memory);
}

/* Fetches the blocks, converts them and puts the result on the device. */
static kiln_status fill(ggml_kiln_backend *backend, const struct ggml_tensor *t, const ggml_kiln_w4a16 *w,
                        size_t size) {
    const size_t codes = (size_t)(t->ne[0] / 2 * t->ne[1]), blocks = ggml_nbytes(t);
    char *host = malloc(aligned(size) + aligned(codes) + blocks);
    if (!host) return KILN_ERROR_OUT_OF_MEMORY;
    char *scratch = host + aligned(size), *fetched = scratch + aligned(codes);
    kiln_status status = kiln_copy(&backend->stream, fetched, t->data, blocks, KILN_COPY_TO_HOST);
    if (!status) status = kiln_stream_sync(&backend->stream);
    if (!status) status = convert(t, w, fetched, host, (uint8_t *)scratch);
    if (!status) status = kiln_copy(&backend->stream, w->memory, host, size, KILN_COPY_TO_DEVICE);
    if (!status) status = kiln_stream_sync(&backend->stream);
    free(host);
    return status;
}

/* In f16 where matrix units take that, unless the product is to be in f32. */
static kiln_status make(ggml_kiln_backend *backend, const struct ggml_tensor *t, ggml_kiln_w4a16 **out) {
    kiln_w4a16_layout layout;
    GGML_KILN_TRY(kiln_w4a16_layout_of(&backend->stream, &layout));
    if (t->ne[1] % 16 || t->ne[0] % 64) layout = KILN_W4A16_CANONICAL;
    const ggml_kiln_type type = layout == KILN_W4A16_CANONICAL ? GGML_KILN_F32 : GGML_KILN_F16;
    const size_t codes = (size_t)(t->ne[0] / 2 * t->ne[1]);
    const size_t scales = (size_t)(t->ne[0] / GROUP * t->ne[1]) * (type == GGML_KILN_F32 ? 4 : 2);
    ggml_kiln_w4a16 *w = malloc(sizeof *w);
    if (!w) return KILN_ERROR_OUT_OF_MEMORY;
    *w = (ggml_kiln_w4a16){.blocks = t->data,
                           .size = ggml_nbytes(t),
                           .n = t->ne[1],
                           .blocks_type = t->type,
                           .type = type,
                           .layout = layout,
                           .scales = aligned(codes)};
    w->zeros = w->scales + aligned(scales);
    const size_t size = t->type == GGML_TYPE_Q4_1 ? w->zeros + scales : w->scales + scales;
    kiln_status status = kiln_memory_alloc(backend->device->device, size, (void **)&w->memory);
    if (!status) status = fill(backend, t, w, size);
    if (status) {
        kiln_memory_free(backend->device->device, w->memory);
        free(w);
        return status;
    }
    *out = w;
    return KILN_OK;
}

const ggml_kiln_w4a16 *ggml_kiln_w4a16_find(const ggml_kiln_backend *backend, const struct ggml_tensor *weights) {
    if (!is_weights(backend->device, weights)) return NULL;
    pthread_mutex_lock(&backend->device->lock);
    const ggml_kiln_w4a16 *w = find(backend->device, weights);
    pthread_mutex_unlock(&backend->device->lock);
    return w;
}

kiln_status ggml_kiln_w4a16_prepare(ggml_kiln_backend *backend, const struct ggml_tensor *weights) {
    ggml_kiln_device *device = backend->device;
    ggml_kiln_w4a16 *made = NULL;
    if (!is_weights(device, weights)) return KILN_OK;
    pthread_mutex_lock(&device->lock);
    kiln_status status = find(device, weights) ? KILN_OK : make(backend, weights, &made);
    if (made) {
        made->next = device->w4a16;
        device->w4a16 = made;
    }
    pthread_mutex_unlock(&device->lock);
    return status == KILN_ERROR_OUT_OF_MEMORY ? KILN_OK : status; /* the product does without */
}

void ggml_kiln_w4a16_forget(ggml_kiln_device *device, const void *memory, size_t size) {
    pthread_mutex_lock(&device->lock);
    for (ggml_kiln_w4a16 **at = &device->w4a16; *at;) {
        ggml_kiln_w4a16 *w = *at;
        if ((const char *)w->blocks >= (const char *)memory + size ||
            (const char *)w->blocks + w->size <= (const char *)memory) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        kiln_memory_free(device->device, w->memory);
        free(w);
    }
    pthread_mutex_unlock(&device->lock);
}
