# Whether each verdict is as it should be. Reads tests/sim/mutants/harmless, then the mutants of an image with their
# verdicts: "VERDICT<tab>PLACE KIND NUMBER EDIT<tab>INSTRUCTION<tab>FILE:LINE<tab>FILE:LINE...", the places in the source of
# survivors only, the innermost first. Writes each that is not, and has exit status 1 then; else writes what
# the record has of the image, "45 b1 c4n c8a", to the file that settled names. image is its name; listed is set between.

# A pattern of bash as a regular expression.
function regex(pattern) {
    gsub(/\./, "[.]", pattern)
    gsub(/\?/, ".", pattern)
    gsub(/\*/, ".*", pattern)
    gsub(/@\(/, "(", pattern)
    return "^" pattern "$"
}

# Takes a word, or what stands in double quotes, from the front of rest.
function take(   word) {
    if (rest ~ /^"/) {
        word = substr(rest, 2)
        word = substr(word, 1, index(word, "\"") - 1)
        rest = substr(rest, length(word) + 4)
    } else {
        word = rest
        sub(/ .*/, "", word)
        rest = substr(rest, length(word) + 2)
    }
    return word
}

function fail(text) {
    print text
    failed = 1
}

# The text of FILE:LINE.
function source(place,   file, line, number) {
    if (!((place) in text)) {
        file = place
        sub(/:[0-9]+$/, "", file)
        for (number = 1; (getline line <file) > 0; number++) text[file ":" number] = line
        close(file)
        text[place] = text[place]
    }
    return text[place]
}

# Whether FILE:LINE is a line of such a file that has the quoted words.
function stands(place, files, quote,   file) {
    file = place
    sub(/:[0-9]+$/, "", file)
    return file ~ files && index(source(place), quote)
}

# The first of the mutant's places from field f on that has the quoted words; 0 without.
function found(f, files, quote) {
    while (f <= NF && !stands($f, files, quote)) f++
    return f <= NF ? f : 0
}

# Whether reason r is of the mutant, whose fields the record has. The fourth and those behind it are its places.
function covers(r, number, edit,   f) {
    if (edit !~ edits[r]) return 0
    if (numbers[r]) return number ~ numbers[r]
    if (itself[r]) return stands($4, files[r], quotes[r])
    f = found(4, files[r], quotes[r])
    return f && (!callers[r] || found(f + 1, callers[r], calls[r]))
}

!listed {
    if (/^#/ || !NF) next
    rest = $0
    if (image !~ regex(take())) next
    r = ++reasons
    kinds[r] = take()
    where = take()
    if (rest ~ /^"/) {
        files[r] = regex(where)
        quotes[r] = take()
        if (rest ~ /^itself /) {
            take()
            itself[r] = 1
        } else if (rest ~ /^from /) {
            take()
            callers[r] = regex(take())
            calls[r] = take()
        }
    } else {
        numbers[r] = regex(where)
    }
    sub(/:.*/, "", rest)
    edits[r] = regex(rest)
    next
}

{
    split($2, word, " ")
    kind = word[2]
    edit = word[4]
    if ($1 != "alive" && $1 != "killed") {
        fail(($1 ? $1 : "not run") ": " $2 "\t" $3)
        next
    }
    for (r = 1; r <= reasons; r++) {
        if (kinds[r] != kind || !covers(r, word[3], edit)) continue
        if ($1 == "alive") break
        if (numbers[r] && numbers[r] != regex("*")) fail("listed as harmless, and yet killed: " $2 "\t" $3)
    }
    counted[$1]++
    if ($1 == "killed") next
    if (r > reasons) {
        fail("alive: " $2 "\t" $3)
        for (f = 4; f <= NF; f++) {
            line = source($f)
            sub(/^ +/, "", line)
            print "    " $f ": " line
        }
    }
    list = list " " substr(kind, 1, 1) word[3] (edit == "removed" ? "" : substr(edit, 1, 1))
}

END {
    print counted["killed"] + 0 " killed, " counted["alive"] + 0 " alive" (failed ? ", not settled" : "")
    if (!failed) print counted["killed"] + 0 list >settled
    exit failed
}
