#include "loader/image/hsaco.h"

#include "loader/image/elf.h"
#include "loader/image/msgpack.h"
#include "loader/target.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { OS_ABI_AMDGPU_HSA = 64, NOTE_METADATA = 32 };

/* EI_ABIVERSION 1 to 4 is code object version 3 to 6. */
enum { ABI_VERSION_FIRST = 1, ABI_VERSION_LAST = 4, CODE_OBJECT_FIRST = 3 };

/* Fields of e_flags. From version 4 on a feature has two bits: not supported, any, off, on. */
enum { FLAGS_MACHINE = 0xff, FLAGS_V3_XNACK = 0x100, FLAGS_V3_SRAMECC = 0x200 };
enum { FLAGS_XNACK_SHIFT = 8, FLAGS_SRAMECC_SHIFT = 10, FLAGS_GENERIC_SHIFT = 24 };
enum { FEATURE_ANY = 1, FEATURE_OFF, FEATURE_ON };

/* ---- Target -------------------------------------------------------------------------------------------------------
 */

static const char *feature_text(const char *const texts[2], uint32_t feature) {
    return feature == FEATURE_OFF ? texts[0] : feature == FEATURE_ON ? texts[1] : "";
}

static kiln_status read_target(const kiln__elf *elf, kiln__hsaco *hsaco) {
    static const char *const xnack_texts[] = {":xnack-", ":xnack+"};
    static const char *const sramecc_texts[] = {":sramecc-", ":sramecc+"};
    const kiln__amd_target *row = kiln__amd_target_by_machine(elf->flags & FLAGS_MACHINE);
    if (!row)
        return kiln__fail(KILN_ERROR_UNSUPPORTED,
                          "HSACO: machine 0x%02x is no processor that this version of kiln knows",
                          elf->flags & FLAGS_MACHINE);
    uint32_t xnack = elf->flags >> FLAGS_XNACK_SHIFT & 3;
    uint32_t sramecc = elf->flags >> FLAGS_SRAMECC_SHIFT & 3;
    if (hsaco->code_object_version == CODE_OBJECT_FIRST) {
        xnack = !row->xnack ? 0 : elf->flags & FLAGS_V3_XNACK ? FEATURE_ON : FEATURE_OFF;
        sramecc = !row->sramecc ? 0 : elf->flags & FLAGS_V3_SRAMECC ? FEATURE_ON : FEATURE_OFF;
    }
    bool generic = strstr(row->name, "-generic") != NULL;
    if (generic && (hsaco->code_object_version < 6 || elf->flags >> FLAGS_GENERIC_SHIFT == 0))
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE,
                          "HSACO: %s needs code object version 6 and a generic version: has %u, %u", row->name,
                          hsaco->code_object_version, elf->flags >> FLAGS_GENERIC_SHIFT);
    snprintf(hsaco->target, sizeof hsaco->target, "%s%s%s", row->name, feature_text(sramecc_texts, sramecc),
             feature_text(xnack_texts, xnack));
    return KILN_OK;
}

/* ---- Notes and the metadata's root --------------------------------------------------------------------------------
 */

static kiln_status find_metadata(const kiln__elf *elf, kiln__bytes *out_metadata) {
    for (uint32_t i = 0; i < elf->program_count; i++) {
        kiln__elf_program program = kiln__elf_program_at(elf, i);
        if (program.type != KILN__ELF_PROGRAM_NOTE) continue;
        while (program.bytes.size > 0) {
            kiln__elf_note note;
            KILN__TRY(kiln__elf_note_next(&program.bytes, program.alignment, &note));
            if (note.type == NOTE_METADATA && note.name.size == sizeof "AMDGPU" &&
                memcmp(note.name.at, "AMDGPU", sizeof "AMDGPU") == 0) {
                *out_metadata = note.description;
                return KILN_OK;
            }
        }
    }
    return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "HSACO: no AMDGPU metadata note in any segment");
}

static kiln_status check_version(kiln__bytes *rest) {
    kiln__msgpack_value list, major, minor;
    KILN__TRY(kiln__msgpack_expect(rest, KILN__MSGPACK_ARRAY, "amdhsa.version", &list));
    if (list.count != 2)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "msgpack: amdhsa.version has %u numbers: must be 2", list.count);
    KILN__TRY(kiln__msgpack_expect(rest, KILN__MSGPACK_UNSIGNED, "amdhsa.version", &major));
    KILN__TRY(kiln__msgpack_expect(rest, KILN__MSGPACK_UNSIGNED, "amdhsa.version", &minor));
    if (major.number != 1)
        return kiln__fail(KILN_ERROR_UNSUPPORTED, "HSACO: metadata version %" PRIu64 ": only version 1 is known",
                          major.number);
    return KILN_OK;
}

static kiln_status read_kernels(kiln__bytes *rest, kiln__hsaco *hsaco) {
    kiln__msgpack_value list;
    KILN__TRY(kiln__msgpack_expect(rest, KILN__MSGPACK_ARRAY, "amdhsa.kernels", &list));
    hsaco->kernels = *rest;
    hsaco->kernel_count = list.count;
    for (uint32_t i = 0; i < list.count; i++)
        KILN__TRY(kiln__msgpack_skip(rest));
    return KILN_OK;
}

static kiln_status read_root(kiln__hsaco *hsaco) {
    kiln__bytes rest = {hsaco->metadata, hsaco->metadata_size};
    kiln__msgpack_value root, key;
    bool has_version = false;
    KILN__TRY(kiln__msgpack_expect(&rest, KILN__MSGPACK_MAP, "the metadata", &root));
    for (uint32_t i = 0; i < root.count; i++) {
        KILN__TRY(kiln__msgpack_expect(&rest, KILN__MSGPACK_STRING, "a key of the metadata", &key));
        if (kiln__msgpack_is(&key, "amdhsa.version")) {
            KILN__TRY(check_version(&rest));
            has_version = true;
        } else if (kiln__msgpack_is(&key, "amdhsa.kernels")) {
            KILN__TRY(read_kernels(&rest, hsaco));
        } else {
            KILN__TRY(kiln__msgpack_skip(&rest));
        }
    }
    if (!has_version || !hsaco->kernels.at)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "HSACO: the metadata has no %s",
                          has_version ? "amdhsa.kernels" : "amdhsa.version");
    return KILN_OK;
}

kiln_status kiln__hsaco_read(const void *bytes, size_t size, kiln__hsaco *out_hsaco) {
    memset(out_hsaco, 0, sizeof *out_hsaco);
    kiln__elf elf;
    KILN__TRY(kiln__elf_read(bytes, size, &elf));
    if (elf.machine != KILN__ELF_MACHINE_AMDGPU || elf.os_abi != OS_ABI_AMDGPU_HSA)
        return kiln__fail(KILN_ERROR_UNSUPPORTED, "HSACO: ELF machine %u and OS ABI %u: must be %d and %d", elf.machine,
                          elf.os_abi, KILN__ELF_MACHINE_AMDGPU, OS_ABI_AMDGPU_HSA);
    if (elf.abi_version < ABI_VERSION_FIRST || elf.abi_version > ABI_VERSION_LAST)
        return kiln__fail(KILN_ERROR_UNSUPPORTED, "HSACO: ELF ABI version %u: known are 1 to 4 (code objects 3 to 6)",
                          elf.abi_version);
    if (elf.type != KILN__ELF_TYPE_SHARED)
        return kiln__fail(KILN_ERROR_UNSUPPORTED,
                          "HSACO: ELF type %u is not a linked code object (type 3): link it first", elf.type);
    kiln__hsaco hsaco = {.code_object_version = elf.abi_version + (uint32_t)(CODE_OBJECT_FIRST - ABI_VERSION_FIRST)};
    KILN__TRY(read_target(&elf, &hsaco));
    kiln__bytes metadata = {NULL, 0};
    KILN__TRY(find_metadata(&elf, &metadata));
    hsaco.metadata = metadata.at;
    hsaco.metadata_size = metadata.size;
    KILN__TRY(read_root(&hsaco));
    *out_hsaco = hsaco;
    return KILN_OK;
}

/* ---- A kernel -----------------------------------------------------------------------------------------------------
 */

/* A kernel's numbers: (key, field, required by the format). */
#define KERNEL_NUMBERS(X)                              \
    X(".kernarg_segment_size", kernarg_size, 1)        \
    X(".kernarg_segment_align", kernarg_align, 1)      \
    X(".group_segment_fixed_size", group_bytes, 1)     \
    X(".private_segment_fixed_size", private_bytes, 1) \
    X(".max_flat_workgroup_size", max_threads, 1)      \
    X(".wavefront_size", wave_size, 1)                 \
    X(".vgpr_count", vgprs, 1)                         \
    X(".sgpr_count", sgprs, 1)                         \
    X(".vgpr_spill_count", vgpr_spills, 0)             \
    X(".sgpr_spill_count", sgpr_spills, 0)

enum {
#define NUMBER_ENUM(key, field, required) NUMBER_##field,
    KERNEL_NUMBERS(NUMBER_ENUM)
#undef NUMBER_ENUM
        NUMBER_COUNT
};

static const struct {
    const char *key;
    size_t offset;
    bool required;
} numbers[NUMBER_COUNT] = {
#define NUMBER_ROW(key, field, required) {key, offsetof(kiln__hsaco_kernel, field), required},
    KERNEL_NUMBERS(NUMBER_ROW)
#undef NUMBER_ROW
};

static kiln_status read_number(kiln__bytes *rest, const char *key, uint32_t *out_number) {
    kiln__msgpack_value value;
    KILN__TRY(kiln__msgpack_expect(rest, KILN__MSGPACK_UNSIGNED, key, &value));
    if (value.number > UINT32_MAX)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "HSACO: %s is %" PRIu64 ": more than 32 bits", key, value.number);
    *out_number = (uint32_t)value.number;
    return KILN_OK;
}

/* A driver takes names as C strings. */
static kiln_status read_name(kiln__bytes *rest, const char *key, kiln__bytes *out_name) {
    kiln__msgpack_value value;
    KILN__TRY(kiln__msgpack_expect(rest, KILN__MSGPACK_STRING, key, &value));
    if (value.bytes.size == 0 || memchr(value.bytes.at, 0, value.bytes.size))
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "HSACO: %s is empty or has a NUL byte in it", key);
    *out_name = value.bytes;
    return KILN_OK;
}

static kiln__hidden_kind hidden_kind(const kiln__msgpack_value *value) {
    static const char *const texts[] = {
#define HIDDEN_TEXT(name, text, provided) text,
        KILN__HIDDEN_ARGUMENTS(HIDDEN_TEXT)
#undef HIDDEN_TEXT
    };
    for (int kind = 0; kind < KILN__HIDDEN_KIND_COUNT; kind++)
        if (kiln__msgpack_is(value, texts[kind])) return (kiln__hidden_kind)kind;
    return KILN__HIDDEN_UNKNOWN;
}

static bool is_hidden(const kiln__msgpack_value *kind) {
    static const char prefix[] = "hidden_";
    return kind->bytes.size >= sizeof prefix - 1 && memcmp(kind->bytes.at, prefix, sizeof prefix - 1) == 0;
}

static kiln_status read_argument(kiln__bytes *rest, kiln__hsaco_kernel *kernel) {
    kiln__msgpack_value map, key, kind = {.type = KILN__MSGPACK_NIL};
    uint32_t offset = 0, size = 0;
    bool has_offset = false, has_size = false;
    KILN__TRY(kiln__msgpack_expect(rest, KILN__MSGPACK_MAP, "an argument", &map));
    for (uint32_t i = 0; i < map.count; i++) {
        KILN__TRY(kiln__msgpack_expect(rest, KILN__MSGPACK_STRING, "a key of an argument", &key));
        if (kiln__msgpack_is(&key, ".offset")) {
            KILN__TRY(read_number(rest, ".offset", &offset));
            has_offset = true;
        } else if (kiln__msgpack_is(&key, ".size")) {
            KILN__TRY(read_number(rest, ".size", &size));
            has_size = true;
        } else if (kiln__msgpack_is(&key, ".value_kind")) {
            KILN__TRY(kiln__msgpack_expect(rest, KILN__MSGPACK_STRING, ".value_kind", &kind));
        } else {
            KILN__TRY(kiln__msgpack_skip(rest));
        }
    }
    if (!has_offset || !has_size || kind.type != KILN__MSGPACK_STRING)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "HSACO: an argument lacks .offset, .size or .value_kind");
    if (size > UINT32_MAX - offset)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "HSACO: an argument of %u bytes at offset %u wraps", size, offset);
    if (!is_hidden(&kind)) {
        if (offset + size > kernel->arguments_size) kernel->arguments_size = offset + size;
        return KILN_OK;
    }
    if (kernel->hidden_count == KILN__HSACO_HIDDEN_MAX)
        return kiln__fail(KILN_ERROR_UNSUPPORTED, "HSACO: more than %d hidden arguments", KILN__HSACO_HIDDEN_MAX);
    kernel->hidden[kernel->hidden_count++] = (kiln__hidden_argument){hidden_kind(&kind), offset, size};
    return KILN_OK;
}

static kiln_status read_arguments(kiln__bytes *rest, kiln__hsaco_kernel *kernel) {
    kiln__msgpack_value list;
    kernel->arguments_size = 0;
    kernel->hidden_count = 0;
    KILN__TRY(kiln__msgpack_expect(rest, KILN__MSGPACK_ARRAY, ".args", &list));
    for (uint32_t i = 0; i < list.count; i++)
        KILN__TRY(read_argument(rest, kernel));
    return KILN_OK;
}

/* What the fields must be to each other, in whatever order they came. */
static kiln_status check_kernel(const kiln__hsaco_kernel *kernel) {
    if (kernel->arguments_size > kernel->kernarg_size)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE,
                          "HSACO: arguments end at %u, beyond the kernarg segment of %u bytes", kernel->arguments_size,
                          kernel->kernarg_size);
    for (uint32_t i = 0; i < kernel->hidden_count; i++)
        if (!kiln__within(kernel->hidden[i].offset, kernel->hidden[i].size, kernel->kernarg_size))
            return kiln__fail(
                KILN_ERROR_CORRUPT_IMAGE,
                "HSACO: hidden argument %u (offset %u, size %u) is not in the kernarg segment of %u bytes", i,
                kernel->hidden[i].offset, kernel->hidden[i].size, kernel->kernarg_size);
    if (kernel->kernarg_align == 0 || (kernel->kernarg_align & (kernel->kernarg_align - 1)) != 0)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "HSACO: .kernarg_segment_align is %u: must be a power of two",
                          kernel->kernarg_align);
    if (kernel->wave_size != 32 && kernel->wave_size != 64)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "HSACO: .wavefront_size is %u: must be 32 or 64",
                          kernel->wave_size);
    return KILN_OK;
}

static kiln_status read_field(kiln__bytes *rest, const kiln__msgpack_value *key, kiln__hsaco_kernel *kernel,
                              bool present[NUMBER_COUNT], bool *has_arguments) {
    for (size_t i = 0; i < NUMBER_COUNT; i++)
        if (kiln__msgpack_is(key, numbers[i].key)) {
            present[i] = true;
            return read_number(rest, numbers[i].key, (uint32_t *)(void *)((char *)kernel + numbers[i].offset));
        }
    if (kiln__msgpack_is(key, ".name")) return read_name(rest, ".name", &kernel->name);
    if (kiln__msgpack_is(key, ".symbol")) return read_name(rest, ".symbol", &kernel->symbol);
    if (kiln__msgpack_is(key, ".args")) {
        *has_arguments = true;
        return read_arguments(rest, kernel);
    }
    if (kiln__msgpack_is(key, ".uses_dynamic_stack")) {
        kiln__msgpack_value value;
        KILN__TRY(kiln__msgpack_expect(rest, KILN__MSGPACK_BOOL, ".uses_dynamic_stack", &value));
        kernel->dynamic_stack = value.boolean;
        return KILN_OK;
    }
    return kiln__msgpack_skip(rest);
}

kiln_status kiln__hsaco_kernel_next(kiln__bytes *rest, kiln__hsaco_kernel *out_kernel) {
    memset(out_kernel, 0, sizeof *out_kernel);
    kiln__hsaco_kernel kernel = {.wave_size = 0};
    bool present[NUMBER_COUNT] = {false};
    bool has_arguments = false;
    kiln__msgpack_value map, key;
    KILN__TRY(kiln__msgpack_expect(rest, KILN__MSGPACK_MAP, "a kernel", &map));
    for (uint32_t i = 0; i < map.count; i++) {
        KILN__TRY(kiln__msgpack_expect(rest, KILN__MSGPACK_STRING, "a key of a kernel", &key));
        KILN__TRY(read_field(rest, &key, &kernel, present, &has_arguments));
    }
    if (!kernel.name.at || !kernel.symbol.at)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "HSACO: a kernel has no %s", kernel.name.at ? ".symbol" : ".name");
    for (size_t i = 0; i < NUMBER_COUNT; i++)
        if (numbers[i].required && !present[i])
            return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "HSACO: a kernel has no %s", numbers[i].key);
    if (!has_arguments) kernel.arguments_size = kernel.kernarg_size;
    KILN__TRY(check_kernel(&kernel));
    *out_kernel = kernel;
    return KILN_OK;
}

kiln_status kiln__hsaco_kernel_read(const kiln__hsaco *hsaco, uint32_t index, kiln__hsaco_kernel *out_kernel) {
    memset(out_kernel, 0, sizeof *out_kernel);
    KILN__REQUIRE(index < hsaco->kernel_count, "HSACO: kernel %u of %u", index, hsaco->kernel_count);
    kiln__bytes rest = hsaco->kernels;
    for (uint32_t i = 0; i < index; i++)
        KILN__TRY(kiln__msgpack_skip(&rest));
    kiln_status status = kiln__hsaco_kernel_next(&rest, out_kernel);
    return status ? kiln__fail_within(status, "kernel %u", index) : KILN_OK;
}
