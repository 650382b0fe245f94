# What a machine without a GPU says, with its own drivers and not the simulated ones: the CPU is opened, and the reason
# why each of the others was left is told.
. tests/tap.sh
case $KILN_CONFIG in sanitize | thread | fuzz) skip_all "a real driver's own leaks and races are not kiln's" ;; esac

info=$("$KILN_BUILD/kiln" info 2>&1)
code=$?

the_cpu_is_opened() {
    [ $code -eq 0 ] && grep -q '^  cpu: chosen$' <<<"$info"
}

left() { # BACKEND REASON
    grep -E "^  $1: skipped, $2" <<<"$info" || { echo "$info"; return 1; }
}

has_library() {
    PATH=$PATH:/sbin ldconfig -p | grep -q "$1"
}

if [ -e /dev/kfd ] || has_library 'libcuda\.so'; then
    skip_all "this machine has a GPU driver"
fi
check "the CPU is opened" the_cpu_is_opened
check "no CUDA driver is told with each name tried" left cuda 'no CUDA driver: libcuda\.so\.1: .*libcuda\.so: '
if has_library 'libhsa-runtime64\.so\.1'; then
    check "a ROCm runtime without /dev/kfd is told" left rocm 'no device: /dev/kfd is absent: hsa_init: '
else
    check "no ROCm runtime is told" left rocm '.*libhsa-runtime64\.so\.1: '
fi
finish
