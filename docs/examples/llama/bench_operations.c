#include "bench_operations.h"

#define OPERATION_f32(name)  .name = kiln_##name##_f32_sized,
#define OPERATION_f16(name)  .name = kiln_##name##_f16_sized,
#define OPERATION_bf16(name) .name = kiln_##name##_bf16_sized,
#define WORKSPACE_f32(name)  .name##_workspace = kiln_##name##_f32_workspace_size_sized,
#define WORKSPACE_f16(name)  .name##_workspace = kiln_##name##_f16_workspace_size_sized,
#define WORKSPACE_bf16(name) .name##_workspace = kiln_##name##_bf16_workspace_size_sized,

const bench_operations *bench_operations_of(llama_precision precision) {
    static const bench_operations precisions[] = {
        [LLAMA_F32] = {BENCH_OPERATIONS(OPERATION_f32) BENCH_WORKSPACES(WORKSPACE_f32)},
        [LLAMA_F16] = {BENCH_OPERATIONS(OPERATION_f16) BENCH_WORKSPACES(WORKSPACE_f16)},
        [LLAMA_BF16] = {BENCH_OPERATIONS(OPERATION_bf16) BENCH_WORKSPACES(WORKSPACE_bf16)},
    };
    return &precisions[precision];
}
