# The instructions of the fired images: memory is reached 16 bytes at a time where it is aligned, as global memory, and
# nothing is kept in scratch.
. tests/tap.sh

# hold WORD FILE...: the word (a regular expression) is in every file
hold() {
    local without
    without=$(LC_ALL=C grep -LE "$@")
    [ -z "$without" ] || { echo "no $1 in: $without" && return 1; }
}

# What must be there, 16 bytes at a time: gemm and attention write single elements of tiles, argmax, sample, softmax_update,
# top_k and tree_accept numbers for each row, vector_search for each query, quantize_fp8 and its like bytes, which
# dequantize_fp8 and its like read, sample and tree_verify_sampled go over rows by elements, mha_nvfp4_fwd over blocks of
# 8 bytes, and engram_hash from number to number.
vectors_of() { # OP LOAD STORE
    case $1 in
    engram_hash | mha_nvfp4_fwd | sample | tree_verify_sampled) ;;
    dequantize_*) echo "$3" ;;
    amax | argmax | gemm | gemm_fp8 | gemm_int8 | gemm_nvfp4 | gemm_w4a16 | mha | mha_*_fwd | mha_paged | mha_quantize | mha_quantize_nvfp4 | quantize_embedding | quantize_fp8 | quantize_int8 | quantize_nvfp4 | silu_mul_* | softmax_update | top_k | tree_accept | vector_search) echo "$2" ;;
    *) echo "$2 $3" ;;
    esac
}

ptx_accesses() { # OP
    local word
    for word in $(vectors_of "$1" 'ld\.global(\.[a-z0-9_]+)*\.v4\.' 'st\.global(\.[a-z0-9_]+)*\.v4\.'); do
        hold "$word" embedded/"$1"/*.ptx || return 1
    done
    ! LC_ALL=C grep -nE '(ld|st)\.local' embedded/"$1"/*.ptx
}

# The accesses of every code object, a file each, from one listing of each target: starting the disassembler takes longer
# than most of them. (It takes the processor of the first one for all.)
list_accesses() {
    local target
    for target in $(printf '%s\n' embedded/*/*.hsaco | cut -d . -f 2 | sort -u); do
        llvm-objdump-19 -d embedded/*/*."$target".hsaco | LC_ALL=C grep -E \
            'file format elf64-amdgpu$|global_(load|store)_(dwordx4|b128)|(flat|scratch|buffer)_(load|store|atomic)' |
            awk -v folder="$KILN_SCRATCH/listings" '
                /file format elf64-amdgpu$/ { close(file); file = $1; gsub(".*/|:$", "", file); file = folder "/" file }
                { print >file }' || return 1
    done
}

hsaco_accesses() { # OP
    local word listings
    listings=(embedded/"$1"/*.hsaco)
    listings=("${listings[@]/#"embedded/$1"/"$KILN_SCRATCH/listings"}")
    for word in 'file format' $(vectors_of "$1" 'global_load_(dwordx4|b128)' 'global_store_(dwordx4|b128)'); do
        hold "$word" "${listings[@]}" || return 1
    done
    if LC_ALL=C grep -E '(flat|scratch|buffer)_(load|store|atomic)' "${listings[@]}"; then
        echo "memory is reached otherwise than as global memory or LDS"
        return 1
    fi
}

if command -v llvm-objdump-19 >/dev/null; then
    mkdir "$KILN_SCRATCH/listings"
    check "every code object is disassembled" list_accesses
fi
for op in $(scripts/targets.sh operators); do
    check "$op: 16-byte accesses in every PTX text, no local memory" ptx_accesses "$op"
    if command -v llvm-objdump-19 >/dev/null; then
        check "$op: 16-byte accesses in every code object, no flat and no scratch access" hsaco_accesses "$op"
    else
        skip "$op: 16-byte accesses in every code object" "llvm-objdump-19 is not installed (package llvm-19)"
    fi
done
finish
