# shellcheck shell=bash
# What firing and checking share: the flags, the source hash, the manifest's lines. Sourced from the repository root.

# The flags of an image: a function of what is fired alone, so that a change of them is seen without any compiler. -c is for
# ccache, which takes the rest for a link.
fire_flags() { # PART TARGET KIND VERSION
    case $3 in
    # -fmad=false writes mul.rn and add.rn, which the driver's compiler may not contract either.
    ptx) echo "-c -x cu -std=c++17 -O3 -ptx -fmad=false -arch=$2 -I. -DKILN_PART_$1=1" ;;
    cubin) echo "-O3 -arch=$2" ;;
    # HIP mode, since C mode refuses the work-group bound; without -fuse-cuid=none the bytes depend on the folder.
    hsaco)
        echo "-c -x hip --cuda-device-only -nogpuinc -nogpulib --no-gpu-bundle-output -fuse-cuid=none -ffp-contract=off" \
            "-std=c++17 -O3 --offload-arch=$2 -mcode-object-version=$4 -I. -DKILN_PART_$1=1"
        ;;
    esac
}

# The images that a target's row stands for (targets.sh images): kind and role of each.
fire_kinds() { # KIND
    case $1 in
    ptx) echo "ptx linked" ;;
    cubin) printf '%s\n' "ptx parent" "cubin linked" ;;
    both) printf '%s\n' "ptx linked" "cubin linked" ;;
    hsaco) echo "hsaco linked" ;;
    esac
}

# Every file of ours that a source includes, itself among them.
fire_inputs() { # SOURCE
    local files="" next=$1
    while [ "$files" != "$next" ]; do
        files=$next
        # shellcheck disable=SC2086
        next=$({ echo "$1" && sed -n 's/^ *# *include "\(.*\)".*/\1/p' $files; } | LC_ALL=C sort -u)
    done
    echo "$files"
}

# What a source says: the name and the bytes of each of its inputs, read once a shell. The dot keeps the last newline.
declare -A fire_texts
fire_read() { # SOURCE
    [ -n "${fire_texts[$1]:-}" ] ||
        fire_texts[$1]=$(fire_inputs "$1" | while read -r file; do echo "$file" && cat "$file"; done && echo .)
}

# The hash of all that decides an image's bytes, the compilers apart.
fire_source_hash() { # SOURCE FLAGS
    fire_read "$1"
    printf '%s\n%s' "$2" "${fire_texts[$1]%.}" | sha256sum | cut -c1-64
}

# The compilers that make a kind of image, as the manifest names them: "nvcc-13.0.88,ptxas-13.0.88" (the assembler decides
# the text's version), "ptxas-13.0.88", "clang-19.1.7-3~deb12u1,lld-19.1.7".
fire_compiler() { # KIND
    case $1 in
    ptx) echo "$(nvcc --version | sed -n 's/.*, V\(.*\)/nvcc-\1/p'),$(fire_compiler cubin)" ;;
    cubin) ptxas --version | sed -n 's/.*, V\(.*\)/ptxas-\1/p' ;;
    hsaco)
        clang-19 --version | sed -n '1s/.*version \([^ ]*\)\( (\(.*\))\)\{0,1\}$/clang-\1-\3/p' | tr '\n' ','
        ld.lld-19 --version | sed 's/.*LLD \([^ ]*\).*/lld-\1/'
        ;;
    esac
}

# The size and the SHA-256 of a file.
fire_digest() { # FILE
    echo "$(wc -c <"$1") $(sha256sum "$1" | cut -c1-64)"
}

# Writes the manifest's line for an image beside it. FIELDS hold kind=.
fire_line() { # DIR FILE FIELDS SOURCE FLAGS KERNELS
    local kind=${3#*kind=} size digest
    read -r size digest < <(fire_digest "$1/$2")
    echo "file=$2 $3 source=$(fire_source_hash "$4" "$5") compiler=$(fire_compiler "${kind%% *}") flags=${5// /,}" \
        "size=$size sha256=$digest $6" >"$1/$2.line"
}
