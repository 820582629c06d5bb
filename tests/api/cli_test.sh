#!/bin/sh
# The command line, from outside: what it prints where, and what it ends with.
cd "$(dirname "$0")/../.." || exit 1
. tests/api/server.sh

# runs STATUS ARGUMENT...: leaves standard output and error in $tmp
runs() {
    wanted=$1
    shift
    "$COPPICE" "$@" >"$tmp/stdout" 2>"$tmp/stderr"
    is $? "$wanted"
}
out() { has "$(cat "$tmp/stdout")" "$1"; }
err() { has "$(cat "$tmp/stderr")" "$1"; }

check "version" runs 0 version
check "version says so" out "coppice "
check "version as JSON" runs 0 version --json
check "version as JSON says so" out '{"version":"'
check "help" runs 0 help
check "help names serve" out "serve"
check "help serve" runs 0 serve --help
check "help serve names options" out "--operator-listen"
check "topology" runs 0 topology
check "topology names rows" out "instance:<instance_id>"
check "TOP-005 topology as JSON" runs 0 topology --json
check "TOP-005 topology cites its contract" out '"contract":"ST-OCM-000"'
check "no command" runs 64
check "no command says what" err "coppice serve"
check "a wrong command" runs 64 sreve
check "a wrong command has a neighbour" err "did you mean serve?"
check "a wrong option" runs 64 serve --operator-lisen x
check "a wrong option has a neighbour" err "did you mean --operator-listen?"
check "a bad value" runs 78 serve --slice 7
check "a bad value is named" err "--slice is '7'; it must be a duration from 100us to 1s, such as 1ms"
check "a public address" runs 78 serve --operator-listen 0.0.0.0:7070
check "a public address is refused with the reason" err "no authentication"
check "a host name" runs 78 serve --operator-listen example.org:80
check "a bad port" runs 78 serve --operator-listen 127.0.0.1:65536
check "a relative path" runs 78 serve --operator-listen unix:x
check "a path that is too long" runs 78 serve --operator-listen "unix:/$(printf '%0120d' 0)"
check "TOP-073 an adapter that there is none of" runs 78 serve --adapters clok
check "TOP-073 the adapter is named" err "--adapters names 'clok'; it must be a list"
check "TOP-073 the adapter has a neighbour" err "did you mean clock"
check "TOP-072 TOP-075 boot failures are events" err '"msg":"failure.boot_config","component":"runtime","failure_class":"fatal","reason":"--adapters'
check "TOP-075 they name the stage" err '"boot_stage":"check"'
check "nobody listens" runs 69 tree --operator-listen 127.0.0.1:1
check "nobody listens says what to do" err "coppice serve"

COPPICE_SLICE=9m
export COPPICE_SLICE
check "a bad variable" runs 78 serve
check "a bad variable is named" err "COPPICE_SLICE is '9m'"
unset COPPICE_SLICE
COPPICE_SCHEDULER=2
export COPPICE_SCHEDULER
check "a variable that is nearly one" runs 78 serve
check "a variable that is nearly one has a neighbour" err "did you mean COPPICE_SCHEDULERS?"
unset COPPICE_SCHEDULER

# A reader that has gone is no failure, and nothing to talk about. (141: the signal, where it isn't ignored.)
{
    "$COPPICE" topology --json 2>"$tmp/stderr"
    echo $? >"$tmp/status"
} | head -c 10 >"$tmp/stdout"
check "output into nothing" sh -c 'case $(cat "$1") in 0 | 141) ;; *) exit 1 ;; esac' sh "$tmp/status"
check "output into nothing is quiet" is "$(cat "$tmp/stderr")" ''

# Nothing is started by a refusal: the address stays free.
check "a server" start
first=$server
check "coppice tree" runs 0 tree --operator-listen "$at"
check "coppice tree draws" out "└─ front"
check "coppice tree as JSON" runs 0 tree --json --operator-listen "$at"
check "coppice tree as JSON has the rows" out '"contract":"ST-OCM-000"'
check "the address is taken" runs 69 serve --operator-listen "$at"
check "the address is taken, and says so" err "is another server running?"
server=$first
check "SIGTERM ends it with 0" stop
check "the variable is heard" sh -c 'COPPICE_OPERATOR_LISTEN=127.0.0.1:1 "$1" tree 2>&1 | grep -q 127.0.0.1:1' sh "$COPPICE"
finish
