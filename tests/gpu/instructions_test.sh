# Single instructions of PTX on each NVIDIA GPU of this machine against the interpreter: the kernels of
# tests/sim/tests/ptx/*_test.c run on both, and every difference beyond what the ISA leaves open is a failure. The table of them
# all is written to build/gpu/instructions-cuda-0.md, what the device made of some operands of each to build/gpu/recorded.
# KILN_GPU_INSTRUCTIONS names some of the programs only.
. tests/tap.sh
. tests/gpu/gpu.sh
find_gpus cuda
open_results instructions
programs=${KILN_GPU_INSTRUCTIONS-ptx_integer ptx_bits ptx_convert ptx_float ptx_float_sm100 ptx_special ptx_memory ptx_async
    ptx_video ptx_warp ptx_flow ptx_register ptx_matrix_move ptx_matrix ptx_matrix_sum ptx_wmma}
mkdir -p "$KILN_BUILD/gpu/recorded"

# The program's log keeps all of it; what is shown if it fails is what matters.
agrees() { # DEVICE PROGRAM
    local library log=$KILN_SCRATCH/$2.log status
    library=$(gpu_info "$1" driver)
    local record=$KILN_BUILD/gpu/recorded/${1/:/-}-$2.kernels
    rm -f "$record"
    KILN_TEST_RECORD=$record KILN_TEST_REAL_CUDA=${library%%,*} KILN_TEST_REAL_DEVICE=${1#*:} CMOCKA_MESSAGE_OUTPUT=TAP \
        timeout "$(seconds_left)" "$KILN_BUILD/tests/sim/tests/ptx/$2_test" >"$log" 2>"$log.errors"
    status=$?
    cat "$log.errors" >>"$log"
    [ $status -ne 124 ] || return 124
    {
        awk -F'|' -v program="$2" '$1 != program' "$rows"
        awk -v program="$2" '/^# (compared|sums)\|/ {print program "|" $0}' "$log"
    } >"$rows.part" && mv "$rows.part" "$rows"
    grep -E '^(# different|# failed|not ok|KILN_TEST)' "$log" | head -n 100
    awk -F'|' '/^# compared\|/ {rows++; bad += $6 + $7} END {exit !rows || bad}' "$log" && [ $status -eq 0 ]
}

write_table() { # DEVICE
    {
        echo "# Single instructions of PTX on $(gpu_info "$1" name)"
        echo
        echo "| | |"
        echo "|---|---|"
        echo "| device | $(gpu_info "$1" name), $(gpu_info "$1" target) |"
        echo "| driver | $(gpu_info "$1" driver)$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | sed '1s/^/, /;1q') |"
        echo "| date | $(date -u +%Y-%m-%d) |"
        echo "| kiln | $(git describe --always --dirty 2>/dev/null || cat version) |"
        awk -F'|' -f tests/gpu/instructions.awk "$rows"
    } >"$KILN_BUILD/gpu/instructions-${1/:/-}.md"
    echo "# the table: $KILN_BUILD/gpu/instructions-${1/:/-}.md"
}

for device in $gpus; do
    rows=${results:-$KILN_SCRATCH/instructions}.${device/:/-}
    [ -e "$rows" ] || : >"$rows"
    for program in $programs; do
        once "$program on $device" agrees "$device" "$program"
    done
    write_table "$device"
done
finish
