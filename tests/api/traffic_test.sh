#!/bin/sh
# Traffic: the clients of chaos/traffic against the real server, whose simulated work is a thousand times faster here: all
# work kinds with their partners, every refusal, and a server that is killed meanwhile. Each check of its report must have been
# made, and none may have failed; then it is told wrong things of the server, and must notice.
cd "$(dirname "$0")/../.." || exit 1
. tests/api/server.sh
traffic=${COPPICE%/*}/chaos/traffic
secret=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw

# What has to happen within a time: a job for later is submitted that far ahead, in ms, a receiver answers before webhooks.timeout,
# and so many submits a second are answered. A sanitizer takes ten times as long for all of it.
case ${MODE:-} in
'') ahead=6000 patience=8000 rate=200 ;;
*) ahead=20000 patience=8000 rate=40 ;;
esac

# What the clients are told of the server, and what the server is told. Its address is no other program's: connections that go
# out come from 127.0.0.1, and one of them could have its port while it is started again.
address=127.0.66.1:0
fast() {
    start --http-listen "$address" --schedulers 2 --jobs-simulation-speed 1000 --workers-count 8 --retry-backoff-base 100ms --webhooks-timeout ${patience}ms \
        --webhooks-backoff-base 20ms --limits-max-queue-size 200 --outbound-allow-private \
        --webhooks-signing-secret $secret "$@"
}
# drive ARGUMENT...: sets status; what it prints is in files
drive() {
    "$traffic" --url "http://$client" --speed 1000 --clients 16 --retry-base-ms 100 --ahead-ms $ahead --webhook-timeout-ms $patience \
        --late-ms 60000 --signing-secret $secret "$@" >"$tmp/report" 2>"$tmp/said"
    status=$?
    [ $status = 0 ] || head -c 4000 "$tmp/said"
    [ $status = 0 ]
}
# told MEMBER: of the report itself
told() {
    sed -n "s/^{\"url\".*,\"$1\":\([0-9]*\),.*\"kinds\".*/\1/p" "$tmp/report"
}
# Of a check or case: "passed failed"
counts() {
    tr '{' '\n' <"$tmp/report" | sed -n "s/^\"name\":\"$1\".*\"passed\":\([0-9]*\),\"failed\":\([0-9]*\).*/\1 \2/p"
}
# made NAME: it was checked, and nothing was wrong
made() {
    counts "$1" >"$tmp/counts"
    read -r good bad <"$tmp/counts" || { echo "the report has no $1" && return 1; }
    [ "$good" -gt 0 ] && [ "$bad" = 0 ] && return
    echo "$1: $good passed, $bad failed"
    tr '{' '\n' <"$tmp/report" | grep "^\"name\":\"$1\""
    return 1
}
# ended KIND STATE: there was one that did (job.ends says that none ended otherwise)
ended() {
    tr '{' '\n' <"$tmp/report" | grep "^\"kind\":\"$1\",.*\"$2\":[1-9]"
}

check "a server" fast
check "JOB-002 JOB-008 JOB-455 400 jobs of all kinds, and nothing is wrong" drive --jobs 400 --rate $rate --queue-size 200 --json
check "it says so" is "$(told failed)" 0
check "JOB-002 400 of them" [ "$(told jobs)" -ge 390 ] # some were PAYLOAD_INVALID

# --- every kind ends as it must ---
for row in "034 SUCCESS_FAST" "035 SUCCESS_NORMAL" "036 SUCCESS_SLOW" "040 RUNS_LONG" "042 CPU_BURST" "043 MEMORY_SPIKE" \
    "044 IO_HEAVY" "045 MANY_SMALL_OUTPUTS" "046 LARGE_OUTPUT" "049 RETRY_ON_FAIL" "051 DUPLICATE_SUBMIT_SAME_KEY" \
    "052 DUPLICATE_SUBMIT_DIFFERENT_KEY" "053 WEBHOOK_SUCCESS" "054 WEBHOOK_TIMEOUT" "055 WEBHOOK_5XX" \
    "056 WEBHOOK_RETRIES_EXHAUSTED" "057 WEBHOOK_SLOW_RECEIVER" "058 SCHEDULED_ON_TIME" "061 PAYLOAD_SMALL" \
    "062 PAYLOAD_MEDIUM" "063 PAYLOAD_LARGE"; do
    check "JOB-$row" ended "${row#* }" succeeded
done
for row in "037 FAIL_IMMEDIATE" "038 FAIL_AFTER_PROGRESS" "039 FAIL_AFTER_RETRYABLE" "041 RUNS_OVER_TIMEOUT" \
    "050 RETRY_LIMIT_REACHED"; do
    check "JOB-$row" ended "${row#* }" failed
done
check "JOB-060 SCHEDULED_FAR_FUTURE stays CREATED, until it is canceled" ended SCHEDULED_FAR_FUTURE canceled

# --- every check was made ---
# The report has each with its requirements; here they are named once more, as a test's.
while read -r rows name; do
    check "$(echo "$rows" | tr , ' ') $name" made "$name"
done <<'CHECKS'
JOB-005 answer.came
JOB-381 answer.request_id
JOB-099,JOB-376 answer.media_type
JOB-369,JOB-370,JOB-371,JOB-372,JOB-373,JOB-374 answer.status
JOB-339,JOB-377,JOB-378,JOB-379,JOB-380,JOB-382 problem.shape
JOB-375 problem.headers
JOB-089,JOB-090,JOB-103,JOB-108 client.created
JOB-081,JOB-138,JOB-372 submit.accepted
JOB-064,JOB-350 submit.invalid
JOB-093,JOB-094,JOB-143,JOB-355 submit.repeated
JOB-289 submit.distinct
JOB-010,JOB-168,JOB-389 job.shape
JOB-011,JOB-029,JOB-067,JOB-073 job.definition
JOB-026,JOB-028,JOB-068,JOB-070 job.drawn
JOB-204,JOB-205,JOB-206 job.outcome
JOB-009 job.ends
JOB-087,JOB-088 job.reads
JOB-209,JOB-293,JOB-366,JOB-460 report.at_once
JOB-018,JOB-176,JOB-397 report.shape
JOB-017,JOB-021 events.kept
JOB-014,JOB-393 events.shape
JOB-015,JOB-208,JOB-291,JOB-456 events.sequence
JOB-016 events.times
JOB-032,JOB-276,JOB-335 events.payload
JOB-261,JOB-262 time.early
JOB-272 retry.backoff
JOB-083,JOB-095,JOB-148,JOB-321 cancel.answer
JOB-085,JOB-096,JOB-158,JOB-268,JOB-270,JOB-271,JOB-322 retry.answer
JOB-164,JOB-269,JOB-275,JOB-352 retry.limit
JOB-292,JOB-300,JOB-348 ownership
JOB-003,JOB-082,JOB-301 list.complete
JOB-003 list.order
JOB-080,JOB-184 webhook.shape
JOB-184 webhook.signed
JOB-080,JOB-184 webhook.order
JOB-080,JOB-184,JOB-193 webhook.all
JOB-329,JOB-330,JOB-446 webhook.attempts
JOB-326,JOB-328,JOB-336 webhook.apart
CHECKS
check "every refusal was tried" [ "$(tr '{' '\n' <"$tmp/report" | grep -c '^"name":"JOB-')" -ge 119 ]
check "JOB-294 without a key" made "JOB-294 JOB-346 without a key"
check "JOB-301 without a type" made "JOB-301 no type"
check "JOB-312 a full queue" made "JOB-312 JOB-334 JOB-353 JOB-443 beyond the queue"
check "JOB-323 50 submits with one key" made "JOB-323 50 submits with one key at once"
check "JOB-325 20 cancels at once" made "JOB-325 20 cancels at once"
check "JOB-331 beyond a client's limit" made "JOB-331 JOB-345 JOB-441 beyond the limit of a client"

# --- a server that is killed meanwhile loses nothing that it acknowledged ---
"$traffic" --url "http://$client" --speed 1000 --clients 16 --retry-base-ms 100 --ahead-ms $ahead --webhook-timeout-ms $patience --late-ms 60000 \
    --signing-secret $secret --jobs 300 --rate $((rate / 2)) --refusals 0 --restarts --seed 77 --json >"$tmp/report" 2>"$tmp/said" &
driver=$!
address=$client
# Half of its requests have ids of its own, and are logged when they are answered; the log is read more slowly than it is written.
comes() {
    for _ in $(seq 40); do
        await '"request_id":"t-77-' || return 1
    done
}
check "JOB-286 traffic comes" comes
kill -9 "$server"
wait "$server" 2>/dev/null
check "JOB-264 JOB-459 the server starts again" fast
survived() {
    wait $driver || { head -c 4000 "$tmp/said" && return 1; }
}
check "JOB-082 JOB-285 JOB-286 JOB-316 and nothing is missing" survived
check "JOB-286 what was accepted is there" made list.complete
check "JOB-291 in allowed changes" made events.sequence
check "JOB-293 with reports" made report.at_once

# --- and it would notice: these are told what isn't so ---
# wrong CHECK ARGUMENT...: fails, in this check
wrong() {
    name=$1
    shift
    drive --jobs 8 --rate 0 --refusals 0 --json "$@" >/dev/null
    counts "$name" >"$tmp/counts"
    read -r good bad <"$tmp/counts" && [ $status = 1 ] && [ "$bad" -gt 0 ] || {
        echo "status $status, $name: $good passed, $bad failed"
        return 1
    }
}
check "work that is too fast" wrong time.early --speed 10 --only IO_HEAVY
check "another limit of time" wrong job.definition --runtime-ms 60000 --only RUNS_OVER_TIMEOUT
check "fewer retries" wrong retry.limit --retries 2 --only RETRY_LIMIT_REACHED
check "a longer backoff" wrong retry.backoff --retry-base-ms 4000 --only RETRY_ON_FAIL
check "another probability of failure" wrong job.drawn --rate 100 --fail-ppm 1000000 --only DRAWN
check "fewer attempts of webhooks" wrong webhook.attempts --jobs 2 --webhook-retries 1 --only WEBHOOK_RETRIES_EXHAUSTED
check "another secret" wrong webhook.signed --signing-secret whsec_AAAA --only WEBHOOK_SUCCESS
check "it says what can be asked of it" sh -c "'$traffic' --help | grep -q -- --rate"
check "no such kind" sh -c "'$traffic' --only NAP; [ \$? = 2 ]"
check "it stops" stop
finish
