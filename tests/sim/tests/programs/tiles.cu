// Cooperative groups of more than one warp, for tests/sim/tests/ptx/ptx_tiles_test.c, which has the same on the host. The PTX
// beside it was written by scripts/sim_programs.sh: sm_75 keeps the groups' words in the kernel's own shared memory,
// sm_80 in the system's.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;
typedef unsigned int uint;

enum { THREADS = 128, RESULTS = 6 };

// Of each tile: the sum, the last thread's number and sum, the largest as f32, whether any is odd, the first or second
// thread's number by that, and a number of the tile's middle.
template <uint TILE, bool MEET> __device__ void collect(const uint *in, uint *out) {
    __shared__ cg::block_tile_memory<THREADS> memory;
    auto block = cg::this_thread_block(memory);
    auto tile = cg::tiled_partition<TILE>(block);
    auto meet = [] { if (MEET) __syncwarp(); };
    uint number = in[block.thread_rank()], *to = out + block.thread_rank() * RESULTS;
    to[0] = cg::reduce(tile, number, cg::plus<uint>());
    meet();
    to[1] = tile.shfl(number + to[0], TILE - 1);
    meet();
    to[2] = (uint)cg::reduce(tile, (float)number, cg::greater<float>());
    meet();
    to[3] = tile.any(number & 1);
    meet();
    to[4] = tile.shfl(number, to[3] ? 1 : 0);
    meet();
    to[5] = tile.shfl(number, TILE / 2);
}

extern "C" __global__ void collect_64(const uint *in, uint *out) { collect<64, true>(in, out); }
extern "C" __global__ void collect_128(const uint *in, uint *out) { collect<128, true>(in, out); }

// Nothing holds a warp's other lanes back while its first one takes part in what all have to wait for.
extern "C" __global__ void ahead_64(const uint *in, uint *out) { collect<64, false>(in, out); }
extern "C" __global__ void ahead_128(const uint *in, uint *out) { collect<128, false>(in, out); }
