#!/bin/sh
# Fairness from outside: with jobs.fairness=clients a client that has submitted many jobs delays another's by one of them; without it
# all goes by the order of creation; and a restart switches it, either way, with jobs in the queue.
cd "$(dirname "$0")/../.." || exit 1
. tests/api/server.sh

json='Content-Type: application/json'

# ask METHOD PATH ARGUMENT...: the answer's body
ask() {
    method=$1 path=$2
    shift 2
    curl -s -m 120 -X "$method" "$@" "http://$client$path"
}
# newcomer: key
newcomer() {
    id=$(member client_id "$(ask POST /v1/clients)")
    key=$(member api_key "$(ask POST "/v1/clients/$id/keys")")
    [ -n "$key" ]
}
# submit KEY: job
submit() {
    job=$(member job_id "$(ask POST /v1/jobs -H "Authorization: Bearer $1" -H "$json" \
        -d '{"type":"EXECUTE","work_kind":"SUCCESS_FAST"}')")
    [ -n "$job" ]
}
# submits NAME KEY COUNT: their ids, in $tmp/NAME and, for all of them in the order of creation, in $tmp/all
submits() {
    for _ in $(seq "$3"); do
        submit "$2" || return 1
        echo "$job" >>"$tmp/$1"
        echo "$job $2" >>"$tmp/all"
    done
}
# ahead KEY JOB: as its explanation says
ahead() {
    member ahead "$(ask GET "/v1/jobs/$2:explain" -H "Authorization: Bearer $1")"
}
# until_so COMMAND...: asked again and again until it says so
until_so() {
    tries=0
    while [ $tries -lt 3000 ]; do
        "$@" >"$tmp/until" 2>&1 && return 0
        tries=$((tries + 1))
        sleep 0.03
    done
    cat "$tmp/until"
    return 1
}
ended() {
    while read -r job key; do
        is "$(member state "$(ask GET "/v1/jobs/$job" -H "Authorization: Bearer $key")")" SUCCEEDED || return 1
    done <"$tmp/all"
}
# All jobs by the time of their claim; the only worker takes a tenth of a second for each.
claimed() {
    while read -r job key; do
        printf '%s %s\n' "$(ask GET "/v1/jobs/$job/events" -H "Authorization: Bearer $key" |
            sed 's/}/}\n/g' | grep '"event_name":"job.assigned"' | sed -n 's/.*"timestamp":"\([^"]*\)".*/\1/p')" "$job"
    done <"$tmp/all" | sort >"$tmp/claimed"
    cut -d' ' -f2 "$tmp/claimed"
}
in_order_of_creation() {
    is "$(claimed)" "$(cut -d' ' -f1 "$tmp/all")"
}
# Whose turn is the first is by their ids, which are chance: it is the first or the second.
within_a_round() {
    has "$(claimed | head -n 2)" "$(cat "$tmp/modest")"
}
behind_one_at_most() {
    has " 0 1 " " $(ahead "$modest" "$(cat "$tmp/modest")") "
}
anew() {
    rm -f "$tmp/all" "$tmp/greedy" "$tmp/modest"
}
slow="--workers-count 1 --jobs-simulation-speed 10"

check "a server without workers" start --schedulers 2 --workers-count 0
check "a client that wants much" newcomer
greedy=$key
check "and one that wants little" newcomer
modest=$key
check "much" submits greedy "$greedy" 6
check "little" submits modest "$modest" 1
check "it is behind all of them" is "$(ahead "$modest" "$(cat "$tmp/modest")")" 6
check "the end" stop_unharmed

check "the same store, and clients take turns" start --schedulers 2 --workers-count 0 --jobs-fairness clients
check "it is behind one of them at most" until_so behind_one_at_most
check "the last of the others is behind all" is "$(ahead "$greedy" "$(tail -n 1 "$tmp/greedy")")" 6
check "it stays so" stop_unharmed
# shellcheck disable=SC2086 # words
check "a worker" start --schedulers 2 $slow --jobs-fairness clients
check "does them all" until_so ended
check "and the modest one's within a round" within_a_round
check "the end" stop_unharmed

anew
check "without workers again" start --schedulers 2 --workers-count 0 --jobs-fairness clients
check "some of the one" submits greedy "$greedy" 3
check "of the other" submits modest "$modest" 1
check "and of the one" submits greedy "$greedy" 2
check "the fourth is the next one: the other had the last turn" is "$(ahead "$modest" "$(cat "$tmp/modest")")" 0
check "the end" stop_unharmed
# shellcheck disable=SC2086 # words
check "first in, first out again" start --schedulers 2 $slow
check "it does them all" until_so ended
check "in the order of creation" in_order_of_creation
check "nobody died" nobody_died
check "the end" stop_unharmed
check "the store is sound" "$COPPICE" check --store-dir "$tmp/store"
finish
