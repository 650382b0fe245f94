/* mha_fp8_fwd, host side. */
#include <kiln/ops/attention.h>

#define KILN_HOST mha_fp8_fwd
#define KILN_HOST_KEEPS_CALLS
#include "kernels/common/operator.h"

#include "kernels/common/attention/attention_codes_host.h"
