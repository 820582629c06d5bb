#!/bin/sh
# Bulk actions from outside: by a client of its own jobs, by an operator of everybody's; asked for first, then done.
cd "$(dirname "$0")/../.." || exit 1
. tests/api/server.sh

# ask STATUS METHOD URL KEY BODY: the answer stays in $tmp/body
ask() {
    is "$(curl -s -m 120 -o "$tmp/body" -D "$tmp/head" -w '%{http_code}' -X "$2" -H "$4" -H 'Content-Type: application/json' \
        ${5:+--data-binary "$5"} "http://$3")" "$1"
}
answer() {
    has "$(cat "$tmp/body")" "$1"
}
# join: a new client's id and key
join() {
    id=$(curl -s -X POST "http://$client/v1/clients" | sed 's/.*"client_id":"\([^"]*\)".*/\1/')
    key="Authorization: Bearer $(curl -s -X POST "http://$client/v1/clients/$id/keys" | sed 's/.*"api_key":"\([^"]*\)".*/\1/')"
}
submit() {
    ask 202 POST "$client/v1/jobs" "$1" '{"type":"EXECUTE","work_kind":"SUCCESS_FAST"}'
}
# ended URL KEY: asks until the operation has; each answer is a round trip, and it may take some steps
ended() {
    for _ in $(seq 20000); do
        ask 200 GET "$1" "$2" || return 1
        grep -q '"state":"running"' "$tmp/body" || return 0
    done
    return 1
}

check "a server without workers" start --schedulers 2 --workers-count 0
join
mine=$key me=$id
join
other=$key
for _ in 1 2 3 4 5; do submit "$mine" >/dev/null; done
submit "$other" >/dev/null

check "asked first" ask 200 POST "$client/v1/jobs:bulk" "$mine" '{"action":"cancel","filter":{"states":["QUEUED"]},"dry_run":true}'
check "it says how many" answer '"dry_run":true,"count":5,"unchanged":0,"complete":true,"sample":["'
check "nothing was changed" ask 200 GET "$client/v1/jobs?state=QUEUED" "$mine"
check "all wait" is "$(grep -o '"state":"QUEUED"' "$tmp/body" | wc -l)" 5

check "done" ask 202 POST "$client/v1/jobs:bulk" "$mine" '{"action":"cancel","filter":{"states":["QUEUED"]}}'
operation=$(member operation_id "$(cat "$tmp/body")")
check "it says where" grep -qi "^location: /v1/operations/$operation" "$tmp/head"
check "it ends" ended "$client/v1/operations/$operation" "$mine"
check "with what came of it" answer '"state":"done"'
check "in figures" answer '"progress":1,"matched":5,"changed":5,"unchanged":0'
check "they are canceled" ask 200 GET "$client/v1/jobs?state=CANCELED" "$mine"
check "all of them" is "$(grep -o '"state":"CANCELED"' "$tmp/body" | wc -l)" 5
check "the other client's isn't" ask 200 GET "$client/v1/jobs?state=QUEUED" "$other"
check "it waits" is "$(grep -o '"state":"QUEUED"' "$tmp/body" | wc -l)" 1

check "another's operation" ask 403 GET "$client/v1/operations/$operation" "$other"
check "nor can it be aborted" ask 403 POST "$client/v1/operations/$operation:abort" "$other" '{}'
check "one that has ended is as it is" ask 200 POST "$client/v1/operations/$operation:abort" "$mine" '{}'
check "done" answer '"state":"done"'
check "no such operation" ask 404 GET "$client/v1/operations/00000000-0000-7000-8000-000000000000" "$mine"

check "an operator asks" ask 200 POST "$at/jobs:bulk" "$bearer" '{"action":"cancel","filter":{"type":"EXECUTE"},"dry_run":true}'
check "of everybody's" answer '"count":1,"unchanged":5'
check "of one client" ask 200 POST "$at/jobs:bulk" "$bearer" "{\"action\":\"cancel\",\"filter\":{\"client\":\"$me\"},\"dry_run\":true}"
check "nothing is left of it" answer '"count":0,"unchanged":5'
check "an operator does" ask 202 POST "$at/jobs:bulk" "$bearer" '{"action":"cancel","filter":{"work_kind":"SUCCESS_FAST"},"reason":"a drill"}'
operation=$(member operation_id "$(cat "$tmp/body")")
check "it ends" ended "$at/operations/$operation" "$bearer"
check "it found all" answer '"matched":6,"changed":1,"unchanged":5'
check "the audit log has it" has "$(get /stats/audits)" '"verb":"jobs.bulk_cancel"'
euros=$(printf '€%.0s' $(seq 200)) kept=$(printf '€%.0s' $(seq 170)) # 600 bytes; an entry has room for 512
check "a long reason" ask 202 POST "$at/jobs:bulk" "$bearer" "{\"action\":\"cancel\",\"filter\":{\"states\":[\"QUEUED\"]},\"reason\":\"$euros\"}"
check "the audit log has as much as fits" has "$(get '/stats/audits?limit=1')" "\"reason\":\"$kept\",\"outcome\":\"done\""
check "the operation, too" ended "$at/operations/$(member operation_id "$(cat "$tmp/body")")" "$bearer"
check "a client can't see it" ask 403 GET "$client/v1/operations/$operation" "$mine"

check "nothing is everything" ask 400 POST "$client/v1/jobs:bulk" "$mine" '{"action":"cancel","filter":{}}'
check "no filter" ask 400 POST "$client/v1/jobs:bulk" "$mine" '{"action":"cancel"}'
check "no such action" ask 400 POST "$client/v1/jobs:bulk" "$mine" '{"action":"delete","filter":{"states":["QUEUED"]}}'
check "no such state" ask 400 POST "$client/v1/jobs:bulk" "$mine" '{"action":"cancel","filter":{"states":["LOST"]}}'
check "no such kind" ask 400 POST "$client/v1/jobs:bulk" "$mine" '{"action":"cancel","filter":{"work_kind":"NOPE"}}'
check "no time" ask 400 POST "$client/v1/jobs:bulk" "$mine" '{"action":"cancel","filter":{"created_after":"soon"}}'
check "another client's jobs" ask 400 POST "$client/v1/jobs:bulk" "$mine" "{\"action\":\"cancel\",\"filter\":{\"client\":\"$me\"}}"
check "nobody died" nobody_died
check "the end" stop_unharmed

# runs: until the job does
runs() {
    for _ in $(seq 20000); do
        ask 200 GET "$client/v1/jobs/$1" "$mine" || return 1
        grep -q '"state":"RUNNING"' "$tmp/body" && return 0
    done
    return 1
}
check "a server with a worker" start --schedulers 2 --workers-count 1
check "which is at work" ask 202 POST "$client/v1/jobs" "$mine" '{"type":"EXECUTE","work_kind":"RUNS_LONG"}'
job=$(member job_id "$(cat "$tmp/body")")
check "on it" runs "$job"
check "it is canceled with all the others" ask 202 POST "$client/v1/jobs:bulk" "$mine" '{"action":"cancel","filter":{"states":["RUNNING"]}}'
check "soon" ended "$client/v1/operations/$(member operation_id "$(cat "$tmp/body")")" "$mine"
check "the worker is free at once (JOB-048)" submit "$mine"
check "for another one" runs "$(member job_id "$(cat "$tmp/body")")"
get /metrics >"$tmp/metrics"
check "one has run (JOB-421)" grep -q '^job_execution_seconds_count 1$' "$tmp/metrics"
check "for some time" grep -q '^job_execution_seconds_sum .*[1-9]' "$tmp/metrics"
check "the end" stop_unharmed
finish
