/* Reading .npy files from the disk. */
#include "loader/cli/npy.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool fail(char *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(char *error, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(error, NPY_ERROR_SIZE, format, list);
    va_end(list);
    return false;
}

/* Reads exactly size bytes from an offset. */
static bool read_at(int file, void *bytes, size_t size, uint64_t offset, char *error) {
    size_t done = 0;
    while (done < size) {
        ssize_t got = pread(file, (uint8_t *)bytes + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail(error, "%s", strerror(errno));
        if (got == 0) return fail(error, "the file was cut while it was read");
        done += (size_t)got;
    }
    return true;
}

static bool read_header(int file, uint64_t file_size, npy_header *header, char *error) {
    size_t size = file_size < NPY_HEADER_LIMIT ? (size_t)file_size : NPY_HEADER_LIMIT;
    uint8_t *bytes = malloc(size ? size : 1);
    if (!bytes) return fail(error, "out of memory");
    bool ok = read_at(file, bytes, size, 0, error) && npy_parse_header(bytes, size, header, error);
    free(bytes);
    if (!ok) return false;
    uint64_t promised = header->data_offset + header->data_size;
    if (file_size < promised)
        return fail(error, "the file is truncated: it has %" PRIu64 " bytes of %" PRIu64, file_size, promised);
    if (file_size > promised)
        return fail(error, "the file has %" PRIu64 " bytes after its array", file_size - promised);
    return true;
}

static bool read_file(int file, npy_header *header, void **out_data, char *error) {
    struct stat status;
    if (fstat(file, &status) != 0) return fail(error, "%s", strerror(errno));
    if (!S_ISREG(status.st_mode)) return fail(error, "not a regular file");
    if (!read_header(file, (uint64_t)status.st_size, header, error)) return false;
    void *data = malloc(header->data_size ? header->data_size : 1);
    if (!data) return fail(error, "out of memory: %" PRIu64 " bytes", header->data_size);
    if (!read_at(file, data, header->data_size, header->data_offset, error)) {
        free(data);
        return false;
    }
    *out_data = data;
    return true;
}

bool npy_read(const char *path, npy_header *out_header, void **out_data, char error[NPY_ERROR_SIZE]) {
    *out_header = (npy_header){0};
    *out_data = NULL;
    /* A FIFO without a writer would block the open. */
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (file < 0) return fail(error, "%s", strerror(errno));
    bool ok = read_file(file, out_header, out_data, error);
    close(file);
    if (!ok) *out_header = (npy_header){0};
    return ok;
}
