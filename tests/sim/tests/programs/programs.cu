// CUDA C and HIP of the usual kinds, for tests/sim/tests/ptx/ptx_programs_test.c and tests/sim/tests/amdgcn/amdgcn_programs_test.c, which have the
// same kernels on the host. The PTX and the HSACO beside it were written by scripts/sim_programs.sh: PTX by nvcc and by
// clang, HSACO by clang, each without and with optimisation.
#if defined(__HIP__)
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define THREAD      __builtin_amdgcn_workitem_id_x()
#define THREAD_Y    __builtin_amdgcn_workitem_id_y()
#define THREADS     __builtin_amdgcn_workgroup_size_x()
#define BLOCK       __builtin_amdgcn_workgroup_id_x()
#define BLOCK_Y     __builtin_amdgcn_workgroup_id_y()
#define ADD(at, by) __hip_atomic_fetch_add((at), (by), __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)
#define __popc(v)   __builtin_popcount(v)
#elif defined(__clang__)
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define THREAD        __nvvm_read_ptx_sreg_tid_x()
#define THREAD_Y      __nvvm_read_ptx_sreg_tid_y()
#define THREADS       __nvvm_read_ptx_sreg_ntid_x()
#define BLOCK         __nvvm_read_ptx_sreg_ctaid_x()
#define BLOCK_Y       __nvvm_read_ptx_sreg_ctaid_y()
#define ADD(at, by)   __nvvm_atom_add_gen_i((int *)(at), (int)(by))
#define UP(v, by)     __nvvm_shfl_sync_up_i32(0xffffffff, (int)(v), (int)(by), 0)
#define DOWN_F(v, by) __nvvm_shfl_sync_down_f32(0xffffffff, (v), (by), 31)
#define __popc(v)     __builtin_popcount(v)
#else
#include <mma.h>
#define THREAD        threadIdx.x
#define THREAD_Y      threadIdx.y
#define THREADS       blockDim.x
#define BLOCK         blockIdx.x
#define BLOCK_Y       blockIdx.y
#define ADD(at, by)   atomicAdd((at), (by))
#define UP(v, by)     __shfl_up_sync(0xffffffff, (v), (by))
#define DOWN_F(v, by) __shfl_down_sync(0xffffffff, (v), (by))
#endif

typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned char byte;

#if defined(__HIP__)
__device__ inline void __syncthreads() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

// Shuffles of 32 lanes, whatever the wave's size; a lane without a partner keeps its value.
__device__ inline int shuffle(int value, uint lane, uint from) {
    return __builtin_amdgcn_ds_bpermute((int)((lane / 32 == from / 32 ? from : lane) * 4), value);
}
__device__ inline uint lane_of_wave() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)); }
__device__ inline uint UP(uint v, uint by) { return (uint)shuffle((int)v, lane_of_wave(), lane_of_wave() - by); }
__device__ inline float DOWN_F(float v, uint by) {
    return __builtin_bit_cast(float, shuffle(__builtin_bit_cast(int, v), lane_of_wave(), lane_of_wave() + by));
}
#endif

// The sum of each block's THREADS numbers.
extern "C" __global__ void reduce(const float *in, float *out, uint n) {
    __shared__ float part[32];
    uint i = BLOCK * THREADS + THREAD;
    float sum = i < n ? in[i] : 0.0f;
    for (uint by = 16; by; by /= 2) sum += DOWN_F(sum, by);
    if (THREAD % 32 == 0) part[THREAD / 32] = sum;
    __syncthreads();
    if (THREAD < 32) {
        sum = THREAD < THREADS / 32 ? part[THREAD] : 0.0f;
        for (uint by = 16; by; by /= 2) sum += DOWN_F(sum, by);
        if (THREAD == 0) out[BLOCK] = sum;
    }
}

// By tiles of 16 x 16 in shared memory.
extern "C" __global__ void transpose(const uint *in, uint *out, uint rows, uint columns) {
    __shared__ uint tile[16][17];
    uint column = BLOCK * 16 + THREAD, row = BLOCK_Y * 16 + THREAD_Y;
    if (row < rows && column < columns) tile[THREAD_Y][THREAD] = in[row * columns + column];
    __syncthreads();
    uint to_row = BLOCK * 16 + THREAD_Y, to_column = BLOCK_Y * 16 + THREAD;
    if (to_row < columns && to_column < rows) out[to_row * rows + to_column] = tile[THREAD][THREAD_Y];
}

// In shared memory first, then in global memory.
extern "C" __global__ void histogram(const byte *in, uint *out, uint n) {
    __shared__ uint bins[256];
    for (uint b = THREAD; b < 256; b += THREADS) bins[b] = 0;
    __syncthreads();
    uint i = BLOCK * THREADS + THREAD;
    if (i < n) ADD(&bins[in[i]], 1u);
    __syncthreads();
    for (uint b = THREAD; b < 256; b += THREADS)
        if (bins[b]) ADD(&out[b], bins[b]);
}

// Inclusive sums within a block.
extern "C" __global__ void scan(const uint *in, uint *out) {
    __shared__ uint sums[32];
    uint lane = THREAD % 32, warp = THREAD / 32, i = BLOCK * THREADS + THREAD, sum = in[i];
    for (uint by = 1; by < 32; by *= 2) {
        uint other = UP(sum, by);
        if (lane >= by) sum += other;
    }
    if (lane == 31) sums[warp] = sum;
    __syncthreads();
    for (uint w = 0; w < warp; w++) sum += sums[w];
    out[i] = sum;
}

__device__ __attribute__((noinline)) uint fibonacci(uint n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

extern "C" __global__ void recursion(uint *out) {
    out[THREAD] = fibonacci(THREAD % 10);
}

typedef uint (*operation)(uint, uint);
__device__ uint sum_of(uint a, uint b) { return a + b; }
__device__ uint difference_of(uint a, uint b) { return a - b; }
__device__ uint product_of(uint a, uint b) { return a * b; }
__device__ operation operations[3] = {sum_of, difference_of, product_of};

struct shape {
    uint side;
    __device__ shape(uint of) : side(of) {}
    __device__ virtual uint area(uint scale) const { return side * scale; }
};
struct square : shape {
    __device__ square(uint of) : shape(of) {}
    __device__ uint area(uint scale) const override { return side * side + scale; }
};

// Calls through a table of functions, through a pointer to one of two, and of a virtual function.
extern "C" __global__ void dispatch(const uint *in, uint *out) {
    uint x = in[THREAD];
    operation first = operations[x % 3], second = THREAD % 2 ? product_of : difference_of;
    shape line(x);
    square tile(x);
    const shape *either = x % 5 ? &line : &tile;
    out[THREAD] = first(x, THREAD) + 3 * second(x, 7) + 5 * either->area(THREAD);
}

__device__ uint tallies[4] = {1, 10, 100, 1000};

// Counts in variables of the module, and puts them back.
extern "C" __global__ void tally(uint *out) {
    ADD(&tallies[THREAD % 4], THREAD);
    __syncthreads();
    out[THREAD] = tallies[(THREAD + 1) % 4];
    __syncthreads();
    if (THREAD < 4) tallies[THREAD] = THREAD == 0 ? 1 : THREAD == 1 ? 10 : THREAD == 2 ? 100 : 1000;
}

__constant__ int weights[8] = {3, -1, 4, 1, -5, 9, 2, 6};

extern "C" __global__ void choose(const int *in, int *out) {
    int x = in[THREAD], y;
    switch (x & 15) {
    case 0: y = x + 1; break;
    case 1: y = x * 3; break;
    case 2: y = -x; break;
    case 3: y = x / 7; break;
    case 4: y = x % 7; break;
    case 5: y = x >> 3; break;
    case 6: y = x << 3; break;
    case 7: y = x ^ 0x55; break;
    case 8: y = weights[THREAD % 8]; break;
    case 9:
        y = 0;
        while (x > 0) y += x & 1, x >>= 1;
        break;
    default: y = x > 0 ? 1000 : -1000;
    }
    out[THREAD] = y;
}

// Adds elements of an array of its own, which optimisation keeps in registers, by numbers that all threads share.
extern "C" __global__ void mix(const uint *in, const uint *places, uint *out) {
    uint own[16];
    for (uint i = 0; i < 16; i++) own[i] = in[THREAD * 16 + i];
    for (uint i = 0; i < 15; i++) own[places[i] & 15] += own[places[i + 1] & 15] * 3;
    for (uint i = 0; i < 16; i++) out[THREAD * 16 + i] = own[i];
}

// Sorts 16 numbers in an array of its own.
extern "C" __global__ void sort(const short *in, short *out) {
    short own[16];
    for (int i = 0; i < 16; i++) own[i] = in[THREAD * 16 + i];
    for (int i = 1; i < 16; i++) {
        short value = own[i];
        int j = i;
        for (; j > 0 && own[j - 1] > value; j--) own[j] = own[j - 1];
        own[j] = value;
    }
    for (int i = 0; i < 16; i++) out[THREAD * 16 + i] = own[i];
}

// 128-bit products and quotients of 64 bits.
extern "C" __global__ void wide(const unsigned long long *a, const unsigned long long *b, unsigned long long *out) {
    unsigned long long x = a[THREAD], y = b[THREAD] | 1;
    unsigned long long low = (x & 0xffffffffu) * (y & 0xffffffffu), middle = (x >> 32) * (y & 0xffffffffu) + (low >> 32);
    unsigned long long other = (x & 0xffffffffu) * (y >> 32) + (middle & 0xffffffffu);
    out[THREAD * 3] = (x >> 32) * (y >> 32) + (middle >> 32) + (other >> 32);
    out[THREAD * 3 + 1] = x / y;
    out[THREAD * 3 + 2] = (unsigned long long)((long long)x % (long long)y);
}

// A machine with four registers: the first word of each step says what it does to the registers that the others name.
extern "C" __global__ void interpret(const byte *steps, uint *out, uint count) {
    uint thread = THREAD, r[4] = {thread, thread * 7 + 1, thread ^ 0x1234, 99};
    for (uint i = 0; i < count; i++) {
        const byte *step = steps + (i * THREADS + THREAD) * 4;
        uint a = r[step[1] & 3], b = r[step[2] & 3], *d = &r[step[3] & 3];
        switch (step[0] % 12) {
        case 0: *d = a + b; break;
        case 1: *d = a - b; break;
        case 2: *d = a * b; break;
        case 3: *d = a / (b | 1); break;
        case 4: *d = a << (b & 31); break;
        case 5: *d = a >> (b & 31); break;
        case 6: out[THREAD] = a; break;
        case 7: *d = out[THREAD] + b; break;
        case 8: *d = __popc(a) + b; break;
        case 9: *d = a & b; break;
        case 10: *d = a | ~b; break;
        case 11: ADD(&out[THREAD], a); break;
        }
    }
    for (int i = 0; i < 4; i++) ADD(&out[THREAD], r[i]);
}

// c = a b, of n x n, by tiles of 8 x 8.
extern "C" __global__ void multiply(const float *a, const float *b, float *c, uint n) {
    __shared__ float left[8][8], right[8][8];
    uint row = BLOCK_Y * 8 + THREAD_Y, column = BLOCK * 8 + THREAD;
    float sum = 0.0f;
    for (uint at = 0; at < n; at += 8) {
        left[THREAD_Y][THREAD] = row < n && at + THREAD < n ? a[row * n + at + THREAD] : 0.0f;
        right[THREAD_Y][THREAD] = column < n && at + THREAD_Y < n ? b[(at + THREAD_Y) * n + column] : 0.0f;
        __syncthreads();
        for (uint i = 0; i < 8; i++) sum += left[THREAD_Y][i] * right[i][THREAD];
        __syncthreads();
    }
    if (row < n && column < n) c[row * n + column] = sum;
}

#if !defined(__HIP__)
// c = a b, of n x n with n a multiple of 32, from f16 to f32, by blocks of four warps and tiles of 32 x 32. The tensor
// cores multiply; clang has builtins for them where nvcc has a header.
extern "C" __global__ void multiply_matrices(const ushort *a, const ushort *b, float *c, uint n) {
    __shared__ __attribute__((aligned(32))) ushort left[32][16], right[16][32];
    uint warp_row = THREAD / 64 * 16, warp_column = THREAD / 32 % 2 * 16;
    float *out = c + (BLOCK_Y * 32 + warp_row) * n + BLOCK * 32 + warp_column;
#if defined(__clang__)
    int x[8], y[8];
    float sum[8] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
#else
    using namespace nvcuda;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> y;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
#endif
    for (uint at = 0; at < n; at += 16) {
        for (uint i = THREAD; i < 512; i += THREADS) {
            left[i / 16][i % 16] = a[(BLOCK_Y * 32 + i / 16) * n + at + i % 16];
            right[i / 32][i % 32] = b[(at + i / 32) * n + BLOCK * 32 + i % 32];
        }
        __syncthreads();
#if defined(__clang__)
        __hmma_m16n16k16_ld_a(x, (const int *)&left[warp_row][0], 16, 0);
        __hmma_m16n16k16_ld_b(y, (const int *)&right[0][warp_column], 32, 0);
        __hmma_m16n16k16_mma_f32f32(sum, x, y, sum, 0, 0);
#else
        wmma::load_matrix_sync(x, (const half *)&left[warp_row][0], 16);
        wmma::load_matrix_sync(y, (const half *)&right[0][warp_column], 32);
        wmma::mma_sync(sum, x, y, sum);
#endif
        __syncthreads();
    }
#if defined(__clang__)
    __hmma_m16n16k16_st_c_f32(out, sum, n, 0);
#else
    wmma::store_matrix_sync(out, sum, n, wmma::mem_row_major);
#endif
}
#else
typedef _Float16 half;
typedef half half_pair __attribute__((ext_vector_type(2)));
typedef half halves __attribute__((ext_vector_type(4)));
typedef half eight_halves __attribute__((ext_vector_type(8)));
typedef half sixteen_halves __attribute__((ext_vector_type(16)));
typedef float four_floats __attribute__((ext_vector_type(4)));
typedef float eight_floats __attribute__((ext_vector_type(8)));

// The same of 16 rows and 16 columns of c, by a wave of 64 or 32 lanes; a lane has PER_LANE elements of it, of which i is
// in row ROW(i) and in the column of its number modulo 16.
#if defined(__GFX9__)
#define PER_LANE 4
#define ROW(i)   (lane / 16 * 4 + (i))
#elif defined(__GFX12__)
#define PER_LANE 8
#define ROW(i)   (lane / 16 * 8 + (i))
#else
#define PER_LANE 8
#define ROW(i)   ((i) * 2 + lane / 16)
#endif

__device__ inline void multiply_tile(const half (*left)[16], const half (*right)[32], uint lane, float *sum) {
    uint place = lane % 16;
#if defined(__GFX9__)
    halves x, y;
    four_floats *all = (four_floats *)sum;
    for (uint i = 0; i < 4; i++) x[i] = left[place][lane / 16 * 4 + i], y[i] = right[lane / 16 * 4 + i][place];
    *all = __builtin_amdgcn_mfma_f32_16x16x16f16(x, y, *all, 0, 0, 0);
#elif defined(__GFX11__)
    sixteen_halves x, y;
    eight_floats *all = (eight_floats *)sum;
    for (uint i = 0; i < 16; i++) x[i] = left[place][i], y[i] = right[i][place];
    *all = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(x, y, *all);
#elif defined(__GFX12__)
    eight_halves x, y;
    eight_floats *all = (eight_floats *)sum;
    for (uint i = 0; i < 8; i++) x[i] = left[place][lane / 16 * 8 + i], y[i] = right[lane / 16 * 8 + i][place];
    *all = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(x, y, *all);
#else
    for (uint k = 0; k < 16; k += 2) {
        half_pair y = {right[k][place], right[k + 1][place]};
        for (uint i = 0; i < 8; i++) {
            half_pair x = {left[ROW(i)][k], left[ROW(i)][k + 1]};
            sum[i] = __builtin_amdgcn_fdot2(x, y, sum[i], false);
        }
    }
#endif
}

extern "C" __global__ void multiply_matrices(const half *a, const half *b, float *c, uint n) {
    __shared__ half left[32][16], right[16][32];
    enum { LANES = 64 * 4 / PER_LANE, TILES = LANES / 32 };
    uint lane = THREAD % LANES, first = THREAD / LANES * TILES;
    __attribute__((aligned(32))) float sum[TILES][PER_LANE];
    for (uint tile = 0; tile < TILES; tile++)
        for (uint i = 0; i < PER_LANE; i++) sum[tile][i] = 0.0f;
    for (uint at = 0; at < n; at += 16) {
        for (uint i = THREAD; i < 512; i += THREADS) {
            left[i / 16][i % 16] = a[(BLOCK_Y * 32 + i / 16) * n + at + i % 16];
            right[i / 32][i % 32] = b[(at + i / 32) * n + BLOCK * 32 + i % 32];
        }
        __syncthreads();
        for (uint tile = 0; tile < TILES; tile++) {
            uint number = first + tile;
            multiply_tile(&left[number / 2 * 16], (const half (*)[32])&right[0][number % 2 * 16], lane, sum[tile]);
        }
        __syncthreads();
    }
    for (uint tile = 0; tile < TILES; tile++) {
        uint number = first + tile;
        float *out = c + (BLOCK_Y * 32 + number / 2 * 16) * n + BLOCK * 32 + number % 2 * 16;
        for (uint i = 0; i < PER_LANE; i++) out[ROW(i) * n + lane % 16] = sum[tile][i];
    }
}
#endif

// Structures with padding, and members that nobody set, are copied whole: into arrays, arguments and results.
struct padded {
    char kind;
    uint number;
    unsigned long long wide;
    char last;
};
struct optional {
    bool has;
    uint number;
};
__device__ __attribute__((noinline)) padded padded_of(uint x) {
    padded made;
    made.kind = (char)(x % 100);
    made.number = x;
    made.wide = (unsigned long long)x * x;
    made.last = 7;
    return made;
}
__device__ __attribute__((noinline)) uint weight_of(padded given) {
    padded own = given;
    return own.kind + own.number + (uint)(own.wide >> 32) + own.last;
}
__device__ __attribute__((noinline)) optional odd(uint x) {
    optional made;
    made.has = x % 2;
    if (x % 2) made.number = x;
    return made;
}

extern "C" __global__ void copy_structures(const uint *in, uint *out) {
    padded one = padded_of(in[THREAD]), all[4];
    for (uint i = 0; i < 4; i++) {
        all[i] = one;
        all[i].number += i;
    }
    optional may = odd(in[THREAD]), same = may;
    out[THREAD] = weight_of(all[THREAD % 4]) + (same.has ? same.number : 1);
}
