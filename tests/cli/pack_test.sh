# kiln pack: what it refuses, and that what it writes compiles, links and runs.
. tests/tap.sh
kiln=$KILN_BUILD/kiln
example=docs/examples/bring-your-own-kernel
out=$KILN_SCRATCH/out.c
ptx=$example/saxpy.sm_75.ptx
cubin=$example/saxpy.sm_90.cubin
hsaco=$example/saxpy.gfx942.hsaco

# fails STATUS WORDS OPERAND...: kiln pack ends with the status, says the words in one line and writes nothing
fails() {
    local status=$1 words=$2 output
    shift 2
    rm -f "$out"
    output=$("$kiln" pack --name mine --out "$out" "$@" 2>&1)
    set -- $?
    printf '%s\n' "$output"
    [ "$1" = "$status" ] && [ ! -e "$out" ] && [ "$(printf '%s\n' "$output" | wc -l)" = 1 ] &&
        printf '%s\n' "$output" | grep -qF -- "$words"
}

check "text for another target" fails 1 "not an image for sm_80 but a ptx for sm_75" sm_80=$ptx
check "a plain cubin given as one for a chip alone" fails 1 "not an image for sm_90a but a cubin for sm_90" sm_90a=$cubin
check "a cubin for another target" fails 1 "not an image for sm_80 but a cubin for sm_90" sm_80=$cubin
check "a code object for another processor" fails 1 "not an image for gfx90a but a hsaco for gfx942" gfx90a=$hsaco
check "a code object that leaves xnack open, given as one that does not" fails 1 "not an image for gfx942:xnack-" \
    gfx942:xnack-=$hsaco
check "a code object for an NVIDIA target" fails 1 "not an image for sm_75 but a hsaco for gfx942" sm_75=$hsaco
check "text for an AMD target" fails 1 "not an image for gfx942 but a ptx for sm_75" gfx942=$ptx

head -c 2000 $cubin >"$KILN_SCRATCH/short.cubin"
check "a truncated cubin" fails 1 "short.cubin: " sm_90="$KILN_SCRATCH/short.cubin"
check "a file that is no image" fails 1 "README.md: " sm_75=$example/README.md
sed 's/\.version 6\.3/.version 99.9/' $ptx >"$KILN_SCRATCH/new.ptx"
check "text of a version that is not known" fails 1 "99.9" sm_75="$KILN_SCRATCH/new.ptx"
sed 's/saxpy/daxpy/g' $ptx >"$KILN_SCRATCH/daxpy.ptx"
check "another kernel in one image" fails 1 "kernel saxpy is in the cubin for sm_90 and not in the ptx for sm_75" \
    sm_90=$cubin sm_75="$KILN_SCRATCH/daxpy.ptx"
sed 's/saxpy_param_0\[32\]/saxpy_param_0[40]/' $ptx >"$KILN_SCRATCH/larger.ptx"
check "other arguments in one image" fails 1 "kernel saxpy takes 40 bytes of arguments in the ptx for sm_75" \
    sm_90=$cubin sm_75="$KILN_SCRATCH/larger.ptx"
check "a CPU level that lacks a kernel" fails 1 "kernel saxpy is in the ptx for sm_75 and not in the cpu for x86-64-v2" \
    sm_75=$ptx x86-64-v2:daxpy=daxpy_cpu

check "two files of a kind for one target" fails 2 "there are two files of this kind for sm_75" sm_75=$ptx sm_75=$ptx
check "a function that is given twice" fails 2 "is given twice" x86-64-v2:saxpy=a x86-64-v2:saxpy=b
check "a function that is not a C identifier" fails 2 "not a C identifier" "x86-64-v2:saxpy=a;b"
check "a file for a CPU target" fails 2 "is given as x86-64-v2:KERNEL=FUNCTION" x86-64-v2=$ptx
check "an unknown target" fails 2 "is not known" sm9=$ptx
check "an operand without a value" fails 2 "neither TARGET=FILE nor LEVEL:KERNEL=FUNCTION" sm_75
check "a file that is not there" fails 2 "cannot open" sm_75=absent.ptx
mkfifo "$KILN_SCRATCH/fifo"
check "a pipe" fails 2 "not a regular file" sm_75="$KILN_SCRATCH/fifo"
refuse "a name that is not a C identifier" "$kiln" pack --name my-kernels --out "$out" sm_75=$ptx
refuse "no images" "$kiln" pack --name mine --out "$out"

cp $ptx "$KILN_SCRATCH/ended.ptx" && printf '\0' >>"$KILN_SCRATCH/ended.ptx"
check "text that ends with NUL" "$kiln" pack --name mine --out "$out" sm_75="$KILN_SCRATCH/ended.ptx"
check "all kinds" "$kiln" pack --name mine --out "$out" sm_75=$ptx sm_90=$cubin gfx942=$hsaco x86-64-v2:saxpy=saxpy_cpu
check "what is written is strict C11 that needs the public header alone" \
    "${CC:-cc}" -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Werror -Iinclude -c -o "$KILN_SCRATCH/out.o" "$out"

# A mangled name of 301 bytes, the same in all formats.
images=tests/unit/images
mangled=$(sed -n 's/^\.visible \.entry \(.*\)($/\1/p' $images/long_name.ptx)
long_names() {
    [ ${#mangled} -gt 300 ] || return 1
    "$kiln" pack --name mine --out "$out" sm_75=$images/long_name.ptx sm_90=$images/long_name.cubin \
        gfx942=$images/long_name.hsaco "x86-64-v2:$mangled=scale_cpu" || return 1
    [ "$(grep -cF "{.name = \"$mangled\", .arguments_size = 24" "$out")" = 4 ] || return 1
    "${CC:-cc}" -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Werror -Iinclude -c -o "$KILN_SCRATCH/out.o" "$out"
}
check "a name of 301 bytes in all kinds" long_names
check "a name that differs in its last byte" fails 1 "kernel $mangled is in the ptx for sm_75 and not in the cpu" \
    sm_75=$images/long_name.ptx "x86-64-v2:${mangled}x=scale_cpu"
check "a function for a kernel without a name" fails 2 "the kernel has no name" "x86-64-v2:=scale_cpu"

check "the example runs its kernel" "$KILN_BUILD/examples/bring-your-own-kernel"
finish
