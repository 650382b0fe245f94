/* What a call would launch on a device that need not be present: the second form of kiln explain. */
#ifndef KILN_CLI_EXPLAIN_CALL_H
#define KILN_CLI_EXPLAIN_CALL_H

#include "loader/cli/cli.h"

/* Whether an operand names a function, after which NAME=VALUE may follow, rather than an operator. */
bool explain_is_function(const char *operand);

/* Describes a GPU of the target, which need not be present. */
int explain_card(const kiln_target *target, kiln_device_info *out_info);

/* Plans the call of operands[0] with the sizes and options that follow, and prints the plan. Returns the exit code. */
int explain_call(const kiln_device_info *info, int count, char **operands, bool as_json);

#endif
