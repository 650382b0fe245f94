#!/bin/sh
# Prints what a launch costs the host in instructions, counted by valgrind's callgrind against drivers that do nothing:
#
#   tests/bench/launch_overhead.sh CLIENT NULL-DRIVERS-FOLDER CONFIG
#
# and fails if a row is over its limit, which holds for GCC 12 and config=release.
#
# Each count is that of the whole thread in a loop of one length less that in a shorter one, by the difference of their
# lengths: start-up and loading cancel out. The lengths are multiples of a ring of kernargs, so that its turns count too.
# The null CUDA driver's own instructions are left out: a driver's work is no cost of kiln's. Those of the null HSA
# driver, which have no part in a comparison, are in.
set -eu

client=$1
drivers=$2
config=$3
short=1024
long=$((short * 11))

collected() { # CLIENT-ARGUMENT...
    # Each toggle turns counting off until the function returns; atstart comes after, since a toggle resets it.
    LD_LIBRARY_PATH=$drivers valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='cu*' \
        --collect-atstart=yes "$client" "$@" 2>&1 | sed -n 's/.*Collected : //p'
}

# Instructions of one call, rounded up.
per_call() { # MODE DEVICES [current]
    mode=$1
    devices=$2
    shift 2
    less=$(collected "$mode" "$devices" "$short" "$@")
    more=$(collected "$mode" "$devices" "$long" "$@")
    if [ -z "$less" ] || [ -z "$more" ]; then
        echo "launch_overhead.sh: callgrind counted nothing for $mode" >&2
        exit 1
    fi
    echo $(((more - less + long - short - 1) / (long - short)))
}

over=0 # rows over their limit
row() { # NAME INSTRUCTIONS LIMIT WHAT
    verdict=ok
    [ "$2" -le "$3" ] || {
        verdict="over the limit"
        over=$((over + 1))
    }
    echo "$1: $2 instructions ($4; limit $3: $verdict; config=$config)"
}

operators="mul_add add softmax silu_mul silu_mul_packed silu_mul_long add_gelu add_gelu_long rmsnorm add_rmsnorm \
    embedding rope3d kv_store kv_compact kv_copy_blocks argmax sample top_k tree_accept engram_hash log_softmax \
    tree_verify_sampled softmax_update merge_attention_states \
    quantize_embedding vector_search amax dequantize_fp8 dequantize_int8 dequantize_nvfp4 dequantize_w4a16"
# Their calls are kept (loader/call.h): what is counted is a call of before.
kept="gemm gemm_tiles gemm_fp8 gemm_int8 gemm_nvfp4 gemm_w4a16 mha mha_fp8_fwd mha_int8_x_fp8_fwd mha_nvfp4_fwd mha_paged \
    rope rope_kv_store causal_conv1d engram_gate quantize_fp8 quantize_int8 quantize_nvfp4 rmsnorm_fp8 rmsnorm_int8 \
    rmsnorm_nvfp4 silu_mul_fp8 silu_mul_int8 silu_mul_nvfp4"
# These have twenty parameters to check, and no limit.
others="mha_quantize mha_quantize_nvfp4"

# A call on one device, above a direct launch, and on four in turn, above a program that does so itself and above the launch
# alone.
rows() { # NAME MODE LIMIT WHAT
    one=$(per_call "$2" 1 current)
    four=$(per_call "$2" 4 current)
    row "$1" $((one - direct)) "$3" "$4 above cuLaunchKernel, one device"
    row "$1" $((four - switched)) "$3" "$4 above cuCtxSetCurrent and cuLaunchKernel, four devices in turn"
    row "$1" $((four - direct)) "$3" "$4 above cuLaunchKernel alone, four devices in turn"
}

direct=$(per_call direct 1 current)
switched=$(per_call switched 4 current)
echo "cuLaunchKernel, called directly: $direct instructions, the loop included"
echo "cuCtxSetCurrent and cuLaunchKernel, called directly: $switched instructions, the loop included"
rows launch-overhead launch 60 kiln_launch
for operator in $operators; do
    rows operator-overhead "$operator" 400 "kiln_$operator, f16,"
done
for call in $kept; do
    row operator-overhead "$(($(per_call "$call" 1 current) - direct))" 450 "kiln_$call of before, f16, above cuLaunchKernel, one device"
done
for call in $others; do
    echo "operator-overhead: $(($(per_call "$call" 1 current) - direct)) instructions ($call, f16, above cuLaunchKernel, one device; config=$config)"
done
for devices in 1 4; do
    row hsa-dispatch "$(per_call hsa $devices)" 150 "kiln_launch on ROCm in all, devices in turn: $devices"
done

for mode in launch $operators $kept $others hsa; do
    printf '%s: ' "$mode"
    LD_LIBRARY_PATH=$drivers "$client" "$mode" 4 100000 sealed
done
[ "$over" = 0 ]
