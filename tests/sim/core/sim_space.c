#include "tests/sim/core/sim_space.h"

const char *sim_fault_text(sim_fault_kind kind) {
    switch (kind) {
#define SIM_FAULT_CASE(name, text) \
    case SIM_FAULT_##name:         \
        return text;
        SIM_FAULTS(SIM_FAULT_CASE)
#undef SIM_FAULT_CASE
    }
    return "";
}
