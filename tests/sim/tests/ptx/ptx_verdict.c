#include "tests/sim/tests/ptx/ptx_verdict.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_SIZE = 192, OPCODE_SIZE = 96, ROWS_MAX = 8192 };

/* ---- Codes ---- */

static bool begins(const char *text, const char *word) {
    return strncmp(text, word, strlen(word)) == 0;
}

/* Takes the next instruction: its opcode, and where its operands begin. false at the end. */
static bool next_instruction(const char **code, char *opcode, const char **operands) {
    const char *c = *code;
    for (;;) {
        c += strspn(c, " \t\n;{}");
        if (!*c) return false;
        size_t length = strcspn(c, " \t\n;");
        if (begins(c, "//")) {
            c += strcspn(c, "\n");
        } else if (*c == '.') { /* a directive */
            c += strcspn(c, ";");
        } else if (*c == '@' || c[length - 1] == ':') { /* a guard, a label */
            c += length;
        } else {
            snprintf(opcode, OPCODE_SIZE, "%.*s", (int)length, c);
            *operands = c + length + strspn(c + length, " \t\n");
            *code = c + strcspn(c, ";");
            return true;
        }
    }
}

/* Each opcode once; moves and branches only bring others what they need. */
static void name_code(const char *code, char name[NAME_SIZE]) {
    char opcode[OPCODE_SIZE];
    const char *operands;
    size_t length = 0;
    name[0] = 0;
    while (next_instruction(&code, opcode, &operands)) {
        if (begins(opcode, "mov.") || begins(opcode, "bra") || strstr(name, opcode)) continue;
        if (length + strlen(opcode) + 2 > NAME_SIZE) break;
        length += (size_t)snprintf(name + length, NAME_SIZE - length, "%s%s", length ? " " : "", opcode);
    }
    if (!length) snprintf(name, NAME_SIZE, "mov");
}

/* ---- Numbers ---- */

typedef struct number_type {
    const char *name;
    uint32_t bits, mantissa;
} number_type;

/* The first type in an opcode is that of its result. NULL: no floating-point type of 16 bits or more. */
static const number_type *type_of_result(const char *opcode) {
    static const number_type types[] = {{"f16", 16, 10}, {"f16x2", 16, 10}, {"bf16", 16, 7}, {"bf16x2", 16, 7},
                                        {"f32", 32, 23}, {"f32x2", 32, 23}, {"f64", 64, 52}};
    static const char *const others[] = {"b8",  "b16", "b32", "b64", "b128", "u",  "s8",  "s16",
                                         "s32", "s64", "e2",  "e3",  "e4",   "e5", "ue8", "tf32"};
    for (const char *part = strchr(opcode, '.'); part; part = strchr(part, '.')) {
        part++;
        size_t length = strcspn(part, ".");
        for (size_t i = 0; i < sizeof types / sizeof *types; i++)
            if (strlen(types[i].name) == length && begins(part, types[i].name)) return &types[i];
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            if (begins(part, others[i]) && !begins(part, "uni")) return NULL;
    }
    return NULL;
}

static bool is_nan(const number_type *type, uint64_t bits) {
    uint64_t magnitude = bits & ((1ull << (type->bits - 1)) - 1);
    uint64_t infinity = ((1ull << (type->bits - 1 - type->mantissa)) - 1) << type->mantissa;
    return magnitude > infinity;
}

bool verdict_same_but_nan(const char *code, uint32_t bits, const void *one, const void *other) {
    char opcode[OPCODE_SIZE];
    const char *operands;
    const number_type *type = NULL, *made = NULL;
    while (next_instruction(&code, opcode, &operands)) {
        bool moves = begins(opcode, "mov.") || begins(opcode, "ld.") || begins(opcode, "st.");
        if (!moves) made = type_of_result(opcode);
        if (begins(operands, "%d") && strchr(", |", operands[2])) type = made;
    }
    if (!type || type->bits > bits) return false;
    for (uint32_t at = 0; at < bits / 8; at += type->bits / 8) {
        uint64_t a = 0, b = 0;
        memcpy(&a, (const uint8_t *)one + at, type->bits / 8);
        memcpy(&b, (const uint8_t *)other + at, type->bits / 8);
        if (a != b && !(is_nan(type, a) && is_nan(type, b))) return false;
    }
    return true;
}

/* ---- Counts ---- */

typedef struct verdict_row {
    char *name;
    uint64_t counts[VERDICTS];
    uint64_t elements, sums[SIM_SUM_MODES], none; /* of matrices */
} verdict_row;

static verdict_row rows[ROWS_MAX];
static size_t row_count;

static void print_rows(void) {
    for (const verdict_row *row = rows; row < rows + row_count; row++) {
        printf("# compared|%s", row->name);
        for (int i = 0; i < VERDICTS; i++)
            printf("|%llu", (unsigned long long)row->counts[i]);
        puts("");
        if (!row->elements) continue;
        printf("# sums|%s|%llu", row->name, (unsigned long long)row->elements);
        for (int i = 0; i < SIM_SUM_MODES; i++)
            printf("|%llu", (unsigned long long)row->sums[i]);
        printf("|%llu\n", (unsigned long long)row->none);
    }
}

static verdict_row *row_of(const char *code) {
    char name[NAME_SIZE];
    name_code(code, name);
    for (size_t i = row_count; i-- > 0;)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    if (row_count == ROWS_MAX) {
        fprintf(stderr, "more than %d instructions\n", ROWS_MAX);
        exit(1);
    }
    if (row_count == 0) atexit(print_rows);
    rows[row_count].name = strdup(name);
    if (!rows[row_count].name) exit(1);
    return &rows[row_count++];
}

void verdict_count(const char *code, verdict which, uint64_t count) {
    if (count) row_of(code)->counts[which] += count;
}

const char *verdict_line(const char *code) {
    static char line[1024];
    snprintf(line, sizeof line, "%s", code);
    for (char *c = line; *c; c++)
        if (*c == '\n') *c = ' ';
    return line;
}

void verdict_on_kernel(const char *code, verdict which, const char *why) {
    printf("# %s: %s: %s\n", which == VERDICT_ABSENT ? "not of this device" : "failed", verdict_line(code), why);
    verdict_count(code, which, 1);
}

void verdict_count_sum(const char *code, const bool matches[SIM_SUM_MODES]) {
    verdict_row *row = row_of(code);
    bool any = false;
    for (int i = 0; i < SIM_SUM_MODES; i++) {
        row->sums[i] += matches[i];
        any = any || matches[i];
    }
    row->none += !any;
    row->elements++;
}

uint64_t verdict_total(verdict which) {
    uint64_t total = 0;
    for (size_t i = 0; i < row_count; i++)
        total += rows[i].counts[which];
    return total;
}

uint64_t verdict_kinds(void) {
    return row_count;
}

uint64_t verdict_kinds_with(verdict which) {
    uint64_t kinds = 0;
    for (size_t i = 0; i < row_count; i++)
        kinds += rows[i].counts[which] != 0;
    return kinds;
}
