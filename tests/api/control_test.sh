#!/bin/sh
# The control contract from outside: each field of each body, which defect of several is named, limits to the byte, versions,
# CORS, headers, who may come in at all, and the envelope of every refusal. What needs jobs is not here.
cd "$(dirname "$0")/../.." || exit 1
. tests/api/server.sh

page=https://app.example.com
check "a server" start --schedulers 2 --http-cors-origin "$page"
check "which is ready" ready
operator=$at
none=00000000-0000-4000-8000-000000000000
uuid='[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}'
json='Content-Type: application/json'
secret=canary-that-nobody-may-repeat

# Refused credentials are limited by address, so each chapter comes from another one.
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
# wrong: the field that details name; wrong_ones: every one that is listed
wrong() {
    body | sed -n 's/.*"details":{"field":"\([^"]*\)".*/\1/p'
}
wrong_ones() {
    body | sed 's/.*"errors":\[//' | grep -o '"field":"[^"]*"' | sed 's/"field":"\(.*\)"/\1/' | sort | tr '\n' ' '
}
header() {
    tr -d '\r' <"$tmp/head" | grep -qi "^$1\$" || cat "$tmp/head"
    tr -d '\r' <"$tmp/head" | grep -qi "^$1\$"
}
no_header() {
    ! tr -d '\r' <"$tmp/head" | grep -i "^$1"
}
# envelope STATUS: all of its members, in their types, as the table of the contract has the code; and nothing is repeated
# that only the sender should know (CTL-246..CTL-251, CTL-253)
envelope() {
    grep -qE '^\{"error":\{"code":"[A-Z]+_[0-9]{3}_[A-Z_]+","message":"[^"]+","http_status":'"$1"',"retryable":(true|false),"request_id":"[^"]+","trace_id":"[^"]+",("job_id":"'"$uuid"'",)?"details":\{.*\}\}\}$' "$tmp/body" &&
        ! grep -q "$secret" "$tmp/body" &&
        awk -F '\t' -v code="$(value code)" -v status="$1" -v retryable="$(value retryable)" \
            '$1 == code && $2 == status && $3 == retryable { found = 1 } END { exit !found }' \
            docs/contract/control.errors.tsv docs/contract/ops.errors.tsv &&
        is "$(value request_id)" "$(tr -d '\r' <"$tmp/head" | sed -n 's/^[Xx]-[Rr]equest-[Ii]d: //p')" || {
        body
        return 1
    }
}
# answers STATUS CODE METHOD PATH ARGUMENT...
answers() {
    wanted=$1 wanted_code=$2
    shift 2
    is "$(ask "$@")" "$wanted" && is "$(value code)" "$wanted_code" && envelope "$wanted"
}
token() {
    "$COPPICE" token issue --url "http://$operator" --token-file "$tmp/store/operator.token" --subject "$1" --role "$2" --projects "${3:-p1}"
}
# as NAME ROLE: whose requests follow; each has limits of its own
as() {
    actor=$1
    bearer=$(token "$1" "$2")
}
meta() {
    printf '"meta":{"schema_version":"v1","request_id":"r","trace_id":"t","actor_id":"%s","project_id":"p1"}' "$actor"
}
# post PATH BODY ARGUMENT...
post() {
    path=$1 text=$2
    shift 2
    printf '%s' "$text" >"$tmp/sent"
    ask POST "$path" -H "$json" -H "Authorization: Bearer $bearer" --data-binary "@$tmp/sent" "$@"
}
# refuses CODE PATH BODY [FIELD]: 400, and the field that is wrong
refuses() {
    is "$(post "$2" "$3")" 400 && is "$(value code)" "$1" && envelope 400 &&
        { [ -z "${4:-}" ] || is "$(wrong)" "$4"; }
}
# takes STATUS CODE PATH BODY: nothing is wrong with the body; what the domain says
takes() {
    is "$(post "$3" "$4")" "$1" && { [ -z "$2" ] || is "$(value code)" "$2"; } && { [ "$1" = 202 ] || envelope "$1"; }
}
submit() {
    printf '{%s,"idempotency_key":"k","intent":"i","risk_tier":"A","payload":{}%s}' "$(meta)" "${1:-}"
}
cancel() {
    printf '{%s,"idempotency_key":"k","reason":"x"}' "$(meta)"
}
decision() {
    printf '{%s,"idempotency_key":"k","reason":"x","decision":"%s"}' "$(meta)" "$1"
}
reprocess() {
    printf '{%s,"idempotency_key":"k"}' "$(meta)"
}
bulk() {
    printf '{%s,"idempotency_key":"k","event_ids":[%s]}' "$(meta)" "$1"
}
# without FIELD: of the JSON that is read, the member, whatever its value
without() {
    sed -E "s/\"$1\":(\"[^\"]*\"|\{\}|\[[^]]*\]|\{[^{}]*\}),?//; s/,\}/}/g; s/,\$//"
}
# with FIELD VALUE: it has this value instead
with() {
    sed -E "s|\"$1\":(\"[^\"]*\"\|\{\}\|\[[^]]*\]\|\{[^{}]*\})|\"$1\":$2|"
}

# --- request schemas ---
here=/jobs:submit
as sub-1 submitter
check "CTL-032 a submit that is whole" takes 503 JOB_503_QUEUE_UNAVAILABLE $here "$(submit)"
for field in meta idempotency_key intent risk_tier payload; do
    check "CTL-032 without $field" refuses REQ_400_MISSING_FIELD $here "$(submit | without $field)" $field
    check "AMB-07 $field is null" refuses REQ_400_INVALID_SCHEMA $here "$(submit | with $field null)" $field
done
check "CTL-033 the key is a number" refuses REQ_400_INVALID_SCHEMA $here "$(submit | with idempotency_key 7)" idempotency_key
check "CTL-033 the intent is a number" refuses REQ_400_INVALID_SCHEMA $here "$(submit | with intent 7)" intent
as sub-2 submitter
for tier in A B C; do
    check "CTL-034 tier $tier" takes 503 JOB_503_QUEUE_UNAVAILABLE $here "$(submit | with risk_tier "\"$tier\"")"
done
for tier in '"D"' '"a"' '""' 1; do
    check "CTL-034 tier $tier" refuses REQ_400_INVALID_SCHEMA $here "$(submit | with risk_tier "$tier")" risk_tier
done
for parent in null "\"$none\"" '"00000000-0000-4000-8000-00000000ABCD"'; do
    check "CTL-035 parent $parent" takes 503 JOB_503_QUEUE_UNAVAILABLE $here "$(submit ",\"parent_job_id\":$parent")"
done
for parent in '"x"' 7 '""' '"00000000-0000-4000-8000-00000000000g"'; do
    check "CTL-035 parent $parent" refuses REQ_400_INVALID_SCHEMA $here "$(submit ",\"parent_job_id\":$parent")" parent_job_id
done
as sub-3 submitter
for constraints in '{}' '{"data_classification":"public"}' '{"data_classification":"internal","cost_limit_usd":0}' \
    '{"data_classification":"sensitive","cost_limit_usd":12.5,"prefer_local":true}'; do
    check "CTL-036..CTL-039 $constraints" takes 503 JOB_503_QUEUE_UNAVAILABLE $here "$(submit ",\"constraints\":$constraints")"
done
check "CTL-036 no object" refuses REQ_400_INVALID_SCHEMA $here "$(submit ',"constraints":"x"')" constraints
check "CTL-037 another class" refuses REQ_400_INVALID_SCHEMA $here "$(submit ',"constraints":{"data_classification":"secret"}')"
check "CTL-038 a negative limit" refuses REQ_400_INVALID_SCHEMA $here "$(submit ',"constraints":{"cost_limit_usd":-0.01}')"
check "CTL-038 a text" refuses REQ_400_INVALID_SCHEMA $here "$(submit ',"constraints":{"cost_limit_usd":"1"}')"
check "CTL-039 a text" refuses REQ_400_INVALID_SCHEMA $here "$(submit ',"constraints":{"prefer_local":"true"}')"
check "CTL-040 any payload" takes 503 JOB_503_QUEUE_UNAVAILABLE $here "$(submit | with payload '{"a":[1,{"b":null}],"":"x"}')"
check "CTL-040 an array" refuses REQ_400_INVALID_SCHEMA $here "$(submit | with payload '[]')" payload
check "CTL-040 a text" refuses REQ_400_INVALID_SCHEMA $here "$(submit | with payload '"x"')" payload
check "CTL-047 what is unknown does no harm" takes 503 JOB_503_QUEUE_UNAVAILABLE $here "$(submit ",\"delegation_depth\":0,\"job_id\":\"$none\",\"more\":[]")"
as sub-4 submitter
for field in schema_version request_id trace_id actor_id project_id; do
    check "CTL-029 submit without meta.$field" refuses REQ_400_MISSING_FIELD $here "$(submit | without $field)" "meta.$field"
    check "CTL-031 CTL-030 meta.$field is a number" refuses REQ_400_INVALID_SCHEMA $here "$(submit | with $field 7)" "meta.$field"
done
for field in request_id trace_id actor_id project_id; do
    check "AMB-07 meta.$field is empty" refuses REQ_400_INVALID_SCHEMA $here "$(submit | with $field '""')" "meta.$field"
done
as sub-5 submitter
for field in idempotency_key intent; do
    check "AMB-07 $field is empty" refuses REQ_400_INVALID_SCHEMA $here "$(submit | with $field '""')" $field
done

as can-1 operator
here=/jobs/$none:cancel
check "CTL-044 a cancel that is whole" takes 404 JOB_404_NOT_FOUND $here "$(cancel)"
for field in meta idempotency_key reason; do
    check "CTL-044 without $field" refuses REQ_400_MISSING_FIELD $here "$(cancel | without $field)" $field
done
check "CTL-044 an empty reason" refuses REQ_400_INVALID_SCHEMA $here "$(cancel | with reason '""')" reason
check "CTL-044 no text" refuses REQ_400_INVALID_SCHEMA $here "$(cancel | with reason '["x"]')" reason

# Ten decisions a minute: three actors.
as dec-1 approver
here=/jobs/$none:decision
for verb in approve reject request_changes defer; do
    check "CTL-042 $verb" takes 404 JOB_404_NOT_FOUND $here "$(decision $verb)"
done
for field in meta idempotency_key decision reason; do
    check "CTL-041 without $field" refuses REQ_400_MISSING_FIELD $here "$(decision approve | without $field)" $field
done
as dec-2 approver
check "CTL-042 maybe" refuses REQ_400_INVALID_SCHEMA $here "$(decision maybe)" decision
check "CTL-043 an empty reason" refuses REQ_400_INVALID_SCHEMA $here "$(decision approve | with reason '""')" reason
check "CTL-043 one letter" takes 404 JOB_404_NOT_FOUND $here "$(decision approve)"
for verb in reject request_changes defer; do
    check "CTL-021 :approve with $verb" refuses REQ_400_INVALID_SCHEMA "/jobs/$none:approve" "$(decision $verb)" decision
done
for verb in approve request_changes defer; do
    check "CTL-021 :reject with $verb" refuses REQ_400_INVALID_SCHEMA "/jobs/$none:reject" "$(decision $verb)" decision
done
# The same defects, whichever way they come.
as dec-3 approver
said() {
    post "$1" "$2"
    body | sed -E 's/"(request_id|trace_id)":"[^"]*"//g'
}
same() {
    is "$(said "/jobs/$none:approve" "$1")" "$(said "/jobs/$none:decision" "$1")"
}
check "CTL-004 CTL-020 approve is the decision approve" same "$(decision approve)"
check "CTL-020 with an empty reason" same "$(decision approve | with reason '""')"
check "CTL-020 without a key" same "$(decision approve | without idempotency_key)"
check "CTL-020 of another actor" same "$(decision approve | with actor_id '"somebody"')"
check "CTL-020 of another project" same "$(decision approve | with project_id '"p9"')"
check "CTL-158 CTL-159 all three have one limit" answers 429 RATE_429_THROTTLED POST "/jobs/$none:reject" -H "$json" -H "Authorization: Bearer $bearer" -d "$(decision reject)"
check "CTL-162 and say when" header 'retry-after: [1-9][0-9]*'
check "CTL-159 also below /v1" answers 429 RATE_429_THROTTLED POST "/v1/jobs/$none:approve" -H "$json" -H "Authorization: Bearer $bearer" -d "$(decision approve)"
as dec-4 approver
check "CTL-005 reject is the decision reject" is "$(said "/jobs/$none:reject" "$(decision reject)")" "$(said "/jobs/$none:decision" "$(decision reject)")"

as dlq-1 owner
here=/dlq/items/$none:reprocess
check "CTL-045 a reprocess that is whole" takes 404 DLQ_404_NOT_FOUND $here "$(reprocess)"
for field in meta idempotency_key; do
    check "CTL-045 without $field" refuses REQ_400_MISSING_FIELD $here "$(reprocess | without $field)" $field
done
check "CTL-015 not a UUID" refuses REQ_400_INVALID_SCHEMA /dlq/items/x:reprocess "$(reprocess)" event_id
ids() {
    i=0
    while [ $i -lt "$1" ]; do
        printf '%s"00000000-0000-4000-8000-%012d"' "${2:-}" $i
        i=$((i + 1))
        set -- "$1" ,
    done
}
here=/dlq/items:reprocess-bulk
check "CTL-046 a hundred" takes 202 '' $here "$(bulk "$(ids 100)")"
check "CTL-054 counts and a batch" grep -qE '^\{"accepted_count":0,"rejected_count":100,"batch_id":"'"$uuid"'"\}$' "$tmp/body"
check "CTL-046 CTL-157 a hundred and one" refuses REQ_400_INVALID_SCHEMA $here "$(bulk "$(ids 101)")" event_ids
check "CTL-046 none" refuses REQ_400_INVALID_SCHEMA $here "$(bulk '')" event_ids
check "CTL-046 one that is none" refuses REQ_400_INVALID_SCHEMA $here "$(bulk "\"$none\",\"x\"")"
check "CTL-046 no array" refuses REQ_400_INVALID_SCHEMA $here "$(bulk '' | with event_ids "\"$none\"")" event_ids
as dlq-2 owner
for field in meta idempotency_key event_ids; do
    check "CTL-046 without $field" refuses REQ_400_MISSING_FIELD $here "$(bulk "\"$none\"" | without $field)" $field
done

# --- which of several defects is named (AMB-07) ---
as mix operator
here=/jobs/$none:cancel
deep() {
    printf "%${1}s" | sed 's/ /{"a":/g'
    printf 1
    printf "%${1}s" | tr ' ' '}'
}
check "AMB-07 what is no JSON comes before the version" refuses REQ_400_INVALID_SCHEMA $here '{"meta":{"schema_version":"v2"}'
check "AMB-07 limits come before the version" refuses REQ_400_INVALID_SCHEMA $here "{\"meta\":{\"schema_version\":\"v2\"},\"a\":$(deep 11)}"
check "AMB-07 a name that is there twice, too" refuses REQ_400_INVALID_SCHEMA $here '{"meta":{"schema_version":"v2","schema_version":"v1"}}'
check "AMB-06 the version comes before what is missing" takes 409 CONTRACT_409_VERSION_MISMATCH $here '{"meta":{"schema_version":"v2"}}'
check "AMB-06 and before wrong types" takes 409 CONTRACT_409_VERSION_MISMATCH $here "$(cancel | with schema_version '"V1"' | with reason 7)"
check "AMB-07 what is missing comes before wrong types" refuses REQ_400_MISSING_FIELD $here "$(cancel | with idempotency_key 7 | without reason)" reason
check "AMB-07 in the order of the schema" refuses REQ_400_MISSING_FIELD $here "$(cancel | without reason | without idempotency_key)" idempotency_key
check "AMB-07 what is outside first" refuses REQ_400_MISSING_FIELD $here "$(cancel | without reason | without project_id)" reason
check "AMB-07 meta's own order" refuses REQ_400_MISSING_FIELD $here "$(cancel | without trace_id | without request_id)" meta.request_id
check "AMB-07 nothing at all" refuses REQ_400_MISSING_FIELD $here '{}' meta
check "AMB-07 several" refuses REQ_400_MISSING_FIELD $here "$(cancel | without trace_id | with reason 7 | with idempotency_key null)" meta.trace_id
check "AMB-07 are all listed" is "$(wrong_ones)" 'idempotency_key meta.trace_id reason '
check "AMB-07 several that are empty" refuses REQ_400_INVALID_SCHEMA $here "$(cancel | with idempotency_key '""' | with trace_id '""')" meta.trace_id
check "AMB-07 are all listed" is "$(wrong_ones)" 'idempotency_key meta.trace_id '
check "AMB-08 the schema comes before the project" refuses REQ_400_INVALID_SCHEMA $here "$(cancel | with project_id '"p9"' | with reason 7)" reason
check "CTL-251 the text of meta.trace_id comes back" is "$(post /jobs:submit "$(submit | with risk_tier '"X"')" >/dev/null; value request_id)$(value trace_id)" rt
check "AMB-08 the role comes before the schema" answers 403 AUTH_403_ROLE POST "/jobs/$none:decision" -H "$json" -H "Authorization: Bearer $bearer" -d '{'
check "AMB-08 the token comes before the schema" answers 401 AUTH_401_INVALID_TOKEN POST $here -H "$json" -H 'Authorization: Bearer a.b.c' -d '{'

# --- limits to the byte ---
as big submitter
# sized BYTES: a submit of so many
sized() {
    all=$(submit)
    printf '%s' "${all%\}\}}"
    printf '"a":"'
    head -c $(($1 - ${#all} - 6)) /dev/zero | tr '\0' x
    printf '"}}'
}
send() {
    ask POST /jobs:submit -H "$json" -H "Authorization: Bearer $bearer" --data-binary "@$tmp/large" "$@"
}
sized 1048576 >"$tmp/large"
check "CTL-056 this is the limit" is "$(stat -c %s "$tmp/large")" 1048576
check "CTL-056 what is as long is taken" is "$(send; value code)" 503JOB_503_QUEUE_UNAVAILABLE
check "CTL-056 in chunks" is "$(send -H 'Transfer-Encoding: chunked'; value code)" 503JOB_503_QUEUE_UNAVAILABLE
sized 1048577 >"$tmp/large"
check "CTL-056 a byte more is not" is "$(send; value code)" 400REQ_400_INVALID_SCHEMA
check "CTL-056 in the envelope" envelope 400
check "CTL-056 nor in chunks" is "$(send -H 'Transfer-Encoding: chunked'; value code)" 400REQ_400_INVALID_SCHEMA
check "CTL-056 in the envelope" envelope 400
sized 2000000 >"$tmp/large"
check "CTL-056 nor in chunks without end" is "$(send -H 'Transfer-Encoding: chunked'; value code)" 400REQ_400_INVALID_SCHEMA
here=/jobs:submit
check "CTL-057 ten levels" takes 503 JOB_503_QUEUE_UNAVAILABLE $here "$(submit | with payload "$(deep 9)")"
check "CTL-057 eleven" refuses REQ_400_INVALID_SCHEMA $here "$(submit | with payload "$(deep 10)")"
printf '%100000s' | tr ' ' '[' >"$tmp/large"
check "CTL-057 a hundred thousand" is "$(send; value code)" 400REQ_400_INVALID_SCHEMA
wide() {
    printf '[0'
    printf "%$(($1 - 1))s" | sed 's/ /,0/g'
    printf ']'
}
check "CTL-058 a thousand elements" takes 503 JOB_503_QUEUE_UNAVAILABLE $here "$(submit | with payload "{\"a\":$(wide 1000)}")"
check "CTL-058 one more" refuses REQ_400_INVALID_SCHEMA $here "$(submit | with payload "{\"a\":$(wide 1001)}")"
check "CTL-058 in an array" refuses REQ_400_INVALID_SCHEMA $here "$(submit | with payload "{\"a\":[$(wide 1001)]}")"
check "CTL-058 two of a thousand" takes 503 JOB_503_QUEUE_UNAVAILABLE $here "$(submit | with payload "{\"a\":$(wide 1000),\"b\":[$(wide 1000)]}")"
check "CTL-098 nothing of all this was stored" is "$("$COPPICE" stats --json --url "http://$operator" --token-file "$tmp/store/operator.token" | grep -o '"ledger":[0-9]*' | head -1)" '"ledger":1' # the hundred ids

# --- paths, methods, versions ---
from=127.0.0.2
as ways owner
auth="Authorization: Bearer $bearer"
for path in /jobs:submit "/jobs/$none" "/jobs/$none:cancel" "/jobs/$none:approve" "/jobs/$none:reject" "/jobs/$none:decision" \
    /dlq/items "/dlq/items/$none:reprocess" /dlq/items:reprocess-bulk /v1/jobs:submit /v1/dlq/items "/v1/jobs/$none:decision"; do
    for method in PUT DELETE PATCH; do
        check "CTL-022 $method $path" answers 405 REQ_405_METHOD_NOT_ALLOWED $method "$path" -H "$auth"
    done
    check "CTL-022 AMB-05 OPTIONS $path" answers 405 REQ_405_METHOD_NOT_ALLOWED OPTIONS "$path"
    check "CTL-022 Allow" header 'allow: .*\(GET\|POST\).*'
done
check "CTL-022 GET of what takes POST" answers 405 REQ_405_METHOD_NOT_ALLOWED GET /jobs:submit -H "$auth"
check "CTL-022 POST of what takes GET" answers 405 REQ_405_METHOD_NOT_ALLOWED POST /dlq/items -H "$auth"
for path in /v2/jobs:submit /v0/jobs:submit /v10/dlq/items "/v2/jobs/$none" /v2 /v01/jobs:submit; do
    check "CTL-025 POST $path" answers 404 REQ_404_ROUTE_NOT_FOUND POST "$path" -H "$json" -H "$auth" -d "$(submit)"
done
for path in "/jobs/$none:unknown" "/jobs/a:b:cancel" /jobs: /jobs/ "/jobs/$none:cancel/x" /dlq /dlq/items:x "/jobs/$none/x"; do
    check "CTL-016 POST $path" answers 404 REQ_404_ROUTE_NOT_FOUND POST "$path" -H "$json" -H "$auth" -d '{}'
done
check "CTL-015 upper case" answers 404 JOB_404_NOT_FOUND GET /jobs/ABCDEF00-0000-4000-8000-00000000ABCD -H "$auth"
check "CTL-015 not a UUID" answers 400 REQ_400_INVALID_SCHEMA GET /jobs/not-a-uuid -H "$auth"
for accept in 'application/vnd.rias.v2+json' 'application/json;version=2' 'text/html'; do
    check "CTL-024 Accept: $accept" is "$(post /v1/jobs:submit "$(submit)" -H "Accept: $accept"; value code)" 503JOB_503_QUEUE_UNAVAILABLE
    check "CTL-024 unprefixed" is "$(post /jobs:submit "$(submit)" -H "Accept: $accept"; value code)" 503JOB_503_QUEUE_UNAVAILABLE
done
as two-ways submitter
post /jobs:submit "$(submit)" >/dev/null
check "CTL-023 both ways" header 'ratelimit: "submit";r=19;t=60'
post /v1/jobs:submit "$(submit)" >/dev/null
check "CTL-023 share the limit" header 'ratelimit: "submit";r=18;t=60'
as reader viewer
ask GET "/jobs/$none" -H "Authorization: Bearer $bearer" >/dev/null
check "a token's reads have a bucket" header 'ratelimit: "subject";r=599;t=1'
versions() {
    curl -s -H "Authorization: Bearer $(cat "$tmp/store/operator.token")" "http://$operator/metrics" | sed -n 's/^routing_decision_count{version="v1"} //p'
}
before=$(versions)
ask GET /v1/dlq/items -H "$auth" >/dev/null
ask GET /dlq/items -H "$auth" >/dev/null
check "CTL-028 AMB-01 each request counts for its version" is "$(versions)" $((before + 2))
as filters owner
auth="Authorization: Bearer $bearer"
for query in event_name=job.done project_id=p1 'event_name=a&project_id=b&max_age_hours=1&limit=1'; do
    check "CTL-008 CTL-009 CTL-010 ?$query" is "$(ask GET "/dlq/items?$query" -H "$auth"; body)" '200{"items":[],"total_count":0,"next_cursor":null}'
done
check "CTL-251 AMB-05 an expectation that nobody meets" answers 417 REQ_417_EXPECTATION_FAILED GET "/jobs/$none" -H "$auth" -H 'Expect: more'
check "CTL-251 AMB-05 a target that is too long" answers 414 REQ_414_TARGET_TOO_LONG GET "/dlq/items?$(head -c 9000 /dev/zero | tr '\0' a)" -H "$auth"
check "CTL-251 AMB-05 a head that is too large" answers 431 REQ_431_HEADER_TOO_LARGE GET "/jobs/$none" -H "$auth" -H "A: $(head -c 33000 /dev/zero | tr '\0' a)"
check "CTL-002 no body goes with GET" answers 400 REQ_400_INVALID_SCHEMA GET "/jobs/$none" -H "$auth" -H "$json" -d '{}'

# --- bodies that are none ---
for path in /jobs:submit "/jobs/$none:cancel" "/jobs/$none:decision" "/jobs/$none:approve" "/jobs/$none:reject" \
    "/dlq/items/$none:reprocess" /dlq/items:reprocess-bulk; do
    as "b$((serial = ${serial:-0} + 1))" owner
    auth="Authorization: Bearer $bearer"
    check "CTL-017 $path: nothing" answers 400 REQ_400_INVALID_SCHEMA POST "$path" -H "$auth"
    check "CTL-017 $path: an empty body" answers 400 REQ_400_INVALID_SCHEMA POST "$path" -H "$auth" -H "$json" -H 'Content-Length: 0'
    check "CTL-017 $path: no JSON" answers 400 REQ_400_INVALID_SCHEMA POST "$path" -H "$auth" -H "$json" -d '{'
    check "CTL-017 $path: another type" answers 400 REQ_400_INVALID_SCHEMA POST "$path" -H "$auth" -H 'Content-Type: text/plain' -d '{}'
done

# --- CORS ---
from=127.0.0.3
as web owner
auth="Authorization: Bearer $bearer"
preflight() {
    ask OPTIONS "$1" -H "Origin: $2" -H 'Access-Control-Request-Method: POST' -H 'Access-Control-Request-Headers: authorization'
}
check "CTL-063 the preflight of our page" is "$(preflight /jobs:submit "$page")" 200
check "CTL-060 our page" header "access-control-allow-origin: $page"
check "CTL-061 GET and POST" header 'access-control-allow-methods: GET, POST'
check "CTL-062 with credentials" header 'access-control-allow-credentials: true'
check "CTL-063 for an hour" header 'access-control-max-age: 3600'
check "what is cached is cached for this page" header 'vary: .*Origin.*'
check "CTL-060 an answer to our page" is "$(ask GET "/jobs/$none" -H "Origin: $page" -H "$auth")" 404
check "CTL-060 our page" header "access-control-allow-origin: $page"
check "CTL-062 with credentials" header 'access-control-allow-credentials: true'
check "CTL-060 our page may post" is "$(post "/jobs/$none:cancel" "$(cancel)" -H "Origin: $page" -H 'Sec-Fetch-Site: cross-site')" 404
for origin in https://elsewhere.example https://app.example.com:444 http://app.example.com https://app.example.com.evil.example \
    https://evil.app.example.com HTTPS://APP.EXAMPLE.COM null '*'; do
    check "CTL-060 the preflight of $origin" answers 405 REQ_405_METHOD_NOT_ALLOWED OPTIONS /jobs:submit -H "Origin: $origin" -H 'Access-Control-Request-Method: POST'
    check "CTL-060 CTL-062 no header of CORS" no_header access-control-
    check "CTL-060 $origin reads" is "$(ask GET "/jobs/$none" -H "Origin: $origin" -H "$auth")" 404
    check "CTL-060 CTL-062 no header of CORS" no_header access-control-
    check "CTL-144 $origin changes nothing" answers 403 AUTH_403_ROLE POST "/jobs/$none:cancel" -H "Origin: $origin" -H "$auth" -H "$json" -d "$(cancel)"
done
for method in PUT DELETE PATCH; do
    check "CTL-061 $method of our page" answers 405 REQ_405_METHOD_NOT_ALLOWED $method "/jobs/$none" -H "Origin: $page" -H "$auth"
done

# --- who comes in without a token: every route of the table (CTL-067) ---
from=127.0.0.4
"$COPPICE" acl --json >"$tmp/acl"
routes() {
    tr '{' '\n' <"$tmp/acl" | sed -n 's/.*"listener":"\([^"]*\)","method":"\([^"]*\)","path":"\([^"]*\)".*/\1 \2 \3/p'
}
check "CTL-067 the table of routes" test "$(routes | wc -l)" -gt 40
# open to all: the entrance, probes, the key set, the place where a secret becomes a token, the contracts, how to report what is wrong, and a client's beginning (AMB-13, AMB-J-21)
open_to_all='^(GET /(|healthz|livez|readyz|startupz|\.well-known/jwks\.json|\.well-known/security\.txt|(openapi|asyncapi)(/[a-z]+)?\.(json|yaml))|POST /v1/(clients|auth/token))$'
address=20
routes >"$tmp/routes"
while read -r listener method path; do
    address=$((address + 1))
    from=127.0.1.$address
    [ "$listener" = client ] || continue
    path=$(printf '%s' "$path" | sed "s/{[a-z_]*}/$none/g")
    got=$(ask "$method" "$path" -H "$json" -d '{}')
    [ "$method" != GET ] || got=$(ask GET "$path")
    if printf '%s %s' "$method" "$path" | grep -qE "$open_to_all"; then
        check "CTL-067 $method $path is open" test "$got" != 401
    else
        check "CTL-067 $method $path asks for a token" is "$got" 401
    fi
done <"$tmp/routes"
while read -r listener method path; do
    [ "$listener" = operator ] || continue
    path=$(printf '%s' "$path" | sed "s/{[a-z_]*}/$none/g")
    got=$(curl -s -m 120 -o /dev/null -w '%{http_code}' -X "$method" "http://$operator$path")
    if printf '%s %s' "$method" "$path" | grep -qE "$open_to_all"; then
        check "CTL-067 operators: $method $path is open" test "$got" != 401
    else
        check "CTL-067 operators: $method $path asks for the token" is "$got" 401
    fi
done <"$tmp/routes"

# --- security headers ---
from=127.0.0.5
for request in "GET /healthz" "GET /readyz" "GET /startupz" "GET /.well-known/jwks.json" "GET /openapi/control.json" "GET /nowhere" \
    "GET /dlq/items" "POST /jobs:submit" "POST /v1/clients" "PUT /v1/jobs" "GET /v1/jobs" "OPTIONS /jobs:submit" "GET /%zz" "BREW /healthz"; do
    ask ${request} >/dev/null
    check "CTL-150 $request" header 'x-content-type-options: nosniff'
    check "CTL-151 $request" header 'x-frame-options: DENY'
    check "CTL-153 $request" header 'referrer-policy: strict-origin-when-cross-origin'
    check "CTL-149 $request" header "content-security-policy: default-src 'self'; script-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    for name in x-content-type-options x-frame-options referrer-policy content-security-policy cache-control; do
        check "CTL-154 $request has $name once" is "$(grep -ci "^$name:" "$tmp/head")" 1
    done
    check "CTL-152 no HSTS in dev without TLS" no_header strict-transport-security
done

# --- the envelope ---
from=127.0.0.6
as words owner
check "CTL-251 ids of the request's headers" is "$(ask GET "/jobs/$none" -H "Authorization: Bearer $bearer" -H 'X-Request-Id: mine-1' -H 'traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'; value request_id; value trace_id)" \
    "404mine-1
0af7651916cd43dd8448eb211c80319c"
check "CTL-251 else those of meta" is "$(post "/jobs/$none:cancel" "$(cancel | with request_id '"mine-2"' | with trace_id '"1af7651916cd43dd8448eb211c80319c"')"; value request_id; value trace_id)" \
    "404mine-2
1af7651916cd43dd8448eb211c80319c"
check "CTL-251 the header has it, too" header 'x-request-id: mine-2'
check "CTL-251 headers come first" is "$(post "/jobs/$none:cancel" "$(cancel | with request_id '"mine-2"')" -H 'X-Request-Id: mine-1' >/dev/null; value request_id)" mine-1
check "CTL-251 what can't be an id is replaced" is "$(post "/jobs/$none:cancel" "$(cancel | with request_id '"a b"' | with trace_id '"not 32 digits"')" >/dev/null; value request_id | grep -cE "^$uuid\$"; value trace_id | grep -cE '^[0-9a-f]{32}$')" "1
1"
check "CTL-251 and of none" answers 401 AUTH_401_MISSING_TOKEN GET "/jobs/$none"
check "CTL-248 a token is not repeated" answers 401 AUTH_401_INVALID_TOKEN GET "/jobs/$none" -H "Authorization: Bearer $secret.$secret.$secret"
check "CTL-248 nor another scheme's" answers 401 AUTH_401_MISSING_TOKEN GET "/jobs/$none" -H "Authorization: Basic $secret"
check "CTL-248 nor a path" answers 400 REQ_400_INVALID_SCHEMA GET "/jobs/$secret" -H "Authorization: Bearer $bearer"
check "CTL-248 nor a query" answers 400 REQ_400_INVALID_SCHEMA GET "/dlq/items?cursor=$secret" -H "Authorization: Bearer $bearer"
check "CTL-248 nor a value" refuses REQ_400_INVALID_SCHEMA "/jobs/$none:cancel" "$(cancel | with reason "[\"$secret\"]")"
check "CTL-248 nor a word of an enumeration" refuses REQ_400_INVALID_SCHEMA "/jobs/$none:decision" "$(decision $secret)"
check "CTL-248 nor what is no JSON" refuses REQ_400_INVALID_SCHEMA "/jobs/$none:cancel" "{$secret"
check "CTL-248 nor an actor" takes 403 AUTH_403_ROLE "/jobs/$none:cancel" "$(cancel | with actor_id "\"$secret\"")"
check "RFC 6750 that is no scope of this token" header 'WWW-Authenticate: Bearer realm="coppice", error="insufficient_scope".*'
check "CTL-248 nor a project" takes 403 AUTH_403_SCOPE "/jobs/$none:cancel" "$(cancel | with project_id "\"$secret\"")"
check "CTL-248 nor a version" takes 409 CONTRACT_409_VERSION_MISMATCH "/jobs/$none:cancel" "$(cancel | with schema_version "\"$secret\"")"

# --- roles ---
from=127.0.0.7
for role in approver operator submitter viewer service agent; do
    as "r-$role" $role
    check "CTL-121 $role and the dead letters" answers 403 AUTH_403_ROLE GET /dlq/items -H "Authorization: Bearer $bearer"
    check "RFC 6750 and which roles may" header 'WWW-Authenticate: Bearer realm="coppice", error="insufficient_scope", scope="owner infra-approver"'
    check "CTL-121 $role and a reprocess" answers 403 AUTH_403_ROLE POST "/dlq/items/$none:reprocess" -H "$json" -H "Authorization: Bearer $bearer" -d "$(reprocess)"
    check "CTL-121 $role and many" answers 403 AUTH_403_ROLE POST /dlq/items:reprocess-bulk -H "$json" -H "Authorization: Bearer $bearer" -d "$(bulk "\"$none\"")"
    check "AMB-23 $role reads jobs" answers 404 JOB_404_NOT_FOUND GET "/jobs/$none" -H "Authorization: Bearer $bearer"
    case $role in
    viewer) wanted='403 AUTH_403_ROLE' ;;
    *) wanted='503 JOB_503_QUEUE_UNAVAILABLE' ;;
    esac
    check "AMB-23 $role and submit" answers $wanted POST /jobs:submit -H "$json" -H "Authorization: Bearer $bearer" -d "$(submit)"
    case $role in
    approver) wanted='404 JOB_404_NOT_FOUND' ;;
    *) wanted='403 AUTH_403_ROLE' ;;
    esac
    check "CTL-096 AMB-22 $role and decisions" answers $wanted POST "/jobs/$none:decision" -H "$json" -H "Authorization: Bearer $bearer" -d "$(decision approve)"
done
for role in owner infra-approver; do
    as "k-$role" $role
    check "CTL-121 $role and the dead letters" is "$(ask GET /dlq/items -H "Authorization: Bearer $bearer")" 200
    check "CTL-121 $role and a reprocess" takes 404 DLQ_404_NOT_FOUND "/dlq/items/$none:reprocess" "$(reprocess)"
    check "CTL-121 $role and many" takes 202 '' /dlq/items:reprocess-bulk "$(bulk "\"$none\"")"
    check "AMB-10 $role is bound to its projects elsewhere" takes 403 AUTH_403_SCOPE "/jobs/$none:cancel" "$(cancel | with project_id '"p2"')"
done

# --- how often ---
from=127.0.0.8
# often COUNT STATUS METHOD PATH ARGUMENT...: so often it is answered so. By one curl, which needs far less than the minute in
# which they count.
often() {
    count=$1 wanted=$2 method=$3 path=$4
    shift 4
    is "$(curl -s -m 120 -o /dev/null -w '%{http_code}\n' --interface "$from" -X "$method" -H "Authorization: Bearer $bearer" "$@" \
        "http://$client$path#[1-$count]" | sort | uniq -c | tr -s ' ')" " $count $wanted"
}
# repeat COUNT STATUS PATH BODY
repeat() {
    often "$1" "$2" POST "$3" -H "$json" -d "$4"
}
as often submitter
check "CTL-160 twenty submits" repeat 20 503 /jobs:submit "$(submit)"
check "CTL-160 the next one" takes 429 RATE_429_THROTTLED /jobs:submit "$(submit)"
check "CTL-162 says when" header 'retry-after: [1-9][0-9]*'
check "CTL-097 AMB-28 another bucket is another" takes 404 JOB_404_NOT_FOUND "/jobs/$none:cancel" "$(cancel)"
as seldom submitter
check "CTL-160 another actor goes on" takes 503 JOB_503_QUEUE_UNAVAILABLE /jobs:submit "$(submit)"
as again owner
check "CTL-156 twenty reprocesses" repeat 20 404 "/dlq/items/$none:reprocess" "$(reprocess)"
check "CTL-156 the next one" takes 429 RATE_429_THROTTLED "/v1/dlq/items/$none:reprocess" "$(reprocess)"
check "CTL-157 five of many" repeat 5 202 /dlq/items:reprocess-bulk "$(bulk "\"$none\"")"
check "CTL-157 the next one" takes 429 RATE_429_THROTTLED /dlq/items:reprocess-bulk "$(bulk "\"$none\"")"
check "CTL-155 sixty lists" often 60 200 GET /dlq/items
check "CTL-155 the next one" answers 429 RATE_429_THROTTLED GET /dlq/items -H "Authorization: Bearer $bearer"
bearer=$(token again owner)
check "CTL-163 another token of the same actor" answers 429 RATE_429_THROTTLED GET /v1/dlq/items -H "Authorization: Bearer $bearer"

# --- sessions and principals, people and agents (CTL-099..CTL-101) ---
from=127.0.0.9
# open_with TOKEN: the status
open_with() {
    ask GET "/jobs/$none" -H "Authorization: Bearer $1"
}
# declared_over BODY: by the operator, as is done when a role is taken away, a scope made smaller or an account suspended
declared_over() {
    at=$operator
    bearer="Authorization: Bearer $(cat "$tmp/store/operator.token")"
    is "$(status POST /tokens:revoke -H "$json" -d "$1")" 200
}
claim() {
    printf '%s===' "$(printf '%s' "$2" | cut -d. -f2 | tr -- '-_' '+/')" | base64 -d 2>/dev/null | sed "s/.*\"$1\":\"\([^\"]*\)\".*/\1/"
}
for role in operator agent; do
    one=$(token "p-$role" $role)
    two=$(token "p-$role" $role)
    other=$(token "q-$role" $role)
    check "CTL-099 a token of $role" is "$(open_with "$one")$(open_with "$two")$(open_with "$other")" 404404404
    check "CTL-100 its session is ended" declared_over "{\"session_id\":\"$(claim session_id "$one")\"}"
    check "CTL-099 CTL-101 at once" answers 401 AUTH_401_INVALID_TOKEN GET "/jobs/$none" -H "Authorization: Bearer $one"
    check "CTL-100 another session isn't" is "$(open_with "$two")" 404
    check "CTL-100 all of the principal" declared_over "{\"subject\":\"p-$role\"}"
    check "CTL-099 CTL-101 at once" answers 401 AUTH_401_INVALID_TOKEN GET "/jobs/$none" -H "Authorization: Bearer $two"
    check "CTL-100 another principal isn't" is "$(open_with "$other")" 404
    check "a second later" "$COPPICE" clock advance 2s --url "http://$operator" --token-file "$tmp/store/operator.token"
    fresh=$(token "p-$role" $role)
    check "CTL-099 a token that is issued afterwards is good" is "$(open_with "$fresh")" 404
done
check "it stops" stop

# --- an approved use case of embedding ---
check "a server whose pages may be embedded" start --http-frame-options SAMEORIGIN --frame-embedding-approved-use-case 'the intranet'
check "which is ready" ready
check "CTL-151 it answers" is "$(ask GET /healthz)" 200
check "CTL-151 CTL-149 by its own pages" has "$(tr A-Z a-z <"$tmp/head")" "frame-ancestors 'self'"
check "CTL-151 as approved" header 'x-frame-options: SAMEORIGIN'
check "CTL-154 once" is "$(grep -ci '^x-frame-options:' "$tmp/head")" 1
check "it stops" stop

# --- reads of a token, which are counted, too ---
throttled() {
    curl -s -H "Authorization: Bearer $(cat "$tmp/store/operator.token")" "http://$operator/metrics" | sed -n "s/^coppice_http_throttled_total{bucket=\"$1\"} //p"
}
check "a server with two reads a minute" start --limits-subject 2
check "which is ready" ready
operator=$at
at=$client
as reader viewer
check "none is throttled" is "$(throttled subject)" 0
# One comes back each half minute.
check "a read" answers 404 JOB_404_NOT_FOUND GET "/jobs/$none" -H "Authorization: Bearer $bearer"
check "is counted" header 'ratelimit: "subject";r=1;t=30'
check "another one" answers 404 JOB_404_NOT_FOUND GET "/v1/jobs/$none" -H "Authorization: Bearer $bearer"
check "CTL-163 by subject, both ways" header 'ratelimit: "subject";r=0;t=[0-9]*'
check "CTL-162 CTL-163 one more, on any path of them" answers 429 RATE_429_THROTTLED GET "/v1/jobs/$none" -H "Authorization: Bearer $bearer"
check "CTL-162 with Retry-After" header 'retry-after: [1-9][0-9]*'
check "it is counted by its bucket" is "$(throttled subject)" 1
check "another bucket's are not" is "$(throttled submit)" 0
check "it stops" stop
finish
