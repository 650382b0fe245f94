# scripts/tune_gpu.py and scripts/tuning.py: a dry run on a simulated GPU goes on where it stopped and writes no time; rates come
# back out of times that were made of them, and into the sources.
. tests/tap.sh
export LD_LIBRARY_PATH=$KILN_BUILD/sim KILN_SIM_DEVICES=sm_80
build=$KILN_SCRATCH/build # with a program for tuning in which one kernel is said to be another
mkdir -p "$build/tuning/other"
ln -s "$(realpath "$KILN_BUILD/kiln")" "$build/kiln"
ln -s "$(realpath "$KILN_BUILD/kiln")" "$build/tuning/other/kiln"
echo "gemm gemm_mma_large" >"$build/tuning/other/kernels"

tune() { # OPTION...
    python3 scripts/tune_gpu.py "$build" --dry-run --out "$KILN_SCRATCH/tune.json" --only gemm_bf16 "$@"
}

# Without time nothing is measured; then all of it, once.
goes_on() {
    tune --seconds -1 && ! [ -e "$KILN_SCRATCH/tune.json" ] && tune | grep '16 cases measured, none left' &&
        tune | grep '0 cases measured, none left'
}

# Each tile took its own kernel, and what the image does not have is told from it.
took_each_tile() {
    python3 - "$KILN_SCRATCH/tune.json" <<'END'
import json, sys
cases = json.load(open(sys.argv[1]))["cases"]
kernels = {case["settings"]["tile"]: case["kernel"] for case in cases if "splits" in case and not case["variant"]}
assert set(kernels) == {"large", "small", "portable"}, kernels
assert kernels["large"] == "kiln_gemm_mma_large_bf16" and kernels["portable"] == "kiln_gemm_tiles_bf16", kernels
others = [case["settings"]["tile"] for case in cases if "splits" in case and case["variant"] == "other"]
assert others == ["large", "large"], others  # of two shapes: the others are what ships
assert all(case.get("nanoseconds") is None for case in cases)
assert all(case["image"] == "sm_80 cubin" for case in cases)
END
}

refuses_another_device() {
    ! KILN_SIM_DEVICES=sm_90 tune 2>"$KILN_SCRATCH/err" && grep -q 'another --out' "$KILN_SCRATCH/err"
}
wants_a_real_one() {
    ! python3 scripts/tune_gpu.py "$KILN_BUILD" --out "$KILN_SCRATCH/real.json" --only gemm_bf16 2>"$KILN_SCRATCH/err" &&
        grep -q 'a simulated device has no times' "$KILN_SCRATCH/err"
}

# Times by the rates 100 and 64, but for one that is off, and for a product that is divided.
makes_rates() {
    mkdir -p "$KILN_SCRATCH/kernels/gemm" && cp kernels/gemm/gemm_sm80.cu "$KILN_SCRATCH/kernels/gemm" || return 1
    python3 - "$KILN_SCRATCH/made.json" <<'END'
import json, math, sys
cases = []
for kernel, tile, rate in (("large", (128, 256, 64), 100), ("small", (64, 128, 64), 64)):
    for size in (2048, 4096, 8192, 16384):
        rounds = math.ceil(math.ceil(size / tile[0]) * math.ceil(size / tile[1]) / 30)
        time = rounds * tile[0] * tile[1] * size / rate * (1.7 if size == 2048 else 1)
        cases.append({"function": "gemm_f16", "settings": {"m": size, "n": size, "k": size, "tile": kernel},
                      "image": "sm_86 cubin", "kernel": f"kiln_gemm_mma_{kernel}_f16", "multiprocessors": 30, "splits": 1,
                      "tile": tile, "automatic": "kiln_gemm_mma_small_f16", "nanoseconds": time})
cases.append(dict(cases[0], splits=2, nanoseconds=1))
cases.append(dict(cases[2], variant="other", nanoseconds=0.75 * cases[2]["nanoseconds"]))
json.dump({"device": {}, "dry_run": False, "cases": cases}, open(sys.argv[1], "w"))
END
    python3 scripts/tuning.py --write --sources "$KILN_SCRATCH/kernels" "$KILN_SCRATCH/made.json" | tee "$KILN_SCRATCH/out"
    grep -qx '| gemm_sm80.cu | gemm_mma_small | 70 | 64 |' "$KILN_SCRATCH/out" &&
        grep -qx '| other | gemm_mma_large | 128 x 256 x 64 | 1 | 1 | 0.75 |' "$KILN_SCRATCH/out" &&
        grep -qx 'gemm_f16 m=8192 n=8192 k=8192: gemm_mma_large of other, 128 x 256 x 64, takes 0.75 of kiln_gemm_mma_large_f16' \
            "$KILN_SCRATCH/out" && grep -q '^The kernel taken is the fastest in [0-3] of 4 calls' "$KILN_SCRATCH/out" &&
        diff <(sed 's/^\(KILN_SHAPE(gemm_mma_small, .*\), 70)/\1, 64)/' kernels/gemm/gemm_sm80.cu) \
            "$KILN_SCRATCH/kernels/gemm/gemm_sm80.cu"
}

no_times() {
    ! python3 scripts/tuning.py "$KILN_SCRATCH/tune.json" 2>"$KILN_SCRATCH/err" && grep -q 'no case has a time' "$KILN_SCRATCH/err"
}

every_patch_applies() {
    local patch
    for patch in kernels/tuning/*.patch; do
        patch --dry-run -p1 --fuzz=0 --quiet <"$patch" || return
    done
}

if command -v patch >/dev/null; then
    check "the tiles for tuning are changes of what ships" every_patch_applies
else
    skip "the tiles for tuning are changes of what ships" "patch is not installed"
fi
check "a dry run that goes on" goes_on
check "a kernel for each tile" took_each_tile
check "a file of another device" refuses_another_device
check "times of a simulated device" wants_a_real_one
check "rates out of times" makes_rates
check "no rates without times" no_times
finish
