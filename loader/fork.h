/* The state of a parent's devices in a forked child. */
#ifndef KILN_LOADER_FORK_H
#define KILN_LOADER_FORK_H

#include "loader/status.h"
#include <stdatomic.h>

/* A word on a page of its own. If wiped, the kernel makes it 0 in every child process, raw clone() included, by
 * MADV_WIPEONFORK (Linux 4.14; on an older kernel the registry's atfork handler is what zeroes it); else a child finds
 * the parent's value. NULL: no memory. */
_Atomic uint32_t *kiln__fork_word_alloc(bool wiped);
void kiln__fork_word_free(_Atomic uint32_t *word);

#endif
