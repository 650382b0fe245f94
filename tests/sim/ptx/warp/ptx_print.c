#include "tests/sim/ptx/warp/ptx_print.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORMAT_MAX = 4096, TEXT_MAX = 4096 };

bool ptx_text_read(ptx_warp *warp, uint64_t address, char *text, size_t size) {
    const ptx_launch *launch = warp->block->launch;
    sim_region region;
    size_t length = 0;
    text[0] = 0;
    if (!ptx_region_find(launch, address, &region)) return false;
    const char *from = (const char *)(uintptr_t)address;
    uint64_t left = region.size - (address - region.base);
    while (length + 1 < size && length < left && from[length])
        length++;
    memcpy(text, from, length);
    text[length] = 0;
    return length < left;
}

/* What a lane prints, and with what. */
typedef struct printing {
    ptx_warp *warp;
    const ptx_op *op;
    uint32_t lane;
    uint64_t next; /* address of the next argument */
    int32_t count; /* of those read */
    bool failed;
    FILE *out;
} printing;

static uint64_t next_argument(printing *p, uint32_t size) {
    uint64_t value = 0;
    uint8_t bits[8];
    p->next = (p->next + size - 1) / size * size;
    const uint8_t *bytes =
        p->failed ? NULL : ptx_memory_bytes(p->warp, p->op, p->lane, PTX_SPACE_GENERIC, p->next, size, true, false);
    p->failed = !bytes;
    if (bytes && ptx_generic_space(p->next) == PTX_SPACE_LOCAL &&
        ptx_local_undefined(p->warp, p->lane, p->next, size, bits)) {
        ptx_fault(p->warp, p->op, SIM_FAULT_UNINITIALISED, p->lane, p->next, "argument %d of printf", p->count + 1);
        p->failed = true;
    }
    if (bytes) memcpy(&value, bytes, size);
    p->next += size;
    p->count++;
    return value;
}

static void print_text(printing *p, const char *specification) {
    static _Thread_local char text[TEXT_MAX];
    uint64_t address = next_argument(p, 8);
    if (p->failed) return;
    if (!ptx_text_read(p->warp, address, text, sizeof text)) {
        ptx_fault(p->warp, p->op, SIM_FAULT_OUT_OF_BOUNDS, p->lane, address, "text of printf");
        p->failed = true;
        return;
    }
    fprintf(p->out, specification, text);
}

/* A specification as the host's printf wants it: flags, width and precision, and the length of its argument here. */
static void print_argument(printing *p, const char *head, bool wide, char conversion) {
    char specification[64];
    if (conversion == 's') {
        snprintf(specification, sizeof specification, "%ss", head);
        print_text(p, specification);
    } else if (strchr("aAeEfFgG", conversion)) {
        double value;
        uint64_t bits = next_argument(p, 8);
        memcpy(&value, &bits, sizeof value);
        snprintf(specification, sizeof specification, "%s%c", head, conversion);
        fprintf(p->out, specification, value);
    } else if (conversion == 'p') {
        fprintf(p->out, "0x%llx", (unsigned long long)next_argument(p, 8));
    } else if (conversion == 'c') {
        snprintf(specification, sizeof specification, "%sc", head);
        fprintf(p->out, specification, (int)next_argument(p, 4));
    } else {
        uint64_t value = next_argument(p, wide ? 8 : 4);
        bool is_signed = conversion == 'd' || conversion == 'i';
        snprintf(specification, sizeof specification, "%sll%c", head, conversion);
        fprintf(p->out, specification, is_signed && !wide ? (long long)(int32_t)value : (long long)value);
    }
}

/* One specification behind its '%'; where it ends. */
static const char *print_one(printing *p, const char *at) {
    char head[48] = "%";
    size_t length = 1;
    for (; *at && strchr("-+ #0123456789.*", *at) && length + 12 < sizeof head; at++) {
        if (*at == '*')
            length += (size_t)snprintf(head + length, sizeof head - length, "%d", (int)next_argument(p, 4));
        else
            head[length++] = *at;
    }
    head[length] = 0;
    bool wide = false;
    for (; *at && strchr("hlLjzt", *at); at++)
        wide |= *at != 'h';
    if (*at && strchr("aAeEfFgGdiouxXcsp", *at)) {
        print_argument(p, head, wide, *at);
        return at + 1;
    }
    fputs(head, p->out); /* of no meaning: as it stands */
    return at;
}

int32_t ptx_print(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t format, uint64_t arguments) {
    static _Thread_local char text[FORMAT_MAX];
    const ptx_launch *launch = warp->block->launch;
    char *printed = NULL;
    size_t size = 0;
    if (!format) return -1;
    if (!ptx_text_read(warp, format, text, sizeof text)) {
        ptx_fault(warp, op, SIM_FAULT_OUT_OF_BOUNDS, lane, format, "format of printf");
        return -2;
    }
    printing p = {.warp = warp, .op = op, .lane = lane, .next = arguments, .out = open_memstream(&printed, &size)};
    if (!p.out) abort();
    for (const char *at = text; *at && !p.failed;) {
        if (*at != '%')
            fputc(*at++, p.out);
        else if (at[1] == '%')
            fputc('%', p.out), at += 2;
        else
            at = print_one(&p, at + 1);
    }
    fclose(p.out);
    if (!p.failed && launch->print) launch->print(launch->print_context, printed, size);
    free(printed);
    return p.failed ? -2 : p.count;
}
