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

# What each file says, and which of ours it includes, read once a shell.
declare -A fire_files fire_includes
fire_file() { # FILE
    [ -z "${fire_files[$1]:-}" ] || return 0
    local text
    text=$(cat "$1" && echo .) # the dot keeps the last newline
    fire_files[$1]=${text%.}
    fire_includes[$1]=$(sed -n 's/^ *# *include "\(.*\)".*/\1/p' "$1")
}

# What a source says: the name and the bytes of each of its inputs, itself and every file of ours that it includes, by
# their names. Read once a shell.
declare -A fire_texts
fire_read() { # SOURCE
    [ -z "${fire_texts[$1]:-}" ] || return 0
    local file text='' left=("$1")
    local -A seen
    while [ ${#left[@]} -gt 0 ]; do
        file=${left[0]} left=("${left[@]:1}")
        [ -z "${seen[$file]:-}" ] || continue
        seen[$file]=1
        fire_file "$file"
        # shellcheck disable=SC2206
        left+=(${fire_includes[$file]})
    done
    while read -r file; do text+=$file$'\n'${fire_files[$file]}; done < <(printf '%s\n' "${!seen[@]}" | LC_ALL=C sort)
    fire_texts[$1]=$text
}

# The hash of all that decides an image's bytes, the compilers apart.
fire_source_hash() { # SOURCE FLAGS
    fire_read "$1"
    fire_hashed "$1" "$2" | sha256sum | cut -c1-64
}

# What that is the hash of, of a source that was read.
fire_hashed() { # SOURCE FLAGS
    printf '%s\n%s' "$2" "${fire_texts[$1]}"
}

# The compilers that make a kind of image, as the manifest names them: "nvcc-13.0.88,ptxas-13.0.88" (the assembler decides
# the text's version), "ptxas-12.0.140", "clang-19.1.7-3~deb12u1,lld-19.1.7".
fire_compiler() { # KIND VERSION
    case $1 in
    ptx) nvcc --version | sed -n 's/.*, V\(.*\)/nvcc-\1/p' | tr '\n' ',' && ptxas --version | sed -n 's/.*, V\(.*\)/ptxas-\1/p' ;;
    cubin) echo "ptxas-$2" ;;
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

# The first CUDA driver that loads a cubin: of the assembler's major release, the first that knows the chip, which is the
# release in the row of the plain target. NVIDIA's rule (CUDA Compatibility, "Minor Version Compatibility") covers machine
# code of every toolkit of a major release on every driver of it, texts not. The rows are read once a shell.
fire_nvidia=$(scripts/targets.sh nvidia)
fire_cubin_driver() { # TARGET ASSEMBLER
    local target first
    while read -r target _ _ first; do [ "$target" != "${1%[af]}" ] || break; done <<<"$fire_nvidia"
    [ "${first%%.*}" = "${2%%.*}" ] || first=$2
    echo "${first%.*}"
}

# What decides an image's bytes, as its source hash has it: a cubin's text is made with that text's flags.
fire_all_flags() { # PART TARGET KIND VERSION PARENT
    [ "$3" != cubin ] || printf '%s ' "$(fire_flags "$1" "$5" ptx -)"
    fire_flags "$1" "$2" "$3" "$4"
}

# Writes the manifest's line for an image beside it. FIELDS hold kind=.
fire_line() { # DIR FILE FIELDS SOURCE FLAGS VERSION KERNELS
    local kind=${3#*kind=} size digest
    read -r size digest < <(fire_digest "$1/$2")
    echo "file=$2 $3 source=$(fire_source_hash "$4" "$5") compiler=$(fire_compiler "${kind%% *}" "$6") flags=${5// /,}" \
        "size=$size sha256=$digest $7" >"$1/$2.line"
}

# Of each entry of a text: arguments and threads from the text; registers and shared memory from the assembler's report (the
# text itself has no register count). Fails on a spill, and where the assembler serialises matrix products or ignores
# setmaxnreg.
fire_cuda_kernels() { # NAME TEXT REPORT
    awk -v name="$1" '
        /\.entry / { kernel = $0; sub(/.*\.entry */, "", kernel); sub(/[( ].*/, "", kernel) }
        /^\t\.param / { parameters[kernel]++; size = $0; sub(/.*\[/, "", size); arguments[kernel] = size + 0 }
        /^\.maxntid / { gsub(/,/, ""); threads[kernel] = $2 * ($3 ? $3 : 1) * ($4 ? $4 : 1) }
        /Function properties for / { kernel = $NF }
        /bytes stack frame/ { local[kernel] = $1 + $5 + $9 }
        /Potential Performance Loss/ { fault = $0 }
        /: Used / { registers[kernel] = $5; for (i = 6; i < NF; i++) if ($(i + 1) == "bytes" && $(i + 2) ~ /^smem/) shared[kernel] = $i }
        END {
            for (kernel in parameters) {
                if (parameters[kernel] != 1 || !arguments[kernel]) fault = kernel " does not take one struct by value"
                if (!(kernel in registers)) fault = "the assembler does not report " kernel
                if (local[kernel]) fault = kernel " spills or has a stack: " local[kernel] " bytes"
                printf "kernel=%s,registers=%d,spills=%d,shared=%d,threads=%d,arguments=%d\n", kernel, registers[kernel],
                    local[kernel], shared[kernel], threads[kernel], arguments[kernel]
            }
            if (fault) { print name ": " fault | "cat >&2"; exit 1 }
        }' "$2" "$3" | LC_ALL=C sort
}

# Adds to each kernel the shape that a tuned source says of it (kernels/common/tuned.h), and joins the lines.
fire_shapes() { # SOURCE PART
    awk -v part="$2" '
        NR == FNR {
            if (!/^KILN_(SHAPE|STAGES|CLUSTER|PROGRAMMATIC|TENSOR_MAPS)\(/) next
            row = $0
            gsub(/^KILN_|\(.*/, "", row)
            gsub(/^[^(]*\(|\)$|,/, "")
            kernel = "kiln_" $1 "_" part
            if (row == "SHAPE") shape[kernel] = sprintf(",tile=%dx%dx%d,stage=%d,rate=%d", $2, $3, $4, $5, $6) shape[kernel]
            if (row == "STAGES") shape[kernel] = shape[kernel] ",stages=" $2
            if (row == "CLUSTER") shape[kernel] = shape[kernel] ",cluster=" $2
            if (row == "PROGRAMMATIC") shape[kernel] = shape[kernel] ",programmatic=1"
            if (row == "TENSOR_MAPS") {
                shape[kernel] = shape[kernel] ",maps=" $2
                for (i = 3; i <= NF; i++) shape[kernel] = shape[kernel] ":" $i
            }
            next
        }
        { split($0, name, /[=,]/); printf "%s%s%s", (FNR > 1 ? " " : ""), $0, shape[name[2]] }' "$1" -
}
