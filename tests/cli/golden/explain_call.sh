# Which kernels calls would take on devices that are not here, and on one that is: what was weighed, what a rule decided.
. "$GOLDEN/lib.sh"
kiln explain --target sm_90a --driver 12.4 gemm_bf16 m=512 n=8192 k=8192
kiln explain --target sm_90a gemm_bf16 m=1 n=8192 k=8192
kiln explain --target sm_90 gemm_f16 m=100 n=100 k=101 activation=silu
kiln explain --target sm_80 gemm_bf16 m=64 n=4096
kiln explain --target gfx942 gemm_f16 m=4096 n=4096
kiln explain --target sm_89 gemm_fp8_bf16 m=100 n=4096
kiln explain --target sm_80 gemm_int8_f16 m=8 n=4096
kiln explain --target sm_80 gemm_nvfp4_f16 m=64 n=4096
kiln explain --target sm_80 gemm_nvfp4_f16 m=100 n=1000 k=200 a_scale_layout=128x4
kiln explain --target sm_80 gemm_w4a16_f16 m=64 n=4096
kiln explain --target sm_80 gemm_w4a16_f16 m=64 n=4096 weight_layout=sm80_v1
kiln explain --target sm_90a mha_bf16 tokens=4096 kv_tokens=4096
kiln explain --target sm_75 mha_bf16 tokens=16 kv_tokens=16384 batch=16
kiln explain --target sm_90a mha_fp8_fwd_bf16 tokens=4096 kv_tokens=4096 q_scale_rows=4096 k_scale_rows=64
kiln explain --target sm_89 mha_int8_x_fp8_fwd_f16 kv_tokens=8192
kiln explain --target sm_90a mha_paged_f16 blocks=1000
kiln explain --target sm_90a mha_paged_bf16 blocks=1000 tokens=16 tree_mask window_left=100
kiln explain --target sm_90a gemm_bf16 m=8 n=4096 bias norm_weight gated=yes scale=0.5
kiln explain --target x86-64-v3 softmax_f32 rows=4 cols=100000
kiln explain --target sm_100 top_k_f32 rows=4 cols=100000 k=20
kiln explain --target sm_90 add_f32 count=0
kiln explain --target sm_80 --json gemm_bf16 m=64 n=512 k=1024 scale=0.5 bias
echo
KILN_SIM_DEVICES=sm_80 LD_LIBRARY_PATH=$RECORDING kiln explain --device cuda:0 gemm_bf16 m=64 n=512 k=1024
try kiln explain --target sm_103 add_f32 count=1
try kiln explain --target sm_90 gemm_bf16
try kiln explain --target sm_90 gemm_bf16 m
try kiln explain --target sm_90 gemm_bf16 a
try kiln explain --target sm_90 gemm_bf16 bias=1
try kiln explain --target sm_90 softmax_f32 x
try kiln explain --target sm_90 gemm m=1
try kiln explain --target sm_90 gemm_bf16 m=-1
try kiln explain --target sm_90 gemm_bf16 x=1
try kiln explain --target sm_90 gemm_bf16 m=1 m=1 n=1
try kiln explain --target sm_70 gemm_bf16 m=1 n=1
try kiln explain --target sm_90 --all gemm_bf16
