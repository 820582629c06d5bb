#!/bin/sh
# The client port from outside: clients and their API keys, jobs of which there are none, the control surface without its
# domain, and what is refused in which shape. Tokens come from the command line.
cd "$(dirname "$0")/../.." || exit 1
. tests/api/server.sh

check "a server" start --schedulers 2
check "which is ready" ready
operator=$at
none=00000000-0000-4000-8000-000000000000

# ask METHOD PATH ARGUMENT...: status; body and head stay in files
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
# code NAME: of problem details, or of the control envelope
code() {
    has "$(body)" "\"code\":\"$1\""
}
# refused STATUS CODE METHOD PATH ARGUMENT...
refused() {
    wanted=$1 wanted_code=$2
    shift 2
    is "$(ask "$@")" "$wanted" && code "$wanted_code"
}
header() {
    tr -d '\r' <"$tmp/head" | grep -qi "^$1"
}
no_header() {
    ! header "$1"
}
value() {
    member "$1" "$(body)"
}
json='Content-Type: application/json'
bearer() {
    printf 'Authorization: Bearer %s' "$1"
}
uuid='^[0-9a-f]\{8\}-[0-9a-f]\{4\}-[0-9a-f]\{4\}-[0-9a-f]\{4\}-[0-9a-f]\{12\}$'
is_uuid() {
    printf '%s' "$1" | grep -q "$uuid" || echo "'$1' is not a UUID"
    printf '%s' "$1" | grep -q "$uuid"
}
post() {
    path=$1
    shift
    ask POST "$path" "$@"
}
# post_json PATH BODY ARGUMENT...
post_json() {
    path=$1 text=$2
    shift 2
    ask POST "$path" -H "$json" --data-binary "$text" "$@"
}

# --- create client ---
from=127.0.0.2
check "JOB-103 create client" is "$(post /v1/clients)" 201
check "JOB-103 a client_id" is_uuid "$(value client_id)"
check "JOB-103 and nothing else" is "$(body)" "{\"client_id\":\"$(value client_id)\"}"
check "a 201 says where it is" header "location: /v1/clients/$(value client_id)\$"
check "JOB-099 JSON" header 'content-type: application/json'
check "JOB-381 a request id" header 'x-request-id: '
check "CTL-150 nosniff" header 'x-content-type-options: nosniff'
check "CTL-151 no frames" header 'x-frame-options: DENY'
check "secrets are not cached" header 'cache-control: no-store'
check "JOB-102 {} is an empty request" is "$(post_json /v1/clients '{}')" 201
check "JOB-102 other methods" is "$(ask PUT /v1/clients)" 405
check "JOB-342 in its code" code RFA_REQUEST_METHOD_NOT_ALLOWED
check "JOB-375 with Allow" header 'allow: .*POST'
check "JOB-101 the same key" is "$(post /v1/clients -H 'Idempotency-Key: k-1')" 201
first=$(value client_id)
check "JOB-101 is the same client" is "$(post /v1/clients -H 'Idempotency-Key: k-1'; value client_id)" "201$first"
check "a replay says so" header 'idempotent-replayed: true'
check "quoted or not" is "$(post /v1/clients -H 'Idempotency-Key: "k-1"'; value client_id)" "201$first"
check "AMB-J-29 no such key" is "$(post /v1/clients -H 'Idempotency-Key: a b')" 400
check "JOB-340 in its code" code RFA_REQUEST_MALFORMED

# --- create key ---
from=127.0.0.3
post /v1/clients >"$tmp/out"
one=$(value client_id)
check "JOB-108 create key" is "$(post "/v1/clients/$one/keys")" 201
key=$(value api_key)
key_id=$(value key_id)
created=$(value created_at)
expires=$(value expires_at)
check "JOB-108 it has our form" is "$(printf '%s' "$key" | grep -c '^cop_[0-9A-Za-z]\{49\}$')" 1
check "JOB-108 key_id" is_uuid "$key_id"
check "JOB-108 UTC" is "$(printf '%s' "$created$expires" | tr -cd Z)" ZZ
check "JOB-108 expires later" is "$(printf '%s\n%s\n' "$expires" "$created" | sort | head -1)" "$created"
check "a key is told of at its client" header "location: /v1/clients/$one\$"
check "the client itself may look there" is "$(ask GET "/v1/clients/$one" -H "$(bearer "$key")")" 200
check "with its key" has "$(body)" "\"key\":{\"key_id\":\"$key_id\","
check "without its secret" lacks "$(body)" "$key"
check "nobody without a key" is "$(ask GET "/v1/clients/$one")" 401
check "and no other client" refused 403 RFA_AUTH_FORBIDDEN GET "/v1/clients/$first" -H "$(bearer "$key")"
check "JOB-097 again" is "$(post "/v1/clients/$one/keys" -H "$(bearer "$key")")" 201
check "JOB-097 the same key" is "$(value key_id) $(value created_at) $(value expires_at)" "$key_id $created $expires"
check "AMB-J-24 shown once" has "$(body)" '"api_key":null'
check "JOB-107 other methods" is "$(ask DELETE "/v1/clients/$one/keys")" 405
check "JOB-110 not a UUID" refused 400 RFA_REQUEST_MALFORMED POST /v1/clients/nonsense/keys
check "JOB-110 rotate is a boolean" is "$(post_json "/v1/clients/$one/keys" '{"rotate":"yes"}' -H "$(bearer "$key")")" 400
check "JOB-110 in its code" code RFA_REQUEST_MALFORMED
check "JOB-111 without a key" refused 401 RFA_AUTH_INVALID_CREDENTIALS POST "/v1/clients/$one/keys"
check "is told who gives one" has "$(body)" 'coppice keys issue --client'
check "JOB-375 WWW-Authenticate" header 'www-authenticate: Bearer'
check "JOB-376 problem details" header 'content-type: application/problem+json'
check "JOB-111 an empty key" refused 401 RFA_AUTH_INVALID_CREDENTIALS POST "/v1/clients/$one/keys" -H 'Authorization: Bearer '
check "JOB-111 an unknown key" refused 401 RFA_AUTH_INVALID_CREDENTIALS POST "/v1/clients/$one/keys" -H "$(bearer cop_x)"
check "JOB-100 another scheme" refused 401 RFA_AUTH_INVALID_CREDENTIALS POST "/v1/clients/$one/keys" -H "Authorization: Basic $key"
check "JOB-100 another place" refused 401 RFA_AUTH_INVALID_CREDENTIALS POST "/v1/clients/$one/keys" -H "X-Api-Key: $key"
check "JOB-113 unknown client" refused 404 RFA_CLIENT_NOT_FOUND POST "/v1/clients/$none/keys"
post /v1/clients >"$tmp/out"
two=$(value client_id)
post "/v1/clients/$two/keys" >"$tmp/out"
other=$(value api_key)
other_id=$(value key_id)
check "JOB-112 another client's key" refused 403 RFA_AUTH_FORBIDDEN POST "/v1/clients/$one/keys" -H "$(bearer "$other")"
check "JOB-341 another type" is "$(ask POST "/v1/clients/$one/keys" -H 'Content-Type: text/plain' -d x -H "$(bearer "$key")")" 415
check "JOB-099 in its code" code RFA_REQUEST_UNSUPPORTED_MEDIA_TYPE
check "AMB-J-57 unknown members" is "$(post_json "/v1/clients/$one/keys" '{"x":1}' -H "$(bearer "$key")")" 201
check "AMB-J-57 not an object" is "$(post_json "/v1/clients/$one/keys" '[]' -H "$(bearer "$key")")" 400

# --- rotate: the old one is over at once ---
from=127.0.0.4
check "JOB-097 rotate" is "$(post_json "/v1/clients/$one/keys" '{"rotate":true}' -H "$(bearer "$key")" -H 'Idempotency-Key: r-1')" 201
rotated=$(value api_key)
rotated_id=$(value key_id)
check "AMB-J-25 another key" lacks "$key_id $key" "$rotated_id"
check "JOB-112 the old one is disabled" refused 403 RFA_AUTH_API_KEY_DISABLED POST "/v1/clients/$one/keys" -H "$(bearer "$key")"
check "JOB-090 the new one works" is "$(ask GET /v1/jobs -H "$(bearer "$rotated")")" 200
check "JOB-101 rotate again with its key" is "$(post_json "/v1/clients/$one/keys" '{ "rotate" : true }' -H "$(bearer "$rotated")" -H 'Idempotency-Key: r-1')" 201
check "JOB-101 makes no third" is "$(value key_id)" "$rotated_id"
check "AMB-J-24 and shows no secret" has "$(body)" '"api_key":null'
check "JOB-114 with another body" is "$(post_json "/v1/clients/$one/keys" '{"rotate":false}' -H "$(bearer "$rotated")" -H 'Idempotency-Key: r-1')" 409
check "JOB-355 in its code" code RFA_EXEC_IDEMPOTENCY_CONFLICT

# --- of simultaneous rotations one wins ---
from=127.0.0.5
race() {
    for i in 1 2 3 4 5 6 7 8; do
        curl -s -m 120 -o "$tmp/race.$i" -w '%{http_code}\n' -X POST -H "$json" -d '{"rotate":true}' -H "$(bearer "$1")" \
            "http://$client/v1/clients/$one/keys" >"$tmp/status.$i" &
        racers="$racers $!"
    done
    for racer in $racers; do
        wait "$racer"
    done
    racers=
}
racers=
race "$rotated"
check "JOB-114 one wins" is "$(cat "$tmp"/status.? | grep -c 201)" 1
check "JOB-114 the others lose" is "$(cat "$tmp"/status.? | grep -c -E '409|403')" 7
strange=
for i in 1 2 3 4 5 6 7 8; do
    case $(cat "$tmp/status.$i") in
    201) key=$(member api_key "$(cat "$tmp/race.$i")") ;;
    409) grep -q RFA_AUTH_API_KEY_CONFLICT "$tmp/race.$i" || strange="$strange $(cat "$tmp/race.$i")" ;;
    403) grep -q RFA_AUTH_API_KEY_DISABLED "$tmp/race.$i" || strange="$strange $(cat "$tmp/race.$i")" ;;
    esac
done
check "JOB-365 each in its code" is "$strange" ''
check "the winner's key works" is "$(ask GET /v1/jobs -H "$(bearer "$key")")" 200
check "what was contested doesn't" refused 403 RFA_AUTH_API_KEY_DISABLED GET /v1/jobs -H "$(bearer "$rotated")"

# --- renew ---
from=127.0.0.6
renew=/v1/clients/$one/keys/renew
check "JOB-117 other methods" is "$(ask GET "$renew")" 405
check "JOB-118 renew" is "$(post_json "$renew" '{}' -H "$(bearer "$key")")" 200
renewed=$(value api_key)
renewed_id=$(value key_id)
check "JOB-118 four members" is "$(body | grep -o '":' | wc -l)" 4
check "JOB-118 the new one works" is "$(ask GET /v1/jobs -H "$(bearer "$renewed")")" 200
check "JOB-122 the old one doesn't" refused 403 RFA_AUTH_API_KEY_DISABLED POST "$renew" -H "$(bearer "$key")"
check "JOB-120 body" is "$(post_json "$renew" '[]' -H "$(bearer "$renewed")")" 400
check "JOB-120 not a UUID" refused 400 RFA_REQUEST_MALFORMED POST /v1/clients/x/keys/renew -H "$(bearer "$renewed")"
check "JOB-121 without a key" refused 401 RFA_AUTH_INVALID_CREDENTIALS POST "$renew"
check "JOB-122 another's key" refused 403 RFA_AUTH_FORBIDDEN POST "$renew" -H "$(bearer "$other")"
check "JOB-123 unknown client" refused 404 RFA_CLIENT_NOT_FOUND POST "/v1/clients/$none/keys/renew" -H "$(bearer "$renewed")"

# --- revoke ---
from=127.0.0.7
revoke=/v1/clients/$one/keys/revoke
auth=$(bearer "$renewed")
check "JOB-127 other methods" is "$(ask GET "$revoke")" 405
check "JOB-130 no body" is "$(post "$revoke" -H "$auth")" 400
check "JOB-130 no key_id" is "$(post_json "$revoke" '{}' -H "$auth")" 400
check "JOB-130 in its code" code RFA_REQUEST_MALFORMED
check "JOB-130 not a string" is "$(post_json "$revoke" '{"key_id":1}' -H "$auth")" 400
check "JOB-131 without a key" refused 401 RFA_AUTH_INVALID_CREDENTIALS POST "$revoke" -H "$json" -d '{"key_id":"x"}'
check "JOB-132 another's key" refused 403 RFA_AUTH_FORBIDDEN POST "$revoke" -H "$json" -d '{"key_id":"x"}' -H "$(bearer "$other")"
check "JOB-133 unknown key" refused 404 RFA_AUTH_API_KEY_NOT_FOUND POST "$revoke" -H "$json" -d "{\"key_id\":\"$none\"}" -H "$auth"
check "JOB-133 another's key_id" refused 404 RFA_AUTH_API_KEY_NOT_FOUND POST "$revoke" -H "$json" -d "{\"key_id\":\"$other_id\"}" -H "$auth"
check "JOB-128 revoke" is "$(post_json "$revoke" "{\"key_id\":\"$renewed_id\"}" -H "$auth"; body)" '200{"revoked":true}'
check "JOB-297 then it is over" refused 403 RFA_AUTH_API_KEY_DISABLED GET /v1/jobs -H "$auth"
check "AMB-J-26 nothing is left to come in with" refused 401 RFA_AUTH_INVALID_CREDENTIALS POST "/v1/clients/$one/keys"

# --- an operator helps ---
from=127.0.0.8
operate() {
    at=$operator
    status "$@"
}
check "AMB-J-26 keys issue" is "$(operate POST "/clients/$one/keys:issue")" 201
key=$(value api_key)
check "AMB-J-26 it works" is "$(ask GET /v1/jobs -H "$(bearer "$key")")" 200
euros=$(printf '€%.0s' $(seq 200)) kept=$(printf '€%.0s' $(seq 170)) # 600 bytes; an entry has room for 512
check "AMB-J-26 keys issue with a reason" is "$(operate POST "/clients/$one/keys:issue" -H "$json" -d '{"reason":"it was lost"}')" 201
check "its audit entry has it" has "$(operate GET '/stats/audits?limit=1'; body)" '"reason":"it was lost","outcome":"done"'
by_hand() {
    "$COPPICE" keys issue --client "$one" --url "$1" --token-file "$tmp/store/operator.token" --reason "$2" --json </dev/null
}
check "the command has one, too" has "$(by_hand "http://$operator" 'by hand')" '"key_id":"'
check "which is in its entry" has "$(operate GET '/stats/audits?limit=1'; body)" '"reason":"by hand","outcome":"done"'
check "or as much as fits" is "$(operate POST "/clients/$one/keys:issue" -H "$json" -d "{\"reason\":\"$euros\"}")" 201
lost=$(value key_id)
check "as much as fits is there" has "$(operate GET '/stats/audits?limit=1'; body)" "\"verb\":\"api_key.issue\",\"target\":\"$lost\",\"reason\":\"$kept\""
check "of a revocation, too" is "$(operate POST "/clients/$one/keys:revoke" -H "$json" -d "{\"key_id\":\"$lost\",\"reason\":\"$euros\"}")" 200
check "it is there" has "$(operate GET '/stats/audits?limit=1'; body)" "\"verb\":\"api_key.revoke\",\"target\":\"$lost\",\"reason\":\"$kept\""
check "nothing else is passed over" is "$(operate POST "/clients/$one/keys:issue" -H "$json" -d '{"resaon":"it was lost"}')" 400
check "of a revocation, too" is "$(operate POST "/clients/$one/keys:revoke" -H "$json" -d "{\"key_id\":\"$lost\",\"resaon\":\"x\"}")" 400
check "AMB-J-26 keys issue again" is "$(operate POST "/clients/$one/keys:issue")" 201
key=$(value api_key)
check "JOB-024 inspect client" is "$(operate GET "/clients/$one")" 200
check "and its key" has "$(body)" '"created_by":"operator"'

# --- jobs: there are none ---
from=127.0.0.9
auth=$(bearer "$key")
check "JOB-294 missing key" refused 401 RFA_AUTH_INVALID_CREDENTIALS POST /v1/jobs -H "$json" -d '{"type":"EXECUTE"}'
check "JOB-295 unknown key" refused 401 RFA_AUTH_INVALID_CREDENTIALS GET "/v1/jobs/$none" -H "$(bearer nonsense)"
check "JOB-295 no job data" lacks "$(body)" job_id
check "JOB-172 unknown job" refused 404 RFA_JOB_NOT_FOUND GET "/v1/jobs/$none" -H "$auth"
check "JOB-172 AMB-J-59 malformed id" refused 404 RFA_JOB_NOT_FOUND GET /v1/jobs/nonsense -H "$auth"
check "JOB-180 no report" refused 404 RFA_JOB_NOT_FOUND GET "/v1/jobs/$none/report" -H "$auth"
check "JOB-153 cancel" refused 404 RFA_JOB_NOT_FOUND POST "/v1/jobs/$none/cancel" -H "$auth"
check "JOB-150 cancel of nonsense" refused 400 RFA_REQUEST_MALFORMED POST /v1/jobs/nonsense/cancel -H "$auth"
check "JOB-163 retry" refused 404 RFA_JOB_NOT_FOUND POST "/v1/jobs/$none/retry" -H "$auth"
check "JOB-197 webhook" refused 404 RFA_WEBHOOK_NOT_FOUND DELETE "/v1/webhooks/$none" -H "$auth"
check "AMB-J-19 the list is empty" is "$(ask GET /v1/jobs -H "$auth"; body)" '200{"items":[],"next_cursor":null}'
for n in 1 2 3; do
    check "a job" is "$(post_json /v1/jobs '{"type":"DEFERRED","execution_at":"2999-01-01T00:00:00Z"}' -H "$auth")" 202
done
check "a page of a list" is "$(ask GET '/v1/jobs?limit=2&state=CREATED' -H "$auth")" 200
check "links to the next one" header 'link: <?limit=2&state=CREATED&cursor=[A-Za-z0-9_.~-]*>; rel="next"'
check "the link is the cursor" header "link: .*[?&]cursor=$(value next_cursor)>"
next=$(tr -d '\r' <"$tmp/head" | sed -n 's/^Link: <\(.*\)>; rel="next"$/\1/p')
check "which is one" is "$(ask GET "/v1/jobs$next" -H "$auth")" 200
check "and the last" has "$(body)" '"next_cursor":null'
check "which links nowhere" no_header 'link:'
check "limit" is "$(ask GET '/v1/jobs?limit=101' -H "$auth")" 400
check "cursor" is "$(ask GET '/v1/jobs?cursor=abc' -H "$auth")" 400
check "JOB-340 broken JSON" refused 400 RFA_REQUEST_MALFORMED POST /v1/jobs -H "$auth" -H "$json" -d '{'
check "JOB-343 not acceptable" refused 406 RFA_REQUEST_NOT_ACCEPTABLE GET "/v1/jobs/$none" -H "$auth" -H 'Accept: text/html'
check "JOB-362 no such path" refused 404 RFA_REQUEST_ROUTE_NOT_FOUND GET /v1/clients/x/y/z
check "AMB-J-65 RateLimit" is "$(ask GET /v1/jobs -H "$auth")" 200
check "AMB-J-65 its policy" header 'ratelimit-policy: "client";q=600;w=60'

# --- the control surface ---
from=127.0.0.10
token() {
    "$COPPICE" token issue --url "http://$operator" --token-file "$tmp/store/operator.token" --subject "$1" --role "$2" --projects "$3"
}
owner=$(token alice owner p1)
submitter=$(token bob submitter p1)
viewer=$(token vera viewer '*')
keeper=$(token kim infra-approver p1)
is_token() {
    [ "$(printf '%s' "$1" | tr -cd . | wc -c)" = 2 ] || echo "'$1' is no token"
    [ "$(printf '%s' "$1" | tr -cd . | wc -c)" = 2 ]
}
check "AMB-21 tokens" is_token "$owner"
meta() {
    printf '"meta":{"schema_version":"v1","request_id":"r","trace_id":"t","actor_id":"%s","project_id":"%s"}' "$1" "$2"
}
# command PATH BODY TOKEN
command_as() {
    post_json "$1" "$2" -H "$(bearer "$3")"
}
submit="{$(meta alice p1),\"idempotency_key\":\"k\",\"intent\":\"i\",\"risk_tier\":\"A\",\"payload\":{}}"
cancel="{$(meta alice p1),\"idempotency_key\":\"k\",\"reason\":\"x\"}"
decision="{$(meta alice p1),\"idempotency_key\":\"k\",\"reason\":\"x\",\"decision\":\"approve\"}"
reprocess="{$(meta alice p1),\"idempotency_key\":\"k\"}"
bulk="{$(meta alice p1),\"idempotency_key\":\"k\",\"event_ids\":[\"$none\",\"$none\"]}"

check "CTL-018 submit without a token" refused 401 AUTH_401_MISSING_TOKEN POST /jobs:submit -H "$json" -d "$submit"
check "CTL-246 the envelope" has "$(body)" '{"error":{"code":"AUTH_401_MISSING_TOKEN","message":"'
for path in "/jobs/$none" /dlq/items; do
    check "CTL-018 GET $path" refused 401 AUTH_401_MISSING_TOKEN GET "$path"
    check "CTL-018 with nonsense" refused 401 AUTH_401_INVALID_TOKEN GET "$path" -H "$(bearer a.b.c)"
done
for path in "/jobs/$none:cancel" "/jobs/$none:approve" "/jobs/$none:reject" "/jobs/$none:decision" \
    "/dlq/items/$none:reprocess" /dlq/items:reprocess-bulk; do
    check "CTL-018 POST $path" refused 401 AUTH_401_MISSING_TOKEN POST "$path" -H "$json" -d '{}'
    check "CTL-023 POST /v1$path" refused 401 AUTH_401_MISSING_TOKEN POST "/v1$path" -H "$json" -d '{}'
done
check "submit waits for its domain" is "$(command_as /jobs:submit "$submit" "$owner")" 503
check "in its code" code JOB_503_QUEUE_UNAVAILABLE
check "with Retry-After" header 'retry-after: 60'
check "CTL-160 and its limit" header 'ratelimit-policy: "submit";q=20;w=60'
check "CTL-023 below /v1" is "$(command_as /v1/jobs:submit "$submit" "$owner")" 503
check "CTL-024 Accept chooses no version" is "$(ask GET "/v1/jobs/$none" -H 'Accept: application/vnd.rias.v2+json' -H "$(bearer "$owner")")" 404
check "CTL-025 no other version" refused 404 REQ_404_ROUTE_NOT_FOUND POST /v2/jobs:submit -H "$json" -d "$submit" -H "$(bearer "$owner")"
check "CTL-016 unknown verb" refused 404 REQ_404_ROUTE_NOT_FOUND POST "/jobs/$none:unknown" -H "$json" -d '{}' -H "$(bearer "$owner")"
for method in PUT DELETE PATCH; do
    check "CTL-022 $method" refused 405 REQ_405_METHOD_NOT_ALLOWED $method "/jobs/$none" -H "$(bearer "$owner")"
    check "CTL-022 Allow" header 'allow: .*GET'
done
check "CTL-015 unknown job" refused 404 JOB_404_NOT_FOUND GET "/jobs/$none" -H "$(bearer "$owner")"
check "CTL-015 not a UUID" refused 400 REQ_400_INVALID_SCHEMA GET /jobs/not-a-uuid -H "$(bearer "$owner")"
check "AMB-02 a token means control" refused 404 JOB_404_NOT_FOUND GET "/v1/jobs/$none" -H "$(bearer "$owner")"
check "AMB-02 a key means jobs" refused 404 RFA_JOB_NOT_FOUND GET "/v1/jobs/$none" -H "$auth"
check "AMB-02 nothing means jobs" refused 401 RFA_AUTH_INVALID_CREDENTIALS GET "/v1/jobs/$none"
series() {
    get /metrics | grep -v '^#' | sed 's/ [^ ]*$//' | sort
}
check "both are the one route's in metrics" is "$(series | grep -c '^http_request_duration_seconds_count{method="GET",route="/v1/jobs/{job_id}"}')" 1
check "no series of metrics is there twice" is "$(series | uniq -d)" ''
check "CTL-003 cancel" is "$(command_as "/jobs/$none:cancel" "$cancel" "$owner")" 404
check "AMB-23 who may not cancel" is "$(command_as "/jobs/$none:cancel" "$cancel" "$viewer")" 403
check "in its code" code AUTH_403_ROLE
check "CTL-006 decision" is "$(command_as "/jobs/$none:decision" "$decision" "$owner")" 404
check "AMB-22 who may not decide" is "$(command_as "/jobs/$none:decision" "$decision" "$submitter")" 403
check "CTL-021 approve is approve" is "$(command_as "/jobs/$none:reject" "$decision" "$owner")" 400
check "CTL-017 empty body" is "$(command_as "/jobs/$none:cancel" '' "$owner")" 400
check "CTL-017 in its code" code REQ_400_INVALID_SCHEMA
check "CTL-017 not JSON" is "$(command_as "/jobs/$none:cancel" '{' "$owner")" 400
check "CTL-017 not the type" is "$(ask POST "/jobs/$none:cancel" -H 'Content-Type: text/plain' -d "$cancel" -H "$(bearer "$owner")")" 400
check "CTL-017 in its code" code REQ_400_INVALID_SCHEMA
for field in schema_version request_id trace_id actor_id project_id; do
    less=$(printf '%s' "$cancel" | sed "s/\"$field\":\"[^\"]*\",\{0,1\}//; s/,}/}/")
    check "CTL-029 without $field" is "$(command_as "/jobs/$none:cancel" "$less" "$owner")" 400
    check "CTL-029 in its code" code REQ_400_MISSING_FIELD
    check "CTL-029 named" has "$(body)" "$field"
done
check "CTL-030 another version" is "$(command_as "/jobs/$none:cancel" '{"meta":{"schema_version":"v2"}}' "$owner")" 409
check "CTL-030 in its code" code CONTRACT_409_VERSION_MISMATCH
check "CTL-030 a number" is "$(command_as "/jobs/$none:cancel" "$(printf '%s' "$cancel" | sed 's/"v1"/1/')" "$owner")" 400
check "AMB-07 an empty id" is "$(command_as "/jobs/$none:cancel" "$(printf '%s' "$cancel" | sed 's/"idempotency_key":"k"/"idempotency_key":""/')" "$owner")" 400
check "CTL-044 an empty reason" is "$(command_as "/jobs/$none:cancel" "$(printf '%s' "$cancel" | sed 's/"reason":"x"/"reason":""/')" "$owner")" 400
check "CTL-127 another actor" is "$(command_as "/jobs/$none:cancel" "$(printf '%s' "$cancel" | sed 's/alice/bob/')" "$owner")" 403
check "CTL-127 in its code" code AUTH_403_ROLE
check "CTL-125 another project" is "$(command_as "/jobs/$none:cancel" "$(printf '%s' "$cancel" | sed 's/"p1"/"p2"/')" "$owner")" 403
check "CTL-125 in its code" code AUTH_403_SCOPE
ten='{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":1}}}}}}}}}}'
check "CTL-057 ten levels" is "$(command_as "/jobs/$none:cancel" "$ten" "$owner")" 400
check "CTL-057 are read, and lack something else" code REQ_400_MISSING_FIELD
check "CTL-057 too deep" is "$(command_as "/jobs/$none:cancel" "{\"a\":$ten}" "$owner")" 400
check "CTL-057 in its code" code REQ_400_INVALID_SCHEMA
wide="[0$(printf ',0%.0s' $(seq 1000))]"
check "CTL-058 too wide" is "$(command_as "/jobs/$none:cancel" "{\"a\":$wide}" "$owner")" 400
head -c 1048577 /dev/zero | tr '\0' ' ' >"$tmp/large"
check "CTL-056 too large" is "$(ask POST "/jobs/$none:cancel" -H "$json" --data-binary "@$tmp/large" -H "$(bearer "$owner")")" 400
check "CTL-056 in its code" code REQ_400_INVALID_SCHEMA
check "CTL-059 no CORS" is "$(ask GET "/jobs/$none" -H 'Origin: http://elsewhere.example' -H "$(bearer "$owner")")" 404
check "CTL-059 no header of it" no_header 'access-control-'
check "CTL-144 a page from elsewhere" is "$(command_as "/jobs/$none:cancel" "$cancel" "$owner" | tail -c 3)" 404

# --- dead letters: none ---
from=127.0.0.11
dlq=$(bearer "$keeper")
check "CTL-007 CTL-052 the list is empty" is "$(ask GET /dlq/items -H "$dlq"; body)" '200{"items":[],"total_count":0,"next_cursor":null}'
check "CTL-023 below /v1" is "$(ask GET /v1/dlq/items -H "$dlq")" 200
check "CTL-155 its limit, shared" header 'ratelimit: "dlq_list";r=58;t=60'
check "CTL-121 another role" refused 403 AUTH_403_ROLE GET /dlq/items -H "$(bearer "$submitter")"
for query in limit=0 limit=101 limit=x max_age_hours=0 max_age_hours=-1 max_age_hours=1.5 cursor=nonsense; do
    check "CTL-010 CTL-011 CTL-012 $query" refused 400 REQ_400_INVALID_SCHEMA GET "/dlq/items?$query" -H "$dlq"
done
check "CTL-013 unknown item" is "$(command_as "/dlq/items/$none:reprocess" "$reprocess" "$owner")" 404
check "CTL-013 in its code" code DLQ_404_NOT_FOUND
check "CTL-014 CTL-055 bulk" is "$(command_as /dlq/items:reprocess-bulk "$bulk" "$owner")" 202
check "CTL-055 all rejected" has "$(body)" '"accepted_count":0,"rejected_count":2,"batch_id":"'
batch=$(value batch_id)
check "again is the same batch" is "$(command_as /v1/dlq/items:reprocess-bulk "$bulk" "$owner"; value batch_id)" "202$batch"
check "CTL-046 none" is "$(command_as /dlq/items:reprocess-bulk "{$(meta alice p1),\"idempotency_key\":\"k\",\"event_ids\":[]}" "$owner")" 400
check "CTL-123 audited" has "$(operate GET /stats/audits; body)" '"dlq.reprocess_bulk"'
check "CTL-157 third" is "$(command_as /dlq/items:reprocess-bulk '{}' "$owner")" 400
check "CTL-157 fourth" is "$(command_as /dlq/items:reprocess-bulk '{}' "$owner")" 400
check "CTL-157 the sixth" is "$(command_as /dlq/items:reprocess-bulk '{}' "$owner")" 429
check "CTL-162 in its code" code RATE_429_THROTTLED
check "CTL-162 Retry-After" header 'retry-after: [1-9]'
again=$(token alice owner p1)
check "CTL-163 another token of the same actor" is "$(command_as /dlq/items:reprocess-bulk '{}' "$again")" 429
check "CTL-160 another actor" is "$(command_as /dlq/items:reprocess-bulk "$(printf '%s' "$bulk" | sed 's/alice/kim/')" "$keeper")" 202

# --- a restart forgets nothing ---
from=127.0.0.12
at=$operator
check "it stops" stop
check "it starts" start --schedulers 2
check "and is ready" ready
operator=$at
check "AMB-28 the limit survives" is "$(command_as /dlq/items:reprocess-bulk '{}' "$again")" 429
check "JOB-459 so does the key" is "$(ask GET /v1/jobs -H "$(bearer "$key")")" 200
check "JOB-021 and what has ended" refused 403 RFA_AUTH_API_KEY_DISABLED GET /v1/jobs -H "$(bearer "$renewed")"
from=127.0.0.2 # as in the first chapter: keys are each address's own
check "JOB-101 and who was made" is "$(post /v1/clients -H 'Idempotency-Key: k-1'; value client_id)" "201$first"
at=$operator
check "it stops" stop
check "the secrets are not in the store" is "$(grep -c -a -e "${key#cop_}" -e "${renewed#cop_}" "$tmp/store/data.mdb")" 0
finish
