/* LLVM, "User Guide for AMDGPU Backend", Code Object Metadata; github.com/msgpack/msgpack, spec.md. */
#include "tests/sim/amdgcn/decode/amd_metadata.h"
#include <elf.h>
#include <string.h>

typedef struct cursor {
    const uint8_t *at, *end;
} cursor;

typedef enum kind { NUMBER, TEXT, ARRAY, MAP, OTHER, BROKEN } kind;

typedef struct value {
    kind kind;
    uint64_t number; /* itself, or of how many bytes, elements or pairs it is */
    const uint8_t *text;
} value;

/* ---- MessagePack ---- */

/* A big-endian number; 0 beyond the end, where the next value is BROKEN. */
static uint64_t take(cursor *c, size_t size) {
    uint64_t number = 0;
    if (size > (size_t)(c->end - c->at)) size = (size_t)(c->end - c->at);
    while (size--)
        number = number << 8 | *c->at++;
    return number;
}

static value take_text(cursor *c, uint64_t size) {
    if (size > (uint64_t)(c->end - c->at)) return (value){.kind = BROKEN};
    const value found = {TEXT, size, c->at};
    c->at += size;
    return found;
}

static value next(cursor *c) {
    if (c->at == c->end) return (value){.kind = BROKEN};
    const uint8_t code = *c->at++;
    if (code < 0x80) return (value){NUMBER, code, NULL};
    if (code < 0x90) return (value){MAP, code & 15, NULL};
    if (code < 0xa0) return (value){ARRAY, code & 15, NULL};
    if (code < 0xc0) return take_text(c, code & 31);
    if (code == 0xc2 || code == 0xc3) return (value){.kind = OTHER}; /* false and true */
    if (code >= 0xcc && code <= 0xcf) return (value){NUMBER, take(c, 1u << (code - 0xcc)), NULL};
    if (code >= 0xd9 && code <= 0xdb) return take_text(c, take(c, 1u << (code - 0xd9)));
    if (code == 0xdc || code == 0xdd) return (value){ARRAY, take(c, 2u << (code - 0xdc)), NULL};
    if (code == 0xde || code == 0xdf) return (value){MAP, take(c, 2u << (code - 0xde)), NULL};
    return (value){.kind = BROKEN}; /* metadata has no others */
}

/* Goes behind the next value with all that is in it. */
static void skip(cursor *c) {
    for (uint64_t due = 1; due; due--) {
        const value found = next(c);
        if (found.kind == BROKEN) c->at = c->end;
        if (found.kind == BROKEN) return;
        if (found.kind == ARRAY) due += found.number;
        if (found.kind == MAP) due += 2 * found.number;
    }
}

static bool is_text(value found, const char *text) {
    return found.kind == TEXT && found.number == strlen(text) && !memcmp(found.text, text, found.number);
}

/* ---- Kernels ---- */

/* Reads one kernel's map. False if it is not the one. */
static bool kernel_read(cursor *c, const char *kernel, amd_metadata *out) {
    const value map = next(c);
    amd_metadata read = {0};
    bool is_named = false;
    if (map.kind != MAP) c->at = c->end;
    for (uint64_t i = 0; i < map.number && c->at < c->end; i++) {
        const value key = next(c);
        const cursor behind = *c;
        skip(c);
        cursor here = behind;
        if (is_text(key, ".name")) is_named = is_text(next(&here), kernel);
        if (is_text(key, ".uniform_work_group_size")) read.whole_groups = next(&here).number == 1;
        if (is_text(key, ".max_flat_workgroup_size")) read.group_max = (uint32_t)next(&here).number;
    }
    if (is_named) *out = read;
    return is_named;
}

static bool root_read(cursor c, const char *kernel, amd_metadata *out) {
    const value root = next(&c);
    for (uint64_t i = 0; root.kind == MAP && i < root.number && c.at < c.end; i++) {
        if (!is_text(next(&c), "amdhsa.kernels")) {
            skip(&c);
            continue;
        }
        const value kernels = next(&c);
        for (uint64_t k = 0; kernels.kind == ARRAY && k < kernels.number && c.at < c.end; k++)
            if (kernel_read(&c, kernel, out)) return true;
    }
    return false;
}

/* ---- Notes ---- */

static bool notes_read(cursor c, const char *kernel, amd_metadata *out) {
    enum { METADATA = 32 };
    Elf64_Nhdr note;
    while ((size_t)(c.end - c.at) >= sizeof note) {
        memcpy(&note, c.at, sizeof note);
        const uint64_t name = ((uint64_t)note.n_namesz + 3) / 4 * 4, data = ((uint64_t)note.n_descsz + 3) / 4 * 4;
        c.at += sizeof note;
        if (name + note.n_descsz > (uint64_t)(c.end - c.at)) return false;
        const cursor found = {c.at + name, c.at + name + note.n_descsz};
        if (note.n_type == METADATA && name == 8 && !memcmp(c.at, "AMDGPU", 7)) return root_read(found, kernel, out);
        if (name + data > (uint64_t)(c.end - c.at)) return false;
        c.at += name + data;
    }
    return false;
}

amd_metadata amd_metadata_read(const uint8_t *bytes, size_t size, const char *kernel) {
    Elf64_Ehdr header;
    amd_metadata read = {0};
    if (size < sizeof header) return read;
    memcpy(&header, bytes, sizeof header);
    for (unsigned i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr segment;
        const uint64_t at = header.e_phoff + (uint64_t)i * sizeof segment;
        if (at > size || sizeof segment > size - at) break;
        memcpy(&segment, bytes + at, sizeof segment);
        if (segment.p_type != PT_NOTE || segment.p_offset > size || segment.p_filesz > size - segment.p_offset)
            continue;
        const uint8_t *begin = bytes + segment.p_offset;
        if (notes_read((cursor){begin, begin + segment.p_filesz}, kernel, &read)) break;
    }
    return read;
}
