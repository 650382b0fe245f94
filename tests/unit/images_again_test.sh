# Committed images fired again by the very compilers of the manifests: the same bytes. A sample, one operator for one
# target of each backend; `make images-check` fires all of them.
. tests/tap.sh
[ "$KILN_CONFIG" = release ] || skip_all "images do not depend on config=$KILN_CONFIG; config=release fires them again"

again() { # BACKEND OP TARGET
    local output status
    output=$(scripts/images_check.sh again "$@" 2>&1)
    status=$?
    if [ $status = 77 ]; then
        skip "$*: fired again, the same bytes" "${output#images-check: }"
    else
        tap_result $status "$*: fired again, the same bytes" "$output"
    fi
}

again cuda softmax sm_90a
again rocm softmax gfx1100
finish
