#include "kernels/common/extensions.h"

bool kiln__cpu_extensions_off;
