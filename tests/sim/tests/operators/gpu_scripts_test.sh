# The tests that `make check-gpu` runs on real GPUs, tried on simulated ones: they pass where all is well, they fail where
# a device differs, and on a machine without a GPU they skip and say so.
. tests/tap.sh

# A test of tests/gpu on simulated devices, or for DEVICES none on none.
gpu_test() { # DEVICES NAME
    local devices=$1
    [ "$devices" != none ] || devices=
    env ${devices:+KILN_SIM_DEVICES=$devices} LD_LIBRARY_PATH="$KILN_BUILD/sim" bash "tests/gpu/$2_test.sh" \
        >"$KILN_SCRATCH/$2.tap" 2>&1
    local status=$?
    cat "$KILN_SCRATCH/$2.tap"
    return $status
}

skips() { # NAME DEVICES
    gpu_test "$2" "$1" && grep -q '^1\.\.0 # SKIP there is no GPU.* here' "$KILN_SCRATCH/$1.tap"
}

says() { # NAME TEXT
    grep -qF "$2" "$KILN_SCRATCH/$1.tap" || ! cat "$KILN_SCRATCH/$1.tap"
}

table_says() { # TEXT
    grep -qF "$1" "$KILN_BUILD/gpu/instructions-cuda-0.md" || ! cat "$KILN_BUILD/gpu/instructions-cuda-0.md"
}

# An operator's test is found by its name, as the build finds it.
finds_programs() {
    mkdir -p "$KILN_SCRATCH/build/tests/ops"
    touch "$KILN_SCRATCH"/build/tests/ops/{images,new,newer}_test
    [ "$(KILN_BUILD=$KILN_SCRATCH/build bash -c '. tests/sim/tests/operators/operators.sh && echo $operator_programs')" = "new newer" ]
}
check "the operators' programs are those that were built" finds_programs

unset KILN_SIM_DEVICES KILN_GPU_DRY_RUN
for name in operators story instructions sanitizer; do
    check "$name skips without a GPU" skips $name none
    check "$name takes no simulated GPU for one" skips $name sm_90,gfx942
done

export KILN_GPU_DRY_RUN=1 KILN_GPU_OPERATORS=add KILN_GPU_STEPS=4 KILN_SIM_SEED=7
check_gpu() { # OPTION...
    KILN_SIM_DEVICES=sm_90,gfx1100 LD_LIBRARY_PATH="$KILN_BUILD/sim" scripts/check_gpu.sh "$KILN_BUILD" "$@" \
        >"$KILN_SCRATCH/check"
    local status=$?
    cat "$KILN_SCRATCH/check"
    cp "$KILN_BUILD/gpu/log/gpu-operators_test.sh.out" "$KILN_SCRATCH/operators.tap"
    return $status
}

check "operators pass" check_gpu --anew operators
check "one on the PTX alone" says operators "ok 3 - add on cuda:0, PTX alone"
check "and on AMD" says operators "ok 5 - add on rocm:0"

# What has passed needs no time. With one operator more three tests are left.
leaves_the_rest() {
    KILN_GPU_END=1 check_gpu --seconds 0 operators && cmp "$KILN_SCRATCH/operators.tap" "$KILN_SCRATCH/first.tap" || return
    KILN_GPU_END=1 KILN_GPU_OPERATORS="add argmax" check_gpu --seconds 0 operators
    [ $? -eq 3 ] && grep '^3 tests are left' "$KILN_SCRATCH/check" && says operators "ok 8 - argmax on rocm:0 # SKIP the time is up"
}
refuses_results() { # DEVICES TEXT
    ! KILN_GPU_RESULTS=$KILN_SCRATCH/results gpu_test "$1" operators && says operators "$2"
}
cp "$KILN_SCRATCH/operators.tap" "$KILN_SCRATCH/first.tap"
check "the next run goes on" leaves_the_rest
cp -r "$KILN_BUILD/gpu/results" "$KILN_SCRATCH"
check "but not on another device" refuses_results sm_80 "has results of other devices"
echo "passed" >>"$KILN_SCRATCH/results/operators"
check "nor from what is corrupt" refuses_results sm_90,gfx1100 "is corrupt, --anew starts anew: line"
echo "{}" >"$KILN_SCRATCH/results/operators"
check "nor from another file" refuses_results sm_90,gfx1100 "has no results of check-gpu"
refuse "a time that is no number" check_gpu --seconds soon

# A compute-sanitizer that runs the program behind its options, and finds what it is told to.
mkdir -p "$KILN_SCRATCH/bin"
cat >"$KILN_SCRATCH/bin/compute-sanitizer" <<'END'
#!/bin/bash
[ "$*" = "--tool memcheck --error-exitcode 86 --report-api-errors no $KILN_BUILD/tests/ops/add_test" ] || exit 1
"${@:7}" && exit "${SANITIZER_FINDS:-0}"
END
chmod +x "$KILN_SCRATCH/bin/compute-sanitizer"
PATH=$PATH:$KILN_SCRATCH/bin check "memcheck runs" gpu_test sm_90 sanitizer
check "on the operators" says sanitizer "ok 1 - memcheck of add on cuda:0"
PATH=$PATH:$KILN_SCRATCH/bin SANITIZER_FINDS=86 refuse "what it finds is a failure" gpu_test sm_90 sanitizer

export KILN_GPU_INSTRUCTIONS="ptx_special ptx_warp ptx_matrix_sum"
check "instructions agree" gpu_test sm_90 instructions
check "approximations are within their bounds" table_says "| rcp.approx.f32 | "
# The columns: results, and how many of them are those of each way to add; the last way is Hopper's, the simulated device's.
check "matrices are summed as on Hopper" grep -qE '^\| mma\.sync\.aligned\.m8n8k4\.row\.row\.f32\.f16\.f16\.f32 \| 10240 \|( [0-9]+ \|){3} 10240 \| 0 \|' \
    "$KILN_BUILD/gpu/instructions-cuda-0.md"
check "what the device has not is listed" table_says "redux.sync.min.f32"

# Differences are planted by ptx_device_test, in the driver that it sets up for itself.
export KILN_GPU_INSTRUCTIONS="ptx_warp ptx_device"
refuse "a device that differs fails" gpu_test sm_90 instructions
check "by its name" says instructions "not ok 2 - ptx_device on cuda:0"
check "with the operands" says instructions "different: mov.u32 %t0, %smid; add.u32 %d, %a, %t0;: element 1, a 0x1: "
check "and is in the table" table_says "| add.u32 | 1024 | 0 | 512 | 1536 | 1 |"

# The measurements: everything but the times, which simulated devices have not.
bench_gpu() { # OPTION...
    KILN_SIM_DEVICES=sm_90,gfx942 LD_LIBRARY_PATH=$KILN_BUILD/sim scripts/bench_gpu.py "$KILN_BUILD" "$@" >"$KILN_SCRATCH/bench" \
        2>"$KILN_SCRATCH/bench.errors"
    local status=$?
    cat "$KILN_SCRATCH/bench" "$KILN_SCRATCH/bench.errors"
    return $status
}

bench_says() { # REPORT TEXT OPTION...
    bench_gpu "${@:3}"
    grep -qF -- "$2" "$KILN_SCRATCH/bench" && grep -qF "$1: " "$KILN_SCRATCH/bench"
}

no_time_in() { # FILE
    [ -s "$1" ] && ! grep -E '_ns"|per_second|of_copy|[0-9] (us|GB/s)' "$1"
}

if ! command -v python3 >/dev/null; then
    skip "measuring on a GPU" "there is no python3"
else
    refuse "a simulated GPU is not measured" bench_gpu --only add_f16
    check "which it says" grep -q "simulated and has no times" "$KILN_SCRATCH/bench.errors"
    report=$KILN_SCRATCH/bench.json
    check "without time nothing is tried" bench_says "no report" '3 left: the same command goes on' --dry-run --only add_rmsnorm --seconds -1
    check "but tried" bench_gpu --dry-run --only mha --out "$report"
    check "with the sizes of what was run" grep -qF '| `mha_f16` | tokens=32 kv_tokens=32 batch=2 heads=4 ' "$KILN_SCRATCH/bench"
    check "and no times in the table" no_time_in "$KILN_SCRATCH/bench"
    check "nor in the JSON" no_time_in "$report"
    check "the next run goes on" bench_says "$report" ' 0 cases measured, none left' --dry-run --only mha_f --out "$report"
    refuse "not with another device" bench_gpu --dry-run --only mha --device rocm:0 --out "$report"
    check "which it says" grep -q "device is 'kiln simulated sm_90', now it is .*; --anew starts anew" "$KILN_SCRATCH/bench.errors"
    check "but anew" bench_says "$report" '3 cases measured, none left' --dry-run --only add_rmsnorm --out "$report" --anew
    head -c 100 "$report" >"$report.part" && mv "$report.part" "$report"
    refuse "a report that was cut off" bench_gpu --dry-run --out "$report"
    check "which it says" grep -q "is not JSON" "$KILN_SCRATCH/bench.errors"
    echo '{"cases": []}' >"$report"
    refuse "a file that is none" bench_gpu --dry-run --out "$report"
    check "which it says" grep -q "is no report of bench_gpu.py" "$KILN_SCRATCH/bench.errors"

    # A tiny model on the CPU.
    llama() { # TEXT OPTION...
        python3 scripts/bench_llama_torch.py --llama "$KILN_BUILD/examples/llama" --shape tiny --device cpu:0 --prompt 8 \
            --steps 4 --batch 1,2 --no-compile --out "$KILN_SCRATCH/llama.json" "${@:2}" >"$KILN_SCRATCH/llama" 2>&1
        grep -q "$1" "$KILN_SCRATCH/llama" || ! cat "$KILN_SCRATCH/llama"
    }
    check "without time no model is run" llama '0 cases measured, [1-4] left' --seconds -1
    check "a model is" llama '^| batch 2 | [0-9]'
    check "once" llama '0 cases measured, none left'
    check "but not with other steps" llama "steps is 4, now it is 5; --anew" --steps 5
    refuse "an unknown device is refused" bench_gpu --dry-run --device cuda:7
fi

if [ -r "$MODEL_DIR/stories260K.bin" ]; then
    check "the story is told" gpu_test sm_90,gfx942 story
    check "on both" says story "ok 3 - rocm:0"
else
    skip "the story is told" "there is no model in $MODEL_DIR"
fi
finish
