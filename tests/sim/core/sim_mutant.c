/* KILN_SIM_MUTANT: one instruction of one image reads otherwise, to see whether a test notices. */
#include "tests/sim/core/sim.h"
#include <kiln/kiln.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGEST_BYTES = 32, DIGITS = 2 * DIGEST_BYTES };

const char *sim_mutant(const void *image, size_t size, uint64_t *out_place) {
    const char *setting = sim_setting("KILN_SIM_MUTANT");
    if (!setting) return NULL;
    uint8_t digest[DIGEST_BYTES];
    char digits[DIGITS + 1];
    kiln_sha256(image, size, digest);
    for (size_t i = 0; i < DIGEST_BYTES; i++)
        snprintf(digits + 2 * i, 3, "%02x", digest[i]);
    if (strncmp(setting, digits, DIGITS) != 0) return NULL;
    char *text;
    *out_place = strtoull(setting + DIGITS, &text, 0);
    if (text == setting + DIGITS || *text != ' ') {
        sim_violation("KILN_SIM_MUTANT is \"%s\": must be \"SHA256 PLACE TEXT\"", setting);
        return NULL;
    }
    fprintf(stderr, "mutant: at %#llx stands \"%s\"\n", (unsigned long long)*out_place, text + 1);
    return text + 1;
}
