#include "loader/cpu/cpu_amx.h"

#if defined(__x86_64__)

#include <sys/syscall.h>
#include <unistd.h>

bool kiln__cpu_amx_request(void) {
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

#else

bool kiln__cpu_amx_request(void) {
    return false;
}

#endif
