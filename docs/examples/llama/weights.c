#include "weights.h"
#include "half.h"
#include "try.h"
#include <kiln/ops.h>

static const double THETA = 10000;

const char *llama_precision_name(llama_precision precision) {
    static const char *const names[] = {[LLAMA_F32] = "f32", [LLAMA_F16] = "f16", [LLAMA_BF16] = "bf16"};
    return names[precision];
}

/* Converts count values into host memory of the stream's device. */
static void convert(void *to, const float *from, size_t count, llama_precision precision) {
    uint16_t *halves = to;
    if (precision == LLAMA_F32) memcpy(to, from, count * sizeof *from);
    for (size_t i = 0; i < count && precision != LLAMA_F32; i++)
        halves[i] = precision == LLAMA_F16 ? to_f16(from[i]) : to_bf16(from[i]);
}

kiln_status llama_weights_put(kiln_stream *stream, const llama_weights *w, void *to, const float *from, size_t count) {
    enum { CHUNK = 1 << 20 }; /* elements */
    void *staging = NULL;
    TRY(kiln_host_alloc(stream->device, CHUNK * w->element, &staging));
    kiln_status status = KILN_OK;
    for (size_t done = 0; done < count && status == KILN_OK; done += CHUNK) {
        size_t some = count - done < CHUNK ? count - done : CHUNK;
        convert(staging, from + done, some, w->precision);
        status = kiln_copy(stream, (char *)to + done * w->element, staging, some * w->element, KILN_COPY_TO_DEVICE);
        if (status == KILN_OK) status = kiln_stream_sync(stream);
    }
    kiln_host_free(stream->device, staging);
    return status;
}

static kiln_status upload_arrays(kiln_stream *stream, const llama_checkpoint *checkpoint, uint32_t left_out,
                                 void (*progress)(size_t done, size_t all), llama_weights *w) {
    for (size_t i = 0; i < LLAMA_WEIGHT_COUNT; i++) {
        const llama_weight *weight = &checkpoint->weights[i];
        size_t count = weight->rows * weight->cols;
        if (progress) progress(i, LLAMA_WEIGHT_COUNT);
        if (i == LLAMA_old_rope || left_out >> i & 1) continue;
        w->layer_size[i] = count * w->element;
        count *= weight->layers;
        TRY(kiln_memory_alloc(stream->device, count * w->element, &w->arrays[i]));
        TRY(llama_weights_put(stream, w, w->arrays[i], weight->values, count));
    }
    if (!checkpoint->own_classifier) w->arrays[LLAMA_classifier] = w->arrays[LLAMA_embedding];
    if (progress) progress(LLAMA_WEIGHT_COUNT, LLAMA_WEIGHT_COUNT);
    return KILN_OK;
}

static kiln_status upload_frequencies(kiln_stream *stream, llama_weights *w) {
    int64_t pairs = llama_head_dim(&w->config) / 2;
    size_t size = (size_t)pairs * sizeof *w->frequencies;
    void *memory, *host;
    TRY(kiln_memory_alloc(stream->device, size, &memory));
    w->frequencies = memory;
    TRY(kiln_host_alloc(stream->device, size, &host));
    kiln_status status = kiln_rope_frequencies(THETA, NULL, pairs, host);
    if (status == KILN_OK) status = kiln_copy(stream, memory, host, size, KILN_COPY_TO_DEVICE);
    if (status == KILN_OK) status = kiln_stream_sync(stream);
    kiln_host_free(stream->device, host);
    return status;
}

kiln_status llama_weights_upload(kiln_stream *stream, const llama_checkpoint *checkpoint, llama_precision precision,
                                 void (*progress)(size_t done, size_t all), llama_weights *out) {
    return llama_weights_upload_without(stream, checkpoint, precision, 0, progress, out);
}

kiln_status llama_weights_upload_without(kiln_stream *stream, const llama_checkpoint *checkpoint,
                                         llama_precision precision, uint32_t left_out,
                                         void (*progress)(size_t done, size_t all), llama_weights *out) {
    *out = (llama_weights){.config = checkpoint->config,
                           .precision = precision,
                           .element = precision == LLAMA_F32 ? sizeof(float) : sizeof(uint16_t)};
    TRY(upload_frequencies(stream, out));
    return upload_arrays(stream, checkpoint, left_out, progress, out);
}

void llama_weights_free(kiln_device *device, llama_weights *w) {
    if (w->arrays[LLAMA_classifier] == w->arrays[LLAMA_embedding]) w->arrays[LLAMA_classifier] = NULL;
    for (size_t i = 0; i < LLAMA_WEIGHT_COUNT; i++)
        kiln_memory_free(device, w->arrays[i]);
    kiln_memory_free(device, w->frequencies);
    *w = (llama_weights){0};
}
