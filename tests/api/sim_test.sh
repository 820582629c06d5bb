#!/bin/sh
# coppice sim: it finds the simulator beside the program, hands on what was asked, and ends as that does.
cd "$(dirname "$0")/../.." || exit 1
. tests/api/server.sh

mkdir "$tmp/bin" "$tmp/bin/chaos"
cp "$(readlink -f "$COPPICE")" "$tmp/bin/coppice"

# runs STATUS ARGUMENT...: leaves standard output and error in $tmp
runs() {
    wanted=$1
    shift
    "$tmp/bin/coppice" sim "$@" >"$tmp/stdout" 2>"$tmp/stderr"
    is $? "$wanted"
}
out() { is "$(cat "$tmp/stdout")" "$1"; }
err() { has "$(cat "$tmp/stderr")" "$1"; }
one_line() { is "$(wc -l <"$tmp/stderr")" 1; }

# simulator PLACE STATUS: one that says what it was asked
simulator() {
    printf '#!/bin/sh\necho "%s $*"\nexit %s\n' "$1" "$2" >"$tmp/bin/$1"
    chmod +x "$tmp/bin/$1"
}

check "no simulator" runs 69 --seed 7
check "no simulator says where" err "$tmp/bin"
check "no simulator says what to do" err "make sim"
check "no simulator in one line" one_line

simulator chaos/sim 0
check "the one of a build" runs 0 --seed 7 --scenario net
check "the one of a build is asked" out "chaos/sim --seed 7 --scenario net"
simulator coppice-sim 1
check "the one beside it, and its status" runs 1 --seed 18446744073709551
check "the one beside it comes first" out "coppice-sim --seed 18446744073709551 --scenario mixed"

check "a seed that isn't a number" runs 64 --seed x7
check "says so" err "--seed"
check "in one line" one_line
check "a negative one" runs 64 --seed -7
simulator coppice-sim 64
check "an unknown scenario is the simulator's to refuse" runs 64 --scenario storm
check "and is asked for" out "coppice-sim --seed 1 --scenario storm"

finish
