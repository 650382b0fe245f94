/* Why something was refused, as a sentence: the program prints it, a server hands it on. */
#ifndef LLAMA_REASON_H
#define LLAMA_REASON_H

#include <stdbool.h>
#include <stdio.h>

enum { LLAMA_REASON_SIZE = 512 };

/* Writes "subject: why", cut to the size. Returns false. */
static inline bool llama_refuse(char reason[LLAMA_REASON_SIZE], const char *subject, const char *why) {
    snprintf(reason, LLAMA_REASON_SIZE, "%s: %s", subject, why);
    return false;
}

#endif
