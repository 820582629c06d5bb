#!/bin/sh
# Who would rather wait for the end of a job than ask for it: Prefer: wait=N, respond-async (RFC 7240), at both paths that take jobs.
cd "$(dirname "$0")/../.." || exit 1
. tests/api/server.sh

newcomer() {
    id=$(curl -s -X POST "http://$client/v1/clients" | sed 's/.*"client_id":"\([^"]*\)".*/\1/')
    key=$(curl -s -X POST "http://$client/v1/clients/$id/keys" | sed 's/.*"api_key":"\([^"]*\)".*/\1/')
}
post() { # post PATH BODY [PREFER] [OUTPUT]: the answer, its head first, in OUTPUT ("answer")
    curl -s -i -o "$tmp/${4:-answer}" -X POST -H "Authorization: Bearer $key" -H 'Content-Type: application/json' \
        ${3:+-H "Prefer: $3"} -d "$2" "http://$client$1"
}
has() { tr -d '\r' <"$tmp/answer" | grep -q -- "$1" || { cat "$tmp/answer"; return 1; }; }
lacks() { ! has "$1" >/dev/null || { cat "$tmp/answer"; return 1; }; }
claim() { # claim: job, token
    post /v1/work:claim '{"wait_ms":20000,"lease_ms":900000}' '' claimed
    job=$(sed -n 's/.*"job_id":"\([^"]*\)".*/\1/p' "$tmp/claimed")
    token=$(sed -n 's/.*"lease_token":"\([^"]*\)".*/\1/p' "$tmp/claimed")
    [ -n "$token" ]
}
complete() { post /v1/work:complete "{\"job_id\":\"$job\",\"lease_token\":\"$token\",\"result\":7}" '' completed; }
advance() { curl -s -f -o /dev/null -X POST -H "$bearer" -H 'Content-Type: application/json' -d "{\"by\":\"$1\"}" "http://$at/clock:advance"; }

work='{"work_kind":"x.mail","payload":1}'
fast='{"type":"EXECUTE","work_kind":"SUCCESS_FAST"}'

start --workers-count 1 && newcomer

check 'nothing is preferred' post /v1/work:submit "$work"
check '202' has '^HTTP/1.1 202'
check 'and nothing was applied' lacks 'Preference-Applied'
check 'a worker takes it' claim
check 'and has done it' complete

check 'what is accepted is enough' post /v1/work:submit "$work" respond-async
check '202' has '^HTTP/1.1 202'
check 'as was preferred' has '^Preference-Applied: respond-async$'
check 'a worker takes it' claim
check 'and has done it' complete

post /v1/work:submit "$work" 'wait=25' &
waiting=$!
check 'a worker takes what somebody waits for' claim
check 'and has done it' complete
check 'who waited is answered' wait $waiting
check '200' has '^HTTP/1.1 200'
check 'as was preferred' has '^Preference-Applied: wait=25$'
check 'with the job' has "\"job_id\":\"$job\""
check 'which is done' has '"state":"SUCCEEDED"'
check 'and is told from where' has "^Content-Location: /v1/jobs/$job\$"
check 'and of' has "^Location: /v1/jobs/$job\$"

post /v1/jobs "$fast" 'respond-async, wait=30' &
waiting=$!
check 'one that the server works on itself' wait $waiting
check '200' has '^HTTP/1.1 200'
check 'as was preferred' has '^Preference-Applied: respond-async, wait=30$'
check 'done' has '"state":"SUCCEEDED"'

keyed='{"work_kind":"x.mail","payload":2,"idempotency_key":"once"}'
post /v1/work:submit "$keyed" 'wait=600' &
waiting=$!
check 'a worker takes it, and is slow' claim
check 'time goes by, but not as much as was asked for' advance 31s
check 'who waited is answered' wait $waiting
check '202: it goes on' has '^HTTP/1.1 202'
check 'so many seconds were granted' has '^Preference-Applied: wait=30$'
post /v1/work:submit "$keyed" 'wait=20' &
waiting=$!
check 'it is still worked on' complete
check 'who asks again with the same key is answered' wait $waiting
check '200' has '^HTTP/1.1 200'
check 'it is the same' has '^Idempotent-Replayed: true$'
check 'and a wait was granted' has '^Preference-Applied: wait=20$'

check 'no time at all is one look' post /v1/work:submit "$work" 'wait=0'
check '202' has '^HTTP/1.1 202'
check 'as was preferred' has '^Preference-Applied: wait=0$'
check 'what nobody can read is passed over' post /v1/work:submit "$work" 'wait=soon'
check '202' has '^HTTP/1.1 202'
check 'and nothing was applied' lacks 'Preference-Applied'
check 'a refusal waits for nobody' post /v1/work:submit '{"work_kind":"nothing"}' 'wait=30'
check '400' has '^HTTP/1.1 400'

post /v1/work:submit '{"work_kind":"x.drain","payload":3}' 'wait=30' &
waiting=$!
taken() {
    until curl -s -X POST -H "Authorization: Bearer $key" -H 'Content-Type: application/json' -d '{"kinds":["x.drain"],"wait_ms":20000}' \
        "http://$client/v1/work:claim" | grep -q lease_token; do :; done
}
check 'somebody waits' taken
check 'and the server stops' stop
check 'who waited is answered before' wait $waiting
check '202' has '^HTTP/1.1 202'
finish
