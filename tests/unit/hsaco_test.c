/* The reader of AMD code objects: real ones, the target that e_flags say, and metadata written by hand. */
#include "loader/image/hsaco.h"
#include "tests/unit/image_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { E_ABI_VERSION = 8, E_OS_ABI = 7, E_TYPE = 16, E_MACHINE = 18, E_FLAGS = 48 };

static kiln_status read_all(const void *bytes, size_t size) {
    kiln__hsaco hsaco;
    KILN__TRY(kiln__hsaco_read(bytes, size, &hsaco));
    kiln__bytes rest = hsaco.kernels;
    for (uint32_t i = 0; i < hsaco.kernel_count; i++) {
        kiln__hsaco_kernel kernel;
        KILN__TRY(kiln__hsaco_kernel_next(&rest, &kernel));
        assert_true(kernel.name.size > 0 && !memchr(kernel.name.at, 0, kernel.name.size));
        assert_true(kernel.arguments_size <= kernel.kernarg_size);
        assert_true(kernel.hidden_count <= KILN__HSACO_HIDDEN_MAX);
        for (uint32_t h = 0; h < kernel.hidden_count; h++)
            assert_true(kiln__within(kernel.hidden[h].offset, kernel.hidden[h].size, kernel.kernarg_size));
    }
    return KILN_OK;
}

/* What llvm-readelf-19 says of the committed files. */
static void real_files(void **state) {
    (void)state;
    static const struct {
        const char *file, *target;
        uint32_t version, wave, turn_kernarg, turn_hidden, mixed_vgprs, mixed_spills, mixed_private;
    } cases[] = {
        {"gfx90a.hsaco", "gfx90a", 4, 64, 12, 0, 16, 27, 76},
        {"gfx90a_xnack_off.hsaco", "gfx90a:xnack-", 5, 64, 272, 13, 16, 27, 76},
        {"gfx942_both_on.hsaco", "gfx942:sramecc+:xnack+", 5, 64, 272, 13, 16, 26, 84},
        {"gfx1030.hsaco", "gfx1030", 5, 32, 272, 13, 8, 35, 108},
        {"gfx1201.hsaco", "gfx1201", 6, 32, 272, 13, 8, 31, 96},
        {"gfx11_generic.hsaco", "gfx11-generic", 6, 32, 272, 13, 8, 31, 96},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        image_file image = image_read(cases[i].file);
        kiln__hsaco hsaco;
        kiln__hsaco_kernel kernel;
        assert_int_equal(kiln__hsaco_read(image.bytes, image.size, &hsaco), KILN_OK);
        assert_string_equal(hsaco.target, cases[i].target);
        assert_int_equal(hsaco.code_object_version, cases[i].version);
        assert_int_equal(hsaco.kernel_count, 3);

        assert_int_equal(kiln__hsaco_kernel_read(&hsaco, 0, &kernel), KILN_OK);
        assert_name(kernel.name.at, kernel.name.size, "scale");
        assert_name(kernel.symbol.at, kernel.symbol.size, "scale.kd");
        assert_int_equal(kernel.arguments_size, 24);
        assert_int_equal(kernel.kernarg_size, 24);
        assert_int_equal(kernel.kernarg_align, 8);
        assert_int_equal(kernel.group_bytes, 0);
        assert_int_equal(kernel.max_threads, 256);
        assert_int_equal(kernel.wave_size, cases[i].wave);
        assert_int_equal(kernel.hidden_count, 0);
        assert_false(kernel.dynamic_stack);

        assert_int_equal(kiln__hsaco_kernel_read(&hsaco, 1, &kernel), KILN_OK);
        assert_name(kernel.name.at, kernel.name.size, "turn");
        assert_int_equal(kernel.arguments_size, 12);
        assert_int_equal(kernel.kernarg_size, cases[i].turn_kernarg);
        assert_int_equal(kernel.group_bytes, 256);
        assert_int_equal(kernel.max_threads, 1024);
        assert_int_equal(kernel.hidden_count, cases[i].turn_hidden);

        assert_int_equal(kiln__hsaco_kernel_read(&hsaco, 2, &kernel), KILN_OK);
        assert_name(kernel.name.at, kernel.name.size, "mixed");
        assert_int_equal(kernel.arguments_size, 20);
        assert_int_equal(kernel.vgprs, cases[i].mixed_vgprs);
        assert_int_equal(kernel.vgpr_spills, cases[i].mixed_spills);
        assert_int_equal(kernel.private_bytes, cases[i].mixed_private);

        assert_int_equal(kiln__hsaco_kernel_read(&hsaco, 3, &kernel), KILN_ERROR_INVALID_ARGUMENT);
        assert_null(kernel.name.at);
        free(image.bytes);
    }
}

/* The implicit block of code object 5 begins where the explicit arguments end, rounded up to 8. */
static void hidden_arguments_of_a_real_file(void **state) {
    (void)state;
    static const kiln__hidden_argument wanted[] = {
        {KILN__HIDDEN_BLOCK_COUNT_X, 16, 4},   {KILN__HIDDEN_BLOCK_COUNT_Y, 20, 4},
        {KILN__HIDDEN_BLOCK_COUNT_Z, 24, 4},   {KILN__HIDDEN_GROUP_SIZE_X, 28, 2},
        {KILN__HIDDEN_GROUP_SIZE_Y, 30, 2},    {KILN__HIDDEN_GROUP_SIZE_Z, 32, 2},
        {KILN__HIDDEN_REMAINDER_X, 34, 2},     {KILN__HIDDEN_REMAINDER_Y, 36, 2},
        {KILN__HIDDEN_REMAINDER_Z, 38, 2},     {KILN__HIDDEN_GLOBAL_OFFSET_X, 56, 8},
        {KILN__HIDDEN_GLOBAL_OFFSET_Y, 64, 8}, {KILN__HIDDEN_GLOBAL_OFFSET_Z, 72, 8},
        {KILN__HIDDEN_GRID_DIMS, 80, 2},
    };
    image_file image = image_read("gfx1030.hsaco");
    kiln__hsaco hsaco;
    kiln__hsaco_kernel kernel;
    assert_int_equal(kiln__hsaco_read(image.bytes, image.size, &hsaco), KILN_OK);
    assert_int_equal(kiln__hsaco_kernel_read(&hsaco, 1, &kernel), KILN_OK);
    assert_int_equal(kernel.hidden_count, sizeof wanted / sizeof *wanted);
    for (uint32_t i = 0; i < kernel.hidden_count; i++) {
        assert_int_equal(kernel.hidden[i].kind, wanted[i].kind);
        assert_int_equal(kernel.hidden[i].offset, wanted[i].offset);
        assert_int_equal(kernel.hidden[i].size, wanted[i].size);
    }
    free(image.bytes);
}

/* e_flags as LLVM writes them, and the target that they mean. NULL: refused. */
static void targets_of_flags(void **state) {
    (void)state;
    static const struct {
        uint8_t abi_version;
        uint32_t flags;
        const char *target;
    } cases[] = {
        {2, 0x53f, "gfx90a"},
        {3, 0x73f, "gfx90a:xnack+"},
        {3, 0x63f, "gfx90a:xnack-"},
        {3, 0xd3f, "gfx90a:sramecc+"},
        {3, 0x93f, "gfx90a:sramecc-"},
        {3, 0xf3f, "gfx90a:sramecc+:xnack+"},
        {3, 0xa3f, "gfx90a:sramecc-:xnack-"},
        {4, 0x0000053f, "gfx90a"},
        {4, 0x01000054, "gfx11-generic"},
        {4, 0x0100055f, "gfx9-4-generic"},
        {4, 0x01000151, "gfx9-generic"},
        {4, 0x01000059, "gfx12-generic"},
        {4, 0x54, NULL},                      /* a generic target without its version */
        {3, 0x01000054, NULL},                /* a generic target in code object 5 */
        {1, 0x33f, "gfx90a:sramecc+:xnack+"}, /* code object 3 knows no "any" */
        {1, 0x13f, "gfx90a:sramecc-:xnack+"},
        {1, 0x036, "gfx1030"},
        {3, 0x54c, "gfx942"},
        {3, 0x041, "gfx1100"},
        {3, 0x04e, "gfx1201"},
        {3, 0x000, NULL},
        {3, 0x0ff, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        image_file image = image_read("gfx90a.hsaco");
        image.bytes[E_ABI_VERSION] = cases[i].abi_version;
        image_put_u32(&image, E_FLAGS, cases[i].flags);
        kiln__hsaco hsaco;
        kiln_status status = kiln__hsaco_read(image.bytes, image.size, &hsaco);
        if (cases[i].target) {
            assert_int_equal(status, KILN_OK);
            assert_string_equal(hsaco.target, cases[i].target);
            assert_int_equal(hsaco.code_object_version, cases[i].abi_version + 2);
        } else {
            assert_true(status == KILN_ERROR_CORRUPT_IMAGE || status == KILN_ERROR_UNSUPPORTED);
            assert_int_equal(hsaco.target[0], 0);
        }
        free(image.bytes);
    }
}

static void other_elf_files(void **state) {
    (void)state;
    static const struct {
        size_t offset;
        uint16_t value;
        const char *text;
    } cases[] = {
        {E_MACHINE, 62, "ELF machine 62"},
        {E_OS_ABI, 63, "OS ABI 63"}, /* sets the ABI version to 0, too */
        {E_TYPE, 1, "link it first"},
        {E_ABI_VERSION, 0, "ELF ABI version 0"},
        {E_ABI_VERSION, 5, "ELF ABI version 5"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        image_file image = image_read("gfx90a.hsaco");
        image_put_u16(&image, cases[i].offset, cases[i].value);
        assert_int_equal(read_all(image.bytes, image.size), KILN_ERROR_UNSUPPORTED);
        assert_error_has(cases[i].text);
        free(image.bytes);
    }
}

/* ---- Metadata written by hand ---------------------------------------------------------------------------------------
 */

/* A code object that is a header, one segment and one note. */
static image_file object_with(const char *metadata, size_t size) {
    enum { NOTE_AT = 64 + 56, DESCRIPTION_AT = NOTE_AT + 20 };
    static uint8_t bytes[16 * 1024];
    assert_true(DESCRIPTION_AT + size <= sizeof bytes);
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, "\177ELF\2\1\1\100\3", 9);
    memcpy(bytes + NOTE_AT + 12, "AMDGPU", 7);
    memcpy(bytes + DESCRIPTION_AT, metadata, size);
    image_file image = image_copy(bytes, DESCRIPTION_AT + size);
    image_put_u16(&image, E_TYPE, 3);
    image_put_u16(&image, E_MACHINE, 224);
    image_put_u64(&image, 32, 64); /* program headers */
    image_put_u32(&image, E_FLAGS, 0x36);
    image_put_u16(&image, 54, 56);
    image_put_u16(&image, 56, 1);
    image_put_u32(&image, 64, 4);
    image_put_u64(&image, 64 + 8, NOTE_AT);
    image_put_u64(&image, 64 + 32, 20 + size);
    image_put_u64(&image, 64 + 40, 20 + size);
    image_put_u64(&image, 64 + 48, 4);
    image_put_u32(&image, NOTE_AT, 7);
    image_put_u32(&image, NOTE_AT + 4, (uint32_t)size);
    image_put_u32(&image, NOTE_AT + 8, 32);
    return image;
}

/* MessagePack under construction. */
typedef struct packer {
    char bytes[8 * 1024];
    size_t size;
} packer;

static void pack_byte(packer *pack, unsigned byte) {
    assert_true(pack->size < sizeof pack->bytes);
    pack->bytes[pack->size++] = (char)byte;
}

static void pack_string(packer *pack, const char *text, size_t size) {
    pack_byte(pack, 0xda);
    pack_byte(pack, (unsigned)size >> 8);
    pack_byte(pack, (unsigned)size & 255);
    for (size_t i = 0; i < size; i++)
        pack_byte(pack, (unsigned char)text[i]);
}

static void pack_text(packer *pack, const char *text) {
    pack_string(pack, text, strlen(text));
}

static void pack_number(packer *pack, uint64_t number) {
    pack_byte(pack, 0xcf);
    for (int shift = 56; shift >= 0; shift -= 8)
        pack_byte(pack, (unsigned)(number >> shift) & 255);
}

static void pack_count(packer *pack, unsigned code, unsigned count) {
    pack_byte(pack, code);
    pack_byte(pack, count >> 8);
    pack_byte(pack, count & 255);
}

static void pack_map(packer *pack, unsigned count) {
    pack_count(pack, 0xde, count);
}
static void pack_array(packer *pack, unsigned count) {
    pack_count(pack, 0xdc, count);
}

/* A kernel to be written: what differs from a good one. */
typedef struct kernel_plan {
    const char *name;
    size_t name_size;    /* 0: strlen(name) */
    const char *without; /* a key that is left out */
    const char *key;     /* a key with another number */
    uint64_t number;
    uint32_t argument_count; /* hidden ones, each of 4 bytes */
    uint64_t argument_offset, argument_size;
    const char *argument_kind;
    const char *argument_without;
} kernel_plan;

static void pack_argument(packer *pack, const kernel_plan *plan) {
    static const char *const keys[] = {".offset", ".size", ".value_kind", ".address_space"};
    pack_map(pack, plan->argument_without ? 3 : 4);
    for (size_t i = 0; i < 4; i++) {
        if (plan->argument_without && strcmp(plan->argument_without, keys[i]) == 0) continue;
        pack_text(pack, keys[i]);
        if (i == 0) pack_number(pack, plan->argument_offset);
        if (i == 1) pack_number(pack, plan->argument_size);
        if (i == 2) pack_text(pack, plan->argument_kind);
        if (i == 3) pack_text(pack, "global");
    }
}

static void pack_kernel(packer *pack, const kernel_plan *plan) {
    static const struct {
        const char *key;
        uint64_t number;
    } numbers[] = {
        {".kernarg_segment_size", 64},
        {".kernarg_segment_align", 8},
        {".group_segment_fixed_size", 16},
        {".private_segment_fixed_size", 4},
        {".max_flat_workgroup_size", 128},
        {".wavefront_size", 32},
        {".vgpr_count", 5},
        {".sgpr_count", 6},
        {".vgpr_spill_count", 1},
        {".sgpr_spill_count", 2},
    };
    enum { NUMBERS = sizeof numbers / sizeof *numbers };
    pack_map(pack, NUMBERS + 5 - (plan->without ? 1 : 0));
    for (size_t i = 0; i < NUMBERS; i++) {
        if (plan->without && strcmp(plan->without, numbers[i].key) == 0) continue;
        pack_text(pack, numbers[i].key);
        pack_number(pack, plan->key && strcmp(plan->key, numbers[i].key) == 0 ? plan->number : numbers[i].number);
    }
    const char *name = plan->name ? plan->name : "k";
    size_t size = plan->name_size ? plan->name_size : strlen(name);
    if (!plan->without || strcmp(plan->without, ".name") != 0) {
        pack_text(pack, ".name");
        pack_string(pack, name, size);
    }
    if (!plan->without || strcmp(plan->without, ".symbol") != 0) {
        pack_text(pack, ".symbol");
        pack_text(pack, "k.kd");
    }
    pack_text(pack, ".uses_dynamic_stack");
    pack_byte(pack, 0xc3);
    pack_text(pack, ".language");
    pack_text(pack, "OpenCL C");
    if (!plan->without || strcmp(plan->without, ".args") != 0) {
        pack_text(pack, ".args");
        pack_array(pack, plan->argument_count);
        for (uint32_t i = 0; i < plan->argument_count; i++)
            pack_argument(pack, plan);
    }
}

static image_file object_of(const kernel_plan *plan) {
    static packer pack;
    pack.size = 0;
    pack_map(&pack, 3);
    pack_text(&pack, "amdhsa.target");
    pack_text(&pack, "amdgcn-amd-amdhsa--gfx1030");
    pack_text(&pack, "amdhsa.kernels");
    pack_array(&pack, 1);
    pack_kernel(&pack, plan);
    pack_text(&pack, "amdhsa.version");
    pack_array(&pack, 2);
    pack_number(&pack, 1);
    pack_number(&pack, 2);
    return object_with(pack.bytes, pack.size);
}

static kiln_status read_only_kernel(const image_file *image, kiln__hsaco_kernel *out_kernel) {
    kiln__hsaco hsaco;
    kiln_status status = kiln__hsaco_read(image->bytes, image->size, &hsaco);
    return status == KILN_OK ? kiln__hsaco_kernel_read(&hsaco, 0, out_kernel) : status;
}

/* The kernel's names go with the image. */
static kiln_status read_plan(const kernel_plan *plan, kiln__hsaco_kernel *out_kernel) {
    image_file image = object_of(plan);
    kiln_status status = read_only_kernel(&image, out_kernel);
    free(image.bytes);
    return status;
}

static void a_kernel_written_by_hand(void **state) {
    (void)state;
    kiln__hsaco_kernel kernel;
    kernel_plan plan = {
        .argument_count = 1, .argument_offset = 60, .argument_size = 4, .argument_kind = "hidden_something_new"};
    image_file image = object_of(&plan);
    assert_int_equal(read_only_kernel(&image, &kernel), KILN_OK);
    assert_name(kernel.name.at, kernel.name.size, "k");
    assert_name(kernel.symbol.at, kernel.symbol.size, "k.kd");
    free(image.bytes);
    assert_int_equal(kernel.arguments_size, 0);
    assert_int_equal(kernel.kernarg_size, 64);
    assert_int_equal(kernel.group_bytes, 16);
    assert_int_equal(kernel.private_bytes, 4);
    assert_int_equal(kernel.max_threads, 128);
    assert_int_equal(kernel.vgprs, 5);
    assert_int_equal(kernel.sgprs, 6);
    assert_int_equal(kernel.vgpr_spills, 1);
    assert_int_equal(kernel.sgpr_spills, 2);
    assert_true(kernel.dynamic_stack);
    assert_int_equal(kernel.hidden_count, 1);
    assert_int_equal(kernel.hidden[0].kind, KILN__HIDDEN_UNKNOWN);
}

/* Without a list of arguments the whole segment is the caller's. */
static void a_kernel_without_arguments(void **state) {
    (void)state;
    kiln__hsaco_kernel kernel;
    assert_int_equal(read_plan(&(kernel_plan){.without = ".args"}, &kernel), KILN_OK);
    assert_int_equal(kernel.arguments_size, 64);
    assert_int_equal(read_plan(&(kernel_plan){.without = ".vgpr_spill_count"}, &kernel), KILN_OK);
    assert_int_equal(kernel.vgpr_spills, 0);
}

static void every_kind_of_hidden_argument(void **state) {
    (void)state;
    static const char *const kinds[] = {
#define KIND_TEXT(name, text, provided) text,
        KILN__HIDDEN_ARGUMENTS(KIND_TEXT)
#undef KIND_TEXT
    };
    for (int kind = 0; kind < KILN__HIDDEN_KIND_COUNT; kind++) {
        kiln__hsaco_kernel kernel;
        kernel_plan plan = {.argument_count = 1, .argument_size = 4, .argument_kind = kinds[kind]};
        assert_int_equal(read_plan(&plan, &kernel), KILN_OK);
        assert_int_equal(kernel.hidden[0].kind, kind);
    }
}

static void broken_kernels(void **state) {
    (void)state;
    static const struct {
        kernel_plan plan;
        kiln_status status;
        const char *text;
    } cases[] = {
        {{.name = "a\0b", .name_size = 3}, KILN_ERROR_CORRUPT_IMAGE, ".name is empty or has a NUL byte"},
        {{.name = ""}, KILN_ERROR_CORRUPT_IMAGE, ".name is empty"},
        {{.without = ".name"}, KILN_ERROR_CORRUPT_IMAGE, "a kernel has no .name"},
        {{.without = ".symbol"}, KILN_ERROR_CORRUPT_IMAGE, "a kernel has no .symbol"},
        {{.without = ".kernarg_segment_size"}, KILN_ERROR_CORRUPT_IMAGE, "no .kernarg_segment_size"},
        {{.without = ".wavefront_size"}, KILN_ERROR_CORRUPT_IMAGE, "no .wavefront_size"},
        {{.without = ".sgpr_count"}, KILN_ERROR_CORRUPT_IMAGE, "no .sgpr_count"},
        {{.key = ".wavefront_size", .number = 16}, KILN_ERROR_CORRUPT_IMAGE, "must be 32 or 64"},
        {{.key = ".kernarg_segment_align", .number = 0}, KILN_ERROR_CORRUPT_IMAGE, "must be a power of two"},
        {{.key = ".kernarg_segment_align", .number = 12}, KILN_ERROR_CORRUPT_IMAGE, "must be a power of two"},
        {{.key = ".vgpr_count", .number = UINT64_C(1) << 32}, KILN_ERROR_CORRUPT_IMAGE, "more than 32 bits"},
        {{.argument_count = 1, .argument_offset = 60, .argument_size = 5, .argument_kind = "by_value"},
         KILN_ERROR_CORRUPT_IMAGE,
         "arguments end at 65, beyond the kernarg segment of 64 bytes"},
        {{.argument_count = 1, .argument_offset = 61, .argument_size = 4, .argument_kind = "hidden_none"},
         KILN_ERROR_CORRUPT_IMAGE,
         "hidden argument 0 (offset 61, size 4) is not in the kernarg segment"},
        {{.argument_count = 1, .argument_offset = UINT32_MAX, .argument_size = 2, .argument_kind = "hidden_none"},
         KILN_ERROR_CORRUPT_IMAGE,
         "wraps"},
        {{.argument_count = 33, .argument_offset = 0, .argument_size = 4, .argument_kind = "hidden_none"},
         KILN_ERROR_UNSUPPORTED,
         "more than 32 hidden arguments"},
        {{.argument_count = 32, .argument_offset = 0, .argument_size = 4, .argument_kind = "hidden_none"},
         KILN_OK,
         NULL},
        {{.argument_count = 1, .argument_kind = "by_value", .argument_without = ".offset"},
         KILN_ERROR_CORRUPT_IMAGE,
         "an argument lacks .offset, .size or .value_kind"},
        {{.argument_count = 1, .argument_kind = "by_value", .argument_without = ".size"},
         KILN_ERROR_CORRUPT_IMAGE,
         "an argument lacks"},
        {{.argument_count = 1, .argument_kind = "by_value", .argument_without = ".value_kind"},
         KILN_ERROR_CORRUPT_IMAGE,
         "an argument lacks"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kiln__hsaco_kernel kernel;
        assert_int_equal(read_plan(&cases[i].plan, &kernel), cases[i].status);
        if (cases[i].text) {
            assert_error_has(cases[i].text);
            assert_error_has("kernel 0");
        }
    }
}

/* A name is bytes: what it would do to a terminal is for those who show it. It never is in an error's text. */
static void names_with_escape_sequences(void **state) {
    (void)state;
    kiln__hsaco_kernel kernel;
    image_file image = object_of(&(kernel_plan){.name = "\33[2Jk\r\n\7"});
    assert_int_equal(read_only_kernel(&image, &kernel), KILN_OK);
    assert_name(kernel.name.at, kernel.name.size, "\33[2Jk\r\n\7");
    free(image.bytes);
    kernel_plan plan = {.name = "\33[2Jk", .key = ".wavefront_size", .number = 1};
    assert_int_equal(read_plan(&plan, &kernel), KILN_ERROR_CORRUPT_IMAGE);
    assert_null(strchr(kiln_last_error(), '\33'));
}

static void broken_roots(void **state) {
    (void)state;
#define META(text) text, sizeof text - 1
    static const struct {
        const char *bytes;
        size_t size;
        kiln_status status;
        const char *text;
    } cases[] = {
        {META("\x90"), KILN_ERROR_CORRUPT_IMAGE, "the metadata is an array: must be a map"},
        {META("\x80"), KILN_ERROR_CORRUPT_IMAGE, "the metadata has no amdhsa.version"},
        {META("\x81\x01\x02"), KILN_ERROR_CORRUPT_IMAGE, "a key of the metadata is"},
        {META("\x81\xae"
              "amdhsa.version\x92\x01\x02"),
         KILN_ERROR_CORRUPT_IMAGE, "the metadata has no amdhsa.kernels"},
        {META("\x81\xae"
              "amdhsa.version\x93\x01\x02\x03"),
         KILN_ERROR_CORRUPT_IMAGE, "amdhsa.version has 3 numbers"},
        {META("\x81\xae"
              "amdhsa.version\x92\x02\x00"),
         KILN_ERROR_UNSUPPORTED, "metadata version 2"},
        {META("\x81\xae"
              "amdhsa.kernels\x92\x01"),
         KILN_ERROR_CORRUPT_IMAGE, "the bytes end"},
        {META("\x82\xae"
              "amdhsa.kernels\x90\xae"
              "amdhsa.version\x92\x01\x02"),
         KILN_OK, NULL},
        {META(""), KILN_ERROR_CORRUPT_IMAGE, "the bytes end"},
    };
#undef META
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        image_file image = object_with(cases[i].bytes, cases[i].size);
        assert_int_equal(read_all(image.bytes, image.size), cases[i].status);
        if (cases[i].text) assert_error_has(cases[i].text);
        free(image.bytes);
    }
}

static void an_object_without_metadata(void **state) {
    (void)state;
    image_file image = object_with("\x80", 1);
    image_put_u32(&image, 64 + 56 + 8, 33); /* another type of note */
    assert_int_equal(read_all(image.bytes, image.size), KILN_ERROR_CORRUPT_IMAGE);
    assert_error_has("no AMDGPU metadata note");
    free(image.bytes);
}

static void broken_files(void **state) {
    (void)state;
    static const char *const files[] = {HSACO_FILES};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        image_break(files[i], read_all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_files),
        cmocka_unit_test(hidden_arguments_of_a_real_file),
        cmocka_unit_test(targets_of_flags),
        cmocka_unit_test(other_elf_files),
        cmocka_unit_test(a_kernel_written_by_hand),
        cmocka_unit_test(a_kernel_without_arguments),
        cmocka_unit_test(every_kind_of_hidden_argument),
        cmocka_unit_test(broken_kernels),
        cmocka_unit_test(names_with_escape_sequences),
        cmocka_unit_test(broken_roots),
        cmocka_unit_test(an_object_without_metadata),
        cmocka_unit_test(broken_files),
    };
    return cmocka_run_group_tests_name("hsaco", tests, NULL, NULL);
}
