#!/bin/sh
# Jobs that are run: by workers of the server while time is moved, and by programs outside; what is counted and logged of them
# (JOB-030, JOB-031, JOB-407..JOB-410, JOB-413..JOB-421, JOB-424..JOB-427, JOB-429..JOB-432, JOB-434, JOB-435, JOB-458).
cd "$(dirname "$0")/../.." || exit 1
. tests/api/server.sh

ask() { # ask METHOD PATH [BODY]: $status and $tmp/body
    status=$(curl -s -o "$tmp/body" -w '%{http_code}' -X "$1" -H "Authorization: Bearer $key" \
        ${3:+-H "Content-Type: application/json" -d "$3"} "http://$client$2")
}
is_status() { # is_status STATUS METHOD PATH [BODY]
    wanted=$1
    shift
    ask "$@"
    [ "$status" = "$wanted" ] || { echo "$status: $(cat "$tmp/body")"; return 1; }
}
has() { grep -q -- "$1" "$tmp/body" || { cat "$tmp/body"; return 1; }; }
of_body() { sed -n 's/.*"'"$1"'":"\([^"]*\)".*/\1/p' "$tmp/body" | head -n 1; }
newcomer() {
    id=$(curl -s -X POST "http://$client/v1/clients" | sed 's/.*"client_id":"\([^"]*\)".*/\1/')
    key=$(curl -s -X POST "http://$client/v1/clients/$id/keys" | sed 's/.*"api_key":"\([^"]*\)".*/\1/')
}
submit() { # submit KIND: job
    ask POST /v1/jobs "{\"type\":\"EXECUTE\",\"work_kind\":\"$1\"}"
    job=$(of_body job_id)
    [ "$status" = 202 ] && [ -n "$job" ]
}
becomes() { await "\"event\":\"$1\",\"job_id\":\"$job\""; } # the log's line of that transition of $job
is_in() { # is_in STATE: asked until it is, for what may have been logged before anybody listened
    for _ in $(seq 20000); do
        ask GET "/v1/jobs/$job"
        ! grep -q "\"state\":\"$1\"" "$tmp/body" || return 0
        sleep 0.05 # each is a line of the log, which holds no more than 64 KiB until it is awaited
    done
    cat "$tmp/body"
    return 1
}
advance() {
    [ "$(curl -s -o /dev/null -w '%{http_code}' -X POST -H "$bearer" -H 'Content-Type: application/json' \
        -d "{\"by\":\"$1\"}" "http://$at/clock:advance")" = 200 ]
}
# passes TIME: less than a lease, and the worker says then that it lives: two of them at once would be more than a lease
passes() {
    beats=$(metric worker_heartbeats_total)
    advance "$1" || return 1
    until [ "$(metric worker_heartbeats_total)" -gt "$beats" ]; do kill -0 "$server" || return 1; done
}
metric() { # metric SERIES: its value
    curl -s -H "$bearer" "http://$at/metrics" | grep -v '^#' | grep -F "$1 " | sed 's/.* //'
}
metric_is() { [ "$(metric "$1")" = "$2" ] || { echo "$1 is $(metric "$1")"; return 1; }; }

# ---- the server's own workers, and time that is moved ----

start --workers-count 2 && newcomer
check 'a slow job is submitted' submit RUNS_LONG
check 'and runs (JOB-203)' becomes job.running
check 'the line says which job it is, and from where to where (JOB-407, JOB-409)' \
    sh -c 'case $1 in *"\"current_state\":\"ASSIGNED\",\"next_state\":\"RUNNING\""*"\"scenario\":\"RUNS_LONG\",\"duration_ms\":110000"*) ;; *) echo "$1"; false ;; esac' - "$line"
check 'it is RUNNING' is_status 200 GET "/v1/jobs/$job"
check 'it is RUNNING' has '"state":"RUNNING"'
check 'no report yet (JOB-366)' is_status 404 GET "/v1/jobs/$job/report"
check 'time is moved' passes 20s
for i in 1 2 3 4; do check 'and again' passes 20s; done
check 'to its end' advance 12s
check 'it has succeeded (JOB-040)' becomes job.succeeded
check 'and has its report' is_status 200 GET "/v1/jobs/$job/report"
check 'which is of success' has '"outcome":"SUCCESS"'
check 'one that runs too long' submit RUNS_OVER_TIMEOUT
check 'runs' becomes job.running
for i in 1 2 3 4 5; do check "time is moved, $i" passes 20s; done
check 'time is moved to its end' advance 20s
check 'until its time is over (JOB-335)' becomes job.timed_out
check 'the line has the reason (JOB-408, JOB-410)' \
    sh -c 'case $1 in *"\"reason\":\"TIMEOUT\",\"error_code\":\"RFA_EXEC_TIMEOUT\""*) ;; *) echo "$1"; false ;; esac' - "$line"
check 'one that fails' submit FAIL_IMMEDIATE
check 'fails' becomes job.failed

check 'submits are counted (JOB-413)' metric_is jobs_submitted_total 3
check 'and what was queued (JOB-414)' metric_is jobs_queued_total 3
check 'and what ran (JOB-415)' metric_is jobs_running_total 3
check 'and what succeeded (JOB-416)' metric_is jobs_succeeded_total 1
check 'and what failed (JOB-417)' metric_is jobs_failed_total 2
check 'and what was cancelled (JOB-418)' metric_is jobs_canceled_total 0
check 'nothing is queued (JOB-419)' metric_is job_queue_depth 0
check 'claims are measured (JOB-420)' metric_is job_queue_wait_seconds_count 3
check 'and runs (JOB-421)' metric_is job_execution_seconds_count 3
check 'by kind and outcome (JOB-031)' metric_is 'jobs_scenario_total{work_kind="RUNS_LONG",outcome="SUCCESS"}' 1
check 'requests by endpoint and status (JOB-429)' \
    metric_is 'http_requests_total{endpoint="/v1/jobs",method="POST",status="202"}' 3
check 'heartbeats are counted (JOB-434)' sh -c '[ "$1" -ge 10 ]' - "$(metric worker_heartbeats_total)"
check 'commands of requests are counted (JOB-435)' metric_is 'storage_errors_total{operation="write"}' 0

keyed='{"type":"EXECUTE","work_kind":"PAYLOAD_SMALL","idempotency_key":"once"}'
check 'a submit with a key' is_status 202 POST /v1/jobs "$keyed"
check 'and the same again' is_status 202 POST /v1/jobs "$keyed"
check 'is counted as new (JOB-433)' metric_is idempotency_new_total 1
check 'and as known (JOB-433)' metric_is idempotency_hits_total 1
check 'one job came of them (JOB-413)' metric_is jobs_submitted_total 4

# ---- each worker is killed, and what it ran is told of (JOB-316) ----

check 'a job for a worker that is killed' submit SUCCESS_SLOW
check 'runs' becomes job.running
check 'both workers are killed' sh -c 'for w in worker:0 worker:1; do "$1" kill $w --yes --reason drill --url "http://$2" --token-file "$3" || exit 1; done' \
    - "$COPPICE" "$at" "$tmp/store/operator.token"
lost=$job
check 'another job' submit SUCCESS_FAST
check 'is run by those who came after them' becomes job.succeeded
job=$lost
check 'and it is failed already: who came after it under its name said so' is_in FAILED
check 'its reason is told' is_status 200 GET "/v1/jobs/$job"
check 'it has lost its runner' has '"reason":"RUNNER_LOST"'

# ---- restart (JOB-285, JOB-316, JOB-459, AMB-J-38) ----

check 'one that runs when the server is killed' submit SUCCESS_SLOW
running=$job
check 'runs' becomes job.running
kill -9 "$server"
wait "$server" 2>/dev/null
start --workers-count 0
check 'nobody works: the log says so (JOB-356)' await '"error_code":"RFA_EXEC_WORKER_UNAVAILABLE"'
check 'the server is not ready (JOB-313)' is_status 503 GET /readyz
check 'and says by its code why (JOB-313, AMB-J-39)' has '"RFA_EXEC_WORKER_UNAVAILABLE":"down"'
check 'jobs are taken all the same' submit SUCCESS_FAST
check 'and stay' is_status 200 GET "/v1/jobs/$job"
check 'in the queue (JOB-313)' has '"state":"QUEUED"'
job=$running
check 'its worker is gone (AMB-J-38)' is_in FAILED
check 'one that nobody runs' submit SUCCESS_FAST
waiting=$job
kill -9 "$server"
wait "$server" 2>/dev/null
start --workers-count 1
job=$waiting
check 'is still queued after a restart, and runs (JOB-285, JOB-286)' is_in SUCCEEDED

kill -9 "$server"
wait "$server" 2>/dev/null
start --workers-count 0 --workers-outside && ready
check 'where programs outside work nobody is missed' is_status 200 GET /readyz
kill -9 "$server"
wait "$server" 2>/dev/null
start --workers-count 1

# ---- programs outside ----

offer() { # offer PAYLOAD: job
    ask POST /v1/work:submit "{\"work_kind\":\"x.echo\",\"payload\":$1}"
    job=$(of_body job_id)
    [ "$status" = 202 ] && [ -n "$job" ]
}
claim() { # claim BODY: token
    ask POST /v1/work:claim "$1"
    token=$(of_body lease_token)
    [ "$status" = 200 ]
}
check 'there is nothing to do' claim '{}'
check 'so nobody gets anything' has '"jobs":\[\]'
check 'something is offered' offer '{"n":1}'
check 'another kind gets nothing' claim '{"kinds":["x.other"]}'
check 'another kind gets nothing' has '"jobs":\[\]'
check 'it is claimed' claim '{"kinds":["x.echo"],"worker":"test","lease_ms":60000}'
check 'with what was given' has '"payload":{"n":1}'
check 'it is RUNNING' is_status 200 GET "/v1/jobs/$job"
check 'it is RUNNING' has '"state":"RUNNING"'
check 'nobody else gets it' claim '{}'
check 'nobody else gets it' has '"jobs":\[\]'
check 'a token that is none' is_status 400 POST /v1/work:heartbeat "{\"job_id\":\"$job\",\"lease_token\":\"zz\"}"
check 'an older lease is refused' is_status 409 POST /v1/work:complete "{\"job_id\":\"$job\",\"lease_token\":\"1\"}"
check 'the lease is over' advance 61s
check 'so it failed: its runner is lost' becomes job.failed
check 'and the line has its kind (JOB-030)' expr "$line" : '.*"scenario":"x.echo"'

check 'another one' offer '"twice"'
check 'is claimed' claim '{"worker":"test"}'
lease="\"job_id\":\"$job\",\"lease_token\":\"$token\""
check 'a heartbeat' is_status 200 POST /v1/work:heartbeat "{$lease,\"progress\":0.5,\"stage\":\"half way\"}"
check 'nobody wants it to stop' has '"cancel_requested":false'
check 'it is done' is_status 200 POST /v1/work:complete "{$lease,\"result\":{\"ok\":true}}"
check 'SUCCEEDED' has '"state":"SUCCEEDED"'
check 'said twice is answered twice' is_status 200 POST /v1/work:complete "{$lease,\"result\":{\"ok\":true}}"
check 'something else is refused' is_status 409 POST /v1/work:fail "{$lease,\"message\":\"no\"}"

check 'one whose result would move the cursor' offer '5'
check 'is claimed' claim '{"worker":"test"}'
lease="\"job_id\":\"$job\",\"lease_token\":\"$token\""
csi=$(printf '\302\233')
check 'done' is_status 200 POST /v1/work:complete "{$lease,\"result\":{\"a${csi}\":\"${csi}2J\"}}"
shown() { COPPICE_STORE_DIR=$tmp/store COPPICE_OPERATOR_LISTEN=$at "$COPPICE" inspect report "$job" "$@" >"$tmp/body"; }
tamed() { shown "$@" && has '\\u009b2J' && ! grep -q "$csi" "$tmp/body"; }
check 'whoever inspects it reads it' tamed
check 'whoever inspects it reads it, as JSON' tamed --json

check 'one that is cancelled' offer '3'
check 'is claimed' claim '{"worker":"test"}'
lease="\"job_id\":\"$job\",\"lease_token\":\"$token\""
check 'cancelled' is_status 200 POST "/v1/jobs/$job/cancel"
check 'the worker learns of it' is_status 200 POST /v1/work:heartbeat "{$lease}"
check 'the worker learns of it' has '"cancel_requested":true'
check 'and is too late' is_status 409 POST /v1/work:complete "{$lease}"

check 'one that fails and is tried again' offer '4'
check 'is claimed' claim '{"worker":"test"}'
lease="\"job_id\":\"$job\",\"lease_token\":\"$token\""
check 'fails' is_status 200 POST /v1/work:fail "{$lease,\"retryable\":true,\"retry_after_ms\":60000,\"message\":\"busy\"}"
check 'and will be retried' has '"will_retry":true'
check 'said again' is_status 200 POST /v1/work:fail "{$lease,\"retryable\":true,\"retry_after_ms\":60000,\"message\":\"busy\"}"
check 'it hears the same' has '"will_retry":true'
check 'not yet' claim '{}'
check 'not yet' has '"jobs":\[\]'
check 'a minute later' advance 61s
check 'it is there again, for who waits' claim '{"wait_ms":10000}'
check 'as another attempt' has '"attempt":2'
check 'done' is_status 200 POST /v1/work:complete "{\"job_id\":\"$job\",\"lease_token\":\"$token\"}"

# a contract counts characters, and a row has bytes: what is for people ends with a whole character
many() { # many COUNT TEXT
    printf "%0$1d" 0 | sed "s/0/$2/g"
}
umlauts=a$(many 31 ä)
check 'one for a worker with a long name' offer '6'
check 'is claimed' claim "{\"worker\":\"a$(many 63 ä)\"}"
lease="\"job_id\":\"$job\",\"lease_token\":\"$token\""
check 'at a stage with a long name' is_status 200 POST /v1/work:heartbeat "{$lease,\"stage\":\"a$(many 127 ä)\"}"
check 'which is asked for' is_status 200 GET "/v1/jobs/$job:explain"
check 'the first 64 bytes are the owner' has "\"owner\":\"$umlauts\""
check 'and the first 128 are the stage' has "\"stage\":\"$umlauts$(many 32 ä)\""
check 'it fails for a long reason' is_status 200 POST /v1/work:fail "{$lease,\"message\":\"a$(many 300 ü)\"}"
check 'of which there is a report' is_status 200 GET "/v1/jobs/$job/report"
check 'with the first 512 bytes' has "\"a$(many 255 ü)\""

mine=$job
mykey=$key
newcomer
check "another client can't see it (JOB-292)" is_status 403 GET "/v1/jobs/$mine"
check "nor work on it" is_status 404 POST /v1/work:heartbeat "{\"job_id\":\"$mine\",\"lease_token\":\"$token\"}"
check "nor get it" claim '{}'
check "nor get it" has '"jobs":\[\]'
key=$mykey

# ---- a key that is ended while its claim waits ----

waits() { # until a connection does: only a claim waits for that long
    for _ in $(seq 20000); do
        for pid in $(get '/stats/tree?class=connection' | grep -o '"pid":"[^"]*"' | cut -d '"' -f 4); do
            ! get "/stats/actors/$pid" | grep -q '"status":"WAITING","waiting_for":"receive"' || return 0
        done
    done
    return 1
}
newcomer
curl -s -m 120 -o "$tmp/waited" -w '%{http_code}' -H "Authorization: Bearer $key" -H 'Content-Type: application/json' \
    -d '{"kinds":["x.echo"],"wait_ms":30000}' "http://$client/v1/work:claim" >"$tmp/waited.status" &
waiter=$!
check 'a claim waits' waits
check 'its key is renewed' is_status 200 POST "/v1/clients/$id/keys/renew" '{}'
key=$(of_body api_key)
check 'something comes' offer 5
wait "$waiter"
check 'that is not for the old key (JOB-128, JOB-297)' is "$(cat "$tmp/waited.status")" 403
check 'which hears why' grep -q RFA_AUTH_API_KEY_DISABLED "$tmp/waited"
check 'the new one gets it' claim '{"kinds":["x.echo"]}'
check 'the new one gets it' has "\"job_id\":\"$job\""
key=$mykey

check 'no kind of a user' is_status 400 POST /v1/work:submit '{"work_kind":"x.","payload":1}'
refuses() { # refuses PATH BODY FIELD TEXT
    is_status 400 POST "$1" "$2" && has "\"field\":\"$3\"" && has "$4"
}
check 'a kind of the catalogue is no kind for workers outside' refuses /v1/work:claim '{"kinds":["SUCCESS_FAST"]}' kinds 'kinds must be names of kinds that begin with x\.'
check 'more kinds than a claim takes' refuses /v1/work:claim "{\"kinds\":[$(seq -s, 17 | sed 's/[0-9]*/"x.&"/g')]}" kinds 16
check 'a job that is none' refuses /v1/work:heartbeat '{"job_id":"7","lease_token":"1"}' job_id UUID
check 'a token that is none' refuses /v1/work:heartbeat "{\"job_id\":\"$job\",\"lease_token\":\"zz\"}" lease_token 'lease_token '

# ---- the examples ----

check 'for the shell' offer '{"to":"sh"}'
check 'the shell has done it' sh -c 'COPPICE_CLIENT_URL=http://$1 COPPICE_KEY=$2 sh docs/examples/worker.sh 1 | grep -q SUCCEEDED' - "$client" "$key"
echoes() { # echoes PAYLOAD COMMAND...: what the job came to is its payload, whatever names and quotes are in it
    wanted="\"result\":{\"echo\":$1}}"
    offer "$1" || return 1
    shift
    COPPICE_CLIENT_URL=http://$client COPPICE_KEY=$key timeout 60 "$@" 1 >"$tmp/said" 2>&1 || { cat "$tmp/said"; return 1; }
    ask GET "/v1/jobs/$job/report"
    case $(cat "$tmp/body") in *"$wanted") ;; *) cat "$tmp/said" "$tmp/body"; return 1 ;; esac
}
all_echo() { # all_echo COMMAND...
    echoes '{"job_id":"a","lease_token":"7","payload":{"payload":1}}' "$@" && echoes '"}]}"' "$@" && echoes '[[{"jobs":[]}]]' "$@" &&
        echoes '"\" \\ \"payload\":\"job_id\":\"no\" %s \n"' "$@" && echoes null "$@"
}
# A result that is too large isn't done: the worker says so, and goes on until something is.
refused_is_not_done() {
    offer "\"$(head -c 17000 /dev/zero | tr '\0' x)\"" && big=$job && offer 1 &&
        COPPICE_CLIENT_URL=http://$client COPPICE_KEY=$key timeout 60 "$@" 1 >"$tmp/said" 2>&1 && [ "$(grep -c SUCCEEDED "$tmp/said")" = 1 ] &&
        is_status 200 GET "/v1/jobs/$job" && has '"state":"SUCCEEDED"' && job=$big && is_in FAILED || { cat "$tmp/said"; return 1; }
}
check 'the shell gives back whatever it was given' all_echo sh docs/examples/worker.sh
check 'what the shell could not complete is not done' refused_is_not_done sh docs/examples/worker.sh
check 'without a key the shell ends at once' sh -c 'COPPICE_KEY="" timeout 60 sh docs/examples/worker.sh 1; case $? in 0 | 124) exit 1 ;; esac'
# ends STATUS TEXT KEY COMMAND...: by itself, with that status and one line that has the text
ends() {
    wanted=$1 text=$2 one=$3
    shift 3
    COPPICE_CLIENT_URL=http://$client COPPICE_KEY=$one timeout 60 "$@" 1 >"$tmp/said" 2>&1
    is $? "$wanted" && is "$(grep -c . "$tmp/said")" 1 && grep -qF -e "$text" "$tmp/said" || { cat "$tmp/said"; return 1; }
}
with_wrong_key() {
    COPPICE_CLIENT_URL=http://$client COPPICE_KEY=cop_x timeout 60 "$@" 1 >"$tmp/said" 2>&1
    is $? 1 && is "$(grep -c RFA_AUTH "$tmp/said")" 1 || { cat "$tmp/said"; return 1; }
}
check 'with a key that is none it ends, too' with_wrong_key sh docs/examples/worker.sh
check 'for C' offer '{"to":"c"}'
check 'the example is compiled' ${CC:-cc} -Wall -Wextra -Werror docs/examples/worker.c -o "$tmp/worker" -lcurl
check 'the program has done it' sh -c 'COPPICE_CLIENT_URL=http://$1 COPPICE_KEY=$2 "$3" 1 | grep -q SUCCEEDED' - "$client" "$key" "$tmp/worker"

check 'the program gives back whatever it was given' all_echo "$tmp/worker"
check 'what the program could not complete is not done' refused_is_not_done "$tmp/worker"
check 'without a key the program says what it needs' ends 64 'COPPICE_KEY must be' '' "$tmp/worker"
check 'with a key that is none it ends, too' with_wrong_key "$tmp/worker"
check 'without a server it says so' ends 1 'work:claim: ' "$key" env COPPICE_CLIENT_URL=http://127.0.0.1:9 "$tmp/worker"
if command -v node >/dev/null; then
    check 'without its client the one for Node says how to make it' ends 64 'tsc' "$key" env COPPICE_CLIENT=./nowhere.js node docs/examples/worker.mjs
fi

kill "$server"
check 'the server ends' wait "$server"
finish
