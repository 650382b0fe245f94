#!/bin/sh
# Writes to standard output, as assembly, the PTX that each committed cubin was assembled from, with the cubin's sha256 in
# front: what the simulated CUDA driver runs for a cubin. From the manifests of embedded/.
set -eu
awk '
function value(key,    i) {
    for (i = 1; i <= NF; i++)
        if (index($i, key "=") == 1) return substr($i, length(key) + 2)
    return ""
}
BEGIN {
    count = 0
    print "\t.section .rodata"
}
value("kind") == "cubin" {
    text = FILENAME
    sub(/manifest$/, value("parent"), text)
    digest[count] = value("sha256")
    printf ".Ltext%d:\n\t.incbin \"%s\"\n.Lend%d:\n\t.byte 0\n", count, text, count
    count++
}
END {
    print "\t.section .data.rel.ro.local,\"aw\"\n\t.balign 8"
    print "\t.globl sim_cuda_parents\n\t.hidden sim_cuda_parents\nsim_cuda_parents:"
    for (i = 0; i < count; i++) {
        printf "\t.byte "
        for (j = 0; j < 32; j++) printf "%s0x%s", j ? "," : "", substr(digest[i], 2 * j + 1, 2)
        printf "\n\t.quad .Ltext%d, .Lend%d - .Ltext%d\n", i, i, i
    }
    print "\t.globl sim_cuda_parent_count\n\t.hidden sim_cuda_parent_count\nsim_cuda_parent_count:"
    printf "\t.quad %d\n", count
    print "\t.section .note.GNU-stack,\"\",%progbits"
}' embedded/*/manifest
