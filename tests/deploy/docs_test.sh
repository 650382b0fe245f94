# docs/: what a page shows of a command is what the command prints, every page can be reached, and no link leads nowhere.
. tests/tap.sh

# Runs each line after "$ " in the console blocks of a page and puts what it prints where the page shows it.
page_as_run() { # PAGE
    local line inside=''
    while IFS= read -r line; do
        case $line in
        '```console') inside=1 ;;
        '```') inside='' ;;
        esac
        case $inside$line in
        '1$ '*)
            printf '%s\n' "$line"
            PATH=$KILN_BUILD:$PATH LC_ALL=C bash -c "${line#$ }"
            ;;
        1*) [ "$line" != '```console' ] || printf '%s\n' "$line" ;;
        *) printf '%s\n' "$line" ;;
        esac
    done <"$1"
}

shows_real_output() {
    page_as_run "$1" 2>&1 | diff -u --label "$1" --label "as run" "$1" -
}

links() { # PAGE: the files that it links to, from the root
    grep -oE '\]\([^)#]+' "$1" | cut -c3- | grep -v '^https\?:' | sed "s,^,$(dirname "$1")/,"
}

links_lead_somewhere() {
    local page target status=0
    for page in README.md docs/*.md docs/*/*.md docs/*/*/*.md; do
        [ -e "$page" ] || continue
        while read -r target; do
            [ -e "$target" ] || { echo "$page links to $target, which is not there"; status=1; }
        done < <(links "$page")
    done
    return $status
}

anchors() { # PAGE: those of its headings, as GitHub names them
    sed -n 's/^##* *//p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

anchors_lead_somewhere() {
    local page link target status=0
    for page in README.md docs/*.md docs/*/*.md docs/*/*/*.md; do
        [ -e "$page" ] || continue
        while read -r link; do
            target=${link%%#*}
            target=${target:+$(dirname "$page")/$target}
            anchors "${target:-$page}" | grep -qxF "${link#*#}" || { echo "$page links to $link, which is no heading"; status=1; }
        done < <(grep -oE '\]\([^)]*#[^)]+' "$page" | cut -c3- | grep -v '^https\?:')
    done
    return $status
}

every_page_is_listed() {
    local page status=0
    for page in docs/*.md docs/*/*.md docs/*/*/*.md; do
        if [ ! -e "$page" ] || [ "$page" = docs/README.md ]; then continue; fi
        links docs/README.md | grep -qxF "$page" || { echo "docs/README.md does not link to $page"; status=1; }
    done
    links README.md | grep -qxF ./docs/README.md || { echo "README.md does not link to docs/README.md"; status=1; }
    return $status
}

reference_has_every_header() {
    local header page status=0
    make -s docs || { grep '(function)' build/docs/warnings; return 1; }
    for header in include/kiln/*.h include/kiln/ops/*.h; do
        page=$(basename "$header" .h)
        [ -e "build/docs/html/${page//_/__}_8h.html" ] || { echo "no page for $header"; status=1; }
    done
    return $status
}

check "docs/selection.md shows what kiln explain prints" shows_real_output docs/selection.md
check "no link leads nowhere" links_lead_somewhere
check "no link leads to a heading that is not there" anchors_lead_somewhere
check "docs/README.md lists every page" every_page_is_listed
if command -v doxygen >/dev/null; then
    check "make docs has a page for every header, and a comment for every function" reference_has_every_header
else
    skip "make docs has a page for every header, and a comment for every function" "no doxygen"
fi
finish
