// CUDA C as programs that serve models have it, for tests/sim/tests/ptx/ptx_serving_test.c, which has the same on the host: a scan
// whose blocks wait for each other, weights of four bits by the bits of f16, and a product by inline assembly that copies
// while it multiplies. The PTX beside it was written by scripts/sim_programs.sh, without and with optimisation.
#include <cuda_fp16.h>

typedef unsigned int uint;

enum { THREADS = 128, TILE = 64, DEEP = 32 };
enum { EMPTY, PART, WHOLE };

// Inclusive sums over all blocks: each looks back at the sums of those before it, as far as they are known.
extern "C" __global__ void look_back(const uint *in, uint *out, volatile uint *states, volatile uint *sums) {
    __shared__ uint own[THREADS], before;
    uint thread = threadIdx.x, block = blockIdx.x;
    own[thread] = in[block * THREADS + thread];
    __syncthreads();
    for (uint by = 1; by < THREADS; by *= 2) {
        uint other = thread >= by ? own[thread - by] : 0;
        __syncthreads();
        own[thread] += other;
        __syncthreads();
    }
    if (thread == 0) {
        volatile uint *parts = sums, *wholes = sums + gridDim.x;
        uint sum = 0;
        parts[block] = own[THREADS - 1];
        __threadfence();
        states[block] = PART;
        for (uint at = block; at > 0;) {
            uint state = states[at - 1];
            if (state == EMPTY) continue;
            __threadfence();
            sum += state == WHOLE ? wholes[at - 1] : parts[at - 1];
            if (state == WHOLE) break;
            at--;
        }
        wholes[block] = sum + own[THREADS - 1];
        __threadfence();
        states[block] = WHOLE;
        before = sum;
    }
    __syncthreads();
    out[block * THREADS + thread] = before + own[thread];
}

// (bits & mask) | magic, in one instruction.
template <uint mask> __device__ uint insert(uint bits, uint magic) {
    uint result;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(result) : "r"(bits), "n"(mask), "r"(magic));
    return result;
}

// Eight numbers of four bits to f16: 1024 + x is 0x6400 | x, and of x in the next four bits 1024 + 16 x.
extern "C" __global__ void unpack(const uint *in, uint *out) {
    const uint i = blockIdx.x * THREADS + threadIdx.x, magic = 0x64006400, sixteenth = 0x2c002c00, less = 0xd400d400;
    for (uint half = 0; half < 2; half++) {
        uint bits = in[i] >> half * 8, low = insert<0x000f000f>(bits, magic), high = insert<0x00f000f0>(bits, magic);
        asm("sub.f16x2 %0, %0, %1;" : "+r"(low) : "r"(magic));
        asm("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(high) : "r"(sixteenth), "r"(less));
        out[i * 4 + half * 2] = low;
        out[i * 4 + half * 2 + 1] = high;
    }
}

__device__ uint shared_address(const void *at) {
    return (uint)__cvta_generic_to_shared(at);
}

__device__ void copy_16(void *to, const void *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
}

// c = a b, by blocks of four warps and tiles of 64 x 64, of which the next is copied while one is multiplied. Chunks of
// eight numbers change places with others of the row, so that no two rows' come from the same banks.
extern "C" __global__ void multiply(const half *a, const half *b, float *c, uint n) {
    __shared__ __align__(128) half left[2][TILE][DEEP], right[2][DEEP][TILE];
    uint thread = threadIdx.x, lane = thread % 32, warp_row = thread / 64 * 32, warp_column = thread / 32 % 2 * 32;
    const half *rows = a + blockIdx.y * TILE * n, *columns = b + blockIdx.x * TILE;
    float sums[2][4][4] = {};
    for (uint at = 0; at <= n; at += DEEP) {
        uint stage = at / DEEP % 2;
        for (uint i = thread; at < n && i < TILE * DEEP / 8; i += THREADS) {
            uint row = i / 4, chunk = i % 4, deep = i / 8, other = i % 8;
            copy_16(&left[stage][row][(chunk ^ row / 2 % 4) * 8], rows + row * n + at + chunk * 8);
            copy_16(&right[stage][deep][(other ^ deep % 8) * 8], columns + (at + deep) * n + other * 8);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        if (at == 0) continue;
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
        for (uint k = 0; k < DEEP; k += 16) {
            uint x[2][4], y[4][2];
            for (uint i = 0; i < 2; i++) {
                uint row = warp_row + i * 16 + lane % 16, chunk = k / 8 + lane / 16;
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(x[i][0]), "=r"(x[i][1]), "=r"(x[i][2]), "=r"(x[i][3])
                             : "r"(shared_address(&left[1 - stage][row][(chunk ^ row / 2 % 4) * 8])));
            }
            for (uint j = 0; j < 4; j += 2) {
                uint row = k + lane % 16, chunk = warp_column / 8 + j + lane / 16;
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(y[j][0]), "=r"(y[j][1]), "=r"(y[j + 1][0]), "=r"(y[j + 1][1])
                             : "r"(shared_address(&right[1 - stage][row][(chunk ^ row % 8) * 8])));
            }
            for (uint i = 0; i < 2; i++)
                for (uint j = 0; j < 4; j++)
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                                 "{%8, %9}, {%0, %1, %2, %3};"
                                 : "+f"(sums[i][j][0]), "+f"(sums[i][j][1]), "+f"(sums[i][j][2]), "+f"(sums[i][j][3])
                                 : "r"(x[i][0]), "r"(x[i][1]), "r"(x[i][2]), "r"(x[i][3]), "r"(y[j][0]), "r"(y[j][1]));
        }
        __syncthreads();
    }
    for (uint i = 0; i < 2; i++) {
        for (uint j = 0; j < 4; j++) {
            uint row = blockIdx.y * TILE + warp_row + i * 16 + lane / 4;
            uint column = blockIdx.x * TILE + warp_column + j * 8 + lane % 4 * 2;
            *(float2 *)&c[row * n + column] = make_float2(sums[i][j][0], sums[i][j][1]);
            *(float2 *)&c[(row + 8) * n + column] = make_float2(sums[i][j][2], sums[i][j][3]);
        }
    }
}
