# The committed images, fired again by the very compilers of the manifests: the same bytes.
. tests/tap.sh
[ "$KILN_CONFIG" = release ] || skip_all "images do not depend on config=$KILN_CONFIG; config=release fires them again"

again() { # BACKEND
    local output status
    output=$(scripts/images_check.sh again "$1" 2>&1)
    status=$?
    if [ $status = 77 ]; then
        skip "$1: fired again, the same bytes" "${output#images-check: }"
    else
        tap_result $status "$1: fired again, the same bytes" "$output"
    fi
}

again cuda
again rocm
finish
