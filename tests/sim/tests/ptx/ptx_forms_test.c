/* Which form of an instruction assembles for which target and PTX version: the interpreter must take what NVIDIA's
 * ptxas takes, and refuse what that refuses. The forms are in ptx_forms.def; each is one line of a text that ptxas is
 * given whole, and again without the lines that it refused, until nothing is left to refuse. */
#include "tests/sim/ptx/decode/ptx_code.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* simulated: false of what ptxas takes and the interpreter refuses by name for every target. */
static const struct form {
    const char *code;
    bool simulated;
} forms[] = {
#define PTX_FORM(code)          {code, true},
#define PTX_NOT_SIMULATED(code) {code, false},
#include "tests/sim/tests/ptx/ptx_forms.def"
#undef PTX_FORM
#undef PTX_NOT_SIMULATED
};
enum { FORMS = sizeof forms / sizeof *forms, TEXT_MAX = 1 << 18, ROUNDS_MAX = 10 };

/* A target and a PTX version: "90a", "8.0". */
typedef struct combination {
    const char *target, *version;
} combination;

static size_t write_text(const combination *c, const bool *wanted, char *text, uint32_t *lines) {
    size_t length = (size_t)snprintf(
        text, TEXT_MAX,
        ".version %s\n.target sm_%s\n.address_size 64\n.visible .entry k(.param .u64 param)\n{\n.reg .pred p, q;\n"
        ".reg .b8 c<4>;\n.reg .b16 h<8>;\n.reg .b32 r<16>;\n.reg .b64 d<8>;\n.reg .f32 f<8>;\n.reg .f64 g<4>;\n"
        "%s\n.shared .align 16 .b8 s[1024];\n",
        c->version, c->target, atof(c->version) >= 8.3 ? ".reg .b128 w<4>;" : "");
    uint32_t line = 14;
    for (size_t i = 0; i < FORMS; i++) {
        if (!wanted[i]) continue;
        lines[i] = ++line;
        length += (size_t)snprintf(text + length, TEXT_MAX - length, "%s\n", forms[i].code);
        assert_true(length < TEXT_MAX);
    }
    return length + (size_t)snprintf(text + length, TEXT_MAX - length, "ret;\n}\n");
}

/* ---- ptxas ---- */

/* What ptxas says of each form; NULL: it takes it. */
typedef struct opinion {
    bool taken[FORMS];
    char words[FORMS][160];
} opinion;

/* The line that a message is about: "ptxas file, line 14; error : ..." or "... 32-bit address on line '14'". */
static uint32_t line_of(const char *message) {
    const char *at = strstr(message, "error   :") ? strstr(message, ", line ") : NULL;
    if (at) return (uint32_t)strtoul(at + 7, NULL, 10);
    at = strstr(message, "32-bit address on line '");
    return at ? (uint32_t)strtoul(at + 24, NULL, 10) : 0;
}

/* Assembles the forms that are still taken. Returns how many of them are not any more; -1: all is refused at once. */
static int assemble(const combination *c, opinion *out) {
    static char text[TEXT_MAX];
    static uint32_t lines[FORMS];
    char path[256], command[600], message[1024], *folder = getenv("KILN_SCRATCH");
    size_t length = write_text(c, out->taken, text, lines);
    snprintf(path, sizeof path, "%s/forms.ptx", folder ? folder : "/tmp");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    snprintf(command, sizeof command, "ptxas -O0 -arch=sm_%s -o /dev/null %s 2>&1", c->target, path);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    int refused = 0;
    while (fgets(message, sizeof message, pipe)) {
        uint32_t line = line_of(message);
        for (size_t i = 0; line && i < FORMS; i++) {
            if (!out->taken[i] || lines[i] != line) continue;
            const char *words = strstr(message, "error   :");
            snprintf(out->words[i], sizeof out->words[i], "%.*s", (int)strcspn(words ? words : message, "\n"),
                     words ? words : message);
            out->taken[i] = false;
            refused++;
        }
    }
    return pclose(pipe) && !refused ? -1 : refused;
}

/* false if ptxas does not know the combination: then it refuses a text without any form. */
static bool ask_ptxas(const combination *c, opinion *out) {
    memset(out->taken, 0, sizeof out->taken);
    if (assemble(c, out) != 0) return false;
    for (size_t i = 0; i < FORMS; i++)
        out->taken[i] = true;
    int refused = 1;
    for (int round = 0; refused > 0 && round < ROUNDS_MAX; round++)
        refused = assemble(c, out);
    if (refused != 0) fail_msg("sm_%s, PTX %s: ptxas does not say which form it refuses", c->target, c->version);
    return true;
}

/* ---- Comparison ---- */

/* Whether the interpreter takes a form; why has the reason if not. */
static bool simulates(const combination *c, size_t form, char *why, size_t why_size) {
    static char text[TEXT_MAX];
    static uint32_t lines[FORMS];
    bool wanted[FORMS] = {false};
    wanted[form] = true;
    size_t length = write_text(c, wanted, text, lines);
    ptx_program *program = ptx_program_load(text, length, (int32_t)strtol(c->target, NULL, 10), why, why_size);
    if (!program) return false;
    ptx_program_free(program);
    return true;
}

/* How many forms the two disagree about. */
static uint32_t compare(const combination *c) {
    static opinion ptxas;
    uint32_t wrong = 0;
    if (!ask_ptxas(c, &ptxas)) {
        print_message("# ptxas does not know sm_%s in PTX %s\n", c->target, c->version);
        return 0;
    }
    for (size_t i = 0; i < FORMS; i++) {
        char why[512] = "it takes it";
        bool taken = simulates(c, i, why, sizeof why);
        if (taken == (ptxas.taken[i] && forms[i].simulated)) continue;
        wrong++;
        print_error("sm_%s, PTX %s: %s: ptxas %s, the interpreter: %s\n", c->target, c->version, forms[i].code,
                    ptxas.taken[i] ? "takes it" : ptxas.words[i], why);
    }
    return wrong;
}

static bool ptxas_is_here(void) {
    return system("command -v ptxas >/dev/null") == 0;
}

static const char *const targets[] = {"75",   "80",   "86",   "89",  "90",   "90a", "100",
                                      "100a", "100f", "103a", "120", "120a", "120f"};

static void each_target_takes_what_ptxas_takes(void **state) {
    (void)state;
    if (!ptxas_is_here()) {
        print_message("# ptxas is not on the path: nothing says which forms are right\n");
        skip();
    }
    uint32_t wrong = 0;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        wrong += compare(&(combination){targets[i], "9.0"});
    assert_int_equal(wrong, 0);
}

static void each_version_takes_what_ptxas_takes(void **state) {
    (void)state;
    static const combination combinations[] = {
        {"75", "6.3"},  {"75", "6.5"}, {"75", "7.0"},   {"80", "7.0"},   {"80", "7.1"},   {"80", "7.3"},
        {"80", "7.4"},  {"80", "7.5"}, {"80", "7.6"},   {"80", "7.7"},   {"86", "7.2"},   {"89", "7.8"},
        {"90", "7.8"},  {"90", "8.0"}, {"90", "8.1"},   {"90", "8.2"},   {"90", "8.3"},   {"90", "8.4"},
        {"90a", "8.0"}, {"90", "8.5"}, {"100a", "8.6"}, {"100a", "8.7"}, {"100f", "8.8"}, {"120a", "8.7"},
    };
    if (!ptxas_is_here()) {
        print_message("# ptxas is not on the path: nothing says which forms are right\n");
        skip();
    }
    uint32_t wrong = 0;
    for (size_t i = 0; i < sizeof combinations / sizeof *combinations; i++)
        wrong += compare(&combinations[i]);
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_target_takes_what_ptxas_takes),
        cmocka_unit_test(each_version_takes_what_ptxas_takes),
    };
    return cmocka_run_group_tests_name("ptx_forms", tests, NULL, NULL);
}
