#!/bin/sh
# What the documents say, as far as a script can check it: links lead somewhere, commands exist, the tree is the declared
# one, limits are those of the headers, and every story page names Story 00 (TOP-168, AMB-T-25). Ends with
# `N passed, N failed`.
# shellcheck disable=SC2016 # backquotes of Markdown, not the shell's
set -u
cd "$(dirname "$0")/.." || exit 1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
program=${COPPICE:-build/coppice}
compiler=${CC:-gcc}
passed=0
failed=0

# expect_nothing NAME FILE: the file lists what is wrong
expect_nothing() {
    if [ -s "$2" ]; then
        failed=$((failed + 1))
        echo "FAILED: $1"
        sed 's/^/    /' "$2"
    else
        passed=$((passed + 1))
    fi
}

# expect_some NAME FILE: a check that found nothing to check has checked nothing
expect_some() {
    if [ -s "$2" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $1: there is nothing to check"
    fi
}

pages=$(find README.md docs actors chaos tests -name '*.md' | sort)

# --- links ------------------------------------------------------------------------------------------------------------

# The anchor that a heading gets: lower case, no punctuation, blanks to dashes.
anchors() {
    awk '/^```/ { inside = !inside } !inside && /^#+ / { sub(/^#+ /, ""); print }' "$1" |
        tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

for page in $pages; do
    awk '/^```/ { inside = !inside } !inside && !/^    /' "$page" |
        grep -o '\]([^)]*)' | sed 's/^](//; s/)$//' | sed "s|^|$page |"
done >"$tmp/links"
expect_some 'links' "$tmp/links"
while read -r page link; do
    case $link in
    http://* | https://*) continue ;;
    esac
    file=${link%%#*}
    anchor=${link#"$file"}
    target=$page
    [ -z "$file" ] || target=$(dirname "$page")/$file
    if [ ! -e "$target" ]; then
        echo "$page: $link leads nowhere"
    elif [ -n "$anchor" ] && ! anchors "$target" | grep -qx -- "${anchor#\#}"; then
        echo "$page: $link names a heading that is not there"
    fi
done <"$tmp/links" >"$tmp/dead"
expect_nothing 'every link leads somewhere' "$tmp/dead"

# --- files named in passing -------------------------------------------------------------------------------------------

# `runtime/x.h` and the like, in the text.
for page in $pages; do
    grep -oE '`(runtime|store|actors|http|config|tests|chaos|docs|\.ci)/[A-Za-z0-9_./-]+`' "$page" | tr -d '`' | sed "s|^|$page |"
done >"$tmp/files"
expect_some 'files named in the text' "$tmp/files"
while read -r page file; do
    [ -e "$file" ] || echo "$page: there is no $file"
done <"$tmp/files" >"$tmp/gone"
expect_nothing 'every file that is named exists' "$tmp/gone"

# Every page can be reached from the reading order.
for page in $pages; do
    case $page in
    docs/README.md | README.md | tests/*) ;;
    docs/stories/*) grep -q "(${page#docs/stories/})" docs/stories/README.md docs/README.md || echo "$page" ;;
    docs/*) grep -q "(${page#docs/}" docs/README.md || echo "$page" ;;
    *) grep -q "(../$page)" docs/README.md || echo "$page" ;;
    esac
done | grep -v '^docs/stories/README.md$' >"$tmp/unread"
expect_nothing 'docs/README.md leads to every page' "$tmp/unread"

# --- commands ---------------------------------------------------------------------------------------------------------

# Code blocks (fenced or indented) and `code` in the text.
for page in $pages; do
    awk -v page="$page" '
        /^```/ { inside = !inside; c = $0 ~ /^```c/; next }
        inside && !c || /^    / { print page "|" $0; next }
        { while (match($0, /`[^`]+`/)) { print page "|" substr($0, RSTART + 1, RLENGTH - 2); $0 = substr($0, RSTART + RLENGTH) } }
    ' "$page"
done >"$tmp/code"

sed -nE 's/^([^|]*)\|( *|.*[;&|] )make ([a-z][a-zA-Z0-9_-]*)( .*)?$/\1 \3/p' "$tmp/code" >"$tmp/targets"
expect_some 'make targets' "$tmp/targets"
while read -r page target; do
    grep -qE "^$target:|^${target%%-*}-%:" Makefile || echo "$page: make $target"
done <"$tmp/targets" >"$tmp/wrong"
expect_nothing 'every make target that is named exists' "$tmp/wrong"

# The commands that there are, as "noun verb" or as one word.
"$program" help >"$tmp/help" && awk '
    /^Commands:/ { on = 1; next } on && NF == 0 { exit }
    on { line = substr($0, 3, 19); n = split(line, word, " "); print word[1] (n > 1 && word[2] ~ /^[a-z]/ ? " " word[2] : "") }' \
    "$tmp/help" >"$tmp/commands"
expect_some 'coppice help lists commands' "$tmp/commands"
sed -nE 's/^([^|]*)\| *(\$ )?([A-Z_]+=[^ ]+ )?(build\/)?coppice ([a-z]+)( ([a-z]+))?( .*)?$/\1 \5 \7/p' "$tmp/code" >"$tmp/named"
expect_some 'coppice commands' "$tmp/named"
while read -r page noun verb; do
    grep -qxE -- "$noun|$noun $verb" "$tmp/commands" || echo "$page: coppice $noun $verb"
done <"$tmp/named" >"$tmp/wrong"
expect_nothing 'every command that is named exists' "$tmp/wrong"

# shellcheck disable=SC2086 # a command of two words is two arguments
while read -r command; do "$program" help $command; done <"$tmp/commands" >"$tmp/options"
for page in README.md docs/operator.md docs/operating.md docs/http.md docs/security.md; do
    grep -oE -- '(^|[ `(])--[a-z][a-z-]+' "$page" | sed 's/^[ `(]//' | sort -u | sed "s|^|$page |"
done | grep -vE -- ' --(cflags|libs|unix-socket|now|check|env)$' >"$tmp/named"
while read -r page option; do
    grep -qE -- "^ *(--no-)?$option( |\$)" "$tmp/options" || grep -qE -- "^ *--${option#--no-}( |\$)" "$tmp/options" ||
        echo "$page: $option"
done <"$tmp/named" >"$tmp/wrong"
expect_nothing 'every option that is named exists' "$tmp/wrong"

sed -nE 's/^ *X\([A-Z_]+, "(OTEL_[A-Z_]+)"\).*/\1/p' http/otlp.h >"$tmp/named"
expect_some 'variables of the exporter' "$tmp/named"
while read -r variable; do
    grep -qF -- "\`$variable\`" docs/operating.md || echo "$variable"
done <"$tmp/named" >"$tmp/wrong"
expect_nothing 'docs/operating.md has every variable of the exporter' "$tmp/wrong"

# --- tables that the program makes ------------------------------------------------------------------------------------

# Settings, flags, commands, routes, metrics, statuses, the tree.
COPPICE=$program CC=$compiler .ci/docs-tables --check >"$tmp/wrong" 2>&1
expect_nothing 'no table is stale (make docs writes them anew)' "$tmp/wrong"
cat README.md docs/*.md | sed -n 's/^<!-- table: \(.*\) -->$/\1/p' | sort >"$tmp/placed"
for table in commands flags limits metrics routes-client routes-operator settings statuses tree; do
    grep -qx "$table" "$tmp/placed" || echo "$table"
done >"$tmp/wrong"
expect_nothing 'each of these tables is on a page' "$tmp/wrong"

# --- what is kept ---
sed -nE 's/^ +X\([A-Z_]+, "([a-z_]+)", [a-z_]+\).*/\1/p' store/schema.h | sort >"$tmp/tables"
expect_some 'tables of the store' "$tmp/tables"
awk '/^## / { on = $0 == "## What is kept, and for how long" } on && /^\| `/' docs/operating.md | cut -d '|' -f 2 | tr -d '` ' | tr , '\n' |
    sort >"$tmp/kept"
diff "$tmp/tables" "$tmp/kept" >"$tmp/wrong"
expect_nothing 'docs/operating.md says of every table how long its rows are kept' "$tmp/wrong"

# --- errors -----------------------------------------------------------------------------------------------------------

"$program" contract show errors >"$tmp/codes"
for page in $pages; do
    grep -oE '\b(AUTH|REQ|JOB|DLQ|CONTRACT|RATE|POLICY|BUDGET|APPROVAL|INFRA|INTERNAL|OPS)_[0-9]{3}_[A-Z_]+|\bRFA_[A-Z]+_[A-Z_]+' "$page" |
        sed "s|^|$page |"
done | sort -u >"$tmp/named"
expect_some 'codes of errors' "$tmp/named"
while read -r page code; do
    grep -qw -- "$code" "$tmp/codes" || echo "$page: $code"
done <"$tmp/named" >"$tmp/wrong"
expect_nothing 'every error code that is named is in the catalogue' "$tmp/wrong"

# --- stories ----------------------------------------------------------------------------------------------------------

for n in 00 01 02 03 04 05 06 07 08 09 10 11; do
    [ -n "$(find docs/stories -name "$n-*.md")" ] || echo "there is no page of story $n"
done >"$tmp/wrong"
for page in docs/stories/[0-9]*.md; do
    [ "${page#docs/stories/00-}" = "$page" ] || continue
    awk '/^## / { under = $0 == "## Dependencies" } under && $0 == "- Story 00: Runtime Topology And SLOs." { found = 1 }
        END { exit !found }' "$page" || echo "$page: the line about Story 00 is missing below ## Dependencies"
done >>"$tmp/wrong"
expect_nothing 'TOP-168: every story page depends on Story 00' "$tmp/wrong"

# Every row of the topology belongs to a story, and no page names a row that is not there.
sed -nE 's/^- `([^`]+)`.*/\1/p' docs/stories/[0-9]*.md | sort >"$tmp/owned"
"$program" topology | awk 'NR > 1 { print $1 }' | sort >"$tmp/rows"
expect_some 'rows of the topology' "$tmp/rows"
diff "$tmp/rows" "$tmp/owned" >"$tmp/wrong"
expect_nothing 'every row of the topology belongs to exactly one story page' "$tmp/wrong"

# --- limits -----------------------------------------------------------------------------------------------------------

# | `expression` | value | declared in | ... |, printed by a program that includes what the table names.
for page in docs/runtime.md docs/store.md docs/http.md; do
    sed -nE 's/^\| `([^`|]+)` \| ([0-9,]+) \| ([a-z]+\/[a-z_]+\.h) \|.*/\3|\1|\2/p' $page >"$tmp/limits"
    expect_some "limits of $page" "$tmp/limits"
    awk -F '|' -v page=$page '
        { if (!seen[$1]++) includes = includes "#include \"" $1 "\"\n"
          plain = $3; gsub(",", "", plain)
          body = body "    if ((unsigned long long)(" $2 ") != " plain "ull)\n" \
              "        printf(\"%s is %llu, and " $3 " in " page "\\n\", \"" $2 "\", (unsigned long long)(" $2 "));\n" }
        END { printf "#include <stdio.h>\n%sint main(void)\n{\n%s}\n", includes, body }' "$tmp/limits" >"$tmp/limits.c"
    # shellcheck disable=SC2046 # a list of options
    if $compiler -std=gnu17 -I. -isystem build/deps/llhttp $(pkg-config --cflags lmdb libllhttp 2>/dev/null) -o "$tmp/print" "$tmp/limits.c" \
        >"$tmp/wrong" 2>&1; then
        "$tmp/print" >"$tmp/wrong"
    fi
    expect_nothing "the limits in $page are those of the headers" "$tmp/wrong"
    # And each is declared where the table says so.
    while IFS='|' read -r header expression _; do
        word=$(echo "$expression" | sed -E 's/sizeof\((struct [a-z_]+)\)/\1/; s/ - [0-9]+//')
        grep -qF -- "$word" "$header" || echo "$header does not declare $word"
    done <"$tmp/limits" >"$tmp/wrong"
    expect_nothing "the limits are declared where $page says" "$tmp/wrong"
done

# --- decisions --------------------------------------------------------------------------------------------------------

find docs/decisions -name '[0-9]*.md' | sed 's|.*/||; s|-.*||' | sort | uniq -d >"$tmp/wrong"
expect_nothing 'no two decisions have one number' "$tmp/wrong"
for page in docs/decisions/[0-9]*.md; do
    number=$(echo "$page" | sed 's|.*/0*||; s|-.*||')
    head -n 1 "$page" | grep -qE "^# 0*${number}[.:] " || echo "$page does not begin with '# $number. ' or '# $number: '"
done >"$tmp/wrong"
expect_nothing 'every decision begins with its number' "$tmp/wrong"

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
