#!/bin/sh
# The README's example builds against an installed copy with nothing but pkg-config, and prints what the README says; the
# documents that came with it link to nothing that didn't.
#
# README.md holds a fenced block that opens with ```c example: a whole program. The next fenced block, whatever it is called,
# is what it prints. Ends with `N passed, N failed`.
set -u
cd "$(dirname "$0")/.." || exit 1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
compiler=${CC:-gcc}
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES TEST MODE CC
passed=0
failed=0

# must NAME COMMAND...: a step without which the rest makes no sense
must() {
    name=$1
    shift
    if "$@" >"$tmp/log" 2>&1; then
        passed=$((passed + 1))
        return
    fi
    echo "FAILED: $name"
    sed 's/^/    /' "$tmp/log"
    echo "$passed passed, $((failed + 1)) failed"
    exit 1
}

# fenced FIRST-LINE-PATTERN WHICH: the block that opens so, or the one after it
fenced() {
    awk -v opening="$1" -v which="$2" '
        /^```/ && inside { inside = 0; next }
        /^```/ { inside = 1; if ($0 ~ opening) found = 1; else if (found) found++; next }
        inside && found == which' README.md
}

must 'README.md is there' test -s README.md
fenced '^```c example' 1 >"$tmp/example.c"
fenced '^```c example' 2 >"$tmp/expected"
must 'README.md has a block that opens with ```c example' test -s "$tmp/example.c"
must 'README.md has, after the example, a block with what it prints' test -s "$tmp/expected"

must 'make install' make install CC="$compiler" DESTDIR= PREFIX="$tmp/installed"
PKG_CONFIG_PATH=$tmp/installed/lib/pkgconfig
export PKG_CONFIG_PATH
must 'pkg-config knows coppice' pkg-config --exists --print-errors coppice
must 'coppice.pc has the version of the Makefile' \
    [ "$(pkg-config --modversion coppice)" = "$(sed -n 's/^VERSION := //p' Makefile)" ]

# Without the tree beside them.
pages() {
    find "$tmp/installed/share/doc/coppice" -name '*.md'
}
links() {
    pages | while read -r page; do
        awk '/^```/ { inside = !inside } !inside && !/^    /' "$page" | grep -o ']([^)]*)' |
            sed "s/^](//; s/)\$//; s/#.*//; /^\$/d; /^https*:/d; s|^|$(dirname "$page")/|"
    done
}
# shellcheck disable=SC2329 # by must
links_lead_somewhere() {
    links | while read -r link; do
        [ -e "$link" ] || echo "$link leads nowhere"
    done >"$tmp/dead"
    cat "$tmp/dead"
    [ ! -s "$tmp/dead" ]
}
must 'every page of docs is installed' [ "$(pages | grep -c '/docs/')" = "$(find docs -name '*.md' ! -path '*/tools/*' | wc -l)" ]
must 'the documents have links' [ "$(links | wc -l)" -gt 100 ]
must 'every link of the documents leads somewhere' links_lead_somewhere
must 'the contracts come with what was generated' test -s "$tmp/installed/share/doc/coppice/docs/contract/generated/client.ts"
must "the contracts' tools stay" test ! -e "$tmp/installed/share/doc/coppice/docs/contract/tools"

# Somewhere else, so that nothing of the source tree is found by chance.
cd "$tmp" || exit 1
# shellcheck disable=SC2046 # words
must 'the example compiles and links' \
    "$compiler" -std=gnu17 -O2 -Wall -Wextra -Werror $(pkg-config --cflags coppice) -o example example.c $(pkg-config --libs coppice)
must 'the example ends well' sh -c 'timeout 20 ./example </dev/null >printed'
must 'the example prints what README.md says' diff -u expected printed

# A header that needs another one first is a header that nobody can use.
for header in installed/include/coppice/runtime/*.h; do
    name=${header#installed/include/coppice/}
    echo "#include \"$name\"" >one.c
    # shellcheck disable=SC2046 # words
    must "$name stands alone" "$compiler" -std=gnu17 -Wall -Wextra -Werror $(pkg-config --cflags coppice) -fsyntax-only one.c
done
echo "$passed passed, $failed failed"
