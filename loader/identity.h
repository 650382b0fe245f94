/* Identifying one of the machine's GPUs by its UUID or its PCI address. */
#ifndef KILN_LOADER_IDENTITY_H
#define KILN_LOADER_IDENTITY_H

#include <kiln/kiln.h>
#include <stdbool.h>

enum { KILN__IDENTITY_SIZE = 48 }; /* the text of either */

/* Whether text is the UUID or the PCI address of the device that info describes, as kiln_device_options' id takes it.
 */
bool kiln__identity_is(const kiln_device_info *info, const char *text);

#endif
