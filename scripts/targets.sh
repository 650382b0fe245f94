#!/bin/sh
# What the scripts ask of the lists: loader/targets.def (architectures), kernels/ops.def (operators) and
# loader/operators.h (parts). Needs sh and sed alone.
#
#   targets.sh nvidia            name, lowest PTX version, what a portable source ships (ptx, cubin, none)
#   targets.sh amd               name, code object version; rows that are fired
#   targets.sh cpu HOST          name; rows of a host architecture, lowest level first
#   targets.sh ptx               PTX versions and the first CUDA driver of each, in order
#   targets.sh operators         every operator
#   targets.sh parts             every part, in the order that numbers them
#   targets.sh images OP [ARCH]  what OP ships: target, kind (ptx, cubin, both, hsaco), lowest version, source file;
#                                ARCH is one target, or cuda or rocm for all of a backend. A name that is on no list
#                                prints those that are and fails.
set -eu
cd "$(dirname "$0")/.."

nvidia() {
    sed -n 's/^KILN_NVIDIA("\([^"]*\)", [0-9]*, [^,]*, \([0-9]*\)\([0-9]\), \([a-z]*\))$/\1 \2.\3 \4/p' loader/targets.def
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

parts() {
    sed -n '/^#define KILN__FLOAT_PARTS/,/[^\\]$/s/^ *X(\([a-z0-9]*\),.*/\1/p' loader/operators.h
}

# The source of an operator for a target. A tuned source carries the target in its name, without the underscore of sm_
# and with that of a generic's dashes: softmax_sm90a.cu, softmax_gfx942.c, softmax_gfx9_generic.c.
tuned() { # OP TARGET EXTENSION
    case $2 in sm_*) name=sm${2#sm_} ;; *) name=$(echo "$2" | tr - _) ;; esac
    file=kernels/$1/$1_$name.$3
    [ -f "$file" ] && echo "$file"
}

images_cuda() { # OP
    nvidia | while read -r target floor portable; do
        if source=$(tuned "$1" "$target" cu); then
            echo "$target both $floor $source"
        elif [ "$portable" != none ]; then
            echo "$target $portable $floor kernels/$1/$1_gpu.c"
        fi
    done
}

images_rocm() { # OP
    amd | while read -r target version; do
        echo "$target hsaco $version $(tuned "$1" "$target" c || echo "kernels/$1/$1_gpu.c")"
    done
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
cpu) cpu "${2:?targets.sh cpu HOST}" ;;
images)
    operators | member OP "${2:?targets.sh images OP [ARCH]}"
    case ${3:-} in
    cuda | rocm) "images_$3" "$2" ;;
    '') images_cuda "$2" && images_rocm "$2" ;;
    *)
        { echo cuda && nvidia && echo rocm && amd; } | cut -d' ' -f1 | member ARCH "$3"
        { images_cuda "$2" && images_rocm "$2"; } | sed -n "/^$3 /p"
        ;;
    esac
    ;;
*)
    sed -n '/^#   targets/s/^# *//p' "$0" >&2
    exit 2
    ;;
esac
