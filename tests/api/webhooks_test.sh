#!/bin/sh
# Webhooks and callbacks from outside, by the published contract: registering, what a receiver gets and in which order, attempts, signatures,
# receivers that misbehave, a server that is killed, and addresses that may not be reached.
cd "$(dirname "$0")/../.." || exit 1
. tests/api/server.sh
"${CC:-cc}" -O1 -o "$tmp/receiver" tests/api/receiver.c || exit 1
receiver=
trap 'kill -9 $server $receiver 2>/dev/null; rm -rf "$tmp"' EXIT
secret=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
json='Content-Type: application/json'

# A receiver at $port; with an argument, at that port. What it prints is kept in $tmp/lines.
receive() {
    exec 8>&-
    rm -f "$tmp/got"
    mkfifo "$tmp/got"
    "$tmp/receiver" "$@" >"$tmp/got" &
    receiver=$!
    exec 8<"$tmp/got"
    read -r port <&8
}
# got PATH TEXT...: reads what came until a request to this path has all the texts; sets request
got() {
    path=$1
    shift
    while read -r request <&8; do
        printf '%s\n' "$request" >>"$tmp/lines"
        missing=
        for text in "$path " "$@"; do
            case $request in *"$text"*) ;; *) missing=$text ;; esac
        done
        [ -n "$missing" ] || return 0
    done
    return 1
}
# event NAME ATTEMPT: what a request about $job has in it
event() {
    set -- "$1" "$2" "\"event_name\":\"job.$1\""
    got "$hook_path" "\"job_id\":\"$job\"" "$3" "\"delivery_attempt\":$2}"
}
# story PATH: what came there of $job so far, as "created.1 queued.1 ..."
story() {
    grep "^$1 " "$tmp/lines" | grep -F "\"job_id\":\"$job\"" |
        sed 's/.*"event_name":"job\.\([a-z]*\)".*"delivery_attempt":\([0-9]*\)}$/\1.\2/' | tr '\n' ' '
}
# field NUMBER: of the request; 1 path, 2 ms, 3 webhook-id, 4 webhook-timestamp, 5 webhook-signature, 6 body
field() {
    printf '%s\n' "$request" | cut -d ' ' -f "$1"
}

# ask METHOD PATH [BODY]: sets code; the body stays in a file
ask() {
    code=$(curl -s -m 60 -o "$tmp/body" -w '%{http_code}' -X "$1" -H "Authorization: Bearer $key" ${3:+-H "$json" -d "$3"} \
        "http://$client$2")
}
# answers STATUS METHOD PATH [BODY]
answers() {
    wanted=$1
    shift
    ask "$@"
    [ "$code" = "$wanted" ] || echo "$code: $(cat "$tmp/body")"
    [ "$code" = "$wanted" ]
}
says() {
    has "$(cat "$tmp/body")" "$1"
}
# refuses STATUS CODE METHOD PATH [BODY]
refuses() {
    wanted_code=$2 wanted=$1
    shift 2
    answers "$wanted" "$@" && says "\"code\":\"$wanted_code\""
}
# becomes PATH TEXT: asked until the answer has it
becomes() {
    for _ in $(seq 20000); do
        ask GET "$1"
        ! grep -q -- "$2" "$tmp/body" || return 0
    done
    cat "$tmp/body"
    return 1
}
# passes PATH TEXT: asked until the answer has it no more
passes() {
    for _ in $(seq 20000); do
        ask GET "$1"
        grep -q -- "$2" "$tmp/body" || return 0
    done
    cat "$tmp/body"
    return 1
}
of_body() {
    member "$1" "$(cat "$tmp/body")"
}
newcomer() {
    id=$(member client_id "$(curl -s -m 60 -X POST "http://$client/v1/clients")")
    answer=$(curl -s -m 60 -X POST "http://$client/v1/clients/$id/keys")
    key=$(member api_key "$answer") key_id=$(member key_id "$answer")
    [ -n "$key" ]
}
# register PATH EVENT: sets webhook
register() {
    answers 201 POST /v1/webhooks "{\"url\":\"http://127.0.0.1:$port$1\",\"events\":[\"$2\"]}" && webhook=$(of_body webhook_id)
}
# submit KIND [PATH]: sets job and hook_path; $host is the last number of the receiver's address
host=1
submit() {
    hook_path=${2:-}
    answers 202 POST /v1/jobs "{\"type\":\"EXECUTE\",\"work_kind\":\"$1\"${2:+,\"callback\":\"http://127.0.0.$host:$port$2\"}}" &&
        job=$(of_body job_id)
}
at_least() {
    value=$(get /metrics | grep -v '^#' | grep -F "$1 " | sed 's/.* //')
    [ "${value:-0}" -ge "$2" ] || echo "$1 is '$value'"
    [ "${value:-0}" -ge "$2" ]
}
quick() {
    start --schedulers 2 --webhooks-backoff-base 20ms --webhooks-backoff-max 40ms --jobs-simulation-speed 50 \
        --limits-requests-per-minute 100000 --webhooks-signing-secret $secret "$@"
}
# Receivers that are well have all the time they may need on a slow machine.
patient() {
    quick --outbound-allow-private --webhooks-timeout 60s --webhooks-max-retries 100 "$@"
}
die() {
    kill -9 "$server"
    wait "$server" 2>/dev/null
    return 0
}

# --- registering ---

# statuses OPERATION: that the contract has for it
statuses() {
    awk -v operation="$1" '/operationId:/ { on = $2 == operation } /^webhooks:/ { on = 0 } on' docs/contract/jobs.openapi.yaml |
        grep -o "'[0-9]*':" | tr -d "':" | tr '\n' ' '
}
nothing='{"url":"http://127.0.0.1/","events":["*"]}'
# A port that no outgoing connection is given while the receiver is down.
try=$((20000 + $$ % 10000))
until receive "$try" && [ -n "$port" ]; do
    try=$((try + 1))
done
check "a server" patient
check "a client" newcomer
first=$key mine=$id
check "JOB-185 the contract has these statuses" is "$(statuses registerWebhook)" "201 400 401 403 409 500 503 "
check "JOB-194 the contract has these statuses" is "$(statuses unregisterWebhook)" "200 401 403 404 500 503 "
check "JOB-184 register" register /ok/all job.succeeded
check "JOB-189 the same again" refuses 409 RFA_WEBHOOK_CONFLICT POST /v1/webhooks \
    "{\"url\":\"http://127.0.0.1:$port/ok/all\",\"events\":[\"job.succeeded\"]}"
check "JOB-186 nothing in it" refuses 400 RFA_JOB_VALIDATION_FAILED POST /v1/webhooks '{}'
check "JOB-186 of the wrong type" refuses 400 RFA_REQUEST_MALFORMED POST /v1/webhooks '{"url":5,"events":["*"]}'
for url in nonsense ftp://example.com/ http://user@example.com/ 'http://example.com/[' http://example.com/%zz http://127.1/; do
    check "JOB-327 no callback leads to $url" refuses 400 RFA_JOB_VALIDATION_FAILED POST /v1/webhooks \
        "{\"url\":\"$url\",\"events\":[\"*\"]}"
    check "JOB-327 nor one of a job" refuses 400 RFA_JOB_VALIDATION_FAILED POST /v1/jobs "{\"type\":\"EXECUTE\",\"callback\":\"$url\"}"
done
check "JOB-183 another method" answers 405 PUT /v1/webhooks '{}'
check "JOB-192 another method" answers 405 PATCH "/v1/webhooks/$webhook" '{}'
key=cop_0123456789
check "JOB-187 an unknown key" refuses 401 RFA_AUTH_INVALID_CREDENTIALS POST /v1/webhooks "$nothing"
check "JOB-195 an unknown key" refuses 401 RFA_AUTH_INVALID_CREDENTIALS DELETE "/v1/webhooks/$webhook"
check "another client" newcomer
check "JOB-196 another client's" refuses 403 RFA_AUTH_FORBIDDEN DELETE "/v1/webhooks/$webhook"
check "its job" submit SUCCESS_FAST
check "its key is revoked" answers 200 POST "/v1/clients/$id/keys/revoke" "{\"key_id\":\"$key_id\"}"
check "JOB-188 a revoked key" refuses 403 RFA_AUTH_API_KEY_DISABLED POST /v1/webhooks "$nothing"
check "JOB-196 a revoked key" refuses 403 RFA_AUTH_API_KEY_DISABLED DELETE "/v1/webhooks/$webhook"
key=$first id=$mine

# --- what a receiver gets ---

check "a job" submit SUCCESS_FAST
check "JOB-184 the webhook gets what it wants" got /ok/all "\"job_id\":\"$job\""
check "JOB-184 and that alone, of no other client" is "$(cut -d ' ' -f 1 "$tmp/lines" | sort | uniq -c | tr -s ' ')" " 1 /ok/all"
check "which is its success" is "$(story /ok/all)" "succeeded.1 "
check "JOB-193 unregister" answers 200 DELETE "/v1/webhooks/$webhook"
check "JOB-193 it says so" says '{"deleted":true}'
check "JOB-197 again" refuses 404 RFA_WEBHOOK_NOT_FOUND DELETE "/v1/webhooks/$webhook"
check "JOB-053 JOB-080 a job with a callback" submit WEBHOOK_SUCCESS /ok/callback
check "JOB-053 JOB-080 it hears of the end" event succeeded 1
check "JOB-080 JOB-193 of each event once, in order" is "$(story /ok/callback)" "created.1 queued.1 assigned.1 running.1 succeeded.1 "
check "JOB-055 a receiver that fails at first" submit WEBHOOK_5XX /flaky
check "JOB-055 JOB-329 the last second attempt" event succeeded 2
check "JOB-329 each event waits for the one before" is "$(story /flaky)" \
    "created.1 created.2 queued.1 queued.2 assigned.1 assigned.2 running.1 running.2 succeeded.1 succeeded.2 "
check "AMB-J-43 an attempt more has the same id" is "$(grep '^/flaky ' "$tmp/lines" | cut -d ' ' -f 3 | uniq -c | tr -s ' ' |
    cut -d ' ' -f 2 | tr '\n' ' ')" "2 2 2 2 2 "
check "the list of deliveries says what became of them" becomes "/v1/deliveries?job_id=$job&limit=100" \
    '"event_name":"job.succeeded","state":"delivered"'
check "JOB-422 attempts are counted" at_least 'webhook_deliveries_total{result="success"}' 11
check "JOB-428 those that failed, too" at_least 'webhook_deliveries_total{result="failure"}' 5
check "JOB-423 by themselves as well" at_least webhook_failures_total 5
check "a receiver that is busy" submit SUCCESS_FAST /later
check "says when it wants more" event created 1
said=$(field 2)
check "Retry-After: it gets more" event created 2
check "Retry-After: not before" [ $(($(field 2) - said)) -ge 1000 ]
check "a webhook that has gone" register /gone job.created
check "gets one" submit SUCCESS_FAST
check "and answers 410" got /gone "\"job_id\":\"$job\"" '"delivery_attempt":1}'
check "so that it is disabled" becomes "/v1/webhooks/$webhook" '"state":"disabled","reason":"gone"'
check "and told no more" submit SUCCESS_FAST /ok/after
check "while others are" got /ok/after job.succeeded
check "it was told once" is "$(grep -c '^/gone ' "$tmp/lines")" 1

# --- signatures ---

# signed SECRET: what the header says of this request when it is signed with that, which is whsec_ and base64
signed() {
    hex=$(printf '%s' "${1#whsec_}" | base64 -d | od -An -v -tx1 | tr -d ' \n')
    printf 'v1,%s' "$(printf '%s.%s.%s' "$(field 3)" "$(field 4)" "$(printf '%s\n' "$request" | cut -d ' ' -f 6-)" |
        openssl dgst -sha256 -mac HMAC -macopt "hexkey:$hex" -binary | base64)"
}
if have openssl; then
    check "a job for a receiver that checks" submit SUCCESS_FAST /ok/signed
    check "it is told" event succeeded 1
    check "AMB-J-43 signed with the server's secret" is "$(field 5)" "$(signed $secret)"
    check "a webhook" register /ok/own job.created
    check "gets a secret of its own" answers 200 POST "/v1/webhooks/$webhook:rotate"
    own=$(of_body secret)
    check "a job" submit SUCCESS_FAST
    check "the webhook is told" got /ok/own "\"job_id\":\"$job\""
    check "AMB-J-43 signed with it, and for a day with the one before" is "$(field 5)" "$(signed "$own")|$(signed $secret)"
    check "it is told no more" answers 200 DELETE "/v1/webhooks/$webhook"
fi

# --- a server that is killed: what it has said it would tell is told, in order, with the same ids ---

kill -9 "$receiver"
wait "$receiver" 2>/dev/null
check "JOB-326 JOB-328 nobody listens" submit SUCCESS_FAST /ok/none
lonely=$job
check "JOB-326 JOB-328 it was tried" becomes "/v1/deliveries?job_id=$job" '"error":"unreachable"'
receive "$port"
: >"$tmp/lines"
jobs=
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
    check "JOB-082 a job" submit SUCCESS_FAST /ok/crash
    jobs="$jobs $job"
done
check "some were told" got /ok/crash job.queued
check "the server is killed" die
check "JOB-264 JOB-459 it starts again" patient
# told JOB PATH: all its events came, each with one id, the first attempts in the order of the events
told() {
    job=$1
    becomes "/v1/jobs/$job" '"state":"\(SUCCEEDED\|FAILED\|CANCELED\)"' &&
        passes "/v1/deliveries?job_id=$job&limit=100" '"state":"pending"' && answers 200 GET "/v1/jobs/$job/events" || return 1
    tr '{' '\n' <"$tmp/body" | sed -n 's/.*"event_id":"\([^"]*\)".*/\1/p' >"$tmp/events"
    [ -s "$tmp/events" ] || return 1
    # What was delivered stands in the pipe by now.
    last=$(tail -n 1 "$tmp/events")
    grep -q "$last" "$tmp/lines" || got "$2" "$last" || return 1
    grep "^$2 " "$tmp/lines" | grep -F "\"job_id\":\"$job\"" |
        sed 's/^[^ ]* [^ ]* \([^ ]*\) .*"event_id":"\([^"]*\)".*/\2 \1/' >"$tmp/came"
    awk '!seen[$1]++ { print $1 }' "$tmp/came" | diff "$tmp/events" - &&
        [ "$(sort -u "$tmp/came" | wc -l)" = "$(wc -l <"$tmp/events")" ]
}
for job in $jobs; do
    check "JOB-080 JOB-264 JOB-459 W5 told of all its events in order" told "$job" /ok/crash
done
check "JOB-326 so is the one nobody listened to" told "$lonely" /ok/none
check "it stops" stop

# --- receivers that misbehave: the job goes on, and after six attempts the next event comes ---

check "a server with less patience" quick --outbound-allow-private --webhooks-timeout 2s
keep
for way in /500 /404 /away /hang /drip /big /garbage /close; do
    host=$((host + 1)) # each is a host of its own
    check "JOB-326 JOB-328 JOB-329 a job for $way" submit SUCCESS_FAST "$way"
    jobs="$jobs $job"
    check "JOB-330 $way is tried again" event created 2
done
for job in $jobs; do
    check "JOB-336 its job is done all the same" becomes "/v1/jobs/$job" '"state":"\(SUCCEEDED\|FAILED\)"'
done
check "a redirect is not followed" [ "$(grep -c '^/ok/elsewhere ' "$tmp/lines")" = 0 ]
host=$((host + 1))
check "JOB-056 JOB-330 one that never works" submit WEBHOOK_RETRIES_EXHAUSTED /500/last
check "JOB-446 has six attempts" event created 6
message=$(field 3)
check "JOB-330 and then comes the next event" event queued 1
check "JOB-330 after six" is "$(story /500/last)" "created.1 created.2 created.3 created.4 created.5 created.6 queued.1 "
check "JOB-056 it has succeeded all the same" becomes "/v1/jobs/$job" '"state":"SUCCEEDED"'
check "JOB-330 the delivery has failed" becomes "/v1/deliveries/$message" '"state":"failed"'
check "resend: once more" answers 200 POST "/v1/deliveries/$message:resend"
check "resend: it comes" event created 7
check "resend: with its id" is "$(field 3)" "$message"
check "JOB-411 each attempt is a line of the log" logged "\"url_host\":\"127.0.0.$host:$port\""
check "it stops" stop
check "its store is whole" "$COPPICE" check --store-dir "$tmp/store"

# --- addresses that may not be reached ---

host=1
check "a server as before" patient
check "a webhook on this machine" register /ok/inside job.created
check "it stops" stop
check "a server that reaches no private address" quick --webhooks-timeout 60s
: >"$tmp/lines"
check "AMB-J-61 a job" submit SUCCESS_FAST
check "AMB-J-61 the webhook is not called" becomes "/v1/deliveries?job_id=$job" '"error":"address"'
kill -9 "$receiver"
wait "$receiver" 2>/dev/null
while read -r request <&8; do printf '%s\n' "$request" >>"$tmp/lines"; done
check "AMB-J-61 not even by mistake" [ "$(grep -c '^/ok/inside ' "$tmp/lines")" = 0 ]
for url in http://127.0.0.1:80/ http://169.254.169.254/ 'http://[::1]/' http://10.0.0.1/ http://localhost/ 'http://[::ffff:127.0.0.1]/' \
    http://0.0.0.0/; do
    check "AMB-J-61 no webhook at $url" refuses 400 RFA_JOB_VALIDATION_FAILED POST /v1/webhooks "{\"url\":\"$url\",\"events\":[\"*\"]}"
    check "AMB-J-61 no callback at $url" refuses 400 RFA_JOB_VALIDATION_FAILED POST /v1/jobs \
        "{\"type\":\"EXECUTE\",\"callback\":\"$url\"}"
done
check "it stops unharmed" stop_unharmed
finish
