/* What a call would launch on a device that need not be here: the second form of kiln explain. */
#ifndef KILN_CLI_EXPLAIN_CALL_H
#define KILN_CLI_EXPLAIN_CALL_H

#include "loader/cli/cli.h"

/* Whether an operand names a function, so that NAME=VALUE may follow, and not an operator. */
bool explain_is_function(const char *operand);

/* Describes a card of the target, which need not be here. */
int explain_card(const kiln_target *target, kiln_device_info *out_info);

/* Plans the call of operands[0] with the sizes and options that follow, and prints the plan. Gives the exit code. */
int explain_call(const kiln_device_info *info, int count, char **operands, bool as_json);

#endif
