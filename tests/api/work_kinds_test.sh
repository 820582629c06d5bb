#!/bin/sh
# The catalogue of work kinds from outside: what the command line prints and what clients are answered is the specification's
# table, JOB-034..JOB-064, and nothing else (JOB-065).
cd "$(dirname "$0")/../.." || exit 1
. tests/api/server.sh

tr ';' '\t' >"$tmp/wanted" <<'TABLE'
work_kind;duration_ms;should_fail;payload_size_kb;expected_outcome;note
SUCCESS_FAST;1000;false;4;SUCCEEDED;
SUCCESS_NORMAL;10000;false;16;SUCCEEDED;
SUCCESS_SLOW;90000;false;32;SUCCEEDED;
FAIL_IMMEDIATE;500;true;1;FAILED;
FAIL_AFTER_PROGRESS;20000;true;8;FAILED;
FAIL_AFTER_RETRYABLE;5000;true;8;FAILED;retryable
RUNS_LONG;110000;false;32;SUCCEEDED;
RUNS_OVER_TIMEOUT;max_runtime+1000;true;8;FAILED;timeout
CPU_BURST;8000;false;4;SUCCEEDED;
MEMORY_SPIKE;12000;false;64;SUCCEEDED;
IO_HEAVY;15000;false;32;SUCCEEDED;
MANY_SMALL_OUTPUTS;9000;false;16;SUCCEEDED;
LARGE_OUTPUT;9000;false;256;SUCCEEDED;
CANCEL_BEFORE_START;5000;false;4;CANCELED;when cancel issued in QUEUED
CANCEL_DURING_RUN;10000;false;4;CANCELED;when cancel issued in RUNNING
RETRY_ON_FAIL;3000;true;4;FAILED then SUCCEEDED on retry;
RETRY_LIMIT_REACHED;3000;true;4;FAILED after max retries;
DUPLICATE_SUBMIT_SAME_KEY;2000;false;4;SUCCEEDED;same job id
DUPLICATE_SUBMIT_DIFFERENT_KEY;2000;false;4;SUCCEEDED;distinct jobs
WEBHOOK_SUCCESS;2000;false;4;SUCCEEDED;webhook delivered
WEBHOOK_TIMEOUT;2000;false;4;SUCCEEDED;webhook retries
WEBHOOK_5XX;2000;false;4;SUCCEEDED;webhook retries
WEBHOOK_RETRIES_EXHAUSTED;2000;false;4;SUCCEEDED;delivery failed
WEBHOOK_SLOW_RECEIVER;2000;false;4;SUCCEEDED;delivery delayed
SCHEDULED_ON_TIME;2000;false;4;SUCCEEDED;
SCHEDULED_LATE_RECOVERY;2000;false;4;SUCCEEDED;enqueued after restart
SCHEDULED_FAR_FUTURE;2000;false;4;SUCCEEDED;
PAYLOAD_SMALL;2000;false;1;SUCCEEDED;
PAYLOAD_MEDIUM;2000;false;16;SUCCEEDED;
PAYLOAD_LARGE;2000;false;256;SUCCEEDED;
PAYLOAD_INVALID;0;false;0;REJECTED;validation error
TABLE

# runs STATUS ARGUMENT...: leaves standard output and error in $tmp
runs() {
    wanted=$1
    shift
    "$COPPICE" "$@" >"$tmp/stdout" 2>"$tmp/stderr"
    is $? "$wanted"
}

# objects: a line for each object of an array, from the text of a JSON document
objects() {
    awk '{ gsub(/},{/, "}\n{"); print }'
}
# rows MAX_RUNTIME: the lines as rows of the table. The duration of one follows from the runtime limit.
rows() {
    head -1 "$tmp/wanted"
    while read -r line; do
        duration=$(member duration_ms "$line")
        [ "$(member work_kind "$line")" != RUNS_OVER_TIMEOUT ] || [ "$duration" != $(($1 + 1000)) ] || duration=max_runtime+1000
        printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$(member work_kind "$line")" "$duration" "$(member should_fail "$line")" \
            $(($(member payload_size "$line") / 1024)) "$(member expected_outcome "$line")" "$(member note "$line")"
    done
}
# row NAME: its object, of what clients were answered
row() {
    grep -F "\"work_kind\":\"$1\"" "$tmp/objects"
}

# --- the command line ---
check "JOB-065 the command" runs 0 config check --print-catalogue
check "JOB-065 prints the table" cmp "$tmp/stdout" "$tmp/wanted"
check "JOB-065 of 31 rows" is "$(tail -n +2 "$tmp/stdout" | grep -c .)" 31
check "and nothing else" is "$(cat "$tmp/stderr")" ''
check "as JSON" runs 0 config check --print-catalogue --json
check "beside the verdict" has "$(cat "$tmp/stdout")" '{"valid":true,"environment":"dev","work_kinds":[{"work_kind":"SUCCESS_FAST",'
objects <"$tmp/stdout" | rows 120000 >"$tmp/shown"
check "JOB-065 the same rows" cmp "$tmp/shown" "$tmp/wanted"
check "not of settings that can't be used" runs 78 config check --print-catalogue --slice 7
check "then nothing is printed" is "$(cat "$tmp/stdout")" ''
check "of no other command" runs 64 config show --print-catalogue

# --- clients ---
check "a server" start --schedulers 1
ask() {
    path=$1
    shift
    curl -s -m 120 -o "$tmp/body" -D "$tmp/head" -w '%{http_code}' "$@" "http://$client$path"
}
client_id=$(member client_id "$(curl -s -m 120 -X POST "http://$client/v1/clients")")
key=$(member api_key "$(curl -s -m 120 -X POST "http://$client/v1/clients/$client_id/keys")")
check "without a key" is "$(ask /v1/work-kinds)" 401
check "in the shape of the job API" has "$(cat "$tmp/body")" '"code":"RFA_AUTH_INVALID_CREDENTIALS"'
check "with one" is "$(ask /v1/work-kinds -H "Authorization: Bearer $key")" 200
objects <"$tmp/body" >"$tmp/objects"
rows 120000 <"$tmp/objects" >"$tmp/shown"
check "JOB-065 clients see the same rows" cmp "$tmp/shown" "$tmp/wanted"
check "AMB-J-66 64 outputs" has "$(row MANY_SMALL_OUTPUTS)" '"payload_size":16384,"expected_outcome":"SUCCEEDED","note":"","group":"success","fails_on":"none","retryable":false,"progress":null,"outputs":64}'
check "AMB-J-66 progress" has "$(row FAIL_AFTER_PROGRESS)" '"group":"failure","fails_on":"every","retryable":false,"progress":0.5,"outputs":1}'
check "AMB-J-66 the first attempt only" has "$(row RETRY_ON_FAIL)" '"group":"failure","fails_on":"first","retryable":true,"progress":null'
check "JOB-071 slow" is "$(grep -c '"group":"slow"' "$tmp/objects")" 2
check "AMB-J-03 success" is "$(grep -c '"group":"success"' "$tmp/objects")" 10
check "AMB-J-03 failure" is "$(grep -c '"group":"failure"' "$tmp/objects")" 5
check "HEAD" is "$(ask /v1/work-kinds -I -H "Authorization: Bearer $key")" 200
check "other methods" is "$(ask /v1/work-kinds -X POST -H "Authorization: Bearer $key")" 405
check "in the same shape" has "$(cat "$tmp/body")" '"code":"RFA_REQUEST_METHOD_NOT_ALLOWED"'
for form in json yaml; do
    check "the document as $form" is "$(ask "/openapi/work.$form")" 200
done
check "is the one that lies there" cmp "$tmp/body" docs/contract/work.openapi.yaml
# shellcheck disable=SC2016 # of the other shell
check "the document of all names it" sh -c 'curl -s "http://$1/openapi.json" | grep -qF "\"/v1/work-kinds\":{\"\$ref\":\"openapi/work.json#/paths/~1work-kinds\"}"' sh "$client"
check "it ends" stop
finish
