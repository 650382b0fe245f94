# The tables of instructions_test.sh, from lines "PROGRAM|# compared|INSTRUCTIONS|EQUAL|NAN|WITHIN|DIFFERENT|FAILED|ABSENT"
# and "PROGRAM|# sums|INSTRUCTION|ELEMENTS|EXACT|SEQUENTIAL|TRUNCATING|HOPPER|NONE": tests/sim/tests/ptx/ptx_verdict.h.
$2 == "# compared" {
    if (!($1 in kinds)) programs[++program_count] = $1
    kinds[$1]++
    for (i = 4; i <= 9; i++) totals[$1, i] += $i
    row = $3 " | " $4 " | " $5 " | " $6 " | " $7 " | " $8 " |"
    if ($7 + $8) worse = worse "| " row "\n"
    else if ($5 + $6) near = near "| " row "\n"
    else if ($4) equal = listed(equal, $3)
    else absent = listed(absent, $3)
}
$2 == "# sums" {
    sums = sums "| " $3 " | " $4 " | " $5 " | " $6 " | " $7 " | " $8 " | " $9 " |\n"
}
# A list with another name, in lines of no more than some 120 bytes.
function listed(list, name) {
    last = list
    sub(/.*\n/, "", last)
    return list (list == "" ? "" : length(last) + length(name) > 115 ? ",\n" : ", ") "`" name "`"
}
function table(title, text, head, rows) {
    if (rows == "") return
    print "\n## " title
    if (text) print "\n" text
    if (head == "") {
        print "\n" rows
        return
    }
    print "\n| " head " |"
    gsub(/[^|]+/, "---", head)
    printf "|%s|\n%s", head, rows
}
END {
    columns = "equal | NaN, other bits | within the bound | different | failed"
    for (n = 1; n <= program_count; n++) {
        p = programs[n]
        all = all "| " p " | " kinds[p]
        for (i = 4; i <= 9; i++) all = all " | " totals[p, i] + 0
        all = all " |\n"
    }
    table("All programs", "Results of the device against the interpreter's, by the test's program. A kernel that the driver\n" \
        "refused or that stopped counts once, as failed; so does one of instructions that the device has not.",
        "program | kinds of instructions | " columns " | not of this device", all)
    table("Different or failed", "Neither the interpreter's bits, nor what the ISA leaves open.", "instructions | " columns, worse)
    table("Other bits, as the ISA allows", "NaNs of other bits, and approximations within the bound that the ISA states.",
        "instructions | " columns, near)
    table("Sums of matrices", "How many elements are as the interpreter adds exactly, one after the other, truncating, or as an H100\n" \
        "([simulators.md](../simulators.md#matrices)), and in none of these ways.",
        "instruction | elements | exact | sequential | truncating | hopper | none", sums)
    table("Equal in every bit", "", "", equal)
    table("Not of this device", "", "", absent)
}
