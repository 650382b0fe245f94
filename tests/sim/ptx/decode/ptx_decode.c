#include "tests/sim/ptx/decode/ptx_decode.h"
#include "tests/sim/ptx/matrix/ptx_wgmma.h"
#include "tests/sim/ptx/warp/ptx_undefined.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ptx_refuse(ptx_decoder *decoder, const char *format, ...) {
    int length =
        snprintf(decoder->why, decoder->why_size, "line %u: %s", decoder->statement->line, decoder->statement->opcode);
    for (uint32_t i = 0; i < decoder->statement->suffix_count; i++)
        if (length > 0 && (size_t)length < decoder->why_size)
            length += snprintf(decoder->why + length, decoder->why_size - (size_t)length, ".%s",
                               decoder->statement->suffixes[i]);
    if (length > 0 && (size_t)length < decoder->why_size)
        length += snprintf(decoder->why + length, decoder->why_size - (size_t)length, ": ");
    va_list arguments;
    va_start(arguments, format);
    if (length > 0 && (size_t)length < decoder->why_size)
        vsnprintf(decoder->why + length, decoder->why_size - (size_t)length, format, arguments);
    va_end(arguments);
    longjmp(decoder->failed, 1);
}

/* ---- Modifiers and types ---- */

static const char *const modifier_names[] = {
#define PTX_MODIFIER(name, text) text,
#include "tests/sim/ptx/decode/ptx_modifiers.def"
#undef PTX_MODIFIER
};

/* Most words of a list already begin otherwise. */
static bool same_word(const char *listed, const char *word) {
    return listed[0] == word[0] && strcmp(listed, word) == 0;
}

static void read_suffixes(ptx_decoder *decoder) {
    memset(decoder->modifiers, 0, sizeof decoder->modifiers);
    decoder->type_count = 0;
    for (uint32_t i = 0; i < decoder->statement->suffix_count; i++) {
        const char *suffix = decoder->statement->suffixes[i];
        ptx_type type = ptx_type_find(suffix, strlen(suffix));
        int modifier = 0;
        if (type) {
            if (decoder->type_count == PTX_TYPES_MAX) ptx_refuse(decoder, "more than %d types", PTX_TYPES_MAX);
            decoder->types[decoder->type_count++] = type;
            continue;
        }
        bool shape = ptx_wgmma_shape(suffix, decoder->shape);
        if (shape) modifier = PTX_M_WARPGROUP_SHAPE;
        while (!shape && modifier < PTX_MODIFIER_COUNT && !same_word(modifier_names[modifier], suffix))
            modifier++;
        if (modifier == PTX_MODIFIER_COUNT) ptx_refuse(decoder, ".%s is not simulated", suffix);
        uint64_t bit = 1ull << modifier % 64;
        bool layout = modifier == PTX_M_ROW || modifier == PTX_M_COL; /* of each of two matrices */
        if (decoder->modifiers[modifier / 64] & bit && !layout) ptx_refuse(decoder, ".%s is written twice", suffix);
        decoder->modifiers[modifier / 64] |= bit;
    }
}

bool ptx_take(ptx_decoder *decoder, int modifier) {
    uint64_t bit = 1ull << modifier % 64;
    bool written = decoder->modifiers[modifier / 64] & bit;
    decoder->modifiers[modifier / 64] &= ~bit;
    return written;
}

int ptx_take_one(ptx_decoder *decoder, const int *modifiers, int count) {
    int found = -1;
    for (int i = 0; i < count; i++) {
        if (!ptx_take(decoder, modifiers[i])) continue;
        if (found >= 0)
            ptx_refuse(decoder, ".%s and .%s exclude each other", modifier_names[modifiers[found]],
                       modifier_names[modifiers[i]]);
        found = i;
    }
    return found;
}

static void refuse_leftovers(ptx_decoder *decoder) {
    uint64_t left = 0;
    for (size_t i = 0; i < sizeof decoder->modifiers / sizeof *decoder->modifiers; i++)
        left |= decoder->modifiers[i];
    for (int i = 0; left && i < PTX_MODIFIER_COUNT; i++)
        if (ptx_take(decoder, i)) ptx_refuse(decoder, ".%s is not simulated here", modifier_names[i]);
}

void ptx_need(ptx_decoder *decoder, uint32_t target, uint32_t version) {
    const ptx_module *module = decoder->program->module;
    if (strtoul(module->target + 3, NULL, 10) < target) ptx_refuse(decoder, "needs sm_%u", target);
    if (module->version < version) ptx_refuse(decoder, "needs PTX %u.%u", version / 10, version % 10);
}

ptx_type ptx_type_at(ptx_decoder *decoder, uint32_t index) {
    if (index >= decoder->type_count) ptx_refuse(decoder, "a type is missing");
    return decoder->types[index];
}

void ptx_expect_types(ptx_decoder *decoder, uint32_t count) {
    if (decoder->type_count != count) ptx_refuse(decoder, "takes %u types, has %u", count, decoder->type_count);
}

void ptx_expect_operands(ptx_decoder *decoder, uint32_t least, uint32_t most) {
    uint32_t count = decoder->statement->operand_count;
    if (count < least || count > most) ptx_refuse(decoder, "takes %u to %u operands, has %u", least, most, count);
}

/* ---- Places ---- */

static uint32_t width_bytes(uint32_t bits) {
    return bits == 1 ? 4 : bits * 4; /* 32 lanes */
}

uint32_t ptx_place_new(ptx_code *code, uint32_t bits) {
    uint32_t place = (code->frame_bytes + 63) / 64 * 64;
    code->frame_bytes = place + width_bytes(bits);
    return place;
}

/* A growing array in the arena: room doubles. */
static void *grow(ptx_arena *arena, void *array, uint32_t count, uint32_t *room, size_t size) {
    if (count < *room) return array;
    *room = *room ? *room * 2 : 16;
    void *grown = ptx_arena_take(arena, *room * size);
    if (count) memcpy(grown, array, count * size);
    return grown;
}

uint32_t ptx_constant_place(ptx_decoder *decoder, uint64_t value, uint32_t bits) {
    ptx_code *code = decoder->code;
    if (bits < 64) value &= (1ull << bits) - 1;
    for (uint32_t i = 0; i < code->constant_count; i++)
        if (code->constants[i].bits == bits && code->constants[i].value == value) return code->constants[i].place;
    code->constants = grow(decoder->program->module->arena, code->constants, code->constant_count,
                           &decoder->constant_room, sizeof *code->constants);
    uint32_t place = ptx_place_new(code, bits);
    code->constants[code->constant_count++] = (ptx_constant){place, bits, value};
    return place;
}

static uint32_t special_place(ptx_decoder *decoder, const char *name, uint32_t bits) {
    ptx_code *code = decoder->code;
    uint32_t special = ptx_special_find(decoder, name, bits);
    for (uint32_t i = 0; i < code->special_count; i++)
        if (code->specials[i].special == special && code->specials[i].bits == bits) return code->specials[i].place;
    code->specials = grow(decoder->program->module->arena, code->specials, code->special_count, &decoder->special_room,
                          sizeof *code->specials);
    uint32_t place = ptx_place_new(code, bits);
    code->specials[code->special_count++] = (ptx_special_use){place, special, bits};
    return place;
}

static uint32_t address_place(ptx_decoder *decoder, const ptx_operand *operand, uint32_t bits) {
    ptx_code *code = decoder->code;
    if (bits != 32 && bits != 64) ptx_refuse(decoder, "an address has 32 or 64 bits");
    code->addresses = grow(decoder->program->module->arena, code->addresses, code->address_count,
                           &decoder->address_room, sizeof *code->addresses);
    uint32_t place = ptx_place_new(code, bits);
    code->addresses[code->address_count++] = (ptx_address_use){place, operand->variable, operand->value, bits};
    return place;
}

static uint64_t float_bits(ptx_decoder *decoder, const ptx_operand *operand, ptx_type type) {
    double wide;
    memcpy(&wide, &operand->value, sizeof wide);
    if (ptx_type_bits(type) == 64) return (uint64_t)operand->value;
    if (ptx_type_bits(type) != 32) ptx_refuse(decoder, "a floating-point constant of type %s", ptx_type_name(type));
    if (operand->single) return operand->number;
    float narrow = (float)wide;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    return bits;
}

static uint32_t register_place(ptx_decoder *decoder, const ptx_operand *operand, uint8_t *out_bits) {
    ptx_type type = decoder->code->function->registers[operand->number].type;
    *out_bits = (uint8_t)ptx_type_bits(type);
    return decoder->places[operand->number];
}

/* Floating-point numbers do not stand in registers of integers, nor the other way; bits stand in any. */
static bool classes_agree(ptx_type a, ptx_type b) {
    ptx_type_class x = ptx_type_class_of(a), y = ptx_type_class_of(b);
    bool integer_x = x == PTX_CLASS_UNSIGNED || x == PTX_CLASS_SIGNED;
    bool integer_y = y == PTX_CLASS_UNSIGNED || y == PTX_CLASS_SIGNED;
    return !(integer_x && y == PTX_CLASS_FLOAT) && !(x == PTX_CLASS_FLOAT && integer_y);
}

uint32_t ptx_source_wide(ptx_decoder *decoder, const ptx_operand *operand, ptx_type type, uint8_t *out_bits) {
    uint32_t bits = ptx_type_bits(type);
    *out_bits = (uint8_t)bits;
    if (operand->negated) ptx_refuse(decoder, "a negated operand is not simulated here");
    if (operand->selector) ptx_refuse(decoder, "it has no part .%s of %s", operand->selector, operand->name);
    switch (operand->kind) {
    case PTX_OPERAND_REGISTER: {
        uint32_t place = register_place(decoder, operand, out_bits);
        if (*out_bits < bits || (*out_bits == 1) != (bits == 1))
            ptx_refuse(decoder, "%s has %u bits, the type %s has %u", operand->name, *out_bits, ptx_type_name(type),
                       bits);
        ptx_type is = decoder->code->function->registers[operand->number].type;
        if (!classes_agree(is, type))
            ptx_refuse(decoder, "%s is of type %s, not %s", operand->name, ptx_type_name(is), ptx_type_name(type));
        return place;
    }
    case PTX_OPERAND_INTEGER:
        if (ptx_type_class_of(type) == PTX_CLASS_FLOAT) ptx_refuse(decoder, "an integer where a float is wanted");
        if (bits == 1) return ptx_constant_place(decoder, operand->value ? 0xffffffffu : 0, 32);
        return ptx_constant_place(decoder, (uint64_t)operand->value, bits);
    case PTX_OPERAND_FLOAT:
        if (ptx_type_class_of(type) == PTX_CLASS_UNSIGNED || ptx_type_class_of(type) == PTX_CLASS_SIGNED)
            ptx_refuse(decoder, "a float where an integer is wanted");
        return ptx_constant_place(decoder, float_bits(decoder, operand, type), bits);
    case PTX_OPERAND_SPECIAL:
        if (ptx_type_class_of(type) == PTX_CLASS_FLOAT) ptx_refuse(decoder, "%s is no float", operand->name);
        return special_place(decoder, operand->name, bits);
    case PTX_OPERAND_VARIABLE:
        return address_place(decoder, operand, bits);
    case PTX_OPERAND_FUNCTION:
        if (bits != 64) ptx_refuse(decoder, "an address of a function has 64 bits");
        return ptx_constant_place(decoder, ptx_code_address(ptx_code_of(decoder, operand->function)), bits);
    default:
        ptx_refuse(decoder, "this kind of operand is not simulated here");
    }
}

uint32_t ptx_source(ptx_decoder *decoder, const ptx_operand *operand, ptx_type type) {
    uint8_t bits;
    uint32_t place = ptx_source_wide(decoder, operand, type, &bits);
    if (bits != ptx_type_bits(type))
        ptx_refuse(decoder, "%s has %u bits, the type %s has %u", operand->name, bits, ptx_type_name(type),
                   ptx_type_bits(type));
    return place;
}

uint32_t ptx_result_wide(ptx_decoder *decoder, const ptx_operand *operand, ptx_type type, uint8_t *out_bits) {
    if (operand->kind == PTX_OPERAND_NONE) {
        *out_bits = (uint8_t)ptx_type_bits(type);
        return ptx_place_new(decoder->code, *out_bits);
    }
    if (operand->kind != PTX_OPERAND_REGISTER || operand->negated) ptx_refuse(decoder, "the result must be a register");
    return ptx_source_wide(decoder, operand, type, out_bits);
}

uint32_t ptx_result(ptx_decoder *decoder, const ptx_operand *operand, ptx_type type) {
    uint8_t bits;
    uint32_t place = ptx_result_wide(decoder, operand, type, &bits);
    if (bits != ptx_type_bits(type))
        ptx_refuse(decoder, "%s has %u bits, the type %s has %u", operand->name, bits, ptx_type_name(type),
                   ptx_type_bits(type));
    return place;
}

uint32_t ptx_predicate(ptx_decoder *decoder, const ptx_operand *operand, bool *out_negated) {
    ptx_operand plain = *operand;
    *out_negated = operand->negated;
    plain.negated = false;
    return ptx_source(decoder, &plain, PTX_pred);
}

void ptx_decode_same(ptx_decoder *decoder, ptx_type type, uint32_t count) {
    const ptx_operand *operands = decoder->statement->operands;
    ptx_expect_operands(decoder, count + 1, count + 1);
    decoder->op->type = type;
    decoder->op->d[0] = ptx_result(decoder, &operands[0], type);
    for (uint32_t i = 0; i < count; i++)
        decoder->op->s[i] = ptx_source(decoder, &operands[i + 1], type);
}

uint32_t ptx_take_policy(ptx_decoder *decoder) {
    const ptx_statement *statement = decoder->statement;
    if (!ptx_take(decoder, PTX_M_L2_CACHE_HINT)) return 0;
    ptx_need(decoder, 80, 74);
    if (statement->operand_count == 0) ptx_refuse(decoder, "it has no cache policy");
    ptx_source(decoder, &statement->operands[statement->operand_count - 1], PTX_b64);
    return 1;
}

/* ---- Statements ---- */

typedef void (*decode_function)(ptx_decoder *decoder);

static decode_function family_of(const char *opcode) {
    static const struct {
        const char *opcode;
        decode_function decode;
    } rows[] = {
#define PTX_OPCODE(opcode, family) {#opcode, ptx_decode_##family},
#include "tests/sim/ptx/decode/ptx_opcodes.def"
#undef PTX_OPCODE
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (same_word(rows[i].opcode, opcode)) return rows[i].decode;
    return NULL;
}

/* Whether the statement begins with the words of an instruction ("cp.async.bulk"). */
static bool begins_with(const ptx_statement *statement, const char *words) {
    size_t length = strcspn(words, ".");
    if (strlen(statement->opcode) != length || memcmp(statement->opcode, words, length) != 0) return false;
    for (uint32_t i = 0; words[length]; i++) {
        words += length + 1;
        length = strcspn(words, ".");
        if (i == statement->suffix_count || strlen(statement->suffixes[i]) != length ||
            memcmp(statement->suffixes[i], words, length) != 0)
            return false;
    }
    return true;
}

static void refuse_known(ptx_decoder *decoder) {
#define PTX_REFUSED(words, why) \
    if (begins_with(decoder->statement, words)) ptx_refuse(decoder, "is not simulated: " why);
#include "tests/sim/ptx/decode/ptx_refused.def"
#undef PTX_REFUSED
}

static void decode_statement(ptx_decoder *decoder, const ptx_statement *statement, ptx_op *op) {
    decoder->statement = statement;
    decoder->op = op;
    *op = (ptx_op){.guard = PTX_NOWHERE, .line = statement->line};
    if (statement->guard >= 0) {
        if (decoder->code->function->registers[statement->guard].type != PTX_pred)
            ptx_refuse(decoder, "its guard is no predicate");
        op->guard = decoder->places[statement->guard];
        op->guard_negated = statement->guard_negated;
    }
    refuse_known(decoder);
    decode_function decode = family_of(statement->opcode);
    if (!decode) ptx_refuse(decoder, "is not simulated");
    read_suffixes(decoder);
    decode(decoder);
    refuse_leftovers(decoder);
    ptx_undefined_decode(decoder, statement->opcode);
}

static uint32_t align_up(uint32_t value, uint32_t align) {
    return (value + align - 1) / align * align;
}

/* The bytes that each lane has beside its registers: .local, the .param of calls, and own parameters and results. */
static void lay_out_local(ptx_code *code) {
    ptx_function *function = (ptx_function *)(uintptr_t)code->function;
    uint32_t bytes = 0;
    ptx_variable *lists[] = {function->variables, function->is_entry ? NULL : function->parameters, function->results};
    for (size_t i = 0; i < 3; i++) {
        for (ptx_variable *variable = lists[i]; variable; variable = variable->next) {
            if (variable->space != PTX_SPACE_LOCAL && variable->space != PTX_SPACE_PARAM) continue;
            bytes = align_up(bytes, variable->align);
            variable->offset = bytes;
            bytes += (uint32_t)variable->size;
        }
    }
    code->local_bytes = align_up(bytes, 16);
}

static void decode_function_body(ptx_decoder *decoder, ptx_code *code) {
    ptx_arena *arena = decoder->program->module->arena;
    const ptx_function *function = code->function;
    decoder->code = code;
    decoder->has_products = false;
    decoder->constant_room = decoder->special_room = decoder->address_room = 0;
    lay_out_local(code);
    decoder->places = code->places = ptx_register_places(arena, code);
    code->ops = ptx_arena_take(arena, (function->statement_count + 1) * sizeof *code->ops);
    for (uint32_t i = 0; i < function->statement_count; i++)
        decode_statement(decoder, &function->statements[i], &code->ops[i]);
    /* Falling off the end is a return. */
    code->ops[function->statement_count] = (ptx_op){
        .guard = PTX_NOWHERE, .flow = function->is_entry ? PTX_FLOW_EXIT : PTX_FLOW_RETURN, .line = function->line};
    code->op_count = function->statement_count + 1;
    if (decoder->has_products) ptx_wgmma_note(decoder);
    code->frame_bytes = align_up(code->frame_bytes, 64);
}

/* ---- Programs ---- */

/* NULL: the function is not defined. */
static ptx_code *code_of(const ptx_program *program, const ptx_function *function) {
    for (uint32_t number = 0; number < program->code_count; number++)
        if (program->codes[number].function == function) return &program->codes[number];
    return NULL;
}

const ptx_code *ptx_code_of(ptx_decoder *decoder, const ptx_function *function) {
    const ptx_code *code = code_of(decoder->program, function);
    if (!code) ptx_refuse(decoder, "%s has no body, and system calls are not simulated", function->name);
    return code;
}

uint64_t ptx_code_address(const ptx_code *code) {
    return PTX_WINDOW_CODE | (code->number + 1ull) * 16;
}

const ptx_code *ptx_code_at(const ptx_program *program, uint64_t address) {
    uint64_t number = (address - PTX_WINDOW_CODE) / 16 - 1;
    return address % 16 == 0 && number < program->code_count ? &program->codes[number] : NULL;
}

/* The variable or function of the module's scope that an initialiser names; false if it has no address. */
static bool symbol_find(const ptx_program *program, const char *name, const ptx_variable **out_variable,
                        const ptx_code **out_code) {
    *out_variable = program->module->variables;
    while (*out_variable && strcmp((*out_variable)->name, name) != 0)
        *out_variable = (*out_variable)->next;
    const ptx_function *function = ptx_function_find(program->module, name);
    *out_code = function ? code_of(program, function) : NULL;
    ptx_space space = *out_variable ? (*out_variable)->space : PTX_SPACE_GENERIC;
    return *out_code || space == PTX_SPACE_GLOBAL || space == PTX_SPACE_CONST;
}

void ptx_program_initialise(const ptx_program *program, uint8_t *bytes) {
    memset(bytes, 0, program->global_bytes);
    for (const ptx_variable *v = program->module->variables; v; v = v->next) {
        if ((v->space != PTX_SPACE_GLOBAL && v->space != PTX_SPACE_CONST) || !v->initial) continue;
        memcpy(bytes + v->offset, v->initial, v->size);
        for (uint32_t r = 0; r < v->relocation_count; r++) {
            const ptx_variable *to;
            const ptx_code *code;
            symbol_find(program, v->relocations[r].symbol, &to, &code);
            uint64_t address = code ? ptx_code_address(code) : (uintptr_t)bytes + to->offset;
            address += (uint64_t)v->relocations[r].addend;
            memcpy(bytes + v->offset + v->relocations[r].offset, &address, sizeof address);
        }
    }
}

/* Whether every variable is here and every address in an initialiser is known. */
static bool is_linked(const ptx_program *program, char *why, size_t why_size) {
    for (const ptx_variable *v = program->module->variables; v; v = v->next) {
        if (v->is_extern && v->space != PTX_SPACE_SHARED) {
            snprintf(why, why_size, "line %u: %s is declared and not defined", v->line, v->name);
            return false;
        }
        for (uint32_t r = 0; r < v->relocation_count; r++) {
            const ptx_variable *to;
            const ptx_code *code;
            if (symbol_find(program, v->relocations[r].symbol, &to, &code)) continue;
            snprintf(why, why_size, "line %u: %s has no address that %s could hold", v->line, v->relocations[r].symbol,
                     v->name);
            return false;
        }
    }
    return true;
}

/* Global and constant variables one after the other; shared ones of the module and of functions that are called, then
 * each entry's own from there, since no two entries run together. */
static void align_dynamic(ptx_program *program, const ptx_variable *variables) {
    for (const ptx_variable *v = variables; v; v = v->next)
        if (v->space == PTX_SPACE_SHARED && v->is_extern && v->align > program->shared_align)
            program->shared_align = v->align;
}

static void lay_out(ptx_program *program) {
    uint64_t global = 0;
    uint32_t shared = 0, most = 0;
    program->shared_align = 16;
    align_dynamic(program, program->module->variables);
    for (ptx_variable *v = program->module->variables; v; v = v->next) {
        if (v->space == PTX_SPACE_SHARED && !v->is_extern) {
            shared = align_up(shared, v->align);
            v->offset = shared;
            shared += (uint32_t)v->size;
        } else if (v->space == PTX_SPACE_GLOBAL || v->space == PTX_SPACE_CONST) {
            uint32_t align = v->align < 256 ? 256 : v->align;
            global = (global + align - 1) / align * align;
            v->offset = global;
            global += v->size;
        }
    }
    for (int entries = 0; entries < 2; entries++) {
        for (ptx_function *f = program->module->functions; f; f = f->next) {
            if (f->is_entry != entries) continue;
            uint32_t bytes = shared;
            align_dynamic(program, f->variables);
            for (ptx_variable *v = f->variables; v; v = v->next) {
                if (v->space != PTX_SPACE_SHARED || v->is_extern) continue;
                bytes = align_up(bytes, v->align);
                v->offset = bytes;
                bytes += (uint32_t)v->size;
            }
            if (!entries) shared = bytes;
            if (bytes > most) most = bytes;
            if (entries && f->is_defined) code_of(program, f)->shared_bytes = bytes;
        }
    }
    program->global_bytes = (uint32_t)global;
    program->shared_bytes = most > shared ? most : shared;
}

static uint32_t target_capability(const char *target) {
    return strncmp(target, "sm_", 3) == 0 ? (uint32_t)strtoul(target + 3, NULL, 10) : 0;
}

static void number_functions(ptx_program *program) {
    for (const ptx_function *f = program->module->functions; f; f = f->next)
        program->code_count += f->is_defined;
    program->codes = ptx_arena_take(program->module->arena, (program->code_count + 1) * sizeof *program->codes);
    uint32_t number = 0;
    for (const ptx_function *f = program->module->functions; f; f = f->next) {
        if (!f->is_defined) continue;
        program->codes[number] = (ptx_code){.function = f, .number = number};
        number++;
    }
}

ptx_program *ptx_program_load(const char *text, size_t size, int32_t capability, char *why, size_t why_size) {
    ptx_module *module = ptx_module_parse(text, size, why, why_size);
    if (!module) return NULL;
    uint32_t target = target_capability(module->target);
    if (!target || (int32_t)target > capability) {
        snprintf(why, why_size, "the text is for %s, the device has %d", module->target, capability);
        ptx_module_free(module);
        return NULL;
    }
    ptx_program *program = ptx_arena_take(module->arena, sizeof *program);
    program->module = module;
    program->capability = capability;
    ptx_module_place_parameters(module, capability);
    number_functions(program);
    lay_out(program);
    if (program->shared_bytes > PTX_STATIC_SHARED_MAX) {
        snprintf(why, why_size, "a kernel declares %u bytes of shared memory, of %d", program->shared_bytes,
                 PTX_STATIC_SHARED_MAX);
        ptx_module_free(module);
        return NULL;
    }
    if (!is_linked(program, why, why_size)) {
        ptx_module_free(module);
        return NULL;
    }
    ptx_decoder decoder = {.program = program, .why = why, .why_size = why_size};
    if (setjmp(decoder.failed) == 0) {
        for (uint32_t i = 0; i < program->code_count; i++)
            decode_function_body(&decoder, &program->codes[i]);
        return program;
    }
    ptx_module_free(module);
    return NULL;
}

void ptx_program_free(ptx_program *program) {
    if (program) ptx_module_free(program->module);
}

const ptx_code *ptx_program_find(const ptx_program *program, const char *kernel) {
    for (uint32_t i = 0; i < program->code_count; i++)
        if (program->codes[i].function->is_entry && strcmp(program->codes[i].function->name, kernel) == 0)
            return &program->codes[i];
    return NULL;
}
