/* A ggml backend: a stream of a device. Graphs are put on it and not waited for. */
#include "loader/bindings/ggml/backend.h"
#include <string.h>

static const char *get_name(ggml_backend_t base) {
    return ((ggml_kiln_backend *)base->context)->device->name;
}

static void free_backend(ggml_backend_t base) {
    ggml_kiln_backend *backend = base->context;
    kiln_device *device = backend->device->device;
    (void)kiln_stream_sync(&backend->stream); /* what a lost device still does with its memory nobody can say */
    while (backend->rotations) {
        ggml_kiln_rotation *rotation = backend->rotations;
        backend->rotations = rotation->next;
        kiln_memory_free(device, rotation->frequencies);
        free(rotation);
    }
    kiln_memory_free(device, backend->workspace);
    kiln_event_destroy(backend->done);
    kiln_stream_close(&backend->stream);
    free(backend);
}

/* ---- Tensors ----------------------------------------------------------------------------------------------------- */

static void set_tensor_async(ggml_backend_t base, struct ggml_tensor *tensor, const void *data, size_t offset,
                             size_t size) {
    ggml_kiln_backend *backend = base->context;
    ggml_kiln_w4a16_forget(backend->device, (char *)tensor->data + offset, size);
    GGML_KILN_MUST(kiln_copy(&backend->stream, (char *)tensor->data + offset, data, size, KILN_COPY_TO_DEVICE));
}

static void get_tensor_async(ggml_backend_t base, const struct ggml_tensor *tensor, void *data, size_t offset,
                             size_t size) {
    ggml_kiln_backend *backend = base->context;
    GGML_KILN_MUST(kiln_copy(&backend->stream, data, (const char *)tensor->data + offset, size, KILN_COPY_TO_HOST));
}

static const struct ggml_backend_buffer *buffer_of(const struct ggml_tensor *tensor) {
    return tensor->view_src ? tensor->view_src->buffer : tensor->buffer;
}

static bool is_kiln(ggml_backend_t base) {
    return base->iface.free == free_backend;
}

/* Within a device: after what the source's stream has been given so far. */
static bool cpy_tensor_async(ggml_backend_t from, ggml_backend_t to, const struct ggml_tensor *source,
                             struct ggml_tensor *target) {
    if (!is_kiln(from) || !is_kiln(to)) return false;
    ggml_kiln_backend *source_backend = from->context, *backend = to->context;
    ggml_kiln_device *device = backend->device;
    if (source_backend->device != device || !ggml_kiln_buffer_is_of(buffer_of(source), device) ||
        !ggml_kiln_buffer_is_of(buffer_of(target), device))
        return false;
    ggml_kiln_w4a16_forget(device, target->data, ggml_nbytes(source));
    if (source_backend != backend) {
        GGML_KILN_MUST(kiln_event_record(source_backend->done, &source_backend->stream));
        GGML_KILN_MUST(kiln_stream_wait_event(&backend->stream, source_backend->done));
    }
    GGML_KILN_MUST(kiln_copy(&backend->stream, target->data, source->data, ggml_nbytes(source), KILN_COPY_ON_DEVICE));
    if (source_backend != backend) { /* the source may be written again only when it has been read */
        GGML_KILN_MUST(kiln_event_record(backend->done, &backend->stream));
        GGML_KILN_MUST(kiln_stream_wait_event(&source_backend->stream, backend->done));
    }
    return true;
}

static void synchronize(ggml_backend_t base) {
    ggml_kiln_backend *backend = base->context;
    GGML_KILN_MUST(kiln_stream_sync(&backend->stream));
}

static void event_record(ggml_backend_t base, ggml_backend_event_t event) {
    ggml_kiln_backend *backend = base->context;
    GGML_KILN_MUST(kiln_event_record(event->context, &backend->stream));
}

static void event_wait(ggml_backend_t base, ggml_backend_event_t event) {
    ggml_kiln_backend *backend = base->context;
    GGML_KILN_MUST(kiln_stream_wait_event(&backend->stream, event->context));
}

/* ---- Graphs ------------------------------------------------------------------------------------------------------ */

static bool is_to_compute(const struct ggml_tensor *node) {
    return node->flags & GGML_TENSOR_FLAG_COMPUTE && ggml_kiln_computes(node);
}

/* Tells which node failed, NULL for the workspace of all, and why. */
static enum ggml_status failed(const ggml_kiln_backend *backend, const struct ggml_tensor *node, kiln_status status) {
    GGML_LOG_ERROR("%s: %s: %s\n", backend->device->name, node ? ggml_op_desc(node) : "workspace", kiln_last_error());
    return status == KILN_ERROR_OUT_OF_MEMORY ? GGML_STATUS_ALLOC_FAILED : GGML_STATUS_FAILED;
}

static kiln_status grow_workspace(ggml_kiln_backend *backend, size_t needed) {
    if (needed <= backend->workspace_size) return KILN_OK;
    void *workspace;
    GGML_KILN_TRY(kiln_stream_sync(&backend->stream)); /* the old one may be in use */
    kiln_memory_free(backend->device->device, backend->workspace);
    backend->workspace = NULL;
    backend->workspace_size = 0;
    GGML_KILN_TRY(kiln_memory_alloc(backend->device->device, needed, &workspace));
    backend->workspace = workspace;
    backend->workspace_size = needed;
    return KILN_OK;
}

/* Here alone is memory allocated: when a graph needs more workspace than those before it, turns its heads by
 * frequencies that none of them had, or multiplies by weights of 4 bits that none of them did. Graphs of shapes that
 * were computed before run without. Whoever did not ask supports_op, as ggml's RPC client does not, is refused here. */
static enum ggml_status prepare(ggml_kiln_backend *backend, struct ggml_cgraph *graph) {
    size_t needed = 0;
    backend->graph++;
    for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
        const struct ggml_tensor *node = ggml_graph_node(graph, i);
        size_t size = 0;
        if (!is_to_compute(node)) continue;
        const ggml_kiln_operator *entry = ggml_kiln_operator_of(node);
        if (!entry) {
            GGML_LOG_ERROR("%s: %s (%s) is not supported\n", backend->device->name, ggml_op_desc(node), node->name);
            return GGML_STATUS_FAILED;
        }
        kiln_status status = entry->prepare ? entry->prepare(backend, node, &size) : KILN_OK;
        if (status) return failed(backend, node, status);
        if (size > needed) needed = size;
    }
    kiln_status status = grow_workspace(backend, needed);
    return status ? failed(backend, NULL, status) : GGML_STATUS_SUCCESS;
}

static enum ggml_status graph_compute(ggml_backend_t base, struct ggml_cgraph *graph) {
    ggml_kiln_backend *backend = base->context;
    enum ggml_status prepared = prepare(backend, graph);
    if (prepared != GGML_STATUS_SUCCESS) return prepared;
    for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
        const struct ggml_tensor *node = ggml_graph_node(graph, i);
        int fused;
        if (!is_to_compute(node)) continue;
        kiln_status status = ggml_kiln_norm_fused(backend, graph, i, &fused);
        if (!status && !fused) status = ggml_kiln_run(backend, node);
        if (status) return failed(backend, node, status);
        if (fused) i += fused - 1;
    }
    return GGML_STATUS_SUCCESS;
}

static const struct ggml_backend_i stream_backend = {
    .get_name = get_name,
    .free = free_backend,
    .set_tensor_async = set_tensor_async,
    .get_tensor_async = get_tensor_async,
    .cpy_tensor_async = cpy_tensor_async,
    .synchronize = synchronize,
    .graph_compute = graph_compute,
    .event_record = event_record,
    .event_wait = event_wait,
};

ggml_backend_t ggml_kiln_backend_create(ggml_kiln_device *device) {
    static ggml_guid guid = {0x6b, 0x69, 0x6c, 0x6e, 0x5c, 0x1d, 0x4b, 0x0e,
                             0x9a, 0x42, 0x37, 0xd1, 0x8f, 0x60, 0x2e, 0xb5};
    ggml_kiln_backend *backend = calloc(1, sizeof *backend);
    if (!backend) return NULL;
    backend->device = device;
    backend->base =
        (struct ggml_backend){.guid = &guid, .iface = stream_backend, .device = &device->base, .context = backend};
    if (kiln_stream_open(device->device, 0, &backend->stream) ||
        kiln_event_create(device->device, KILN_EVENT_NO_TIMING, &backend->done)) {
        GGML_LOG_ERROR("%s: %s\n", device->name, kiln_last_error());
        kiln_stream_close(&backend->stream);
        free(backend);
        return NULL;
    }
    return &backend->base;
}
