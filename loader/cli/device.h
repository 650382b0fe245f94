/* Device names, as commands accept and print them: "cpu", "cuda:0", "rocm:1", "hip:0". */
#ifndef KILN_CLI_DEVICE_H
#define KILN_CLI_DEVICE_H

#include "loader/cli/cli.h"

/* Opens the named device ("cuda" is "cuda:0"), or the best one for NULL. Loads HIP for a "hip" device. Returns CLI_OK,
 * or the exit code after a message. Close with kiln_device_close. */
int device_open(const char *command, const char *name, kiln_device **out_device);

/* Loads libamdhip64, which the library never does: here the command is the HIP application. If it cannot, returns false
 * with the attempts, on the heap, in *out_why. */
bool device_load_hip(char **out_why);

/* "cuda:0" */
enum { DEVICE_NAME_SIZE = 32 };
const char *device_name(const kiln_device_info *info, char text[DEVICE_NAME_SIZE]);

/* "sm_90", "gfx942:sramecc+:xnack-", "x86-64-v4" */
enum { TARGET_NAME_SIZE = 96 };
const char *target_name(const kiln_target *target, char text[TARGET_NAME_SIZE]);

#endif
