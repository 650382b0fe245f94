#include "loader/image/inflate.h"
#include "loader/status.h"
#include <stdlib.h>

/* A prefix code: the symbols in the order of their codes, and how many codes there are of each length. Codes of up to
 * QUICK bits are also in a table that the next bits index: symbol << 4 | length, 0 where a code is longer. */
enum { LENGTH_MOST = 15, SYMBOLS = 288, DISTANCES = 32, QUICK = 10 };

typedef struct prefix_code {
    uint16_t count[LENGTH_MOST + 1];
    uint16_t symbol[SYMBOLS];
    uint16_t quick[1 << QUICK];
} prefix_code;

typedef struct inflater {
    const uint8_t *in, *in_end;
    uint8_t *out, *out_begin, *out_end;
    uint64_t bits; /* those read and not yet used, the next one lowest */
    uint32_t bit_count;
    prefix_code literals, distances;
} inflater;

static kiln_status corrupt(const char *what) {
    return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "the compressed image %s", what);
}

/* ---- Bits ---- */

static void refill(inflater *state) {
    while (state->bit_count <= 56 && state->in < state->in_end) {
        state->bits |= (uint64_t)*state->in++ << state->bit_count;
        state->bit_count += 8;
    }
}

/* At most 16 bits. */
static kiln_status take_bits(inflater *state, uint32_t count, uint32_t *out_bits) {
    if (state->bit_count < count) refill(state);
    if (state->bit_count < count) return corrupt("ends early");
    *out_bits = (uint32_t)state->bits & ((1u << count) - 1);
    state->bits >>= count;
    state->bit_count -= count;
    return KILN_OK;
}

/* ---- Prefix codes (RFC 1951, 3.2.2) ---- */

static kiln_status build_code(prefix_code *code, const uint8_t *lengths, uint32_t symbols) {
    uint16_t first[LENGTH_MOST + 2] = {0}, place[LENGTH_MOST + 2] = {0};
    memset(code, 0, sizeof *code);
    for (uint32_t i = 0; i < symbols; i++)
        code->count[lengths[i]]++;
    code->count[0] = 0;
    int32_t room = 1;
    for (uint32_t length = 1; length <= LENGTH_MOST; length++) {
        room = room * 2 - code->count[length];
        if (room < 0) return corrupt("has a code with too many symbols");
        first[length + 1] = (uint16_t)((first[length] + code->count[length]) << 1);
        place[length + 1] = (uint16_t)(place[length] + code->count[length]);
    }
    for (uint32_t i = 0; i < symbols; i++) {
        uint32_t length = lengths[i];
        if (!length) continue;
        uint32_t bits = first[length]++, reversed = 0;
        code->symbol[place[length]++] = (uint16_t)i;
        if (length > QUICK) continue;
        for (uint32_t bit = 0; bit < length; bit++)
            reversed |= (bits >> bit & 1) << (length - 1 - bit);
        for (uint32_t at = reversed; at < 1u << QUICK; at += 1u << length)
            code->quick[at] = (uint16_t)(i << 4 | length);
    }
    return KILN_OK;
}

static kiln_status take_long_symbol(inflater *state, const prefix_code *code, uint32_t *out_symbol) {
    uint32_t bits = 0, first = 0, place = 0;
    for (uint32_t length = 1; length <= LENGTH_MOST; length++) {
        uint32_t bit = 0, count = code->count[length];
        KILN__TRY(take_bits(state, 1, &bit));
        bits |= bit;
        if (bits < first + count) {
            *out_symbol = code->symbol[place + bits - first];
            return KILN_OK;
        }
        place += count;
        first = (first + count) << 1;
        bits <<= 1;
    }
    return corrupt("has bits that are no symbol");
}

static kiln_status take_symbol(inflater *state, const prefix_code *code, uint32_t *out_symbol) {
    if (state->bit_count < LENGTH_MOST) refill(state);
    uint32_t entry = code->quick[state->bits & ((1u << QUICK) - 1)], length = entry & 15;
    if (!length || length > state->bit_count) return take_long_symbol(state, code, out_symbol);
    state->bits >>= length;
    state->bit_count -= length;
    *out_symbol = entry >> 4;
    return KILN_OK;
}

/* ---- Blocks (RFC 1951, 3.2.3 to 3.2.7) ---- */

static kiln_status inflate_stored(inflater *state) {
    state->in -= state->bit_count / 8;
    state->bits = state->bit_count = 0;
    if (state->in_end - state->in < 4) return corrupt("ends early");
    uint32_t size = kiln__read_u16(state->in), inverse = kiln__read_u16(state->in + 2);
    state->in += 4;
    if (size != (inverse ^ 0xffff)) return corrupt("has a stored block of two sizes");
    if (size > (size_t)(state->in_end - state->in)) return corrupt("ends early");
    if (size > (size_t)(state->out_end - state->out)) return corrupt("is larger than its size");
    memcpy(state->out, state->in, size);
    state->in += size;
    state->out += size;
    return KILN_OK;
}

/* Copies length bytes from distance behind the end of the output, which they may reach: they then repeat. */
static kiln_status copy_match(inflater *state, size_t length, size_t distance) {
    if (distance > (size_t)(state->out - state->out_begin)) return corrupt("refers to bytes before its first");
    if (length > (size_t)(state->out_end - state->out)) return corrupt("is larger than its size");
    const uint8_t *from = state->out - distance;
    for (size_t i = 0; i < length; i++)
        state->out[i] = from[i];
    state->out += length;
    return KILN_OK;
}

static kiln_status inflate_match(inflater *state, uint32_t symbol) {
    static const uint16_t length_base[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                           31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t length_bits[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                          2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    static const uint16_t distance_base[] = {1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                             33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                             1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    uint32_t more = 0, distance_symbol = 0;
    if (symbol - 257 >= sizeof length_bits) return corrupt("has a match of an unknown length");
    KILN__TRY(take_bits(state, length_bits[symbol - 257], &more));
    size_t length = length_base[symbol - 257] + more;
    KILN__TRY(take_symbol(state, &state->distances, &distance_symbol));
    if (distance_symbol >= sizeof distance_base / sizeof *distance_base)
        return corrupt("has a match at an unknown distance");
    KILN__TRY(take_bits(state, distance_symbol < 4 ? 0 : distance_symbol / 2 - 1, &more));
    return copy_match(state, length, distance_base[distance_symbol] + more);
}

static kiln_status inflate_symbols(inflater *state) {
    enum { END_OF_BLOCK = 256 };
    for (;;) {
        uint32_t symbol = 0;
        KILN__TRY(take_symbol(state, &state->literals, &symbol));
        if (symbol == END_OF_BLOCK) return KILN_OK;
        if (symbol > END_OF_BLOCK) {
            KILN__TRY(inflate_match(state, symbol));
            continue;
        }
        if (state->out == state->out_end) return corrupt("is larger than its size");
        *state->out++ = (uint8_t)symbol;
    }
}

static kiln_status read_fixed_codes(inflater *state) {
    uint8_t lengths[SYMBOLS];
    for (uint32_t i = 0; i < SYMBOLS; i++)
        lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    KILN__TRY(build_code(&state->literals, lengths, SYMBOLS));
    memset(lengths, 5, DISTANCES);
    return build_code(&state->distances, lengths, DISTANCES);
}

static kiln_status read_dynamic_codes(inflater *state) {
    enum { COPY_LAST = 16, ZEROS_FEW = 17, ZEROS_MANY = 18, LENGTH_SYMBOLS = 19 };
    static const uint8_t order[LENGTH_SYMBOLS] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    uint8_t lengths[SYMBOLS + DISTANCES] = {0};
    uint32_t literals = 0, distances = 0, count = 0;
    KILN__TRY(take_bits(state, 5, &literals));
    KILN__TRY(take_bits(state, 5, &distances));
    KILN__TRY(take_bits(state, 4, &count));
    literals += 257, distances += 1, count += 4;
    if (literals > 286) return corrupt("has a code with too many symbols");
    for (uint32_t i = 0; i < count; i++) {
        uint32_t length = 0;
        KILN__TRY(take_bits(state, 3, &length));
        lengths[order[i]] = (uint8_t)length;
    }
    KILN__TRY(build_code(&state->literals, lengths, LENGTH_SYMBOLS));
    memset(lengths, 0, LENGTH_SYMBOLS);
    for (uint32_t i = 0; i < literals + distances;) {
        uint32_t symbol = 0, repeats = 1, value;
        KILN__TRY(take_symbol(state, &state->literals, &symbol));
        value = symbol;
        if (symbol == COPY_LAST) {
            if (!i) return corrupt("repeats a length before the first");
            value = lengths[i - 1];
            KILN__TRY(take_bits(state, 2, &repeats));
            repeats += 3;
        } else if (symbol > COPY_LAST) {
            value = 0;
            KILN__TRY(take_bits(state, symbol == ZEROS_FEW ? 3 : 7, &repeats));
            repeats += symbol == ZEROS_FEW ? 3 : 11;
        }
        if (repeats > literals + distances - i) return corrupt("has more lengths than symbols");
        memset(lengths + i, (int)value, repeats);
        i += repeats;
    }
    KILN__TRY(build_code(&state->literals, lengths, literals));
    return build_code(&state->distances, lengths + literals, distances);
}

static kiln_status inflate_blocks(inflater *state) {
    enum { STORED, FIXED, DYNAMIC };
    uint32_t last = 0, type = STORED;
    while (!last) {
        KILN__TRY(take_bits(state, 1, &last));
        KILN__TRY(take_bits(state, 2, &type));
        if (type == STORED) {
            KILN__TRY(inflate_stored(state));
            continue;
        }
        if (type != FIXED && type != DYNAMIC) return corrupt("has a block of an unknown type");
        KILN__TRY(type == FIXED ? read_fixed_codes(state) : read_dynamic_codes(state));
        KILN__TRY(inflate_symbols(state));
    }
    return state->out == state->out_end ? KILN_OK : corrupt("is smaller than its size");
}

/* ---- Images ---- */

kiln_status kiln__inflate(kiln__bytes packed, uint8_t *out, size_t size) {
    enum { HEADER = 10, TRAILER = 8 };
    static const uint8_t magic[] = {0x1f, 0x8b, 8, 0}; /* gzip, DEFLATE, no optional fields */
    if (packed.size < HEADER + TRAILER || memcmp(packed.at, magic, sizeof magic) != 0)
        return corrupt("does not begin as gzip's do");
    inflater *state = calloc(1, sizeof *state);
    if (!state) return kiln__fail(KILN_ERROR_OUT_OF_MEMORY, "no memory to decompress an image");
    state->in = packed.at + HEADER;
    state->in_end = packed.at + packed.size - TRAILER;
    state->out = state->out_begin = out;
    state->out_end = out + size;
    kiln_status status = inflate_blocks(state);
    free(state);
    return status;
}

kiln_status kiln__image_unpack(kiln_image *image, void **out_memory) {
    *out_memory = NULL;
    if (!image->data || !image->packed_size) return KILN_OK;
    if (image->packed_size > SIZE_MAX || image->size >= SIZE_MAX) return corrupt("is larger than the address space");
    size_t size = (size_t)image->size;
    uint8_t *bytes = malloc(size + 1);
    if (!bytes) return kiln__fail(KILN_ERROR_OUT_OF_MEMORY, "no memory for an image of %zu bytes", size);
    kiln_status status = kiln__inflate((kiln__bytes){image->data, (size_t)image->packed_size}, bytes, size);
    if (status != KILN_OK) {
        free(bytes);
        return status;
    }
    bytes[size] = '\0';
    image->data = bytes;
    image->packed_size = 0;
    *out_memory = bytes;
    return KILN_OK;
}
