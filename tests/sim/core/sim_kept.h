/* Programs that were unloaded, kept for when the same image is loaded once more: tests do that in each of their cases,
 * and to decode an image takes longer than many a case. The caller holds the simulator's lock. */
#ifndef KILN_TESTS_SIM_KEPT_H
#define KILN_TESTS_SIM_KEPT_H

#include <stddef.h>

/* A program of this image, decoded for this target, that is not in use; from now on it is. NULL: there is none. */
void *sim_kept_take(const void *image, size_t size, const char *target);

/* A program was loaded, and may be kept once it is released. With KILN_SIM_MUTANTS, which alters programs, none is. */
void sim_kept_add(const void *image, size_t size, const char *target, void *program);

/* It is not in use any more. discard frees those that are not kept. */
void sim_kept_release(void *program, void (*discard)(void *program));

#endif
