/* Identifying one of the machine's GPUs by its UUID or its PCI address. */
#ifndef KILN_LOADER_IDENTITY_H
#define KILN_LOADER_IDENTITY_H

#include <kiln/kiln.h>
#include <stdbool.h>

enum { KILN__IDENTITY_SIZE = 48 }; /* of the text of either, NUL included */

/* Whether text, in the forms that kiln_device_options.id accepts, is the UUID or PCI address of info's device. */
bool kiln__identity_is(const kiln_device_info *info, const char *text);

#endif
