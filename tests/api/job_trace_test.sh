#!/bin/sh
# A job's trace, from outside: what a collector gets of a submit and all that comes of it, of retries, cancels, webhooks, and of API
# keys (JOB-436..JOB-440).
cd "$(dirname "$0")/../.." || exit 1
. tests/api/server.sh
unset OTEL_SDK_DISABLED OTEL_TRACES_EXPORTER OTEL_TRACES_SAMPLER OTEL_TRACES_SAMPLER_ARG OTEL_RESOURCE_ATTRIBUTES
json='Content-Type: application/json'
collector=
trap 'kill -9 $server $collector 2>/dev/null; rm -rf "$tmp"' EXIT

# ---- a collector, and a receiver of webhooks: the same program ----

"${CC:-cc}" -O1 -o "$tmp/collector" tests/api/collector.c || exit 1
mkfifo "$tmp/posts" "$tmp/hooks"
"$tmp/collector" >"$tmp/posts" &
collector=$!
exec 8<"$tmp/posts"
read -r port <&8
# A span a line; those of a batch follow each other.
sed -u 's/{"traceId":"[0-9a-f]*","spanId":"[0-9a-f]*",/\n&/g' <&8 >"$tmp/spans" &
"$tmp/collector" >"$tmp/hooks" &
collector="$collector $!"
exec 7<"$tmp/hooks"
read -r hook <&7
cat <&7 >"$tmp/told" &
export OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:$port"

ask() { # ask TRACE METHOD PATH ARGUMENT...: status; body in a file. The trace's id is 32 times this digit
    trace=$(printf '%032d' 0 | tr 0 "$1") method=$2 path=$3
    shift 3
    curl -s -m 120 -o "$tmp/body" -w '%{http_code}' -X "$method" -H "traceparent: 00-$trace-b7ad6b7169203331-01" "$@" "http://$client$path"
}
value() {
    member "$1" "$(cat "$tmp/body")"
}
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
# span TRACE NAME TEXT...: the newest span of this trace, of this name, with all these texts in it
span_now() {
    grep -F "\"traceId\":\"$(printf '%032d' 0 | tr 0 "$1")\"" "$tmp/spans" | grep -F "\"name\":\"$2\"" >"$tmp/found"
    shift 2
    for text; do
        grep -F -e "$text" "$tmp/found" >"$tmp/fewer"
        mv "$tmp/fewer" "$tmp/found"
    done
    span=$(tail -n 1 "$tmp/found")
    [ -n "$span" ]
}
span() {
    until_so span_now "$@" || { cut -c 1-400 "$tmp/spans" | tail -n 40; return 1; }
    id=$(printf '%s\n' "$span" | sed 's/^{"traceId":"[^"]*","spanId":"\([^"]*\)".*/\1/') parent=$(member parentSpanId "$span")
}
attribute() { # attribute KEY TEXT: of the span
    has "$span" "{\"key\":\"$1\",\"value\":{\"stringValue\":\"$2\"}}"
}
number() {
    has "$span" "{\"key\":\"$1\",\"value\":{\"intValue\":\"$2\"}}"
}
lasts() { # from before to after
    printf '%s\n' "$span" | sed 's/.*"startTimeUnixNano":"\([0-9]*\)","endTimeUnixNano":"\([0-9]*\)".*/\1 \2/' |
        awk -v least="$1" '{ exit !($2 - $1 >= least) }'
}
state_is() {
    ask f GET "/v1/jobs/$job" -H "$mine" >"$tmp/status"
    is "$(value state)" "$1"
}

check "a server" start --workers-count 1 --outbound-allow-private --retry-backoff-base-ms 1 --webhooks-backoff-base-ms 1 \
    --jobs-simulation-speed 10 --limits-requests-per-minute 100000
cat <&9 >/dev/null &

# ---- API keys (JOB-440) ----

check "a client" is "$(ask 1 POST /v1/clients)" 201
client_id=$(value client_id)
check "JOB-440 a key is made" is "$(ask 1 POST "/v1/clients/$client_id/keys")" 201
first_key=$(value key_id)
mine="Authorization: Bearer $(value api_key)"
check "JOB-440 it is a span" span 1 api_key.create
check "JOB-440 of this client" attribute client_id "$client_id"
check "JOB-440 and this key" attribute key_id "$first_key"
made=$parent
check "JOB-440 below its request" span 1 "POST /v1/clients/{client_id}/keys"
check "JOB-440 below its request" is "$made" "$id"
check "JOB-440 it is renewed" is "$(ask 2 POST "/v1/clients/$client_id/keys/renew" -H "$mine" -H "$json" -d '{}')" 200
second_key=$(value key_id)
renewed="Authorization: Bearer $(value api_key)"
check "JOB-440 that is a span" span 2 api_key.renew
check "JOB-440 of this client" attribute client_id "$client_id"
check "JOB-440 and the new key" attribute key_id "$second_key"
check "JOB-440 it is revoked" is "$(ask 3 POST "/v1/clients/$client_id/keys/revoke" -H "$renewed" -H "$json" -d "{\"key_id\":\"$second_key\"}")" 200
check "JOB-440 that is a span" span 3 api_key.revoke
check "JOB-440 of this client" attribute client_id "$client_id"
check "JOB-440 and this key" attribute key_id "$second_key"
check "another client" is "$(ask f POST /v1/clients)" 201
client_id=$(value client_id)
check "with a key" is "$(ask f POST "/v1/clients/$client_id/keys")" 201
mine="Authorization: Bearer $(value api_key)"

# ---- submit, enqueue, assign, run, report (JOB-436) ----

check "a job" is "$(ask 4 POST /v1/jobs -H "$mine" -H "$json" -d '{"type":"EXECUTE","work_kind":"SUCCESS_FAST"}')" 202
job=$(value job_id)
check "succeeds" until_so state_is SUCCEEDED
check "JOB-436 its request" span 4 "POST /v1/jobs"
request=$id
check "JOB-436 job.submit" span 4 job.submit
check "JOB-436 below it" is "$parent" "$request"
check "JOB-436 of this job" attribute job_id "$job"
check "JOB-436 of this client" attribute client_id "$client_id"
check "JOB-436 and this kind" attribute scenario SUCCESS_FAST
submit=$id
for name in job.enqueue job.assign job.run; do
    check "JOB-436 $name" span 4 $name
    check "JOB-436 $name is below job.submit" is "$parent" "$submit"
    check "JOB-436 $name is of its first attempt" number attempt 1
done
check "JOB-436 job.run lasts as long as the run" lasts 95000000
run=$id
check "JOB-436 job.report" span 4 job.report
check "JOB-436 below job.run" is "$parent" "$run"

# ---- retry (JOB-437) ----

check "a job" is "$(ask 5 POST /v1/jobs -H "$mine" -H "$json" -d '{"type":"EXECUTE","work_kind":"RETRY_ON_FAIL"}')" 202
job=$(value job_id)
check "fails" until_so state_is FAILED
check "JOB-437 a run that failed" span 5 job.run '"status":{"code":2}'
check "JOB-437 the first trace" span 5 job.submit
submit=$id
check "JOB-437 it is tried again, in a trace of its own" is "$(ask 6 POST "/v1/jobs/$job/retry" -H "$mine")" 200
check "JOB-437 that request" span 6 "POST /v1/jobs/{job_id}/retry"
request=$id
check "JOB-437 job.retry is in the first trace" span 5 job.retry
check "JOB-437 below the submit" is "$parent" "$submit"
check "JOB-437 linked to the request that asked" has "$span" "\"links\":[{\"traceId\":\"66666666666666666666666666666666\",\"spanId\":\"$request\"}]"
retry=$id
check "succeeds" until_so state_is SUCCEEDED
for name in job.enqueue job.assign job.run; do
    check "JOB-437 $name of the second attempt" span 5 $name '{"key":"attempt","value":{"intValue":"2"}}'
    check "JOB-437 $name is below job.retry" is "$parent" "$retry"
done
run=$id
check "JOB-437 job.report of the second attempt" span 5 job.report "\"parentSpanId\":\"$run\""

# ---- cancel (JOB-439) ----

check "a job for later" is "$(ask 7 POST /v1/jobs -H "$mine" -H "$json" -d '{"type":"DEFERRED","execution_at":"2999-01-01T00:00:00Z"}')" 202
job=$(value job_id)
check "JOB-439 it is cancelled, in a trace of its own" is "$(ask 8 POST "/v1/jobs/$job/cancel" -H "$mine")" 200
check "JOB-439 that request" span 8 "POST /v1/jobs/{job_id}/cancel"
request=$id
check "JOB-439 the job's trace" span 7 job.submit
submit=$id
check "JOB-439 has job.cancel" span 7 job.cancel
check "JOB-439 below the submit" is "$parent" "$submit"
check "JOB-439 linked to the request that asked" has "$span" "\"links\":[{\"traceId\":\"88888888888888888888888888888888\",\"spanId\":\"$request\"}]"
cancel=$id
check "JOB-439 and job.report" span 7 job.report
check "JOB-439 below it" is "$parent" "$cancel"

# ---- webhooks (JOB-438) ----

check "a job with a callback" is "$(ask 9 POST /v1/jobs -H "$mine" -H "$json" \
    -d "{\"type\":\"EXECUTE\",\"work_kind\":\"SUCCESS_FAST\",\"callback\":\"http://127.0.0.1:$hook/\"}")" 202
job=$(value job_id)
check "succeeds" until_so state_is SUCCEEDED
for pair in submit:job.created enqueue:job.queued assign:job.assigned run:job.running report:job.succeeded; do
    until_so grep -q "\"event_name\":\"${pair#*:}\"" "$tmp/told"
    delivery=$(grep -F "\"event_name\":\"${pair#*:}\"" "$tmp/told" | sed 's/.*"delivery_id":"\([^"]*\)".*/\1/' | tail -n 1)
    check "JOB-438 the change ${pair#*:}" span 9 "job.${pair%:*}"
    change=$id
    check "JOB-438 webhook.notify of ${pair#*:}" span 9 webhook.notify "\"$delivery\""
    check "JOB-438 below that change" is "$parent" "$change"
    notify=$id
    check "JOB-438 its attempt" span 9 webhook.attempt "\"$delivery\""
    check "JOB-438 below it" is "$parent" "$notify"
    check "JOB-438 its number" number attempt 1
    check "JOB-438 its answer" number http.response.status_code 200
done
check "a job whose receiver isn't there" is "$(ask a POST /v1/jobs -H "$mine" -H "$json" \
    -d '{"type":"EXECUTE","work_kind":"SUCCESS_FAST","callback":"http://127.0.0.1:1/"}')" 202
job=$(value job_id)
check "JOB-438 webhook.notify ends when it is given up" span a webhook.notify '"status":{"code":2}'
notify=$id
attempts() {
    is "$(grep -F '"traceId":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"' "$tmp/spans" | grep -F '"name":"webhook.attempt"' |
        grep -F "\"parentSpanId\":\"$notify\"" | sed 's/.*"key":"attempt","value":{"intValue":"\([0-9]*\)".*/\1/' | sort -n | tr '\n' ' ')" '1 2 3 4 5 6 '
}
check "JOB-438 with a span for each of its six attempts" until_so attempts

# ---- who doesn't want it sampled ----

check "a job that isn't sampled" is "$(curl -s -m 120 -o "$tmp/body" -w '%{http_code}' -H "$mine" -H "$json" \
    -H 'traceparent: 00-bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb-b7ad6b7169203331-00' -d '{"type":"EXECUTE","work_kind":"SUCCESS_FAST"}' "http://$client/v1/jobs")" 202
job=$(value job_id)
check "succeeds" until_so state_is SUCCEEDED
check "another one" is "$(ask c POST /v1/jobs -H "$mine" -H "$json" -d '{"type":"DEFERRED","execution_at":"2999-01-01T00:00:00Z"}')" 202
check "whose span has come" span c job.submit
check "the one before it left none" is "$(grep -c bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb "$tmp/spans")" 0
check "no span was lost" is "$(get /metrics | sed -n 's/^coppice_trace_spans{kind="dropped"} //p')" 0
check "the server ends" stop
finish
