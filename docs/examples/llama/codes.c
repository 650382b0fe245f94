#include "codes.h"
#include "forward.h"
#include <kiln/ops.h>

#define CODES fp8
#include "codes_layers.h"
#define CODES int8
#include "codes_layers.h"
