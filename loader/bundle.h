/* Reading bundle tables, whatever version of kiln they were compiled against. */
#ifndef KILN_LOADER_BUNDLE_H
#define KILN_LOADER_BUNDLE_H

#include "loader/status.h"

/* Is the table one that this version reads: version, entry sizes, no NULL where there are entries?
 * Returns KILN_OK or KILN_ERROR_INVALID_ARGUMENT. */
kiln_status kiln__bundle_check(const kiln_bundle *bundle);

/* The same for one part, without a text: for selection, which runs often. */
bool kiln__part_valid(const kiln_part *part);

#endif
