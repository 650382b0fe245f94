/* The life of a work-group: made once by a thread of the host, then begun and run for one place of the grid after the
 * other. */
#ifndef KILN_TESTS_SIM_AMD_GROUP_H
#define KILN_TESTS_SIM_AMD_GROUP_H

#include "tests/sim/amdgcn/wave/amd_wave.h"

/* Memory for the waves and LDS of the largest group of a launch; false without it (free it all the same). */
bool amd_group_new(amd_group *group, const amd_launch *launch, sim_report *report);
void amd_group_free(amd_group *group);

/* Puts the group at a place of the grid: nothing is in LDS, its waves stand at the kernel's entry
 * with the registers that the ABI gives them. */
void amd_group_begin(amd_group *group, const uint32_t id[3]);

/* Runs all its waves to their end; false with the report if something was wrong. */
bool amd_group_run(amd_group *group);

#endif
