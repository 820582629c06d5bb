#!/bin/sh
# Jobs from outside, by curl and the published contract alone: each action from end to end, every operation's credentials, what
# its document says, what the log has of it, what is left after a kill and after retention, and a thousand of them at a time.
# Where the system lets it, all of it runs in a network that has nothing but the loopback (JOB-007).
# shellcheck disable=SC2016 # the inner shell expands it
[ "${1:-}" = alone ] || ! unshare -rn ip link set lo up 2>/dev/null ||
    exec unshare -rn sh -c 'ip link set lo up && exec sh "$0" alone' "$0"
alone=${1:-}
cd "$(dirname "$0")/../.." || exit 1
. tests/api/server.sh

none=00000000-0000-4000-8000-000000000000
json='Content-Type: application/json'
from=127.0.0.1
receiver=
trap 'kill -9 $server $receiver 2>/dev/null; rm -rf "$tmp"' EXIT

# ---- asking ----

# ask METHOD PATH ARGUMENT...: status; body and head stay in files
ask() {
    method=$1 path=$2
    shift 2
    curl -s -m 120 -o "$tmp/body" -D "$tmp/head" -w '%{http_code}' --interface "$from" -X "$method" "$@" "http://$client$path"
}
value() {
    member "$1" "$(cat "$tmp/body")"
}
header() {
    tr -d '\r' <"$tmp/head" | sed -n "s/^$1: //Ip"
}
auth() {
    printf 'Authorization: Bearer %s' "$1"
}
# answers STATUS METHOD PATH ARGUMENT...: by this client
answers() {
    wanted=$1
    shift
    is "$(ask "$@" -H "$mine")" "$wanted" || {
        cat "$tmp/body"
        return 1
    }
}
# refused STATUS CODE METHOD PATH ARGUMENT...: with a problem and not a word of a job
refused() {
    wanted=$1 code=$2
    shift 2
    is "$(ask "$@")" "$wanted" && is "$(value code)" "$code" && is "$(header content-type)" application/problem+json &&
        lacks "$(cat "$tmp/body")" '"job_id"' || {
        cat "$tmp/body"
        return 1
    }
}
# newcomer: its id, key, and mine, the header that it comes with
newcomer() {
    ask POST /v1/clients >/dev/null
    id=$(value client_id)
    ask POST "/v1/clients/$id/keys" >/dev/null
    key=$(value api_key)
    mine=$(auth "$key")
    [ -n "$id" ] && [ -n "$key" ]
}
# submit KIND MEMBERS: job
submit() {
    ask POST /v1/jobs -H "$mine" -H "$json" -d "{\"type\":\"EXECUTE\",\"work_kind\":\"$1\"${2:-}}" >"$tmp/status"
    job=$(value job_id)
    is "$(cat "$tmp/status")" 202 && [ -n "$job" ]
}
defer() { # to a time that doesn't come
    ask POST /v1/jobs -H "$mine" -H "$json" -d '{"type":"DEFERRED","execution_at":"2999-01-01T00:00:00Z"}' >"$tmp/status"
    job=$(value job_id)
    is "$(cat "$tmp/status")" 202 && [ -n "$job" ]
}
# until COMMAND...: asked again and again until it says so
until_so() {
    tries=0
    while [ $tries -lt 3000 ]; do
        "$@" >"$tmp/until" 2>&1 && return 0
        tries=$((tries + 1))
        sleep 0.03
    done
    cat "$tmp/until" "$tmp/body"
    return 1
}
state_is() {
    ask GET "/v1/jobs/$job" -H "$mine" >/dev/null
    is "$(value state)" "$1"
}
becomes() {
    until_so state_is "$1"
}
gone() {
    is "$(ask GET "/v1/jobs/$job" -H "$mine")" 404
}
# begin ARGUMENT...: a server whose log is kept
begin() {
    start --limits-requests-per-minute 1000000 --limits-address 1000000 --outbound-allow-private "$@" && keep
}
metric() {
    get /metrics | sed -n "s/^$1 //p"
}
looked() { # retention has: what it hasn't seen pass it doesn't believe
    until_so eval '[ "$(get /stats/actors/store.keeper | sed -n "s/.*\"handled\":\([0-9]*\).*/\1/p")" -ge 2 ]'
}
advance() {
    is "$(status POST /clock:advance -H "$json" -d "{\"by\":\"$1\"}")" 200
}

"${CC:-cc}" -O1 -o "$tmp/receiver" tests/api/collector.c || exit 1
mkfifo "$tmp/hook" "$tmp/callback"
# A receiver hears one connection after the other, so there is one for each address.
"$tmp/receiver" >"$tmp/hook" &
receiver=$!
exec 8<"$tmp/hook"
read -r hook <&8
cat <&8 >>"$tmp/told" &
"$tmp/receiver" >"$tmp/callback" &
receiver="$receiver $!"
exec 7<"$tmp/callback"
read -r callback <&7
cat <&7 >>"$tmp/told" &

# ---- each action, end to end, with nothing but curl (JOB-001, JOB-008, JOB-455) ----

check "a server" begin --workers-count 2 --jobs-simulation-speed 1000 --retry-backoff-base-ms 1 --auth-key-lifetime 40d
check "JOB-412 a client whose key is over" newcomer
expired=$mine expired_id=$id
check "its time passes" advance 41d

from=127.0.0.2
check "JOB-023 a client is an id" newcomer
check "JOB-023 a UUID" sh -c 'printf %s "$1" | grep -qE "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"' - "$id"
hooked="{\"url\":\"http://127.0.0.1:$hook/all\",\"events\":[\"*\"]}"
check "JOB-455 webhook: registered" answers 201 POST /v1/webhooks -H "$json" -d "$hooked"
webhook=$(value webhook_id)
check "JOB-001 JOB-455 submit" submit SUCCESS_FAST ",\"callback\":\"http://127.0.0.1:$callback/one\""
check "JOB-001 JOB-013 it goes to its end by itself" becomes SUCCEEDED
check "JOB-022 under the client whose key it was" answers 200 GET /v1/jobs
check "JOB-022 whose list has it" has "$(cat "$tmp/body")" "\"job_id\":\"$job\""
check "JOB-079 an instant job has no time" answers 200 GET "/v1/jobs/$job"
check "JOB-079 so it is null" has "$(cat "$tmp/body")" '"execution_at":null'
check "JOB-455 get: type, state and outcome" is "$(value type) $(value state) $(value outcome)" 'EXECUTE SUCCEEDED SUCCESS'
check "JOB-455 report" answers 200 GET "/v1/jobs/$job/report"
check "JOB-455 report: of a success" is "$(value outcome)" SUCCESS
check "JOB-455 events" answers 200 GET "/v1/jobs/$job/events"
told() { # both addresses have heard of this change of the job
    [ "$(grep -F "\"job_id\":\"$job\"" "$tmp/told" | grep -c -F "\"event_name\":\"$1\"")" = 2 ]
}
for event in job.created job.queued job.assigned job.running job.succeeded; do
    check "JOB-001 JOB-455 webhook: its receivers are told of $event" until_so told $event
done
check "JOB-455 webhook: taken away" answers 200 DELETE "/v1/webhooks/$webhook"

check "JOB-455 submit one that fails" submit FAIL_IMMEDIATE
check "JOB-455 it fails" becomes FAILED
check "JOB-455 retry" answers 200 POST "/v1/jobs/$job/retry"
check "JOB-455 retry: the second attempt" is "$(value state) $(value attempt)" 'QUEUED 2'
check "JOB-455 retry: which fails as well" becomes FAILED

check "JOB-079 a deferred one" answers 202 POST /v1/jobs -H "$json" -d '{"type":"DEFERRED","execution_at":"2999-01-01T00:00:00Z"}'
job=$(value job_id)
check "JOB-013 it waits" state_is CREATED
check "JOB-079 its time is told" is "$(value execution_at)" 2999-01-01T00:00:00.000Z
updated=$(value updated_at)
check "JOB-455 cancel" answers 200 POST "/v1/jobs/$job/cancel"
check "JOB-455 cancel: at once" is "$(value state)" CANCELED
check "JOB-013 its state has changed" state_is CANCELED
check "JOB-013 and updated_at, to a later time" sh -c '[ "$1" != "$2" ] && [ "$(printf "%s\n%s\n" "$1" "$2" | sort | tail -n 1)" = "$2" ]' - "$updated" "$(value updated_at)"
check "JOB-008 renew" answers 200 POST "/v1/clients/$id/keys/renew" -H "$json" -d '{}'
mine=$(auth "$(value api_key)")
renewed=$(value key_id)
check "JOB-008 revoke" answers 200 POST "/v1/clients/$id/keys/revoke" -H "$json" -d "{\"key_id\":\"$renewed\"}"
revoked=$mine revoked_id=$id

# operations: "method path" of each operation of the document that a client asks for
operations() {
    awk '/^  \// { path = $1; sub(/:$/, "", path) } /^components:|^webhooks:/ { exit }
        /^    (get|post|put|delete):$/ { sub(/:/, "", $1); print toupper($1), "/v1" path }' docs/contract/jobs.openapi.yaml
}
operations >"$tmp/operations"
get /metrics >"$tmp/metrics"
check "JOB-008 the document has its thirteen operations" is "$(wc -l <"$tmp/operations" | tr -d ' ')" 13
while read -r method path; do
    check "JOB-008 curl was enough for $method $path" grep -q \
        "^http_requests_total{endpoint=\"$path\",method=\"$method\",status=\"20[0-9]\"} [1-9]" "$tmp/metrics"
done <"$tmp/operations"

# ---- credentials, operation by operation ----

from=127.0.0.3
check "somebody else" newcomer
stranger=$mine
from=127.0.0.4
check "and the one whose job it is" newcomer
check "a job" defer
submitted=$(metric jobs_submitted_total)
# guarded FROM "ROWS OF 401" "ROWS OF 403" METHOD PATH ARGUMENT...
guarded() {
    from=$1 unknown=$2 forbidden=$3
    shift 3
    check "$unknown $1 $2 without a key" refused 401 RFA_AUTH_INVALID_CREDENTIALS "$@"
    check "$unknown it says what it wants" is "$(header www-authenticate | cut -c 1-6)" Bearer
    check "$unknown $1 $2 with an empty one" refused 401 RFA_AUTH_INVALID_CREDENTIALS "$@" -H 'Authorization: Bearer '
    check "$unknown $1 $2 with an unknown one" refused 401 RFA_AUTH_INVALID_CREDENTIALS "$@" -H "$(auth cop_nobody)"
    check "$unknown $1 $2 with one that is over" refused 401 RFA_AUTH_TOKEN_EXPIRED "$@" -H "$expired"
    check "$forbidden $1 $2 with a revoked one" refused 403 RFA_AUTH_API_KEY_DISABLED "$@" -H "$revoked"
}
guarded 127.0.1.1 JOB-141 JOB-142 POST /v1/jobs -H "$json" -d '{"type":"EXECUTE"}'
guarded 127.0.1.2 JOB-151 JOB-152 POST "/v1/jobs/$job/cancel"
guarded 127.0.1.3 JOB-161 JOB-162 POST "/v1/jobs/$job/retry"
guarded 127.0.1.4 JOB-170 JOB-171 GET "/v1/jobs/$job"
guarded 127.0.1.5 JOB-178 JOB-179 GET "/v1/jobs/$job/report"
guarded 127.0.1.6 JOB-187 JOB-188 POST /v1/webhooks -H "$json" -d "$hooked"
guarded 127.0.1.7 JOB-195 JOB-196 DELETE "/v1/webhooks/$none"
from=127.0.0.5
for path in "/v1/jobs/$job" "/v1/jobs/$job/report"; do
    check "JOB-171 JOB-179 somebody else's $path" refused 403 RFA_AUTH_FORBIDDEN GET "$path" -H "$stranger"
done
for verb in cancel retry; do
    check "JOB-152 JOB-162 somebody else's $verb" refused 403 RFA_AUTH_FORBIDDEN POST "/v1/jobs/$job/$verb" -H "$stranger"
done
check "none of them was done" state_is CREATED
check "JOB-141 JOB-142 nor taken" is "$(metric jobs_submitted_total)" "$submitted"
for method in PUT PATCH POST DELETE; do
    check "JOB-167 $method is nothing to do with a job" refused 405 RFA_REQUEST_METHOD_NOT_ALLOWED $method "/v1/jobs/$job" -H "$mine"
    check "JOB-167 and GET is" has "$(header allow)" GET
done
check "JOB-154 cancel of what is final is no conflict" answers 200 POST "/v1/jobs/$job/cancel"
check "JOB-154 nor is it again" answers 200 POST "/v1/jobs/$job/cancel"

# ---- what the document says ----

# statuses OPERATION: of errors, without those of all operations (AMB-J-60)
statuses() {
    awk -v id="$1" '/^  \/|^    [a-z]+:$/ { inside = 0 } $1 == "operationId:" { inside = $2 == id }
        inside && /^        .[45][0-9][0-9].:/ { print substr($1, 2, 3) }' docs/contract/jobs.openapi.yaml | sort | tr '\n' ' '
}
check "JOB-139 submit" is "$(statuses submitJob)" '400 401 403 409 429 500 503 '
check "JOB-149 cancel" is "$(statuses cancelJob)" '400 401 403 404 409 500 503 '
check "JOB-159 retry" is "$(statuses retryJob)" '400 401 403 404 409 500 503 '
check "JOB-169 get" is "$(statuses getJob)" '401 403 404 500 503 '
check "JOB-177 report" is "$(statuses getJobReport)" '401 403 404 500 503 '
check "JOB-185 register a webhook" is "$(statuses registerWebhook)" '400 401 403 409 500 503 '
check "JOB-194 unregister a webhook" is "$(statuses unregisterWebhook)" '401 403 404 500 503 '

# ---- the log ----

from=127.0.0.6
check "JOB-403 a submit with an id of its own" answers 202 POST /v1/jobs -H 'X-Request-Id: log-submit' -H "$json" -d '{"type":"EXECUTE","work_kind":"FAIL_IMMEDIATE"}'
job=$(value job_id)
check "JOB-403 which comes back" is "$(header x-request-id)" log-submit
check "it fails" becomes FAILED
check "JOB-403 a report" answers 200 GET "/v1/jobs/$job/report" -H 'X-Request-Id: log-report'
check "JOB-403 a retry" answers 200 POST "/v1/jobs/$job/retry" -H 'X-Request-Id: log-retry'
check "JOB-403 a get" answers 200 GET "/v1/jobs/$job" -H 'X-Request-Id: log-get'
check "JOB-403 a cancel" answers 200 POST "/v1/jobs/$job/cancel" -H 'X-Request-Id: log-cancel'
for action in submit cancel retry get report; do
    check "JOB-403 JOB-404 JOB-405 JOB-406 the line of $action has all four" logged '"msg":"request"' \
        "\"request_id\":\"log-$action\"" "\"client_id\":\"$id\"" "\"job_id\":\"$job\"" "\"action\":\"$action\""
done
check "JOB-404 JOB-405 so has that of a transition" logged '"msg":"transition"' "\"client_id\":\"$id\"" "\"job_id\":\"$job\""
check "JOB-403 an id is made for who has none" answers 200 GET "/v1/jobs/$job"
check "JOB-403 and is in the line" logged '"msg":"request"' "\"request_id\":\"$(header x-request-id)\""
check "JOB-412 a key that nobody knows" logged '"msg":"auth_failure"' '"client_id":null' '"reason":"RFA_AUTH_INVALID_CREDENTIALS"'
check "JOB-412 one that is over" logged '"msg":"auth_failure"' "\"client_id\":\"$expired_id\"" '"reason":"RFA_AUTH_TOKEN_EXPIRED"'
check "JOB-412 one that is revoked" logged '"msg":"auth_failure"' "\"client_id\":\"$revoked_id\"" '"reason":"RFA_AUTH_API_KEY_DISABLED"'
check "JOB-412 one that is somebody else's" logged '"msg":"auth_failure"' '"reason":"RFA_AUTH_FORBIDDEN"'
check "JOB-412 and no key is anywhere in it" is "$(grep -c -E 'cop_[0-9A-Za-z]{10}|cop_nobody' "$tmp/seen")" 0

# ---- a thousand, mixed, all at once (JOB-002) ----

from=127.0.0.7
check "a client for many" newcomer
crowd() { # crowd COUNT BODY: so many submits, a dozen connections at a time
    curl -s -m 60 -Z --parallel-max 12 -o /dev/null -w '%{http_code}\n' --interface "$from" -H "$mine" -H "$json" -d "$2" \
        "http://$client/v1/jobs#[1-$1]" >>"$tmp/crowd"
}
check "JOB-002 those that succeed" crowd 300 '{"type":"EXECUTE","work_kind":"SUCCESS_FAST"}'
check "JOB-002 those that fail" crowd 300 '{"type":"EXECUTE","work_kind":"FAIL_IMMEDIATE"}'
check "JOB-002 those that tell" crowd 200 '{"type":"EMIT_EVENT","work_kind":"PAYLOAD_SMALL"}'
check "JOB-002 those that wait" crowd 100 '{"type":"DEFERRED","execution_at":"2999-01-01T00:00:00Z"}'
check "JOB-002 the same one again and again" crowd 100 '{"type":"EXECUTE","work_kind":"SUCCESS_FAST","idempotency_key":"one"}'
check "JOB-002 all thousand are taken" is "$(sort "$tmp/crowd" | uniq -c | tr -s ' ')" ' 1000 202'
idle() {
    get /metrics >"$tmp/metrics"
    for state in QUEUED ASSIGNED RUNNING; do
        grep -q "^coppice_jobs{state=\"$state\"} 0\$" "$tmp/metrics" || return 1
    done
}
check "JOB-002 and come to their end" until_so idle
check "JOB-002 the keyed one was one" is "$(metric idempotency_hits_total)" 99
reported() { "$COPPICE" report --url "http://$at" --token-file "$tmp/store/operator.token" --client "$id" --json "$@"; }
reported >"$tmp/report" 2>&1
check "JOB-002 no id is two jobs', and nothing is missing" is "$(grep -o '"job_id":"[^"]*"' "$tmp/report" | sort -u | wc -l | tr -d ' ')" 901
check "JOB-002 nobody has crashed" is "$(metric coppice_runtime_actors_crashed_total)" 0

# ---- simulated work is no work (JOB-006) ----

check "the server stops" stop
check "JOB-002 every row of the store agrees with every other (section 14)" "$COPPICE" check --store-dir "$tmp/store"
check "a server in which work takes its time" begin --workers-count 16 --auth-key-lifetime 40d --clock-offset 41d \
    --jobs-simulation-speed 0.25 --workers-lease-timeout 10m
before_cpu=$(metric process_cpu_seconds_total) before_rss=$(metric process_resident_memory_bytes)
# All at once, because the first one ends half a minute after it began.
: >"$tmp/crowd"
check "JOB-006 eight jobs that say they compute" crowd 8 '{"type":"EXECUTE","work_kind":"CPU_BURST"}'
check "JOB-006 seven that say they need memory" crowd 7 '{"type":"EXECUTE","work_kind":"MEMORY_SPIKE"}'
check "JOB-006 are taken" is "$(sort "$tmp/crowd" | uniq -c | tr -s ' ')" ' 15 202'
check "JOB-006 and one more" submit MEMORY_SPIKE
running() { is "$(metric 'coppice_jobs{state="RUNNING"}')" 16; }
check "JOB-006 sixteen run" until_so running
rss=$(metric process_resident_memory_bytes)
# a sanitizer's own memory grows with what runs
[ -n "${MODE:-}" ] || check "JOB-006 each with less than 1 MB" awk -v a="$before_rss" -v b="$rss" 'BEGIN { print a, b; exit !(b - a < 16000000) }'
check "time passes" advance 28s
check "and more" advance 24s
check "JOB-006 they end" until_so idle
check "JOB-006 of 160 s of work the processor had next to nothing" awk -v a="$before_cpu" -v b="$(metric process_cpu_seconds_total)" \
    'BEGIN { print a, b; exit !(b - a < 16) }'

# ---- a kill (JOB-386) ----

ask GET "/v1/jobs/$job" -H "$mine" >/dev/null
cp "$tmp/body" "$tmp/job"
ask GET "/v1/jobs/$job/report" -H "$mine" >/dev/null
cp "$tmp/body" "$tmp/job.report"
kill -9 "$server"
wait "$server" 2>/dev/null
check "a server after a kill" begin --workers-count 1 --clock-offset 41d
check "JOB-386 the job is there" answers 200 GET "/v1/jobs/$job"
check "JOB-386 byte by byte" cmp "$tmp/job" "$tmp/body"
check "JOB-386 so is its report" answers 200 GET "/v1/jobs/$job/report"
check "JOB-386 byte by byte" cmp "$tmp/job.report" "$tmp/body"
check "it stops" stop

# ---- the end of retention (JOB-388): in a store whose clock has never leapt, because it is believed ----

rm -rf "$tmp/store"
check "a server with nothing in it" begin --workers-count 1 --jobs-simulation-speed 1000
check "a client" newcomer
check "a job" submit FAIL_IMMEDIATE
check "fails" becomes FAILED
check "retention has looked at the clock" looked
check "thirty-one days later" advance 31d
check "JOB-388 it is gone" until_so gone
check "JOB-388 as one that never was" refused 404 RFA_JOB_NOT_FOUND GET "/v1/jobs/$job" -H "$mine"
check "JOB-388 its report as well" refused 404 RFA_JOB_NOT_FOUND GET "/v1/jobs/$job/report" -H "$mine"
check "JOB-388 it can't be cancelled" refused 404 RFA_JOB_NOT_FOUND POST "/v1/jobs/$job/cancel" -H "$mine"
check "JOB-388 nor tried again" refused 404 RFA_JOB_NOT_FOUND POST "/v1/jobs/$job/retry" -H "$mine"

check "it stops" stop

# ---- a store that is late, and a body that is too large (JOB-337, JOB-306) ----

check "a server with little patience" begin --workers-count 0 --storage-op-timeout-ms 10000 --limits-max-body-bytes 2048
check "a client" newcomer
check "who writes is suspended" chaos suspend store.writer
check "JOB-337 a submit is answered before its request is over" refused 503 RFA_STORAGE_UNAVAILABLE POST /v1/jobs -H "$mine" -H "$json" -d '{"type":"EXECUTE"}'
check "JOB-337 with when to come again" is "$(header retry-after)" 1
check "it goes on" chaos resume store.writer
check "JOB-337 the next one is taken" submit SUCCESS_FAST
check "JOB-337 and of the late one nothing is there" answers 200 GET /v1/jobs
check "JOB-337 but the next one" is "$(grep -o '"job_id"' "$tmp/body" | wc -l | tr -d ' ')" 1
large="{\"type\":\"EXECUTE\",\"more\":\"$(head -c 2048 /dev/zero | tr '\0' a)\"}"
check "JOB-306 a body above limits.max_body_bytes" refused 413 RFA_REQUEST_PAYLOAD_TOO_LARGE POST /v1/jobs -H "$mine" -H "$json" -d "$large"
get /metrics >"$tmp/metrics"
for series in 'operations_total{operation="write"}' 'operations_total{operation="read"}' 'errors_total{operation="write"}' 'errors_total{operation="read"}'; do
    check "JOB-435 storage_$series" grep -q -F "storage_$series " "$tmp/metrics"
done
check "JOB-435 the one that was late is counted" is "$(metric 'storage_errors_total{operation="write"}')" 1

# ---- nobody else is needed (JOB-007) ----

# elsewhere: sockets of the server whose other end isn't the loopback: 127.0.0.0/8 in hexadecimal ends in 7F
elsewhere() {
    for socket in /proc/"$server"/fd/*; do
        readlink "$socket" | sed -n 's/^socket:\[\(.*\)\]$/\1/p'
    done >"$tmp/sockets"
    awk 'NR == FNR { mine[$1]; next } ($10 in mine) && $3 !~ /^......7F:/ && $3 !~ /^00000000:/' \
        "$tmp/sockets" /proc/"$server"/net/tcp /proc/"$server"/net/udp
}
check "JOB-007 it talks to nobody but the loopback" is "$(elsewhere)" ''
[ "$alone" != alone ] || check "JOB-007 all of this was done without another network" is \
    "$(sed -n 's/^ *\([a-z0-9]*\):.*/\1/p' /proc/net/dev | grep -v -E '^(lo|tunl0|sit0|gre0|erspan0|ip6.*|ip_vti0)$')" ''
check "it stops" stop

# ---- what is written down (JOB-004, JOB-457, JOB-461) ----

# A word of each part of the specification that the user's, the operator's and the contract's pages must have.
pages="docs/jobs.md docs/operating.md docs/queues.md docs/how-a-job-flows.md docs/contract/jobs.openapi.yaml docs/contract/jobs.errors.tsv"
while read -r word; do
    # shellcheck disable=SC2086 # a list
    check "JOB-004 the pages tell of $word" grep -q -F -e "$word" $pages
done <<'WORDS'
EXECUTE
DEFERRED
EMIT_EVENT
created_at` as
/v1/work-kinds
Idempotency-Key
/clients/{client_id}/keys/renew
/webhooks/{webhook_id}
RUNNER_LOST
RFA_EXEC_QUEUE_FULL
retry.backoff_base
workers.heartbeat_interval
retention.jobs
jobs_submitted_total
webhook_deliveries_total
limits.max_active_jobs
jobs.allowed_types
WORDS
# Ids that tests and harnesses name, ranges taken apart.
grep -rhoE 'JOB[-_][0-9]{3}(\.\.(JOB-)?[0-9]{3}|_to_JOB_[0-9]{3})?' tests chaos | sort -u |
    awk '{ gsub(/[A-Z_a-z.-]+/, " "); for (i = $1; i <= (NF > 1 ? $2 : $1); i++) printf "%03d\n", i }' | sort -u >"$tmp/named"
seq 294 338 >"$tmp/failures"
check "JOB-457 each failure of section 15 has its test" is "$(grep -v -x -F -f "$tmp/named" "$tmp/failures" | tr '\n' ' ')" ''
check "JOB-461 what was left open is decided: no choice beyond those of the list" is \
    "$(grep -rhoE 'AMB[-_]J[-_][0-9]+' runtime store actors http config chaos docs tests | tr _ - | sort -u |
        awk -F - '$3 < 1 || $3 > 66' | tr '\n' ' ')" ''
check "JOB-461 and the pages of jobs ask nothing" is "$(grep -n -i -E 'open question|TBD|to be decided' docs/jobs.md docs/queues.md docs/how-a-job-flows.md docs/decisions/0024-jobs.md)" ''
finish
