#!/bin/sh
# What the scripts ask of the lists: loader/targets.def (architectures), kernels/ops.def (operators) and
# kernels/common/operators.h (parts). Needs sh and sed alone.
#
#   targets.sh nvidia            name, lowest PTX version, what a portable source ships (ptx, cubin, both, none), assembler
#   targets.sh amd               name, code object version; rows that are fired
#   targets.sh cpu HOST          name; rows of a host architecture, lowest level first
#   targets.sh ptx               PTX versions and the first CUDA driver of each, in order
#   targets.sh operators         every operator
#   targets.sh parts             every part, in the order that numbers them
#   targets.sh kernels OP        every kernel of OP, those that only tuned images have as tuned:NAME
#   targets.sh images OP [ARCH]  what OP ships, a line each: target, kind (ptx, cubin, hsaco), part, version, source file,
#                                parent. The version is a text's lowest one, a cubin's assembler, an HSACO's code object's;
#                                the parent is the target of the text that a cubin is assembled from, else -. ARCH is one
#                                target, with the texts of its cubins, or cuda or rocm for all of a backend. A name that
#                                is on no list prints those that are and fails.
set -eu
cd "$(dirname "$0")/.."

nvidia() {
    sed -n 's/^KILN_NVIDIA("\([^"]*\)", [0-9]*, [^,]*, \([0-9]*\)\([0-9]\), \([a-z]*\), "\([0-9.]*\)")$/\1 \2.\3 \4 \5/p' loader/targets.def
}

amd() {
    sed -n 's/^KILN_AMD("\([^"]*\)", .*, \([0-9]*\), 1)$/\1 \2/p' loader/targets.def
}

cpu() {
    sed -n 's/^KILN_CPU("\([^"]*\)", '"$1"', .*/\1/p' loader/targets.def
}

ptx() {
    sed -n 's/^KILN_PTX(\([0-9]*\)\([0-9]\), \([0-9]*\)0\([0-9]\)0)$/\1.\2 \3.\4/p' loader/targets.def
}

operators() {
    sed -n 's/^KILN_OPERATOR(\([a-z0-9_]*\)).*/\1/p' kernels/ops.def
}

kernels() { # OP
    sed -n -e 's/^KILN_KERNEL(\([a-z0-9_]*\)[,)].*/\1/p' -e 's/^KILN_TUNED_KERNEL(\([a-z0-9_]*\)[,)].*/tuned:\1/p' "kernels/$1/$1.def"
}

parts() {
    sed -n '/^#define KILN__FLOAT_PARTS/,/[^\\]$/s/^ *X(\([a-z0-9]*\),.*/\1/p' kernels/common/operators.h
}

# The source of an operator for a target. A tuned source carries the target in its name, without the underscore of sm_
# and with that of a generic's dashes: softmax_sm90a.cu, softmax_gfx942.c, softmax_gfx9_generic.c; it says for which parts
# it is (kernels/common/tuned.h). One that is for a part alone may carry its name too: gemm_sm90a_f32.cu.
tuned() { # OP TARGET EXTENSION PART; leaves it in file
    case $2 in
    sm_*) name=sm${2#sm_} ;;
    *-*) name=${2%%-*}_${2#*-} ;;
    *) name=$2 ;;
    esac
    case $name in *-*) name=${name%%-*}_${name#*-} ;; esac
    file=kernels/$1/${1}_${name}_$4.$3
    [ -f "$file" ] || file=kernels/$1/$1_$name.$3
    [ -f "$file" ] && grep -q "^KILN_TUNED_PARTS(.*\<$4\>.*)" "$file"
}

# The assembler that a tuned source names (kernels/arch/sm89.h), or nothing.
asked() { # SOURCE
    sed -n 's/^KILN_TUNED_ASSEMBLER(\(.*\))$/\1/p' "$1"
}

newer() { # VERSION VERSION
    [ "$1" != "${2:-$1}" ] || { echo "$1" && return; }
    printf '%s\n' "$@" | sort -V | tail -n 1
}

# A plain target takes the text of the nearest row above: a tuned one where there is any, else a portable one. It ships
# nothing where its chip or its family has a tuned source of its own (sm_90 beside sm_90a, sm_120 beside sm_120f): that
# one's cubin is taken before, and drivers that are too old for it compile a text.
images_cuda() { # OP
    for part in $(parts); do
        nvidia | {
            text='' text_source='' is_tuned='' needed=''
            while read -r target floor portable assembler; do
                plain=1
                case $target in *[af]) plain= ;; esac
                if tuned "$1" "$target" cu "$part"; then
                    source=$file
                    own=$(asked "$source")
                    assembler=$(newer "$assembler" "$own")
                    echo "$target ptx $part $floor $source -"
                    echo "$target cubin $part $assembler $source $target"
                    [ -z "$plain" ] || { text=$target text_source=$source is_tuned=1 needed=$own; }
                    continue
                fi
                [ "$portable" != none ] || continue
                ! tuned "$1" "${target}a" cu "$part" || continue
                ! tuned "$1" "${target}f" cu "$part" || continue
                case $portable:$is_tuned in
                ptx: | both:)
                    text=$target text_source=kernels/$1/$1_gpu.c
                    echo "$target ptx $part $floor $text_source -"
                    ;;
                esac
                [ "$portable" = ptx ] || echo "$target cubin $part $(newer "$assembler" "$needed") $text_source $text"
            done
        }
    done
}

images_rocm() { # OP
    for part in $(parts); do
        amd | while read -r target version; do
            tuned "$1" "$target" c "$part" || file=kernels/$1/$1_gpu.c
            echo "$target hsaco $part $version $file -"
        done
    done
}

# The lines of a target, and of the texts that its cubins are assembled from.
of_target() { # TARGET
    awk -v target="$1" '
        { line[NR] = $0; at[NR] = $1 " " $2 " " $3 }
        $1 == target { want[NR] = 1; if ($2 == "cubin") text[$6 " ptx " $3] = 1 }
        END { for (i = 1; i <= NR; i++) if (i in want || at[i] in text) print line[i] }'
}

member() { # KIND NAME, the list on standard input
    list=$(cat)
    if ! echo "$list" | grep -qxF -- "$2"; then
        echo "$1=$2 is none of: $(echo "$list" | tr '\n' ' ')" >&2
        exit 2
    fi
}

case ${1:-} in
nvidia | amd | ptx | operators | parts) "$1" ;;
kernels) kernels "${2:?targets.sh kernels OP}" ;;
cpu) cpu "${2:?targets.sh cpu HOST}" ;;
images)
    operators | member OP "${2:?targets.sh images OP [ARCH]}"
    case ${3:-} in
    cuda | rocm) "images_$3" "$2" ;;
    '') images_cuda "$2" && images_rocm "$2" ;;
    *)
        { echo cuda && nvidia && echo rocm && amd; } | cut -d' ' -f1 | member ARCH "$3"
        { images_cuda "$2" && images_rocm "$2"; } | of_target "$3"
        ;;
    esac
    ;;
*)
    sed -n '/^#   targets/s/^# *//p' "$0" >&2
    exit 2
    ;;
esac
