#include "tests/sim/tests/ptx/ptx_record.h"
#include <stdlib.h>
#include <string.h>

enum { BLOCKS_KEPT = 2, TEXT_MAX = 1 << 20, ARRAY_MAX = 1 << 24 };
static const char magic[8] = "KKERNEL";

typedef struct head {
    char magic[8];
    uint32_t text_size, code_size, blocks, threads, result_bits, count;
    uint64_t sizes[DEVICE_ARRAYS]; /* 0: a null pointer */
} head;

/* The pieces of an array that the kept blocks own: the first, and others evenly behind it. */
static void write_pieces(FILE *file, const device_array *array, const record_kernel *kernel, uint32_t kept) {
    size_t piece = array->size / kernel->blocks;
    for (uint32_t i = 0; i < kept; i++) {
        size_t block = kept > 1 ? (size_t)i * (kernel->blocks - 1) / (kept - 1) : 0;
        fwrite((const uint8_t *)array->bytes + block * piece, 1, piece, file);
    }
}

void record_write(const record_kernel *kernel) {
    const char *path = getenv("KILN_TEST_RECORD");
    if (!path) return;
    FILE *file = fopen(path, "ab");
    uint32_t kept = kernel->blocks < BLOCKS_KEPT ? kernel->blocks : BLOCKS_KEPT;
    head h = {.text_size = (uint32_t)strlen(kernel->text) + 1,
              .code_size = (uint32_t)strlen(kernel->code) + 1,
              .blocks = kept,
              .threads = kernel->threads,
              .result_bits = kernel->result_bits,
              .count = kernel->count};
    memcpy(h.magic, magic, sizeof magic);
    for (uint32_t i = 0; i < kernel->count; i++)
        h.sizes[i] = kernel->before[i].bytes ? kernel->before[i].size / kernel->blocks * kept : 0;
    if (file) {
        fwrite(&h, sizeof h, 1, file);
        fwrite(kernel->text, 1, h.text_size, file);
        fwrite(kernel->code, 1, h.code_size, file);
        for (uint32_t i = 0; i < kernel->count; i++) {
            if (!h.sizes[i]) continue;
            write_pieces(file, &kernel->before[i], kernel, kept);
            write_pieces(file, &kernel->after[i], kernel, kept);
        }
    }
    if (!file || ferror(file) | fclose(file)) {
        fprintf(stderr, "KILN_TEST_RECORD=%s: cannot be written\n", path);
        exit(1);
    }
}

/* ---- Reading ---- */

/* size bytes of a file, aligned as a driver's are. NULL: they are not there. */
static void *read_bytes(FILE *file, size_t size) {
    void *bytes = aligned_alloc(256, (size + 255) / 256 * 256);
    if (bytes && fread(bytes, 1, size, file) == size) return bytes;
    free(bytes);
    return NULL;
}

static char *read_text(FILE *file, uint32_t size) {
    char *text = size && size <= TEXT_MAX ? read_bytes(file, size) : NULL;
    if (text && text[size - 1] == 0) return text;
    free(text);
    return NULL;
}

static bool read_arrays(FILE *file, const head *h, record_kernel *kernel) {
    for (uint32_t i = 0; i < h->count; i++) {
        if (!h->sizes[i]) continue;
        if (h->sizes[i] > ARRAY_MAX) return false;
        kernel->before[i] = (device_array){read_bytes(file, h->sizes[i]), h->sizes[i]};
        kernel->after[i] = (device_array){read_bytes(file, h->sizes[i]), h->sizes[i]};
        if (!kernel->before[i].bytes || !kernel->after[i].bytes) return false;
    }
    return true;
}

bool record_read(FILE *file, record_kernel *out_kernel, bool *out_broken) {
    head h;
    *out_kernel = (record_kernel){0};
    size_t read = fread(&h, 1, sizeof h, file);
    *out_broken = read != 0;
    if (read != sizeof h || memcmp(h.magic, magic, sizeof magic) != 0 || h.count > DEVICE_ARRAYS) return false;
    *out_kernel = (record_kernel){.text = read_text(file, h.text_size),
                                  .code = read_text(file, h.code_size),
                                  .blocks = h.blocks,
                                  .threads = h.threads,
                                  .result_bits = h.result_bits,
                                  .count = h.count};
    if (out_kernel->text && out_kernel->code && read_arrays(file, &h, out_kernel)) {
        *out_broken = false;
        return true;
    }
    record_free(out_kernel);
    return false;
}

void record_free(record_kernel *kernel) {
    free((void *)(uintptr_t)kernel->text);
    free((void *)(uintptr_t)kernel->code);
    for (uint32_t i = 0; i < DEVICE_ARRAYS; i++) {
        free(kernel->before[i].bytes);
        free(kernel->after[i].bytes);
    }
}
