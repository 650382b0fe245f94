/* Reading bundle tables compiled against any version of kiln. */
#ifndef KILN_LOADER_BUNDLE_H
#define KILN_LOADER_BUNDLE_H

#include "loader/status.h"

/* Checks that this version can read the table: version, entry sizes, no NULL array with a nonzero count.
 * Returns KILN_OK or KILN_ERROR_INVALID_ARGUMENT. */
kiln_status kiln__bundle_check(const kiln_bundle *bundle);

/* The same for one part, without setting an error text; for selection, which runs often. */
bool kiln__part_valid(const kiln_part *part);

#endif
