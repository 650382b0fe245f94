// HIP for grids that are no multiple of the group, for tests/sim/tests/amdgcn/amdgcn_launch_test.c; scripts/sim_programs.sh. A group at
// an edge is smaller; of what size, AMD's library computes from hidden arguments, and before code object version 5 from the
// packet.
#define KERNEL extern "C" __attribute__((global))
typedef unsigned int uint;
typedef unsigned short ushort;

#if defined(PACKET)
__attribute__((device)) inline uint lesser(uint a, uint b) { return a < b ? a : b; }
#define WHOLE(d, at) __builtin_amdgcn_workgroup_size_##d()
#define LEFT(d, at)  (__builtin_amdgcn_grid_size_##d() - __builtin_amdgcn_workgroup_id_##d() * WHOLE(d, at))
#define SIZE(d, at)  lesser(WHOLE(d, at), LEFT(d, at))
#else
#define HIDDEN       ((const __attribute__((address_space(4))) ushort *)__builtin_amdgcn_implicitarg_ptr())
#define BLOCKS(at)   (HIDDEN[2 * (at)] | (uint)HIDDEN[2 * (at) + 1] << 16)
#define WHOLE(d, at) HIDDEN[6 + (at)]
#define SIZE(d, at)  (__builtin_amdgcn_workgroup_id_##d() < BLOCKS(at) ? WHOLE(d, at) : HIDDEN[9 + (at)])
#endif

__attribute__((device)) inline void meet() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

// For each work-item of a grid of so many columns, its group's size, its number in the group, and the group's count.
KERNEL void sizes(uint *out, uint columns) {
    __attribute__((shared)) static uint count;
    uint x = __builtin_amdgcn_workitem_id_x(), y = __builtin_amdgcn_workitem_id_y();
    if (!x && !y) count = 0;
    meet();
    __hip_atomic_fetch_add(&count, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
    meet();
    uint column = __builtin_amdgcn_workgroup_id_x() * WHOLE(x, 0) + x;
    uint row = __builtin_amdgcn_workgroup_id_y() * WHOLE(y, 1) + y;
    uint *own = out + (row * columns + column) * 5;
    own[0] = SIZE(x, 0);
    own[1] = SIZE(y, 1);
    own[2] = x;
    own[3] = y;
    own[4] = count;
}
