/* Devices by the names that commands take and show: "cpu", "cuda:0", "rocm:1", "hip:0". */
#ifndef KILN_CLI_DEVICE_H
#define KILN_CLI_DEVICE_H

#include "loader/cli/cli.h"

/* Opens the device of that name ("cuda" is "cuda:0"), or the best there is for NULL; for one of HIP's, loads HIP. Gives
 * CLI_OK, or the exit code after a message. Close with kiln_device_close. */
int device_open(const char *command, const char *name, kiln_device **out_device);

/* Loads libamdhip64, which the library never does by itself: the command is the program that lives in HIP. False: it is
 * not there, with what was tried, on the heap, in *out_why. */
bool device_load_hip(char **out_why);

/* "cuda:0" */
enum { DEVICE_NAME_SIZE = 32 };
const char *device_name(const kiln_device_info *info, char text[DEVICE_NAME_SIZE]);

/* "sm_90", "gfx942:sramecc+:xnack-", "x86-64-v4" */
enum { TARGET_NAME_SIZE = 96 };
const char *target_name(const kiln_target *target, char text[TARGET_NAME_SIZE]);

#endif
