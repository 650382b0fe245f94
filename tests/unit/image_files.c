#include "tests/unit/image_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

image_file image_copy(const void *bytes, size_t size) {
    image_file image = {malloc(size ? size : 1), size};
    assert_non_null(image.bytes);
    if (size) memcpy(image.bytes, bytes, size);
    return image;
}

image_file image_read(const char *name) {
    static uint8_t bytes[64 * 1024];
    char path[256];
    snprintf(path, sizeof path, "tests/unit/images/%s", name);
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s cannot be opened: run from the repository's root", path);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_true(size > 0 && size < sizeof bytes);
    return image_copy(bytes, size);
}

static void put(image_file *image, size_t offset, uint64_t value, size_t size) {
    assert_true(offset + size <= image->size);
    for (size_t i = 0; i < size; i++)
        image->bytes[offset + i] = (uint8_t)(value >> 8 * i);
}

void image_put_u16(image_file *image, size_t offset, uint16_t value) {
    put(image, offset, value, 2);
}
void image_put_u32(image_file *image, size_t offset, uint32_t value) {
    put(image, offset, value, 4);
}
void image_put_u64(image_file *image, size_t offset, uint64_t value) {
    put(image, offset, value, 8);
}

void image_try(const void *bytes, size_t size, image_reader read) {
    kiln__fail(KILN_ERROR_DRIVER, "%s", ""); /* no text from before */
    kiln_status status = read(bytes, size);
    if (status == KILN_OK) return;
    assert_true(status == KILN_ERROR_CORRUPT_IMAGE || status == KILN_ERROR_UNSUPPORTED);
    const char *text = kiln_last_error();
    assert_true(text[0] != '\0');
    for (; *text; text++)
        assert_true(*text >= ' ' && *text < 0x7f);
}

void image_break(const char *name, image_reader read) {
    static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
    image_file whole = image_read(name);
    assert_int_equal(read(whole.bytes, whole.size), KILN_OK);
    for (size_t size = 0; size < whole.size; size++) {
        image_file part = image_copy(whole.bytes, size);
        image_try(part.bytes, part.size, read);
        free(part.bytes);
    }
    for (size_t i = 0; i < whole.size; i++) {
        uint8_t byte = whole.bytes[i];
        for (size_t v = 0; v < sizeof values; v++) {
            whole.bytes[i] = values[v];
            image_try(whole.bytes, whole.size, read);
        }
        whole.bytes[i] = byte;
    }
    free(whole.bytes);
}

void assert_name(const void *name, size_t size, const char *wanted) {
    if (!kiln__bytes_are(name, size, wanted)) fail_msg("\"%.*s\" is not \"%s\"", (int)size, (const char *)name, wanted);
}

void assert_error_has(const char *part) {
    if (!strstr(kiln_last_error(), part)) fail_msg("\"%s\" is not in \"%s\"", part, kiln_last_error());
}
