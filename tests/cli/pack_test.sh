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
newer() {
    local said
    sed 's/\.version 6\.3/.version 9.4/' $ptx >"$KILN_SCRATCH/triton.ptx"
    said=$("$kiln" pack --name mine --out "$out" sm_75="$KILN_SCRATCH/triton.ptx" 2>&1) || return 1
    echo "$said"
    [[ $said == *"PTX 9.4 is newer than this kiln knows: taken to need a driver of CUDA 13.4" ]] &&
        grep -q 'driver_version = 13040' "$out"
}
check "text of a version that came later is taken, which is said" newer

{ cat $ptx && echo '.extern .func (.param .b32 r) missing_one (.param .b32 a);' &&
    echo '.visible .func other(){ call (r), missing_one, (a); }'; } >"$KILN_SCRATCH/extern.ptx"
check "text that lacks a function which it calls" fails 1 "function missing_one is declared .extern, used and not defined" \
    sm_75="$KILN_SCRATCH/extern.ptx"
sed '/^\.visible .func/d; s/missing_one/vprintf/' "$KILN_SCRATCH/extern.ptx" >"$KILN_SCRATCH/printf.ptx"
echo '.visible .func other(){ call (r), vprintf, (a); }' >>"$KILN_SCRATCH/printf.ptx"
check "a function of the driver's may be missing" "$kiln" pack --name mine --out "$out" sm_75="$KILN_SCRATCH/printf.ptx"
{ cat "$KILN_SCRATCH/extern.ptx" && echo '.visible .func (.param .b32 r) missing_one (.param .b32 a) { ret; }'; } \
    >"$KILN_SCRATCH/defined.ptx"
check "a function may be defined behind its use" "$kiln" pack --name mine --out "$out" sm_75="$KILN_SCRATCH/defined.ptx"

# A name is refused, with the reason in one line, or what is written compiles as C11 and as C++.
names_compile() {
    local name count=0 output
    for name in images parts kernels_0 image_0 kernel_names linked mine x NULL int32_t size_t offsetof if class new \
        alignas and main printf read environ linux unix INT8_MAX UINT64_C SIZE_MAX _x a__b kiln_softmax wchar_t bool true; do
        rm -f "$out"
        if output=$("$kiln" pack --name "$name" --out "$out" sm_75=$ptx "x86-64-v2:saxpy=saxpy_cpu" 2>&1); then
            "${CC:-cc}" -std=gnu11 -Wall -Wextra -Werror -Iinclude -c -o "$KILN_SCRATCH/out.o" "$out" || return 1
            compiles_as_cpp "$name" || return 1
            count=$((count + 1))
        else
            [ ! -e "$out" ] && [[ $output == "kiln: pack: --name $name: is "* ]] || { echo "$name: $output" && return 1; }
        fi
    done
    [ "$count" = 8 ] || { echo "$count names were taken" && return 1; }
}
compiles_as_cpp() { # NAME
    command -v c++ >/dev/null || return 0
    c++ -std=c++11 -x c++ -Wall -Wextra -Wpedantic -Werror -Iinclude -c -o "$KILN_SCRATCH/cpp.o" "$out" &&
        c++ -std=c++20 -x c++ -Wall -Wextra -Wpedantic -Werror -Iinclude -c -o "$KILN_SCRATCH/cpp.o" "$out" &&
        nm "$KILN_SCRATCH/cpp.o" | grep -q "[RD] $1\$"
}
check "each name is taken by a compiler, or refused" names_compile
check "a function with a name of the bundle's own" fails 2 "the bundle has that name itself" sm_75=$ptx \
    x86-64-v2:saxpy=mine_images
check "a function with the bundle's name" fails 2 "the bundle has that name itself" sm_75=$ptx x86-64-v2:saxpy=mine
check "a function with a keyword for its name" fails 2 "is a keyword" sm_75=$ptx x86-64-v2:saxpy=template

keeps_inputs() {
    cp $ptx "$KILN_SCRATCH/kept.ptx" && ln -s kept.ptx "$KILN_SCRATCH/link.ptx"
    ! "$kiln" pack --name mine --out "$KILN_SCRATCH/kept.ptx" sm_75="$KILN_SCRATCH/link.ptx" 2>"$KILN_SCRATCH/said" &&
        grep -q 'is the image for sm_75' "$KILN_SCRATCH/said" && cmp $ptx "$KILN_SCRATCH/kept.ptx"
}
check "no image is written over" keeps_inputs

refuse "a name that is not a C identifier" "$kiln" pack --name my-kernels --out "$out" sm_75=$ptx
refuse "no images" "$kiln" pack --name mine --out "$out"

cp $ptx "$KILN_SCRATCH/ended.ptx" && printf '\0' >>"$KILN_SCRATCH/ended.ptx"
check "text that ends with NUL" "$kiln" pack --name mine --out "$out" sm_75="$KILN_SCRATCH/ended.ptx"
check "all kinds" "$kiln" pack --name mine --out "$out" sm_75=$ptx sm_90=$cubin gfx942=$hsaco x86-64-v2:saxpy=saxpy_cpu
check "what is written is C++, too" compiles_as_cpp mine
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
