#include "loader/cpu/cpu_amx.h"

_Atomic uint32_t kiln__cpu_amx;

#if defined(__x86_64__)

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What the processor has. (Intel, "64 and IA-32 Architectures Software Developer's Manual", CPUID, leaf 7.) */
static uint32_t products(void) {
    enum { EDX_BF16 = 1 << 22, EDX_TILE = 1 << 24, EDX_INT8 = 1 << 25, EAX_F16 = 1 << 21 };
    uint32_t a, b, c, d, subleaves, found = 0;
    if (!__get_cpuid_count(7, 0, &subleaves, &b, &c, &d) || !(d & EDX_TILE)) return 0;
    if (d & EDX_INT8) found |= KILN__CPU_AMX_INT8;
    if (d & EDX_BF16) found |= KILN__CPU_AMX_BF16;
    if (subleaves && __get_cpuid_count(7, 1, &a, &b, &c, &d) && a & EAX_F16) found |= KILN__CPU_AMX_F16;
    return found;
}

uint32_t kiln__cpu_amx_request(void) {
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 ? products() : 0;
}

#else

uint32_t kiln__cpu_amx_request(void) {
    return 0;
}

#endif
