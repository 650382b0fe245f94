/* What a forked child may know of its parent's devices. */
#ifndef KILN_LOADER_FORK_H
#define KILN_LOADER_FORK_H

#include "loader/status.h"
#include <stdatomic.h>

/* A word that the kernel wipes to 0 in every child process, raw clone() included: it has a page of its own, marked
 * MADV_WIPEONFORK (Linux 4.14; on an older kernel the registry's atfork handler is what zeroes it). NULL: no memory. */
_Atomic uint32_t *kiln__fork_word_alloc(void);
void kiln__fork_word_free(_Atomic uint32_t *word);

#endif
