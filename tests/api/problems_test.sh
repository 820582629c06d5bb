#!/bin/sh
# The job contract's refusals from outside: problem details of one form, each code with its own type and title, statuses that
# are never used; what its document says of each operation; the probes while something hangs, and while the server drains.
cd "$(dirname "$0")/../.." || exit 1
. tests/api/server.sh

check "a server" start --schedulers 2 --limits-requests-per-minute 40
operator=$at
none=00000000-0000-4000-8000-000000000000
json='Content-Type: application/json'
from=127.0.0.1

ask() {
    method=$1 path=$2
    shift 2
    curl -s -m 120 -o "$tmp/body" -D "$tmp/head" -w '%{http_code}' --interface "$from" -X "$method" "$@" "http://$client$path"
}
body() {
    cat "$tmp/body"
}
value() {
    member "$1" "$(body)"
}
header() {
    tr -d '\r' <"$tmp/head" | grep -qi "^$1\$" || cat "$tmp/head"
    tr -d '\r' <"$tmp/head" | grep -qi "^$1\$"
}
sent() {
    tr -d '\r' <"$tmp/head" | sed -n "s/^$1: //Ip"
}
# form STATUS CODE: of the last answer, the whole one (JOB-339, JOB-376..JOB-382)
form() {
    wanted=$1 code=$2
    is "$(value code)" "$code" && is "$(value status)" "$wanted" &&
        header 'content-type: application/problem+json' &&
        printf '%s' "$code" | grep -qE '^RFA_(REQUEST|AUTH|JOB|EXEC|STORAGE|DEPENDENCY|CONFIG|INTERNAL|CLIENT|WEBHOOK)(_[A-Z]+)*$' &&
        is "$(value type)" "urn:problem:$(printf '%s' "$code" | tr 'A-Z_' 'a-z-')" &&
        awk -F '\t' -v code="$code" -v status="$wanted" -v title="$(body | sed 's/.*"title":"\([^"]*\)".*/\1/')" \
            '$1 == code && $2 == status && ($3 == title || $5 == title) { found = 1 } END { exit !found }' \
            docs/contract/jobs.errors.tsv docs/contract/ops.errors.tsv &&
        [ -n "$(value detail)" ] && is "$(value instance)" "urn:request:$(sent x-request-id)" || {
        body
        return 1
    }
}
# problem STATUS CODE METHOD PATH ARGUMENT...
problem() {
    wanted=$1 code=$2
    shift 2
    is "$(ask "$@")" "$wanted" && form "$wanted" "$code"
}
# many COUNT METHOD PATH ARGUMENT...: so often, by one curl, which is much quicker than a bucket fills again
many() {
    count=$1 method=$2 path=$3
    shift 3
    rm -f "$tmp"/answer.*
    curl -s -m 120 -i -o "$tmp/answer.#1" -w '%{http_code}\n' --interface "$from" -X "$method" "$@" "http://$client$path#[1-$count]" >"$tmp/statuses"
}
# how_many STATUS: of those
how_many() {
    grep -c -x "$1" "$tmp/statuses"
}
# limited: one of those was too many, and it is the last answer from now on. It needn't be the last of them, because meanwhile
# there may have been room for one more.
limited() {
    answer=$(grep -l '^HTTP/1.1 429 ' "$tmp"/answer.* | head -n 1)
    [ -n "$answer" ] || sort "$tmp/statuses" | uniq -c
    [ -n "$answer" ] || return 1
    sed "/^$(printf '\r')\$/q" "$answer" >"$tmp/head"
    sed "1,/^$(printf '\r')\$/d" "$answer" >"$tmp/body"
}
auth() {
    printf 'Authorization: Bearer %s' "$1"
}

# --- one form for all (JOB-339, JOB-376..JOB-382) ---
ask POST /v1/clients >/dev/null
one=$(value client_id)
ask POST "/v1/clients/$one/keys" >/dev/null
key=$(value api_key)
key_id=$(value key_id)
mine=$(auth "$key")
check "JOB-340 JOB-380 malformed" problem 400 RFA_REQUEST_MALFORMED POST /v1/jobs -H "$mine" -H "$json" -d '{'
check "JOB-380 a 400 names the field" problem 400 RFA_REQUEST_MALFORMED POST "/v1/clients/$one/keys/revoke" -H "$mine" -H "$json" -d '{}'
check "JOB-380 in its detail" has "$(value detail)" key_id
check "JOB-380 a job of a kind of one's own" problem 400 RFA_JOB_VALIDATION_FAILED POST /v1/jobs -H "$mine" -H "$json" -d '{"type":"EXECUTE","work_kind":"x.foo"}'
check "JOB-380 is told where it is taken" has "$(value detail)" 'work_kind is one of your own: such jobs go to POST /v1/work:submit'
check "JOB-341 another type" problem 415 RFA_REQUEST_UNSUPPORTED_MEDIA_TYPE POST /v1/jobs -H "$mine" -H 'Content-Type: text/plain' -d x
check "JOB-342 another method" problem 405 RFA_REQUEST_METHOD_NOT_ALLOWED PUT /v1/jobs -H "$mine"
check "JOB-387 jobs aren't deleted" problem 405 RFA_REQUEST_METHOD_NOT_ALLOWED DELETE "/v1/jobs/$none" -H "$mine"
check "JOB-343 another answer" problem 406 RFA_REQUEST_NOT_ACCEPTABLE GET "/v1/jobs/$none" -H "$mine" -H 'Accept: text/html'
head -c 1048577 /dev/zero | tr '\0' ' ' >"$tmp/large"
check "JOB-344 too large" problem 413 RFA_REQUEST_PAYLOAD_TOO_LARGE POST /v1/jobs -H "$mine" -H "$json" --data-binary "@$tmp/large"
check "JOB-339 an expectation that nobody meets" problem 417 RFA_REQUEST_EXPECTATION_FAILED GET /v1/jobs -H "$mine" -H 'Expect: more'
check "JOB-339 a target that is too long" problem 414 RFA_REQUEST_TARGET_TOO_LONG GET "/v1/jobs?$(head -c 9000 /dev/zero | tr '\0' a)" -H "$mine"
check "JOB-339 a head that is too large" problem 431 RFA_REQUEST_HEADER_TOO_LARGE GET /v1/jobs -H "$mine" -H "A: $(head -c 33000 /dev/zero | tr '\0' a)"
check "JOB-346 JOB-294 no key" problem 401 RFA_AUTH_INVALID_CREDENTIALS GET /v1/jobs
check "JOB-375 with what it wants" header 'www-authenticate: Bearer.*'
check "JOB-351 no job" problem 404 RFA_JOB_NOT_FOUND GET "/v1/jobs/$none" -H "$mine"
check "JOB-362 no path" problem 404 RFA_REQUEST_ROUTE_NOT_FOUND GET /v1/clients/a/b/c -H "$mine"
check "JOB-363 no client" problem 404 RFA_CLIENT_NOT_FOUND POST "/v1/clients/$none/keys" -H "$mine"
check "JOB-364 JOB-299 no such key" problem 404 RFA_AUTH_API_KEY_NOT_FOUND POST "/v1/clients/$one/keys/revoke" -H "$mine" -H "$json" -d "{\"key_id\":\"$none\"}"
check "JOB-299 the key is as good as before" is "$(ask GET /v1/jobs -H "$mine")" 200
check "JOB-367 no webhook" problem 404 RFA_WEBHOOK_NOT_FOUND DELETE "/v1/webhooks/$none" -H "$mine"
check "JOB-098 nothing of it is there without /v1" is "$(ask POST /clients; ask GET /webhooks; ask GET /jobs)" 404404404
check "JOB-355 a key with another body" is "$(ask POST "/v1/clients/$one/keys" -H "$mine" -H 'Idempotency-Key: i' -H "$json" -d '{}')" 201
check "JOB-355 in its code" problem 409 RFA_EXEC_IDEMPOTENCY_CONFLICT POST "/v1/clients/$one/keys" -H "$mine" -H 'Idempotency-Key: i' -H "$json" -d '{"rotate":true}'

# --- statuses (JOB-369..JOB-374) ---
check "JOB-369 an upgrade is not taken up" is "$(ask GET /v1/jobs -H "$mine" -H 'Connection: Upgrade' -H 'Upgrade: h2c' -H 'HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA')" 200
check "JOB-370 reading is 200" is "$(ask GET /v1/jobs -H "$mine")" 200
check "JOB-371 making is 201" is "$(ask POST /v1/clients)" 201
check "JOB-374 no condition makes a 304" is "$(ask GET /v1/jobs -H "$mine" -H 'If-None-Match: *' -H 'If-Modified-Since: Sun, 06 Nov 2094 08:49:37 GMT')" 200
for path in /v1/jobs/ /v1/clients/ //v1/jobs /v1//jobs /v1/jobs/. /v1; do
    check "JOB-374 $path is no redirect" sh -c 'case $1 in [45]??) ;; *) echo "$1"; exit 1 ;; esac' sh "$(ask GET "$path" -H "$mine")"
done
check "JOB-373 what a path takes is said with 200" is "$(ask OPTIONS /v1/jobs)" 200
check "JOB-373 JOB-369 JOB-374 no operation of a document answers 1xx, 204 or 3xx" is "$(cat docs/contract/*.openapi.yaml | grep -cE '^        .(1..|204|3..).:')" 0

# --- what the document says (JOB-104, JOB-109, JOB-119, JOB-129) ---
# statuses OPERATION: those that its document lists
statuses() {
    awk -v id="$1" '/^  \/|^    [a-z]+:$/ { inside = 0 } $1 == "operationId:" { inside = $2 == id }
        inside && /^        .[0-9][0-9][0-9].: / { print substr($1, 2, 3) } inside && /^        .[0-9][0-9][0-9].:$/ { print substr($1, 2, 3) }' \
        docs/contract/jobs.openapi.yaml | sort | tr '\n' ' '
}
check "JOB-104 create client" is "$(statuses createClient)" '201 429 500 503 '
check "JOB-109 create API key" is "$(statuses createApiKey)" '201 400 401 403 404 409 500 503 '
check "JOB-119 renew API key" is "$(statuses renewApiKey)" '200 400 401 403 404 409 500 503 '
check "JOB-129 revoke API key" is "$(statuses revokeApiKey)" '200 400 401 403 404 409 500 503 '

# --- API keys as records (JOB-383..JOB-385) ---
from=127.0.0.2
check "JOB-383 a key that is stored" is "$(ask GET /v1/jobs -H "$mine")" 200
check "JOB-092 revoke" is "$(ask POST "/v1/clients/$one/keys/revoke" -H "$mine" -H "$json" -d "{\"key_id\":\"$key_id\"}"; body)" '200{"revoked":true}'
check "JOB-092 JOB-385 then it is known, and no use" problem 403 RFA_AUTH_API_KEY_DISABLED GET /v1/jobs -H "$mine"
check "JOB-385 what never was a key is not known" problem 401 RFA_AUTH_INVALID_CREDENTIALS GET /v1/jobs -H "$(auth cop_0000000000000000000000000000000000000000000000000)"

# --- a client's rate (JOB-441, JOB-345) ---
from=127.0.0.3
ask POST /v1/clients >/dev/null
two=$(value client_id)
ask POST "/v1/clients/$two/keys" >/dev/null
yours=$(auth "$(value api_key)")
many 40 GET /v1/jobs -H "$yours"
check "JOB-441 forty a minute" is "$(how_many 200)" 40
many 100 GET /v1/jobs -H "$yours"
check "JOB-441 JOB-345 and no more" limited
check "JOB-441 JOB-345 of a hundred next to none" test "$(how_many 200)" -lt 40
check "JOB-345 in its form" form 429 RFA_REQUEST_RATE_LIMITED
check "JOB-441 by the limit's name" is "$(value limit)" requests_per_minute
check "JOB-375 with Retry-After" header 'retry-after: [1-9][0-9]*'

# --- who shows no key is counted by address, whatever he asks for that needs none (AMB-J-22) ---
from=127.0.0.5
check "AMB-J-22 a first key" is "$(ask POST "/v1/clients/$one/keys")" 401
check "AMB-J-22 counts for the address" header 'ratelimit-policy: "register";q=60;w=60'
many 200 POST "/v1/clients/$one/keys" # new clients and first keys are one bucket: sixty, and one more each second
check "AMB-J-22 until it may no more" limited
check "AMB-J-22 after those" test "$(how_many 401)" -ge 59
check "AMB-J-22 in its form" form 429 RFA_REQUEST_RATE_LIMITED
check "AMB-J-22 as anonymous" is "$(value limit)" anonymous
check "AMB-J-22 with Retry-After" header 'retry-after: [1-9][0-9]*'
many 100 POST /v1/clients
check "AMB-J-22 nor make a client" limited
check "AMB-J-22 in the same form" form 429 RFA_REQUEST_RATE_LIMITED
check "AMB-J-22 of a hundred next to none" test "$(how_many 201)" -lt 60
from=127.0.0.6
check "AMB-J-22 another address may" is "$(ask POST /v1/clients)" 201
three=$(value client_id)
ask POST "/v1/clients/$three/keys" >/dev/null
ask POST "/v1/clients/$three/keys" -H "$(auth "$(value api_key)")" >/dev/null
check "AMB-J-22 with its key it is another bucket" header 'ratelimit-policy: "client";q=[0-9]*;w=60'

# --- probes (CTL-533..CTL-541) ---
# probed ARGUMENT...: what curl says when it is answered within 5 s. A machine that stood still for that long is asked again; who
# never answers in time has none of five.
probed() {
    for _ in 1 2 3 4 5; do
        answered=$(curl -s -m 5 "$@") && break
    done
    printf '%s' "$answered"
}
from=127.0.0.4
at=$operator
for address in "$operator" "$client"; do
    for probe in healthz livez readyz startupz; do
        check "CTL-524 CTL-533 CTL-537 /$probe" is "$(probed -o /dev/null -w '%{http_code}' -H 'Authorization: Bearer nonsense' "http://$address/$probe")" 200
    done
done
check "CTL-536 what the bus and the adapters hang on" chaos suspend runtime
check "CTL-536 hangs" chaos suspend bus
for address in "$operator" "$client"; do
    check "CTL-536 CTL-527 alive within 5 s" is "$(probed -o /dev/null -w '%{http_code}' "http://$address/healthz")" 200
    check "CTL-536 CTL-530 not ready within 5 s" is "$(probed -o /dev/null -w '%{http_code}' "http://$address/readyz")" 503
    check "CTL-536 started within 5 s" is "$(probed -o /dev/null -w '%{http_code}' "http://$address/startupz")" 200
done
check "they go on" chaos resume runtime
check "both" chaos resume bus
check "CTL-536 what every change hangs on" chaos suspend store.writer
for address in "$operator" "$client"; do
    check "CTL-530 CTL-531 not ready within 5 s" is "$(probed -o "$tmp/probe" -w '%{http_code}' "http://$address/readyz")" 503
    check "CTL-531 and says so" has "$(cat "$tmp/probe")" '"database":"down","redis":"down"'
done
check "CTL-536 alive within 5 s" is "$(probed -o /dev/null -w '%{http_code}' "http://$client/healthz")" 200
check "it goes on" chaos resume store.writer
check "ready" is "$(probed -o /dev/null -w '%{http_code}' "http://$client/readyz")" 200
check "it stops" stop
check "JOB-384 the record of a revoked key stays, and says when it ended" has \
    "$("$COPPICE" export --jsonl --store-dir "$tmp/store" | grep '"table":"api_keys"' | grep "\"id\":\"$key_id\"")" '"ended_at":"2'

check "a server that drains" start --http-shutdown-delay 1h
kill -TERM "$server"
check "CTL-539 SIGTERM is heard" await '"logger":"signals","msg":"stopping"'
check "CTL-541 the balancer sees it" is "$(ask GET /readyz)" 503
check "CTL-532 CTL-530 in its words" has "$(body)" '{"status":"not_ready","checks":{"database":"ok","redis":"ok","event_bus":"ok"},"timestamp":"'
check "CTL-541 who comes all the same is served" is "$(ask POST /v1/clients)" 201
check "CTL-541 or refused as ever" problem 401 RFA_AUTH_INVALID_CREDENTIALS GET /v1/jobs
kill -TERM "$server"
check "it ends" ends_with 0

# --- a request that takes longer than it may (JOB-338, JOB-354) ---
check "a server whose requests may take four seconds" start --http-request-timeout-ms 4000
operator=$at
clients() {
    get /stats | sed -n 's/.*"rows":{[^}]*"clients":\([0-9]*\).*/\1/p'
}
check "who writes is suspended" chaos suspend store.writer
before=$(clients)
check "JOB-338 JOB-354 too late" problem 504 RFA_EXEC_TIMEOUT POST /v1/clients
check "it goes on" chaos resume store.writer
check "JOB-338 the next one is done" is "$(ask POST /v1/clients)" 201
check "JOB-338 and that one alone" is "$(clients)" $((before + 1))
check "it stops" stop

check "a server whose root gives up" start
for _ in $(seq 40); do # four within ten seconds, however slow some of them are
    kill -0 "$server" 2>/dev/null || break
    chaos kill deduper >/dev/null 2>&1
done
check "CTL-540 the process ends" await '"exit_status":70'
check "CTL-540 with a status that says so" ends_with 70
finish
