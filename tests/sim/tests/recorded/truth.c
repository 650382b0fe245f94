#include "tests/sim/tests/recorded/truth.h"
#include "tests/sim/tests/common/programs_host.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

_Static_assert(sizeof(truth_head) == 200 && sizeof(truth_buffer) == 32 && sizeof(truth_field) == 40, "as in the files");

static void must(bool so, const char *path, const char *what) {
    if (!so) fail_msg("%s: %s", path, what);
}

static bool inside(const truth_case *x, uint64_t offset, uint64_t size) {
    return offset <= x->size && size <= x->size - offset;
}

truth_case truth_read(const char *path) {
    truth_case x = {0};
    x.bytes = (uint8_t *)programs_read(path, &x.size);
    must(x.size >= sizeof(truth_head) && memcmp(x.bytes, "KTRUTH1", 8) == 0, path, "is no case");
    x.head = (const truth_head *)(const void *)x.bytes;
    uint64_t buffers = sizeof(truth_head), fields = buffers + x.head->buffer_count * sizeof(truth_buffer);
    must(x.head->buffer_count < 64 && x.head->field_count < 64, path, "has too many buffers or fields");
    must(inside(&x, fields, x.head->field_count * sizeof(truth_field)), path, "is cut off");
    must(memchr(x.head->ptx, 0, sizeof x.head->ptx) && memchr(x.head->kernel, 0, sizeof x.head->kernel), path,
         "has a name without an end");
    x.buffers = (const truth_buffer *)(const void *)(x.bytes + buffers);
    x.fields = (const truth_field *)(const void *)(x.bytes + fields);
    for (const truth_buffer *b = x.buffers; b < x.buffers + x.head->buffer_count; b++) {
        must(b->fill != TRUTH_BYTES || inside(&x, b->initial, b->size), path, "is cut off");
        must(b->fill != TRUTH_STEPS || inside(&x, b->initial, 24), path, "is cut off");
        must(b->flags != TRUTH_OUTPUT || x.head->error || inside(&x, b->expected, b->size), path, "is cut off");
    }
    for (const truth_field *f = x.fields; f < x.fields + x.head->field_count; f++)
        must(f->kind == TRUTH_VALUE ? f->size <= 8 : f->buffer < x.head->buffer_count, path, "has a wrong field");
    return x;
}

void truth_free(truth_case *x) {
    free(x->bytes);
    *x = (truth_case){0};
}

void truth_fill_buffer(const truth_case *x, const truth_buffer *buffer, uint8_t *memory) {
    if (buffer->fill == TRUTH_BYTES) memcpy(memory, x->bytes + buffer->initial, buffer->size);
    if (buffer->fill == TRUTH_REPEATED) memset(memory, (int)buffer->initial, buffer->size);
    if (buffer->fill != TRUTH_STEPS) return;
    uint32_t element;
    uint64_t step, value;
    memcpy(&element, x->bytes + buffer->initial, sizeof element);
    memcpy(&step, x->bytes + buffer->initial + 8, sizeof step);
    memcpy(&value, x->bytes + buffer->initial + 16, sizeof value);
    for (uint64_t at = 0; at + element <= buffer->size; at += element, value += step)
        memcpy(memory + at, &value, element);
}
