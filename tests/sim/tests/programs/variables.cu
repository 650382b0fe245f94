// HIP with variables that the host finds by their names, for tests/sim/tests/rocm/rocm_variables_test.c; scripts/sim_programs.sh.
#define DEVICE   __attribute__((device))
#define CONSTANT __attribute__((constant))
#define KERNEL   extern "C" __attribute__((global))

extern "C" {
DEVICE unsigned counter;
DEVICE __attribute__((aligned(16))) unsigned table[5] = {10, 20, 30, 40, 50};
DEVICE unsigned *third = table + 2; // an address, which the loader puts in
DEVICE __attribute__((weak)) unsigned spare = 7;
CONSTANT __attribute__((aligned(4))) unsigned short narrow = 300; // loaded as a whole dword
CONSTANT __attribute__((aligned(4))) unsigned char narrower = 9;
extern const DEVICE unsigned primes[3];
const DEVICE unsigned primes[3] = {2, 3, 5};
#ifdef MANAGED
__attribute__((managed)) DEVICE unsigned common = 3;
#elif defined(ELSEWHERE)
extern DEVICE __attribute__((visibility("default"))) unsigned elsewhere;
#endif
}
static DEVICE unsigned hidden[2]; // without a symbol

// Writes down what it finds, and adds to it.
KERNEL void use(unsigned *out, unsigned add) {
    out[0] = counter;
    out[1] = table[4];
    out[2] = *third;
    out[3] = spare;
    out[4] = narrow;
    out[5] = narrower;
    out[6] = primes[add % 3];
    out[7] = hidden[add % 2];
    counter += add;
    table[4] += add;
    *third += add;
    hidden[add % 2] += add;
#ifdef MANAGED
    common += add;
#elif defined(ELSEWHERE)
    elsewhere += add;
#endif
}

// Of 8 bytes.
KERNEL void store(unsigned long *at, unsigned long value) { *at = value; }
KERNEL void load(const unsigned long *at, unsigned long *out) { *out = *at; }
