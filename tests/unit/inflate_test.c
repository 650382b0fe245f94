/* Decompression against gzip itself: bytes of every kind, then damage to each of them. The seed is printed. */
#include "loader/image/inflate.h"
#include "loader/status.h"
#include "tests/assert_ok.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { SIZE_MOST = 200000 };

static uint32_t random_state;

static uint32_t random_u32(void) {
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8 ^ random_state << 16;
}

/* What gzip makes of the bytes, malloc'd. */
static kiln__bytes gzip(const uint8_t *bytes, size_t size, const char *level) {
    char path[] = "/tmp/kiln-inflate-XXXXXX", command[128];
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, bytes, size), (ssize_t)size);
    close(file);
    snprintf(command, sizeof command, "gzip -n %s <%s", level, path);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    uint8_t *packed = malloc(2 * SIZE_MOST);
    assert_non_null(packed);
    size_t packed_size = fread(packed, 1, 2 * SIZE_MOST, pipe);
    assert_int_equal(pclose(pipe), 0);
    unlink(path);
    return (kiln__bytes){packed, packed_size};
}

static void assert_inflates(const uint8_t *bytes, size_t size, const char *level) {
    kiln__bytes packed = gzip(bytes, size, level);
    uint8_t *out = malloc(size + 1);
    assert_non_null(out);
    memset(out, 0xa5, size + 1);
    assert_ok(kiln__inflate(packed, out, size));
    assert_memory_equal(out, bytes, size);
    assert_int_equal(out[size], 0xa5);
    if (size) assert_int_equal(kiln__inflate(packed, out, size - 1), KILN_ERROR_CORRUPT_IMAGE);
    free(out);
    out = malloc(size + 1);
    assert_non_null(out);
    assert_int_equal(kiln__inflate(packed, out, size + 1), KILN_ERROR_CORRUPT_IMAGE);
    free(out);
    free((void *)packed.at);
}

/* Texts of a few words, noise (which gzip stores), zeros (the longest matches), and bytes of a skewed distribution
 * (the longest codes). */
static void fill(uint8_t *bytes, size_t size, unsigned kind) {
    static const char *const words[] = {"mad.lo.s32 ", "%r", "ld.global.v4.f32 ", ", [", "];\n", "bar.sync 0;"};
    for (size_t i = 0; i < size;) {
        const char *word = words[random_u32() % 6];
        switch (kind) {
        case 0:
            for (; *word && i < size; word++)
                bytes[i++] = (uint8_t)*word;
            break;
        case 1:
            bytes[i++] = (uint8_t)random_u32();
            break;
        case 2:
            bytes[i++] = 0;
            break;
        default: {
            uint32_t draw = random_u32() & 0xffffff, symbol = 0;
            while (draw < 0x800000 && symbol < 23)
                draw <<= 1, symbol++;
            bytes[i++] = (uint8_t)(symbol * 11);
        }
        }
    }
}

static void what_gzip_wrote(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 2, 3, 257, 4096, 65535, 65536, SIZE_MOST};
    uint8_t *bytes = malloc(SIZE_MOST);
    assert_non_null(bytes);
    for (unsigned kind = 0; kind < 4; kind++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            fill(bytes, sizes[i], kind);
            assert_inflates(bytes, sizes[i], "-9");
            assert_inflates(bytes, sizes[i], "-1");
        }
    free(bytes);
}

/* Each beginning is too short; a changed byte gives an error or other bytes, within the memory given. */
static void damage(void **state) {
    (void)state;
    enum { SIZE = 3000, CHANGES = 4000 };
    uint8_t bytes[SIZE], out[SIZE];
    fill(bytes, SIZE, 0);
    kiln__bytes packed = gzip(bytes, SIZE, "-9");
    for (size_t size = 0; size < packed.size - 8; size++) {
        uint8_t *part = malloc(size + 1);
        assert_non_null(part);
        memcpy(part, packed.at, size);
        assert_int_equal(kiln__inflate((kiln__bytes){part, size}, out, SIZE), KILN_ERROR_CORRUPT_IMAGE);
        free(part);
    }
    uint8_t *changed = (uint8_t *)(uintptr_t)packed.at;
    for (int i = 0; i < CHANGES; i++) {
        uint32_t at = random_u32() % (uint32_t)(packed.size - 8), bit = 1u << random_u32() % 8;
        changed[at] ^= (uint8_t)bit;
        kiln_status status = kiln__inflate(packed, out, SIZE);
        assert_true(status == KILN_OK || status == KILN_ERROR_CORRUPT_IMAGE);
        changed[at] ^= (uint8_t)bit;
    }
    assert_ok(kiln__inflate(packed, out, SIZE));
    free(changed);
}

/* Streams that no compressor writes, after a header, each with what is wrong. */
static void refused(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        const char *wrong;
    } streams[] = {
        {"\x07", 1, "unknown type"},
        {"\x01\x01\x00\xff\xff\x00", 6, "two sizes"},
        {"\x01\x05\x00\xfa\xff\x00", 6, "ends early"},
        {"\x4b\x04\x02\x00", 4, "smaller than its size"}, /* "aaaa" */
        {"\x03\x02\x00", 3, "before its first"},          /* a match first */
        {"\xfd\xff\xff\xff\xff\xff\xff\xff", 8, "too many symbols"},
    };
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        uint8_t packed[64] = {0x1f, 0x8b, 8}, out[32];
        memcpy(packed + 10, streams[i].bytes, streams[i].size);
        kiln__bytes bytes = {packed, 10 + streams[i].size + 8};
        assert_int_equal(kiln__inflate(bytes, out, sizeof out), KILN_ERROR_CORRUPT_IMAGE);
        if (!strstr(kiln_last_error(), streams[i].wrong)) fail_msg("stream %zu: %s", i, kiln_last_error());
    }
    uint8_t named[32] = {0x1f, 0x8b, 8, 8}, out[1];
    assert_int_equal(kiln__inflate((kiln__bytes){named, sizeof named}, out, 1), KILN_ERROR_CORRUPT_IMAGE);
    assert_int_equal(kiln__inflate((kiln__bytes){named, 3}, out, 1), KILN_ERROR_CORRUPT_IMAGE);
}

static void images(void **state) {
    (void)state;
    static const char text[] = ".version 6.3\n.target sm_75\n.address_size 64\n";
    kiln__bytes packed = gzip((const uint8_t *)text, sizeof text - 1, "-9");
    kiln_image image = {.target = "sm_75", .data = text, .size = sizeof text - 1, .kind = KILN_IMAGE_PTX};
    void *memory = &image;
    assert_ok(kiln__image_unpack(&image, &memory));
    assert_null(memory);
    assert_ptr_equal(image.data, text);
    image.data = packed.at;
    image.packed_size = packed.size;
    assert_ok(kiln__image_unpack(&image, &memory));
    assert_ptr_equal(image.data, memory);
    assert_string_equal(image.data, text);
    assert_int_equal(image.packed_size, 0);
    free(memory);
    image.data = packed.at;
    image.packed_size = packed.size - 9;
    assert_int_equal(kiln__image_unpack(&image, &memory), KILN_ERROR_CORRUPT_IMAGE);
    assert_null(memory);
    assert_ptr_equal(image.data, packed.at);
    free((void *)(uintptr_t)packed.at);
}

int main(void) {
    random_state = (uint32_t)time(NULL);
    print_message("seed %u\n", random_state);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_gzip_wrote),
        cmocka_unit_test(damage),
        cmocka_unit_test(refused),
        cmocka_unit_test(images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
