/* The target list as tables, and the names of targets. */
#ifndef KILN_LOADER_TARGET_H
#define KILN_LOADER_TARGET_H

#include "loader/status.h"

typedef struct kiln__nvidia_target {
    const char *name;
    int32_t capability;
    char suffix; /* 0, 'a' or 'f' */
    int32_t ptx_version;
} kiln__nvidia_target;

typedef struct kiln__amd_target {
    const char *name;
    const char *generic; /* "" if it has none */
    uint32_t machine;    /* EF_AMDGPU_MACH */
    bool xnack, sramecc; /* supported */
} kiln__amd_target;

typedef struct kiln__cpu_target {
    const char *name;
    const char *host; /* "x86_64", "aarch64" */
    int32_t level;
} kiln__cpu_target;

extern const kiln__nvidia_target kiln__nvidia_targets[];
extern const size_t kiln__nvidia_target_count;
extern const kiln__amd_target kiln__amd_targets[];
extern const size_t kiln__amd_target_count;
extern const kiln__cpu_target kiln__cpu_targets[];
extern const size_t kiln__cpu_target_count;

/* A row by its name, length bytes long, or by its machine number; NULL if there is none. */
const kiln__amd_target *kiln__amd_target_find(const char *name, size_t length);
const kiln__amd_target *kiln__amd_target_by_machine(uint32_t machine);
const kiln__cpu_target *kiln__cpu_target_find(const char *name);

/* Parses "sm_90a" (any number of two or three digits, listed or not). False if malformed. */
bool kiln__nvidia_parse(const char *name, int32_t *out_capability, char *out_suffix);

/* Parses an HSA ISA name, "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-", or the part after "--". A supported feature that
 * is not stated is 0 in the target. False if malformed; an unlisted processor is accepted, with generic "". */
bool kiln__amd_parse(const char *isa, kiln_target *out_target);

/* Parses the features of an AMD target ("", ":sramecc+:xnack-"): 0 not stated, 1 off, 2 on. False if malformed. */
bool kiln__amd_features(const char *text, int32_t *out_xnack, int32_t *out_sramecc);

/* The lowest CUDA driver (12040 is 12.4) that reads a PTX ISA version (84 is 8.4), and the highest PTX version in
 * targets.def that a driver reads. Later versions 9.x are assumed to need CUDA 13.x; for 10.0 and later, which are
 * unknown, the driver is INT32_MAX. */
int32_t kiln__ptx_driver(int32_t ptx_version);
int32_t kiln__driver_ptx(int32_t driver_version);

#endif
