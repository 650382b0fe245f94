/* The parameters of functions, as help shows them. */
#include "loader/cli/call.h"
#include <string.h>

static void print_field(const operator_call *call, const kiln_field *field) {
    char left[96] = "", kind[128] = "";
    const char *bar, *colon, *first;
    char *dtypes;
    switch (field->role) {
    case KILN_FIELD_INPUT:
    case KILN_FIELD_OUTPUT:
    case KILN_FIELD_UPDATE:
        snprintf(left, sizeof left, "--%s %s=FILE", field->role == KILN_FIELD_OUTPUT ? "out" : "in", field->name);
        bar = strchr(field->shape, '|');
        colon = strchr(field->shape, ':');
        first = colon ? colon + 1 : field->shape;
        dtypes = call_dtype_names(call, field);
        snprintf(kind, sizeof kind, "%s [%.*s]%s%.*s%s%s%s%s%s", dtypes, (int)strcspn(first, "|"), first,
                 colon ? ", by " : "", colon ? (int)(colon - field->shape) : 0, field->shape, bar ? " or [" : "",
                 bar ? bar + 1 : "", bar ? "]" : "",
                 field->instead                     ? ", or "
                 : field->optional                  ? ", optional"
                 : field->role == KILN_FIELD_UPDATE ? ", also as --out"
                                                    : "",
                 field->instead ? field->instead : "");
        free(dtypes);
        break;
    case KILN_FIELD_OPTION:
        snprintf(left, sizeof left, "--set %s=CHOICE", field->name);
        snprintf(kind, sizeof kind, "one of %s", field->choices);
        break;
    case KILN_FIELD_INTEGER:
        snprintf(left, sizeof left, "--set %s=N", field->name);
        snprintf(kind, sizeof kind, "a whole number");
        break;
    case KILN_FIELD_REAL:
        snprintf(left, sizeof left, "--set %s=X", field->name);
        snprintf(kind, sizeof kind, "a number");
        break;
    case KILN_FIELD_SIZE:
        snprintf(left, sizeof left, "--set %s=N", field->name);
        if (field->shape[0])
            snprintf(kind, sizeof kind, "taken from the files, or the first of %s's leading dimensions", field->shape);
        else
            snprintf(kind, sizeof kind, "taken from the files; checked if set");
        break;
    default:
        return; /* strides and the workspace are not the caller's business */
    }
    printf("  %-24s  %s\n  %-24s  %s\n", left, kind, "", field->text);
}

void call_print_help(const operator_call *call) {
    printf("usage: kiln run %s [OPTION...]\n\n%s: %s.\n\n", call->function->name, call->function->name,
           call->op->summary);
    for (uint32_t i = 0; i < call->op->field_count; i++)
        print_field(call, &call->op->fields[i]);
}

int call_print_functions(const char *command) {
    const kiln_operator *const *operators;
    size_t count;
    kiln_status status = kiln_all_operators(&operators, &count);
    if (status != KILN_OK) return cli_fail(status, "%s", command);
    printf("\nfunctions:\n");
    for (size_t i = 0; i < count; i++) {
        for (uint32_t f = 0; f < operators[i]->function_count; f++)
            printf("%s%s", f ? " " : "  ", operators[i]->functions[f].name);
        printf("\n      %s\n", operators[i]->summary);
    }
    return CLI_OK;
}
