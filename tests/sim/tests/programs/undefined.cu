// HIP that reads private memory which it never wrote, for tests/sim/tests/amdgcn/amdgcn_undefined_test.c: one kind of kernel depends
// on what was there, the other copies it and does not. The HSACO beside it was written by scripts/sim_programs.sh.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define THREAD __builtin_amdgcn_workitem_id_x()

typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned char byte;
typedef unsigned long long wide;

// ---- Bugs: an array of which a thread wrote one element and reads another ----

#define BUG(name, statements)                                           \
    extern "C" __global__ void name(const uint *in, uint *out) {        \
        volatile uint own[8];                                           \
        own[in[THREAD] & 3] = THREAD;                                   \
        const uint x = own[4 + (in[THREAD] & 3)];                       \
        statements;                                                     \
    }
BUG(stores, out[THREAD] = x)
BUG(calculates, out[THREAD] = x * 3 + THREAD)
BUG(converts, out[THREAD] = (uint)((float)x * 0.5f))
BUG(addresses, out[x & 7] = 1)
BUG(loads_from, out[THREAD] = in[x & 7])
BUG(branches, if (x == 5) out[THREAD] = 1)
BUG(loops, for (uint i = 0; i < (x & 3); i++) out[THREAD + i] = i)
BUG(chooses, out[THREAD] = x > 7 ? in[0] : in[1] + 1)
BUG(stores_a_half, *(ushort *)&out[THREAD] = (ushort)x)
BUG(shares, __shared__ volatile uint all[64]; all[THREAD] = x)
BUG(exchanges, out[THREAD] = (uint)__builtin_amdgcn_ds_bpermute((int)(THREAD ^ 1) * 4, (int)x))
BUG(counts, __hip_atomic_fetch_add(out, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT))
BUG(makes_uniform, out[THREAD] = (uint)__builtin_amdgcn_readfirstlane((int)x))
BUG(votes, out[THREAD] = (uint)__builtin_popcountll(__builtin_amdgcn_uicmp(x, 3, 34)))
BUG(copies_before, volatile uint again[4]; again[in[THREAD] & 3] = x; out[THREAD] = again[in[THREAD] & 3])

extern "C" __global__ void in_one_lane(const uint *in, uint *out) {
    volatile uint own[8];
    if (THREAD != 9) own[in[THREAD] & 3] = THREAD;
    out[THREAD] = own[in[THREAD] & 3];
}

__device__ uint first_of(uint a) { return a; }
__device__ uint second_of(uint a) { return a + 1; }
extern "C" __global__ void calls(const uint *in, uint *out) {
    uint (*volatile own[4])(uint) = {in[0] ? first_of : second_of};
    uint (*volatile never[4])(uint);
    never[0] = own[0];
    out[THREAD] = never[1 + in[THREAD] % 3](THREAD);
}

// ---- No bugs: what nobody wrote is moved and not used ----

struct padded {
    byte kind;
    uint number;
    wide many;
    byte last;
};
struct fields {
    uint low : 5, high : 11;
    ushort rest;
};
typedef float four __attribute__((ext_vector_type(4)));
typedef _Float16 pair __attribute__((ext_vector_type(2)));

__device__ __attribute__((noinline)) padded padded_of(uint x) {
    padded made;
    made.kind = (byte)x;
    made.number = x * 3;
    made.many = (wide)x << 33;
    made.last = (byte)(x >> 3);
    return made;
}

extern "C" __global__ void copies_padding(const uint *in, uint *out) {
    padded all[4], again[4];
    for (uint i = 0; i < 4; i++) all[i] = padded_of(in[THREAD] + i);
    __builtin_memcpy(again, all, sizeof again);
    padded *place = (padded *)(out + 64) + THREAD;
    *place = again[in[THREAD] & 3];
    out[THREAD] = place->kind + place->number + (uint)(place->many >> 32) + place->last;
}

__device__ __attribute__((noinline)) four three_of(uint x) {
    four made;
    made.x = (float)x, made.y = (float)(x + 1), made.z = (float)(x + 2);
    return made;
}

// The fourth of each is never written, goes through arithmetic with the others, and is stored beside them.
extern "C" __global__ void adds_parts_of_vectors(const uint *in, uint *out) {
    volatile four kept[2];
    kept[in[THREAD] & 1] = three_of(in[THREAD]);
    four sum = kept[in[THREAD] & 1] * 2.0f + three_of(THREAD);
    ((four *)(out + 64))[THREAD] = sum;
    out[THREAD] = (uint)(sum.x + sum.y + sum.z);
}

extern "C" __global__ void adds_halves(const uint *in, uint *out) {
    volatile pair own[4];
    ((volatile _Float16 *)&own[in[THREAD] & 3])[0] = (_Float16)(float)(in[THREAD] & 255);
    pair sum = own[in[THREAD] & 3] + own[in[THREAD] & 3];
    out[THREAD] = (uint)(float)sum.x;
}

extern "C" __global__ void sets_fields(const uint *in, uint *out) {
    volatile fields own[2];
    own[in[THREAD] & 1].high = in[THREAD];
    own[in[THREAD] & 1].low = THREAD;
    out[THREAD] = own[in[THREAD] & 1].low + own[in[THREAD] & 1].high * 32;
}

struct optional {
    bool has;
    uint number;
};
__device__ __attribute__((noinline)) optional even(uint x) {
    optional made;
    made.has = x % 2 == 0;
    if (made.has) made.number = x / 2;
    return made;
}

// Compilers look at the number before they know whether there is one.
extern "C" __global__ void looks_ahead(const uint *in, uint *out) {
    volatile optional kept[2];
    optional one = even(in[THREAD]);
    kept[in[THREAD] & 1].has = one.has;
    if (one.has) kept[in[THREAD] & 1].number = one.number;
    bool small = kept[in[THREAD] & 1].has & (kept[in[THREAD] & 1].number < 20);
    uint found = kept[in[THREAD] & 1].has ? kept[in[THREAD] & 1].number : 100;
    out[THREAD] = (small ? 1000 : 0) + found + (one.has && one.number > 10 ? 3 : 4);
}

extern "C" __global__ void packs_bytes(const uint *in, uint *out) {
    volatile byte own[8];
    uint at = in[THREAD] & 3;
    own[at] = (byte)THREAD;
    uint word;
    __builtin_memcpy(&word, (const byte *)own + (at & ~3u), 4);
    out[THREAD] = word >> at * 8 & 0xff;
}

// Values that must live across a call in some lanes only, which it makes room for in scratch.
__device__ __attribute__((noinline)) uint depth(uint x) { return x < 2 ? x : depth(x - 1) + depth(x - 2) % 7; }
extern "C" __global__ void spills(const uint *in, uint *out) {
    uint a = in[THREAD], b = in[THREAD + 1], c, sum = 0;
    if (a % 3) c = b * 7;
    for (uint i = 0; i < a % 5; i++) {
        if ((a + i) % 2) sum += depth(i + THREAD % 3) * b;
        if (a % 3) sum += c ^ i;
    }
    out[THREAD] = sum + a;
}
