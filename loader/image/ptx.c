#include "loader/image/ptx.h"

#include "loader/target.h"

#include <inttypes.h>
#include <string.h>

/* ---- Tokens -------------------------------------------------------------------------------------------------------
 */

typedef enum token_kind { TOKEN_END, TOKEN_WORD, TOKEN_NUMBER, TOKEN_STRING, TOKEN_SIGN } token_kind;

/* A word may begin with a dot and has no other: "ld.param.u64" is three. A sign is one byte. */
typedef struct ptx_token {
    token_kind kind;
    kiln__bytes text;
} ptx_token;

static bool is_digit(uint8_t byte) {
    return byte >= '0' && byte <= '9';
}

static bool is_word(uint8_t byte) {
    return is_digit(byte) || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_' ||
           byte == '$' || byte == '%';
}

static kiln_status corrupt(const kiln__ptx_place *place, const char *what) {
    return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "PTX: line %" PRIu32 ": %s", place->line, what);
}

static void step(kiln__ptx_place *place, size_t size) {
    for (size_t i = 0; i < size; i++)
        place->line += place->rest.at[i] == '\n';
    place->rest.at += size;
    place->rest.size -= size;
}

static bool starts_with(const kiln__bytes *rest, const char *text) {
    size_t length = strlen(text);
    return rest->size >= length && memcmp(rest->at, text, length) == 0;
}

static kiln_status skip_blank(kiln__ptx_place *place) {
    for (;;) {
        kiln__bytes *rest = &place->rest;
        if (rest->size > 0 && (*rest->at == ' ' || (*rest->at >= '\t' && *rest->at <= '\r'))) {
            step(place, 1);
        } else if (starts_with(rest, "//")) {
            const uint8_t *end = memchr(rest->at, '\n', rest->size);
            step(place, end ? (size_t)(end - rest->at) : rest->size);
        } else if (starts_with(rest, "/*")) {
            kiln__ptx_place begin = *place;
            for (step(place, 2); rest->size > 0 && !starts_with(rest, "*/");)
                step(place, 1);
            if (rest->size == 0) return corrupt(&begin, "a comment does not end");
            step(place, 2);
        } else {
            return KILN_OK;
        }
    }
}

static kiln_status string_length(const kiln__ptx_place *place, size_t *out_length) {
    const kiln__bytes *rest = &place->rest;
    for (size_t i = 1; i < rest->size && rest->at[i] != '\n'; i++) {
        if (rest->at[i] == '\\') {
            i++;
        } else if (rest->at[i] == '"') {
            *out_length = i + 1;
            return KILN_OK;
        }
    }
    return corrupt(place, "a string does not end");
}

static kiln_status next_token(kiln__ptx_place *place, ptx_token *out_token) {
    *out_token = (ptx_token){TOKEN_END, {NULL, 0}};
    KILN__TRY(skip_blank(place));
    if (place->rest.size == 0) return KILN_OK;
    const uint8_t *at = place->rest.at;
    size_t length = 1;
    if (*at == '"') {
        out_token->kind = TOKEN_STRING;
        KILN__TRY(string_length(place, &length));
    } else if (is_digit(*at)) {
        out_token->kind = TOKEN_NUMBER; /* "9.0", "0x10", "0f3F800000" */
        while (length < place->rest.size && (is_word(at[length]) || at[length] == '.'))
            length++;
    } else if (is_word(*at) || *at == '.') {
        out_token->kind = TOKEN_WORD;
        while (length < place->rest.size && is_word(at[length]))
            length++;
    } else if (*at > ' ' && *at < 0x7f) {
        out_token->kind = TOKEN_SIGN;
    } else {
        return corrupt(place, "a byte outside comments and strings is no printable ASCII");
    }
    out_token->text = (kiln__bytes){at, length};
    step(place, length);
    return KILN_OK;
}

static bool token_is(const ptx_token *token, const char *text) {
    return token->kind != TOKEN_STRING && token->text.size > 0 &&
           kiln__bytes_are(token->text.at, token->text.size, text);
}

static kiln_status expect(kiln__ptx_place *place, const char *text) {
    ptx_token token;
    KILN__TRY(next_token(place, &token));
    if (!token_is(&token, text))
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "PTX: line %" PRIu32 ": \"%s\" is missing", place->line, text);
    return KILN_OK;
}

/* Decimal, hexadecimal or octal, with or without the U of unsigned. */
static bool token_number(const ptx_token *token, uint32_t *out_number) {
    size_t size = token->text.size;
    const uint8_t *at = token->text.at;
    if (token->kind != TOKEN_NUMBER) return false;
    if (size > 1 && at[size - 1] == 'U') size--;
    uint32_t base = 10;
    size_t i = 0;
    if (size > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X')) {
        base = 16;
        i = 2;
    } else if (size > 1 && at[0] == '0') {
        base = 8;
    }
    uint64_t number = 0;
    for (; i < size; i++) {
        uint8_t lower = at[i] | 0x20;
        uint32_t digit = is_digit(at[i]) ? at[i] - (uint32_t)'0' : lower >= 'a' ? lower - (uint32_t)'a' + 10 : base;
        if (digit >= base) return false;
        number = number * base + digit;
        if (number > UINT32_MAX) return false;
    }
    *out_number = (uint32_t)number;
    return true;
}

static kiln_status expect_number(kiln__ptx_place *place, uint32_t *out_number) {
    ptx_token token;
    KILN__TRY(next_token(place, &token));
    return token_number(&token, out_number) ? KILN_OK : corrupt(place, "a number of at most 32 bits is missing");
}

/* Whether the next token is this one; if so it is taken. */
static kiln_status take(kiln__ptx_place *place, const char *text, bool *out_taken) {
    kiln__ptx_place before = *place;
    ptx_token token;
    KILN__TRY(next_token(place, &token));
    *out_taken = token_is(&token, text);
    if (!*out_taken) *place = before;
    return KILN_OK;
}

/* Takes everything up to and with the brace that closes one that was taken. */
static kiln_status skip_braces(kiln__ptx_place *place) {
    ptx_token token;
    for (size_t depth = 1; depth > 0;) {
        KILN__TRY(next_token(place, &token));
        if (token.kind == TOKEN_END) return corrupt(place, "the text ends within braces");
        if (token_is(&token, "{")) depth++;
        if (token_is(&token, "}")) depth--;
    }
    return KILN_OK;
}

/* ---- Variables: parameters and shared memory ----------------------------------------------------------------------
 */

/* All constant addresses at which parameters begin are multiples of it. */
enum { PARAMETER_ALIGN_MAX = 16 };

static const struct {
    const char *name;
    uint32_t size;
} types[] = {
    {".b8", 1},   {".u8", 1},  {".s8", 1},  {".b16", 2},   {".u16", 2},    {".s16", 2},     {".f16", 2},
    {".bf16", 2}, {".b32", 4}, {".u32", 4}, {".s32", 4},   {".f32", 4},    {".f16x2", 4},   {".b64", 8},
    {".u64", 8},  {".s64", 8}, {".f64", 8}, {".b128", 16}, {".texref", 8}, {".surfref", 8}, {".samplerref", 8},
};

static uint32_t type_size(const ptx_token *token) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (token_is(token, types[i].name)) return types[i].size;
    return 0;
}

/* A struct's layout so far: its end. */
static kiln_status place_variable(const kiln__ptx_place *place, uint32_t align, uint64_t size, uint64_t *end) {
    *end = (*end + align - 1) & ~(uint64_t)(align - 1);
    *end += size;
    return *end <= UINT32_MAX ? KILN_OK : corrupt(place, "variables take more than 4 GB");
}

/* A variable's alignment and the size of an element, up to and with its name. */
static kiln_status read_type(kiln__ptx_place *place, uint32_t *out_align, uint32_t *out_size) {
    uint32_t align = 0, size = 0, lanes = 1;
    bool pointer = false;
    for (;;) {
        ptx_token token;
        KILN__TRY(next_token(place, &token));
        if (token.kind != TOKEN_WORD) return corrupt(place, "a variable has no name");
        if (*token.text.at != '.') break;
        if (token_is(&token, ".align")) {
            uint32_t number = 0;
            KILN__TRY(expect_number(place, &number));
            if (number == 0 || (number & (number - 1)) != 0) return corrupt(place, ".align is not a power of two");
            if (!pointer) align = number; /* else it is that of what it points to */
        } else if (token_is(&token, ".ptr")) {
            pointer = true;
        } else if (token_is(&token, ".v2") || token_is(&token, ".v4")) {
            lanes = token.text.at[2] - (uint32_t)'0';
        } else if (type_size(&token)) {
            size = type_size(&token);
        } else if (!pointer) { /* behind .ptr stands a state space */
            return kiln__fail(KILN_ERROR_UNSUPPORTED, "PTX: line %" PRIu32 ": a type or property that is not known",
                              place->line);
        }
    }
    if (size == 0) return corrupt(place, "a variable has no type");
    *out_size = size * lanes;
    *out_align = align ? align : *out_size;
    return KILN_OK;
}

/* What stands behind a variable's name: "[4][8]", or nothing. */
static kiln_status read_dimensions(kiln__ptx_place *place, uint64_t *size) {
    bool more = false;
    KILN__TRY(take(place, "[", &more));
    while (more) {
        uint32_t count = 0;
        KILN__TRY(expect_number(place, &count));
        KILN__TRY(expect(place, "]"));
        if (count != 0 && *size > UINT32_MAX / count) return corrupt(place, "an array has more than 4 GB");
        *size *= count;
        KILN__TRY(take(place, "[", &more));
    }
    return KILN_OK;
}

/* Reads a parameter, ".align 8 .b8 name[24]" behind its state space, and adds it to *end. */
static kiln_status read_parameter(kiln__ptx_place *place, uint64_t *end) {
    uint32_t align = 0, element = 0;
    KILN__TRY(read_type(place, &align, &element));
    if (align > PARAMETER_ALIGN_MAX)
        return kiln__fail(KILN_ERROR_UNSUPPORTED,
                          "PTX: line %" PRIu32 ": a parameter is aligned to %" PRIu32
                          " bytes: assemblers place it by its address in constant memory, where parameters begin at "
                          "0x160, 0x210 or 0x380, so that its offset differs from a C struct's and from device to "
                          "device: align it to at most %d",
                          place->line, align, PARAMETER_ALIGN_MAX);
    uint64_t size = element;
    KILN__TRY(read_dimensions(place, &size));
    return place_variable(place, align, size, end);
}

/* The same with a list of names: ".b32 first, second[2]". */
static kiln_status read_variables(kiln__ptx_place *place, uint64_t *end) {
    uint32_t align = 0, element = 0;
    KILN__TRY(read_type(place, &align, &element));
    for (bool more = true; more;) {
        uint64_t size = element;
        KILN__TRY(read_dimensions(place, &size));
        KILN__TRY(place_variable(place, align, size, end));
        KILN__TRY(take(place, ",", &more));
        ptx_token name;
        if (more) KILN__TRY(next_token(place, &name));
    }
    return KILN_OK;
}

static kiln_status read_parameters(kiln__ptx_place *place, uint32_t *out_size) {
    uint64_t end = 0;
    bool empty = false, more = true;
    KILN__TRY(take(place, ")", &empty));
    while (!empty && more) {
        KILN__TRY(expect(place, ".param"));
        KILN__TRY(read_parameter(place, &end));
        KILN__TRY(take(place, ",", &more));
        if (!more) KILN__TRY(expect(place, ")"));
    }
    *out_size = (uint32_t)end;
    return KILN_OK;
}

/* ---- Kernels ------------------------------------------------------------------------------------------------------
 */

static kiln_status read_name(kiln__ptx_place *place, kiln_kernel_facts *kernel) {
    ptx_token token;
    KILN__TRY(next_token(place, &token));
    if (token.kind != TOKEN_WORD || *token.text.at == '.') return corrupt(place, "a kernel has no name");
    kernel->name = (const char *)token.text.at;
    kernel->name_size = token.text.size;
    return KILN_OK;
}

/* "256", "16, 16" or "8, 8, 8" behind .maxntid or .reqntid. */
static kiln_status read_threads(kiln__ptx_place *place, uint32_t *out_threads) {
    uint64_t threads = 1;
    for (bool more = true; more;) {
        uint32_t count = 0;
        KILN__TRY(expect_number(place, &count));
        threads *= count;
        if (threads > UINT32_MAX) return corrupt(place, "a block has more than 2^32 threads");
        KILN__TRY(take(place, ",", &more));
    }
    *out_threads = (uint32_t)threads;
    return KILN_OK;
}

/* Behind the opening brace. Adds up the shared memory that is declared within; .shared elsewhere in an instruction is a
 * state space. */
static kiln_status read_body(kiln__ptx_place *place, uint32_t *out_shared) {
    uint64_t shared = 0;
    ptx_token token;
    bool begins = true; /* a statement */
    for (size_t depth = 1; depth > 0;) {
        KILN__TRY(next_token(place, &token));
        if (token.kind == TOKEN_END) return corrupt(place, "the text ends within a kernel");
        if (token_is(&token, "{")) depth++;
        if (token_is(&token, "}")) depth--;
        if (begins && token_is(&token, ".shared")) KILN__TRY(read_variables(place, &shared));
        begins = token_is(&token, ";") || token_is(&token, "{") || token_is(&token, "}") || token_is(&token, ":");
    }
    *out_shared = (uint32_t)shared;
    return KILN_OK;
}

/* Behind a kernel's parameters: directives, then its body. *out_body is false for a declaration without one. */
static kiln_status read_definition(kiln__ptx_place *place, kiln_kernel_info *info, bool *out_body) {
    for (;;) {
        ptx_token token;
        KILN__TRY(next_token(place, &token));
        if (token.kind == TOKEN_END) return corrupt(place, "the text ends before a kernel's body");
        if (token_is(&token, ".maxntid") || token_is(&token, ".reqntid")) {
            KILN__TRY(read_threads(place, &info->max_threads));
        } else if (token_is(&token, ".pragma")) {
            for (bool ends = false; !ends;) {
                KILN__TRY(next_token(place, &token));
                if (token.kind == TOKEN_END) return corrupt(place, "the text ends within .pragma");
                ends = token_is(&token, ";");
            }
        } else if (token_is(&token, ";") || token_is(&token, "{")) {
            *out_body = token_is(&token, "{");
            return *out_body ? read_body(place, &info->shared_bytes) : KILN_OK;
        }
    }
}

/* Behind .entry. */
static kiln_status read_kernel(kiln__ptx_place *place, kiln_kernel_facts *kernel, bool *out_body) {
    memset(kernel, 0, sizeof *kernel);
    bool parameters = false;
    KILN__TRY(read_name(place, kernel));
    KILN__TRY(take(place, "(", &parameters));
    if (parameters) KILN__TRY(read_parameters(place, &kernel->info.arguments_size));
    return read_definition(place, &kernel->info, out_body);
}

/* Reads declarations of the module up to the end of the next kernel that the driver finds by name. */
static kiln_status next_kernel(kiln__ptx_place *place, bool *module_shared, kiln_kernel_facts *kernel,
                               bool *out_found) {
    bool is_named = false, is_extern = false;
    for (*out_found = false; !*out_found;) {
        ptx_token token;
        bool body = false;
        KILN__TRY(next_token(place, &token));
        if (token.kind == TOKEN_END) return KILN_OK;
        if (token_is(&token, ".visible") || token_is(&token, ".weak")) {
            is_named = true;
        } else if (token_is(&token, ".extern")) {
            is_extern = true;
        } else if (token_is(&token, ".entry")) {
            KILN__TRY(read_kernel(place, kernel, &body));
            *out_found = body && is_named;
            is_named = is_extern = false;
        } else if (token_is(&token, ".shared")) {
            *module_shared = *module_shared || !is_extern;
        } else if (token_is(&token, "{")) {
            KILN__TRY(skip_braces(place));
            is_named = is_extern = false;
        } else if (token_is(&token, "}")) {
            return corrupt(place, "a brace closes that was not opened");
        } else if (token_is(&token, ";")) {
            is_named = is_extern = false;
        }
    }
    return KILN_OK;
}

/* ---- The text -----------------------------------------------------------------------------------------------------
 */

/* "9.0" behind .version. */
static kiln_status read_version(kiln__ptx_place *place, int32_t *out_version) {
    ptx_token token;
    KILN__TRY(next_token(place, &token));
    const uint8_t *at = token.text.at;
    size_t dot = token.text.size - 2;
    if (token.kind != TOKEN_NUMBER || token.text.size < 3 || token.text.size > 4 || at[dot] != '.' ||
        !is_digit(at[dot - 1]) || !is_digit(at[dot + 1]))
        return corrupt(place, ".version is not of the form 8.4");
    int32_t major = at[0] - '0';
    if (dot == 2) major = major * 10 + (at[1] - '0');
    *out_version = major * 10 + (at[dot + 1] - '0');
    return KILN_OK;
}

/* "sm_90a" behind .target, and options. */
static kiln_status read_target(kiln__ptx_place *place, char *target, size_t room) {
    int32_t capability;
    char suffix;
    ptx_token token;
    KILN__TRY(next_token(place, &token));
    if (token.kind == TOKEN_WORD && token.text.size < room) {
        memcpy(target, token.text.at, token.text.size);
        target[token.text.size] = '\0';
    }
    if (!kiln__nvidia_parse(target, &capability, &suffix)) return corrupt(place, ".target does not name an sm_ target");
    for (bool more = false;;) {
        KILN__TRY(take(place, ",", &more));
        if (!more) return KILN_OK;
        KILN__TRY(next_token(place, &token));
    }
}

static kiln_status read_header(kiln__ptx_place *place, kiln__ptx *ptx) {
    KILN__TRY(expect(place, ".version"));
    KILN__TRY(read_version(place, &ptx->version));
    KILN__TRY(expect(place, ".target"));
    KILN__TRY(read_target(place, ptx->target, sizeof ptx->target));
    uint32_t address_size = 0;
    bool has_address_size = false;
    KILN__TRY(take(place, ".address_size", &has_address_size));
    if (has_address_size) KILN__TRY(expect_number(place, &address_size));
    if (address_size != 64)
        return kiln__fail(KILN_ERROR_UNSUPPORTED, "PTX: .address_size is not 64: 32-bit code is not supported");
    return KILN_OK;
}

bool kiln__ptx_is(const void *bytes, size_t size) {
    kiln__ptx_place place = {{bytes, size}, 1};
    ptx_token token;
    return next_token(&place, &token) == KILN_OK && token_is(&token, ".version");
}

kiln_status kiln__ptx_read(const void *bytes, size_t size, kiln__ptx *out_ptx) {
    memset(out_ptx, 0, sizeof *out_ptx);
    kiln__ptx ptx = {.version = 0};
    kiln__ptx_place place = {{bytes, size}, 1};
    const uint8_t *nul = memchr(bytes, 0, size);
    if (nul)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "PTX: a NUL byte at offset %td: a driver would stop there",
                          nul - (const uint8_t *)bytes);
    KILN__TRY(read_header(&place, &ptx));
    ptx.body = place;
    for (;;) {
        kiln_kernel_facts kernel;
        bool found = false;
        KILN__TRY(next_kernel(&place, &ptx.module_shared, &kernel, &found));
        if (!found) break;
        ptx.kernel_count++;
    }
    *out_ptx = ptx;
    return KILN_OK;
}

kiln_status kiln__ptx_kernel_next(const kiln__ptx *ptx, kiln__ptx_place *place, kiln_kernel_facts *out_kernel) {
    memset(out_kernel, 0, sizeof *out_kernel);
    kiln_kernel_facts kernel;
    bool found = false, module_shared = false;
    KILN__TRY(next_kernel(place, &module_shared, &kernel, &found));
    if (!found) return kiln__fail(KILN_ERROR_NOT_FOUND, "PTX: there are no more kernels");
    if (ptx->module_shared) kernel.info.shared_bytes = 0;
    *out_kernel = kernel;
    return KILN_OK;
}

/* ---- Functions ----------------------------------------------------------------------------------------------------
 */

/* Behind .func: takes the result, if there is one, and the name. */
static kiln_status read_function(kiln__ptx_place *place, kiln__bytes *out_name) {
    bool result = false;
    ptx_token token;
    KILN__TRY(take(place, "(", &result));
    while (result) {
        KILN__TRY(next_token(place, &token));
        if (token.kind == TOKEN_END) return corrupt(place, "the text ends within a function's result");
        result = !token_is(&token, ")");
    }
    KILN__TRY(next_token(place, &token));
    if (token.kind != TOKEN_WORD || *token.text.at == '.') return corrupt(place, "a function has no name");
    *out_name = token.text;
    return KILN_OK;
}

/* Takes tokens up to the next function that is declared or, with is_extern false, defined: its name, or none. Counts
 * the tokens on the way, of bodies too, that are the wanted name. */
static kiln_status next_function(kiln__ptx_place *place, const kiln__bytes *wanted, size_t *uses, bool *out_extern,
                                 kiln__bytes *out_name) {
    *out_name = (kiln__bytes){NULL, 0};
    for (*out_extern = false;;) {
        ptx_token token;
        KILN__TRY(next_token(place, &token));
        if (token.kind == TOKEN_END) return KILN_OK;
        if (token_is(&token, ".func")) return read_function(place, out_name);
        if (token_is(&token, ".extern")) *out_extern = true;
        if (token_is(&token, ";") || token_is(&token, "{")) *out_extern = false;
        if (wanted && token.text.size == wanted->size && memcmp(token.text.at, wanted->at, wanted->size) == 0) ++*uses;
    }
}

static bool same(const kiln__bytes *one, const kiln__bytes *other) {
    return one->size == other->size && memcmp(one->at, other->at, one->size) == 0;
}

/* Whether the text refers to a function and does not define it. */
static kiln_status is_missing(const kiln__ptx *ptx, const kiln__bytes *function, bool *out_missing) {
    kiln__ptx_place place = ptx->body;
    size_t uses = 0;
    for (;;) {
        bool is_extern = false;
        kiln__bytes name;
        *out_missing = false;
        KILN__TRY(next_function(&place, function, &uses, &is_extern, &name));
        if (name.size == 0) break;
        if (!is_extern && same(&name, function)) return KILN_OK;
    }
    *out_missing = uses > 0;
    return KILN_OK;
}

static bool is_provided(const kiln__bytes *function) {
    static const char *const provided[] = {"vprintf", "malloc", "free", "__assertfail"};
    for (size_t i = 0; i < sizeof provided / sizeof *provided; i++)
        if (kiln__bytes_are(function->at, function->size, provided[i])) return true;
    return false;
}

kiln_status kiln__ptx_unresolved(const kiln__ptx *ptx, kiln__bytes *out_name) {
    enum { DECLARATIONS = 1000 }; /* each of which is looked for in the whole text */
    kiln__ptx_place place = ptx->body;
    *out_name = (kiln__bytes){NULL, 0};
    for (size_t count = 0;;) {
        bool is_extern = false, missing = false;
        kiln__bytes name;
        KILN__TRY(next_function(&place, NULL, NULL, &is_extern, &name));
        if (name.size == 0) return KILN_OK;
        if (!is_extern || is_provided(&name)) continue;
        if (++count > DECLARATIONS)
            return kiln__fail(KILN_ERROR_UNSUPPORTED, "PTX: more than %d functions are declared .extern", DECLARATIONS);
        KILN__TRY(is_missing(ptx, &name, &missing));
        if (!missing) continue;
        *out_name = name;
        return KILN_OK;
    }
}
