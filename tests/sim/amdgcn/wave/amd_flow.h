/* When a branch is taken: the mode of its row. */
#ifndef KILN_TESTS_SIM_AMD_FLOW_H
#define KILN_TESTS_SIM_AMD_FLOW_H

typedef enum amd_condition { AMD_ALWAYS, AMD_SCC0, AMD_SCC1, AMD_VCCZ, AMD_VCCNZ, AMD_EXECZ, AMD_EXECNZ } amd_condition;

#endif
