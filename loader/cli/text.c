/* Messages, escaping, tables, and the progress line. */
#include "loader/cli/cli.h"
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

static void put_bytes(FILE *file, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '\\')
            fputs("\\\\", file);
        else if (c >= 0x20 && c < 0x7f)
            fputc(c, file);
        else
            fprintf(file, "\\x%02x", c);
    }
}

void cli_put(FILE *file, const char *text) {
    put_bytes(file, text, strlen(text));
}

void cli_put_lines(FILE *file, int indent, const char *text) {
    while (*text) {
        size_t length = strcspn(text, "\n");
        fprintf(file, "%*s", indent, "");
        put_bytes(file, text, length);
        fputc('\n', file);
        text += length + (text[length] == '\n');
    }
}

static char *format_list(const char *format, va_list list) {
    char *text = NULL;
    if (vasprintf(&text, format, list) < 0) {
        fputs("kiln: out of memory\n", stderr);
        exit(CLI_SYSTEM);
    }
    return text;
}

char *cli_format(const char *format, ...) {
    va_list list;
    va_start(list, format);
    char *text = format_list(format, list);
    va_end(list);
    return text;
}

void *cli_allocate(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size ? size : 1);
    if (!memory) exit(cli_error(CLI_SYSTEM, "out of memory: %zu times %zu bytes", count, size));
    return memory;
}

int cli_error(int code, const char *format, ...) {
    va_list list;
    va_start(list, format);
    char *text = format_list(format, list);
    va_end(list);
    fflush(stdout);
    cli_progress_end();
    fputs("kiln: ", stderr);
    cli_put(stderr, text);
    fputc('\n', stderr);
    free(text);
    return code;
}

int cli_fail(kiln_status status, const char *format, ...) {
    va_list list;
    va_start(list, format);
    char *what = format_list(format, list);
    va_end(list);
    const char *why = *kiln_last_error() ? kiln_last_error() : kiln_status_text(status);
    /* An operator's own text begins with the function's name, as this one may. */
    size_t named = strlen(what);
    if (!strncmp(why, what, named) && !strncmp(why + named, ": ", 2)) why += named + 2;
    size_t first = strcspn(why, "\n");
    cli_error(0, "%s: %.*s", what, (int)first, why);
    if (why[first]) cli_put_lines(stderr, 2, why + first + 1);
    free(what);
    switch (status) {
    case KILN_ERROR_INVALID_ARGUMENT:
        return CLI_USAGE;
    case KILN_ERROR_NO_IMAGE:
    case KILN_ERROR_CORRUPT_IMAGE:
        return CLI_NO;
    default:
        return CLI_SYSTEM;
    }
}

bool cli_number(const char *text, int64_t most, int64_t *out_number) {
    int64_t number = 0;
    *out_number = 0;
    if (!*text) return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9') return false;
        int digit = *text - '0';
        if (number > (most - digit) / 10) return false;
        number = number * 10 + digit;
    }
    *out_number = number;
    return true;
}

const char *cli_bytes(uint64_t bytes, char text[CLI_BYTES_SIZE]) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < CLI_COUNT(units); unit++)
        value /= 1024;
    snprintf(text, CLI_BYTES_SIZE, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return text;
}

const char *cli_driver(int64_t version, char text[CLI_VERSION_SIZE]) {
    text[0] = '\0';
    if (version > 0 && version < 1000000)
        snprintf(text, CLI_VERSION_SIZE, "%d.%d", (int)(version / 1000), (int)(version % 1000 / 10));
    return text;
}

const char *cli_kiln_version(char text[CLI_VERSION_SIZE]) {
    uint32_t version = kiln_version();
    snprintf(text, CLI_VERSION_SIZE, "%u.%u.%u", version / 10000 % 1000, version / 100 % 100, version % 100);
    return text;
}

static bool progress_shown;

void cli_progress(const char *format, ...) {
    if (!isatty(STDERR_FILENO)) return;
    va_list list;
    va_start(list, format);
    char *text = format_list(format, list);
    va_end(list);
    fputs("\r\033[K", stderr);
    cli_put(stderr, text);
    fflush(stderr);
    free(text);
    progress_shown = true;
}

void cli_progress_end(void) {
    if (progress_shown) fputs("\r\033[K", stderr);
    progress_shown = false;
}

static void append(cli_table *table, char *cell) {
    if (table->count == table->room) {
        size_t room = table->room ? 2 * table->room : 64;
        char **cells = realloc(table->cells, room * sizeof *cells);
        if (!cells) exit(cli_error(CLI_SYSTEM, "out of memory: a table of %zu cells", room));
        table->cells = cells;
        table->room = room;
    }
    table->cells[table->count++] = cell;
}

/* A cell is kept as it is shown, so that its width is known. */
static char *escaped(const char *text) {
    char *bytes = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&bytes, &size);
    if (file) cli_put(file, text);
    if (!file || fclose(file) != 0) exit(cli_error(CLI_SYSTEM, "out of memory"));
    return bytes;
}

void cli_cell(cli_table *table, const char *format, ...) {
    va_list list;
    va_start(list, format);
    char *text = format_list(format, list);
    va_end(list);
    append(table, escaped(text));
    free(text);
}

void cli_titles(cli_table *table, const char *const *titles, size_t count) {
    table->columns = count;
    for (size_t i = 0; i < count; i++)
        cli_cell(table, "%s", titles[i]);
}

static size_t width(const cli_table *table, size_t column) {
    size_t widest = 0;
    for (size_t i = column; i < table->count; i += table->columns)
        if (strlen(table->cells[i]) > widest) widest = strlen(table->cells[i]);
    return widest;
}

void cli_table_print(cli_table *table) {
    bool rows = table->count > table->columns;
    size_t *widths = cli_allocate(table->columns, sizeof *widths);
    for (size_t i = 0; i < table->columns; i++)
        widths[i] = width(table, i);
    for (size_t i = 0; i < table->count; i++) {
        bool last = (i + 1) % table->columns == 0; /* without spaces at the end of the line */
        if (rows && last)
            printf("%s\n", table->cells[i]);
        else if (rows)
            printf("%-*s  ", (int)widths[i % table->columns], table->cells[i]);
        free(table->cells[i]);
    }
    free(widths);
    free(table->cells);
    *table = (cli_table){0};
}
