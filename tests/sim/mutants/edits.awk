# Instructions to mutants. Reads lines "PLACE INSTRUCTION" of an image; writes "PLACE KIND NUMBER EDIT<tab>INSTRUCTION"
# for each edit: a barrier, a wait, a fence or a cache's invalidation is "removed", an integer comparison holds "always" or
# "never". The number counts the image's instructions of the kind. vendor is ptx or amd. Comparisons of floating-point
# numbers guard no access and are left as they are.

function edit(kind, name) {
    printf "%s %s %d %s\t%s\n", place, kind, count[kind], name, text
}

function remove(kind) {
    count[kind]++
    edit(kind, "removed")
}

function compare() {
    count["comparison"]++
    edit("comparison", "always")
    edit("comparison", "never")
}

# Whether a type of either vendor ("u32", "s64", "i16") is one of integers.
function is_integer(type) {
    return type ~ /^[busi](16|32|64)$/
}

{
    place = $1
    text = substr($0, index($0, " ") + 1)
    gsub(/[ \t]+/, " ", text)
    sub(/^ /, "", text)
}

# ---- PTX: "@%p1 setp.ge.u32 %p2, %r1, %r2;" ----

vendor == "ptx" && text ~ /^(@!?%p[0-9]+ )?(bar|barrier)\./ { remove("barrier") }

vendor == "ptx" && text ~ /^(@!?%p[0-9]+ )?(membar|fence|wgmma\.fence)\./ { remove("fence") }

vendor == "ptx" && text ~ /^(@!?%p[0-9]+ )?wgmma\.wait_group/ { remove("wait") }

vendor == "ptx" && text ~ /^(@!?%p[0-9]+ )?setp\./ {
    guard = match(text, /^@!?%p[0-9]+ /) ? substr(text, 1, RLENGTH) : ""
    split(substr(text, length(guard) + 1), word, " ")
    parts = split(word[1], part, ".")
    if (!is_integer(part[parts])) next
    if (parts != 3 || word[2] !~ /^%p[0-9]+,$/) {
        print "edits.awk: a comparison of unknown form: " text >"/dev/stderr"
        failed = 1
        exit
    }
    compare()
}

# ---- AMD: "v_cmp_ge_u32_e32 vcc, v0, v1", "v_cmpx_gt_u32_e64 v0, v1", "s_cmp_lg_u32 s0, 0" ----

vendor == "amd" && text ~ /^s_barrier/ { remove("barrier") }

vendor == "amd" && text ~ /^s_waitcnt_depctr/ { remove("dependency") }

vendor == "amd" && text ~ /^s_wait/ && text !~ /^s_waitcnt_depctr/ { remove("wait") }

vendor == "amd" && text ~ /^(buffer_inv|buffer_gl[01]_inv|global_inv)/ { remove("invalidation") }

vendor == "amd" && text ~ /^(buffer_wb|global_wb)/ { remove("fence") }

vendor == "amd" && text ~ /^s_(cmp|bitcmp)/ && text !~ /^s_cmp_[a-z]+_f(16|32) / { compare() }

vendor == "amd" && text ~ /^v_cmpx?_/ {
    split(text, word, " ")
    split(word[1], part, "_")
    if (is_integer(part[4])) compare()
}

END { exit failed }
