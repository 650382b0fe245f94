# The instructions of the fired images: memory is reached 16 bytes at a time where it is aligned, as global memory, and
# nothing is kept in scratch.
. tests/tap.sh

# holds FILE WORD...: every word (a regular expression) is in it
holds() {
    local word
    for word in "${@:2}"; do
        grep -qE "$word" "$1" || { echo "$1: no $word" && return 1; }
    done
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
    local file
    for file in embedded/"$1"/*.ptx; do
        # shellcheck disable=SC2046
        holds "$file" $(vectors_of "$1" 'ld\.global(\.[a-z0-9_]+)*\.v4\.' 'st\.global(\.[a-z0-9_]+)*\.v4\.') || return 1
        if grep -nE '(ld|st)\.local' "$file"; then
            echo "$file: has local memory"
            return 1
        fi
    done
}

# One listing of a target's code objects, since starting the disassembler takes longer than most of them; then a file of it
# each. (The disassembler takes the processor of the first one for all.)
hsaco_accesses() { # OP
    local file target
    rm -rf "$KILN_SCRATCH/listings"
    mkdir "$KILN_SCRATCH/listings"
    for target in $(printf '%s\n' embedded/"$1"/*.hsaco | cut -d . -f 2 | sort -u); do
        llvm-objdump-19 -d embedded/"$1"/*."$target".hsaco
    done | awk -v folder="$KILN_SCRATCH/listings" '
        /file format elf64-amdgpu$/ { file = $1; gsub(".*/|:$", "", file) }
        file != "" { print >(folder "/" file) }'
    for file in embedded/"$1"/*.hsaco; do
        file=$KILN_SCRATCH/listings/${file##*/}
        # shellcheck disable=SC2046
        holds "$file" $(vectors_of "$1" 'global_load_(dwordx4|b128)' 'global_store_(dwordx4|b128)') || return 1
        if grep -E '(flat|scratch|buffer)_(load|store|atomic)' "$file"; then
            echo "$file: reaches memory otherwise than as global memory or LDS"
            return 1
        fi
    done
}

for op in $(scripts/targets.sh operators); do
    check "$op: 16-byte accesses in every PTX text, no local memory" ptx_accesses "$op"
    if command -v llvm-objdump-19 >/dev/null; then
        check "$op: 16-byte accesses in every code object, no flat and no scratch access" hsaco_accesses "$op"
    else
        skip "$op: 16-byte accesses in every code object" "llvm-objdump-19 is not installed (package llvm-19)"
    fi
done
finish
