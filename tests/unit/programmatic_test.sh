# Kernels that the bundle table lets begin before those in front of them have ended wait themselves: the kernels of a text that
# have griddepcontrol.wait are those of which the manifest says so, and none of them touches global memory before.
. tests/tap.sh

# "file kernel" of each kernel that the manifests of texts call programmatic.
stated() {
    awk '/kind=ptx/ {
        file = FILENAME "/" substr($1, 6)
        sub(/\/manifest\//, "/", file)
        for (i = 2; i <= NF; i++) if ($i ~ /^kernel=.*,programmatic=1/) {
            split($i, part, /[=,]/)
            print file, part[2]
        }
    }' embedded/*/manifest | LC_ALL=C sort
}

# The same of each kernel that waits.
waiting() {
    grep -l 'griddepcontrol\.wait' embedded/*/*.ptx | xargs -r awk '
        /^\.visible \.entry/ { name = $3; sub(/\(.*/, "", name); seen = 0 }
        /griddepcontrol\.wait/ && !seen { seen = 1; print FILENAME, name }' | LC_ALL=C sort
}

all_wait() {
    stated >"$KILN_SCRATCH/stated"
    waiting >"$KILN_SCRATCH/waiting"
    [ -s "$KILN_SCRATCH/stated" ] && diff "$KILN_SCRATCH/stated" "$KILN_SCRATCH/waiting"
}

none_is_early() {
    ! grep -l 'griddepcontrol\.wait' embedded/*/*.ptx | xargs -r awk '
        /^\.visible \.entry/ { name = $3; sub(/\(.*/, "", name); waited = 0 }
        /griddepcontrol\.wait/ { waited = 1 }
        !waited && /[[:blank:]](ld|st|atom|red)\.([a-z]+\.)*global|cp\.async\.[a-z]+\.shared|cp\.async\.bulk\.tensor/ {
            print FILENAME ": " name ": " $0
        }' | grep .
}

check "the table and the texts agree on which kernels wait" all_wait
check "no kernel touches global memory before it has waited" none_is_early
finish
