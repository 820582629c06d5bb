#!/bin/sh
# Queues from outside, by an operator: pauses begin, are listed, end by themselves, and are refused where they can't be meant. A client's
# limit that is raised or taken away counts while its jobs run.
cd "$(dirname "$0")/../.." || exit 1
. tests/api/server.sh

# runs STATUS ARGUMENT...: leaves standard output and error in $tmp
runs() {
    wanted=$1
    shift
    "$COPPICE" "$@" --url "http://$at" --token-file "$tmp/store/operator.token" >"$tmp/stdout" 2>"$tmp/stderr"
    is $? "$wanted"
}
# post STATUS PATH BODY: the answer stays in $tmp/body
post() {
    is "$(curl -s -m 120 -o "$tmp/body" -w '%{http_code}' -H "$bearer" -H 'Content-Type: application/json' --data-binary "$3" \
        "http://$at$2")" "$1"
}
body_has() {
    has "$(cat "$tmp/body")" "$1"
}
listed() {
    has "$(get /jobs/pauses)" "$1"
}
none_listed() {
    is "$(get /jobs/pauses)" '{"pauses":[],"next":null}'
}

check "a server" start --schedulers 2

check "nothing is paused" none_listed
check "people ask" runs 0 pauses
check "and are told" is "$(cat "$tmp/stdout")" 'nothing is paused'
check "programs ask" runs 0 pauses --json
check "and have an empty list" is "$(cat "$tmp/stdout")" '{"pauses":[],"more":false}'
check "no time to pause until" runs 1 pause all --until soon
check "the option is named" has "$(cat "$tmp/stderr")" '--until must be'
check "a reason that is too long" runs 1 pause all --reason "$(head -c 600 /dev/zero | tr '\0' a)"
check "is named as it was given" has "$(cat "$tmp/stderr")" '--reason must have at most 512'
check "everything is paused" runs 0 pause all --reason "a drill" --json
check "what, and since when" has "$(cat "$tmp/stdout")" '"scope":"all","kind":null,"client":null,"state":"paused","since":"'
check "it is listed with its reason" listed '"reason":"a drill"'
check "and by whom" listed '"by":"operator"'
check "a kind is paused, until then" runs 0 pause SUCCESS_FAST --until 2999-01-01T00:00:00Z
check "its end is listed" listed '"until":"2999-01-01T00:00:00.000000Z"'
check "a kind of a user" runs 0 pause x.mail
check "people see them" runs 0 pauses
check "in a table" has "$(cat "$tmp/stdout")" 'x.mail'
check "page by page" has "$(get '/jobs/pauses?limit=2')" '"next":"'
check "the audit log has it" has "$(get /stats/audits)" '"verb":"jobs.pause","target":"kind x.mail"'

check "a restart keeps them" stop
check "the same store" start --schedulers 2
check "they are there" listed '"kind":"x.mail"'
check "resumed" runs 0 resume x.mail --reason over --json
check "says that it goes on" has "$(cat "$tmp/stdout")" '"state":"running","set_aside":0'
check "resumed twice" runs 1 resume x.mail
check "says why not" has "$(cat "$tmp/stderr")" "OPS_404_NOT_FOUND"
check "everything goes on" runs 0 resume all
check "so does the kind" runs 0 resume SUCCESS_FAST
check "nothing is left" none_listed

check "a pause that ends by itself" post 200 /jobs:pause "{\"scope\":\"all\",\"until\":\"$(date -u -d '+1 hour' +%Y-%m-%dT%H:%M:%SZ)\"}"
check "the clock goes on" runs 0 clock advance 2h
gone() {
    for _ in $(seq 20000); do # each look is a round trip, and the actor was woken by the leap; its commit is the disk's matter
        [ "$(get /jobs/pauses)" = '{"pauses":[],"next":null}' ] && return 0
    done
    none_listed
}
check "it has ended" gone

check "no such scope" post 400 /jobs:pause '{"scope":"queue"}'
check "no such kind" post 400 /jobs:pause '{"scope":"kind","kind":"NOPE"}'
check "says which are" body_has 'kind must be one of the catalogue'
check "a kind without its scope" post 400 /jobs:pause '{"scope":"all","kind":"x.mail"}'
check "names the member" body_has '"errors":[{"field":"kind"'
check "a scope without its kind" post 400 /jobs:pause '{"scope":"kind"}'
check "no such client" post 404 /jobs:pause '{"scope":"client","client":"00000000-0000-4000-8000-000000000000"}'
check "no client's id" post 400 /jobs:pause '{"scope":"client","client":"me"}'
check "a time that has passed" post 400 /jobs:pause '{"scope":"all","until":"2001-01-01T00:00:00Z"}'
check "no time" post 400 /jobs:pause '{"scope":"all","until":"soon"}'
check "names the member" body_has '"errors":[{"field":"until"'
check "an unknown member" post 400 /jobs:pause '{"scope":"all","untill":"2999-01-01T00:00:00Z"}'
check "no such job" post 404 /jobs/00000000-0000-4000-8000-000000000000:run '{}'
check "none of that paused anything" none_listed
check "nobody died" nobody_died
check "the end" stop_unharmed

# --- a client's limit ---
limit() {
    echo "{\"jobs\": {\"client_concurrency\": $1}}" >"$tmp/coppice.json"
}
reload() {
    kill -HUP "$server"
    await '"logger":"reload"' && has "$line" '"applied":"jobs.client_concurrency"'
}
join() {
    id=$(curl -s -m 120 -X POST "http://$client/v1/clients" | sed 's/.*"client_id":"\([^"]*\)".*/\1/')
    key="Authorization: Bearer $(curl -s -m 120 -X POST "http://$client/v1/clients/$id/keys" | sed 's/.*"api_key":"\([^"]*\)".*/\1/')"
}
# submit KIND: job
submit() {
    job=$(member job_id "$(curl -s -m 120 -X POST -H "$key" -H 'Content-Type: application/json' \
        -d "{\"type\":\"EXECUTE\",\"work_kind\":\"$1\"}" "http://$client/v1/jobs")")
    [ -n "$job" ]
}
state() {
    member state "$(curl -s -m 120 -H "$key" "http://$client/v1/jobs/$1")"
}
# comes_to STATE JOB...: asked again and again until all of them have
comes_to() {
    wanted=$1
    shift
    for one; do
        until [ "$(state "$one")" = "$wanted" ]; do
            kill -0 "$server" || return 1
            sleep 0.03
        done
    done
}
# wait_for_limit JOB...: a claim has met it
wait_for_limit() {
    for one; do
        until has "$(curl -s -m 120 -H "$key" "http://$client/v1/jobs/$one:explain")" client_limit >"$tmp/until"; do
            kill -0 "$server" || return 1
            sleep 0.03
        done
    done
}
three() {
    jobs=
    for _ in 1 2 3; do
        submit SUCCESS_FAST || return 1
        jobs="$jobs $job"
    done
}
# changes_to LIMIT: from 1, while a long job has the only place and three wait. Workers that stood idle claim by the old limit
# until they hear of the new one, so each change has a server of its own.
changes_to() {
    limit 1
    check "a server with a limit" start --schedulers 2 --workers-count 6 --jobs-simulation-speed 0.5 --config "$tmp/coppice.json"
    join
    check "a long job" submit RUNS_LONG
    long=$job
    check "runs" comes_to RUNNING "$long"
    check "three more" three
    check "are beyond the limit" wait_for_limit $jobs
    limit "$1"
    check "which is $1 then" reload
    check "they run and come to their end" comes_to SUCCEEDED $jobs
    check "beside the long one" is "$(state "$long")" RUNNING
    check "nobody died" nobody_died
    check "the end" stop_unharmed
}
changes_to 4
changes_to 0
finish
