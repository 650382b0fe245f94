/* Mutants: instructions of an image that are altered, one at a time, to see whether a test notices.
 *
 * KILN_SIM_MUTANTS names a file with lines "SHA256 PLACE EDIT": of the image with that digest, the instruction at a
 * line of PTX or at an address of machine code is "removed", or is a comparison that holds "always" or "never".
 * KILN_SIM_VERDICTS names a file that gets a line "VERDICT<tab>MUTANT<tab>SIGN" for each: "killed" if the process
 * failed or the simulator reported something, "alive" if not or if it never makes a difference, "absent" if its image
 * was not loaded; and what was first written on standard error.
 *
 * An interpreter watches the instructions of these lines. All runs as without, until a mutant would first make a
 * difference; there a process forks, and goes on with it for the rest of the program. So all mutants of an image take a
 * few runs of a test; the program itself ends when none is left. It has one thread (KILN_SIM_THREADS=0), and
 * tests/sim/mutants/one_process.c is preloaded. */
#ifndef KILN_TESTS_SIM_MUTANTS_H
#define KILN_TESTS_SIM_MUTANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum sim_edit { SIM_EDIT_REMOVED, SIM_EDIT_ALWAYS, SIM_EDIT_NEVER } sim_edit;

typedef struct sim_mutant {
    struct sim_mutant *next;
    const char *line;
    uint64_t place;
    sim_edit edit;
    bool met;   /* an image that has the instruction was loaded */
    bool begun; /* its process has been, or its verdict is known */
} sim_mutant;

/* False if the image has no such instruction at the mutant's place. */
typedef bool sim_mutant_found(void *context, sim_mutant *mutant);

/* Calls found with each mutant of this image that has not begun; in the process of one, with that alone. */
void sim_mutants_of(const void *image, size_t size, sim_mutant_found *found, void *context);

/* Whether a mutant has yet to begin; whether it is the one that this process goes on with. */
bool sim_mutant_waits(const sim_mutant *mutant);
bool sim_mutant_applies(const sim_mutant *mutant);

/* The mutant makes a difference: true in the process that goes on with it, and, after the end of that, false in the one
 * that goes on without. */
bool sim_mutant_begin(sim_mutant *mutant);

/* To be called once something was reported: the process of a mutant ends there. */
void sim_noticed(void);

#endif
