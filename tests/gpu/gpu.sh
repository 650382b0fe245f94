# What the tests on this machine's GPUs share, to be sourced behind tests/tap.sh: `make check-gpu` runs them, `make check`
# does not. They use the machine's own drivers. A simulated device is none, unless KILN_GPU_DRY_RUN is set, which is for
# trying the tests themselves.
# shellcheck shell=bash
#
#   find_gpus [BACKEND]   sets gpus to the devices ("cuda:0 rocm:0"), of one backend if it is named; ends the script, as
#                         skip_all, where there is none
#   gpu_info DEVICE KEY   what `kiln info` says of one: name, target, driver

. tests/gpu/results.sh
info=$("$KILN_BUILD/kiln" info --json)

gpu_info() {
    awk -F'"' -v device="$1" -v key="$2" '
        $2 == "device" {found = $4 == device}
        found && $2 == key {print $4; exit}' <<<"$info"
}

find_gpus() {
    local device simulated=
    gpus=
    for device in $(sed -n "s/.*\"device\": \"\(${1:-[a-z]*}:[0-9]*\)\".*/\1/p" <<<"$info"); do
        case $device:$(gpu_info "$device" name) in
        cpu:*) ;;
        *:"kiln simulated"*)
            simulated=", only simulated ones"
            [ -z "${KILN_GPU_DRY_RUN-}" ] || gpus="$gpus $device"
            ;;
        *) gpus="$gpus $device" ;;
        esac
    done
    [ -n "$gpus" ] || skip_all "there is no GPU${1:+ of $1} here$simulated"
    for device in $gpus; do
        echo "# $device: $(gpu_info "$device" name), $(gpu_info "$device" target), $(gpu_info "$device" driver)"
    done
}

# A program of the operators' tests, as long as there is time. A simulator that complains has found something.
operator_runs() { # DEVICE COMMAND...
    local status
    KILN_TEST_LOG=1 KILN_TEST_DEVICES=$1 CMOCKA_MESSAGE_OUTPUT=TAP timeout "$(seconds_left)" "${@:2}" >"$KILN_SCRATCH/out" 2>&1
    status=$?
    cat "$KILN_SCRATCH/out"
    [ $status -eq 0 ] || return $status
    ! grep -q '^sim:' "$KILN_SCRATCH/out"
}
