/* State words that can be cleared in forked children. */
#ifndef KILN_LOADER_FORK_H
#define KILN_LOADER_FORK_H

#include "loader/status.h"
#include <stdatomic.h>

/* A word on a page of its own. If wiped, MADV_WIPEONFORK (Linux 4.14) makes it 0 in every child process, even after a
 * raw clone(); on an older kernel the registry's atfork handler zeroes it. If not, a child inherits the value. NULL if
 * out of memory. */
_Atomic uint32_t *kiln__fork_word_alloc(bool wiped);
void kiln__fork_word_free(_Atomic uint32_t *word);

#endif
