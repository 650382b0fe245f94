# `kiln images` against the manifests of embedded/: every linked image with its size, driver floor and registers.
. tests/tap.sh
kiln=$KILN_BUILD/kiln

# A size as the program writes it, for awk.
human='function human(size,    unit) {
    size += 0
    for (unit = 1; size >= 1024; unit++) size /= 1024
    return sprintf(unit > 1 ? "%.1f %s" : "%d %s", size, unit > 2 ? "MiB" : unit > 1 ? "KiB" : "B")
}'

# expected WORD...: the table's rows of the images whose manifest line has every word, cells apart by a bar, sorted
expected() {
    cat embedded/*/manifest | awk -v words="$*" "$human"'
        function value(text, key) {
            return match(" " text, "[ ,]" key "=[^ ,]*") ? substr(text, RSTART + length(key) + 1, RLENGTH - length(key) - 2) : ""
        }
        / role=linked / {
            split(words, word, " ")
            for (i in word) if (index(" " $0 " ", " " word[i] " ") == 0) next
            registers = spills = 0
            for (i = 1; i <= NF; i++) {
                if ($i !~ /^kernel=/) continue
                if (value($i, "registers") + 0 > registers) registers = value($i, "registers") + 0
                spills += value($i, "spills")
            }
            operator = value($0, "file")
            sub("_" value($0, "part") "[.].*", "", operator)
            driver = value($0, "driver")
            printf "%s|%s|%s|%s|%s|%s|", operator, value($0, "part"), value($0, "target"), value($0, "kind"),
                human(value($0, "size")), driver == "" ? "-" : driver
            print registers ? registers "|" spills : "-|-"
        }' | sort
}

# listed ARGUMENT...: the same rows as the program prints them, without the CPU's
listed() { "$kiln" images "$@" | sed -E '1d;$d;s/ +$//;s/ {2,}/|/g' | grep -v '|cpu|' | sort; }

same() { # EXPECTED LISTED
    [ -n "$1" ] && diff <(printf '%s\n' "$1") <(printf '%s\n' "$2")
}

# ends WORDS ARGUMENT...: the last line counts the images and their bytes
ends() {
    local last
    last=$("$kiln" images "${@:2}" | tail -n 1)
    echo "$last"
    [ "$last" = "$1" ]
}

total() { # PATTERN COUNT
    local sum linked
    sum=$(cat embedded/*/manifest | grep ' role=linked ' | grep -E -- "$1" | sed -E 's/.* size=([0-9]+) .*/\1/' |
        awk "$human"'{ sum += $1 } END { printf "%s", human(sum) }')
    linked=$(grep -H ' role=linked ' embedded/*/manifest | grep -E -- "$1" | sed -E 's|manifest:file=([^ ]*) .*|\1|' |
        while read -r file; do gzip -6 -n <"$file" | wc -c; done | awk "$human"'{ sum += $1 } END { printf "%s", human(sum) }')
    echo "$2 images, $sum, $linked as linked"
}

# Every PTX text at the lowest version of its target: any later one would shut out drivers that could run it. Products of
# E4M3 by matrix units came to PTX with version 8.4, conversions to E4M3 on sm_89 and asynchronous stores to another block
# of a cluster with 8.1, those of sm_75 by its matrix units with 6.5.
at_their_floor() {
    local status=0 target floor
    while read -r target floor _; do
        grep -h " target=$target kind=ptx " embedded/*/manifest | grep -v " ptx=$floor " |
            grep -v '^file=\(gemm_f16\|gemm_w4a16_f16\|gemm_int8_[^.]*\|mha_f16\|mha_paged_f16\)[.]sm_75[.]ptx .* ptx=6[.]5 ' |
            grep -v '^file=\(quantize_fp8_.*[.]sm_89\|\(gemm_w4a16\|sample\)_.*[.]sm_90a\)[.]ptx .* ptx=8[.]1 ' |
            grep -v '^file=\(gemm_fp8\|mha_fp8_fwd\|mha_int8_x_fp8_fwd\)_.*[.]sm_\(89\|90a\)[.]ptx .* ptx=8[.]4 ' && status=1
    done < <(scripts/targets.sh nvidia)
    return $status
}

# With the first driver that knows a chip, nothing is compiled at run time: every part gets a cubin.
compiled() {
    local target driver
    while read -r target driver; do
        "$kiln" explain --target "$target" --driver "$driver" --all |
            awk -v target="$target" '/^[a-z]/ { part = $0 } / cubin: picked/ { found++ } / ptx: picked/ { print target, part }
                END { if (!found) print target, "has no cubin" }'
    done <<<$'sm_80 12.0\nsm_86 12.0\nsm_89 12.0\nsm_90 12.0\nsm_100 12.8\nsm_120 12.8'
}
nothing_is_compiled() { diff /dev/null <(compiled); }

# The bytes of each cubin that tell a driver its container, which are those of the first driver's own assembler: OS/ABI and
# ABI version.
one_container() {
    local manifest
    for manifest in embedded/*/manifest; do
        sed -n 's/^file=\([^ ]*\) .* kind=cubin .* driver=\([^ ]*\) .*/\1 \2/p' "$manifest" |
            while read -r file driver; do echo "$driver $(od -An -tx1 -j7 -N2 "${manifest%/*}/$file")"; done
    done | sort -u | diff <(printf '%s\n' '12.0  33 07' '12.8  41 08') -
}

# small BYTES [OPERATOR...]: the images that a program links with each operator; without operators, all that there are
linked_bytes() { "$kiln" images "$@" --json | grep -o '"linked_bytes": *[0-9]*' | tail -n 1 | grep -o '[0-9]*$'; }
small() {
    local operator status=0
    for operator in "${@:2}"; do
        [ "$(linked_bytes "$operator")" -le "$1" ] || { echo "$operator" && status=1; }
    done
    [ $# -gt 1 ] || [ "$(linked_bytes)" -le "$1" ] || status=1
    return $status
}

# Those that read their operands once; the others compute, or choose over many readings.
mapfile -t operators < <(scripts/targets.sh operators)
mapfile -t memory_bound < <(printf '%s\n' "${operators[@]}" | grep -vxE '(gemm|mha)(_.*)?|sample|top_k|tree_verify_sampled|vector_search|(rmsnorm|silu_mul)_(fp8|int8|nvfp4)|(log_)?softmax|softmax_update|rope_kv_store|quantize_(fp8|int8|nvfp4)')

check "every PTX text can be read by the first driver of its target" at_their_floor
check "nothing is compiled at run time from the first driver on that knows the chip" nothing_is_compiled
check "the container of every cubin is that of its first driver's assembler" one_container
check "288 KiB of images at most for an operator that memory bounds" small $((288 * 1024)) "${memory_bound[@]}"
check "512 KiB of images at most for those that hold a row in registers from sm_80 on, and quantise it" \
    small $((512 * 1024)) rmsnorm_fp8 rmsnorm_int8 rmsnorm_nvfp4
check "576 KiB of images at most for NVFP4 that AMD's devices, too, make of such rows" small $((576 * 1024)) silu_mul_nvfp4
check "640 KiB of images at most for those that compute an activation exactly for such rows, on AMD's devices, too" \
    small $((640 * 1024)) silu_mul_fp8 silu_mul_int8
check "384 KiB of images at most for those that hold long rows: in a cluster on sm_90a, or 32 KiB of them in a block" \
    small $((384 * 1024)) softmax log_softmax softmax_update
check "384 KiB of images at most for what is two such operators" small $((384 * 1024)) rope_kv_store
check "512 KiB of images at most for codes of NVFP4 of x along either axis, with kernels for whole tiles" \
    small $((512 * 1024)) quantize_nvfp4
check "720 KiB of images at most for those that make codes of 8 bits of x along either axis, likewise" \
    small $((720 * 1024)) quantize_fp8 quantize_int8
check "3 MiB at most for any: mha_paged has kernels of nine instruction sets" small $((3 * 1024 * 1024)) "${operators[@]}"
check "34 MiB at most for all" small $((34 * 1024 * 1024))
check "every image of every operator" same "$(expected)" "$(listed)"
check "the images of one operator" same "$(expected kind=ptx part=f16 | grep '^softmax|')" \
    "$(listed softmax | grep '|f16|.*|ptx|')"
check "the images of one target" same "$(expected target=sm_90)" "$(listed --target sm_90)"
check "they are counted and added up" ends "$(total ' target=sm_90 ' "$(expected target=sm_90 | wc -l)")" --target sm_90
check "the CPU's levels are listed, which are no bytes" ends "$("$kiln" images | grep -c ' x86-64-v3 ') images, 0 B, 0 B as linked" --target x86-64-v3
if command -v python3 >/dev/null; then
    check "JSON says of every image and kernel what the manifests say" \
        python3 tests/cli/images_test.py <("$kiln" images --json) embedded/*/manifest
else
    skip "JSON says of every image and kernel what the manifests say" "no python3"
fi
refuse "a target that no operator has an image for is told by the exit code" "$kiln" images --target sm_121a
finish
