#!/bin/sh
# Tokens and their keys from outside: the operator's commands, the key set, what a token opens and what ends it, and what is
# left of all that after a kill -9 and a restart.
cd "$(dirname "$0")/../.." || exit 1
. tests/api/server.sh

keys() {
    "$COPPICE" "$@" --url "http://$at" --token-file "$tmp/store/operator.token" </dev/null
}
# issue SUBJECT ROLE PROJECTS: sets token
issue() {
    token=$(keys token issue --subject "$1" --role "$2" --projects "$3") && [ -n "$token" ]
}
# with TOKEN [PATH]: the status on the client port, and the body in $tmp/body
with() {
    curl -s -m 120 -o "$tmp/body" -w '%{http_code}' -H "Authorization: Bearer $1" "http://$client${2:-/dlq/items}"
}
jwks() {
    curl -sS -m 120 "http://$client/.well-known/jwks.json"
}
metric() {
    curl -sS -m 120 -H "$bearer" "http://$at/metrics" | sed -n "s/^coppice_$1 //p"
}
operator() {
    curl -s -m 120 -o "$tmp/body" -w '%{http_code}' -H "$bearer" -X "$1" -H 'Content-Type: application/json' ${3:+-d "$3"} "http://$at$2"
}
# asks until the server says so: between its start and its first key there are a few milliseconds
started() {
    until [ "$(curl -s -o /dev/null -w '%{http_code}' "http://$at/startupz")" = 200 ]; do kill -0 "$server" || return 1; done
}
# looked: the keeper's second look has begun, so its first one has removed what it would
looked() {
    until [ "$(get /stats/actors/store.keeper | sed -n 's/.*"handled":\([0-9]*\).*/\1/p')" -ge 2 ]; do kill -0 "$server" || return 1; done
}
without() {
    lacks "$1" '"d":' && lacks "$1" '"p":' && lacks "$1" '"q":' && lacks "$1" PRIVATE
}
payload() {
    printf '%s' "$1" | cut -d. -f"$2" | tr -- '-_' '+/' | sed 's/$/===/' | base64 -d 2>/dev/null
}

printf '{"agent_templates": {"builder": {"max_token_seconds": {"C": 3600}}}}' >"$tmp/settings.json"
check "a server" start --schedulers 2 --config "$tmp/settings.json"
check "it has started" started

# --- who may ---
for path in /keys /keys/history; do
    check "CTL-117 GET $path needs the operator's token" is "$(curl -s -o /dev/null -w '%{http_code}' "http://$at$path")" 401
done
for path in /keys:bootstrap /keys:rotate /keys/x:revoke /tokens:issue /tokens /tokens:revoke /tokens/x:revoke; do
    check "CTL-117 POST $path needs the operator's token" is "$(curl -s -o /dev/null -w '%{http_code}' -X POST "http://$at$path")" 401
    check "CTL-117 POST $path with another token" is "$(curl -s -o /dev/null -w '%{http_code}' -X POST -H "Authorization: Bearer cop_op_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" "http://$at$path")" 401
    check "POST $path isn't on the client port" is "$(curl -s -o /dev/null -w '%{http_code}' -X POST -H "$bearer" "http://$client$path")" 404
done
check "CTL-117 bootstrap without a credential ends non-zero" sh -c "! '$COPPICE' keys bootstrap --url http://$at --token-file /dev/null >/dev/null 2>&1"

# --- the key set ---
first=$(member active_kid "$(keys keys list --json)")
check "CTL-103 the key set names the key" has "$(jwks)" "\"kid\":\"$first\""
check "CTL-103 CTL-112 and no private half" without "$(jwks)"
check "CTL-112 nor do the commands" without "$(keys keys list --json; keys keys history --json)"
check "CTL-119 it says when it rotates" has "$(keys keys list --json)" '"next_rotation_at":"2'
check "CTL-118 the first key was audited as SEV1" has "$(curl -s -H "$bearer" "http://$at/stats/audits?limit=100")" '"verb":"key.bootstrapped"'
check "CTL-118 with its severity" has "$(curl -s -H "$bearer" "http://$at/stats/audits?limit=100")" '"severity":"SEV1"'

# --- tokens ---
check "CTL-104 a token is issued" issue alice owner p1,p2
alice=$token
check "CTL-104 its header names the key" has "$(payload "$alice" 1)" "\"kid\":\"$first\""
for claim in '"iss":"coppice"' '"aud":"coppice"' '"sub":"alice"' '"role":"owner"' '"project_scope":["p1","p2"]' '"session_id":"' '"jti":"' '"iat":' '"exp":'; do
    check "CTL-069..CTL-077 it has $claim" has "$(payload "$alice" 2)" "$claim"
done
check "it opens what it is for" is "$(with "$alice")" 200
before=$(metric 'auth_signatures_total{outcome="good"}')
check "the same again" is "$(with "$alice")" 200
check "CTL-089 needs no signature" is "$(metric 'auth_signatures_total{outcome="good"}')" "$before"
check "CTL-067 without one it is closed" is "$(curl -s -o "$tmp/body" -w '%{http_code}' "http://$client/dlq/items")" 401
check "CTL-254 and says so" has "$(cat "$tmp/body")" AUTH_401_MISSING_TOKEN

refused() {
    is "$(with "$1")" 401 && has "$(cat "$tmp/body")" '"code":"AUTH_401_INVALID_TOKEN"'
}
head=$(printf '%s' "$alice" | cut -d. -f1)
body=$(printf '%s' "$alice" | cut -d. -f2)
signature=$(printf '%s' "$alice" | cut -d. -f3)
none=$(printf '{"alg":"none","kid":"%s"}' "$first" | base64 -w0 | tr -d = | tr '+/' '-_')
check "CTL-087 alg none" refused "$none.$body."
check "CTL-087 alg none, with the signature" refused "$none.$body.$signature"
check "CTL-090 no signature" refused "$head.$body."
check "CTL-090 no third part" refused "$head.$body"
check "CTL-090 a fourth part" refused "$alice.x"
check "CTL-090 padding" refused "$alice="
check "CTL-090 a changed payload" refused "$head.$(printf '{"sub":"alice"}' | base64 -w0 | tr -d = | tr '+/' '-_').$signature"
check "CTL-090 a changed signature" refused "$head.$body.$(printf '%s' "$signature" | tr 'A-Za-z' 'B-ZAb-za')"
check "not a token at all" refused nonsense

# --- rotation ---
check "CTL-105 keys rotate" keys keys rotate --reason drill
second=$(member active_kid "$(keys keys list --json)")
check "CTL-105 there is another key" test "$first" != "$second"
check "CTL-105 the key set lists both" has "$(jwks)" "$first"
check "CTL-105 the key set lists both" has "$(jwks)" "$second"
check "CTL-105 the token is as good as before" is "$(with "$alice")" 200
check "CTL-105 new tokens" issue bob owner p1
bob=$token
check "CTL-105 have the new key" has "$(payload "$bob" 1)" "\"kid\":\"$second\""
check "both are good" is "$(with "$bob")" 200

# --- revocation ---
stops=$(metric 'auth_rejected_total{stage="blocklist"}')
signatures=$(metric 'auth_signatures_total{outcome="good"}')
check "CTL-110 keys revoke" keys keys revoke "$first" --yes --reason "it leaked"
check "CTL-110 CTL-113 its tokens are refused at once" refused "$alice"
check "CTL-089 by the blocklist" is "$(metric 'auth_rejected_total{stage="blocklist"}')" $((stops + 1))
check "CTL-089 CTL-093 by the contract's name" has "$(curl -sS -m 120 -H "$bearer" "http://$at/metrics")" "
auth_rejections_total{stage=\"blocklist\"} $((stops + 1))
"
check "CTL-089 before any cryptography" is "$(metric 'auth_signatures_total{outcome="good"}')" "$signatures"
check "CTL-110 others aren't" is "$(with "$bob")" 200
check "a token that nobody has" has "$(keys token revoke nope --yes --reason x --json 2>"$tmp/warned")" '"seen":false'
check "is revoked with a warning" has "$(cat "$tmp/warned")" 'no token of that id has come here'
check "CTL-111 history has it" has "$(keys keys history --json)" "\"kid\":\"$first\",\"state\":\"revoked\""
check "CTL-110 it was audited" has "$(curl -s -H "$bearer" "http://$at/stats/audits?limit=100")" '"verb":"key.revoked"'
jti=$(payload "$bob" 2 | sed 's/.*"jti":"\([^"]*\)".*/\1/')
check "CTL-100 token revoke" keys token revoke "$jti" --yes
check "CTL-100 it is refused at once" refused "$bob"
check "carol" issue carol viewer '*'
carol=$token
check "dave" issue dave owner '*'
dave=$token
check "dave's token is good" is "$(with "$dave")" 200
check "CTL-099 all tokens of a subject" is "$(operator POST /tokens:revoke '{"subject":"dave"}')" 200
check "CTL-100 are refused at once" refused "$dave"

check "CTL-115 a metric says what a revocation may take" is "$(metric auth_revocation_sla_seconds)" 60
check "CTL-115 and how old another issuer's keys are" is "$(metric auth_key_set_age_seconds)" 0
check "CTL-115 as long as others may keep ours" has "$(curl -s -D - -o /dev/null "http://$client/.well-known/jwks.json" | tr A-Z a-z)" 'cache-control: public, max-age=60'

# --- a reason has as many characters as the contract says, and an entry bytes ---
euros=$(printf '€%.0s' $(seq 200)) kept=$(printf '€%.0s' $(seq 170))
long="\"reason\":\"$euros\""
noted() { # noted STATUS PATH BODY: as much of it as fits is in the entry
    is "$(operator POST "$2" "$3")" "$1" && has "$(curl -s -H "$bearer" "http://$at/stats/audits?limit=1")" "\"reason\":\"$kept\",\"outcome\":\"done\""
}
check "a long reason of a token" noted 201 /tokens:issue "{\"subject\":\"x\",\"role\":\"owner\",\"projects\":[\"p\"],$long}"
check "of its end" noted 200 /tokens:revoke "{\"jti\":\"x\",$long}"
check "of a principal" noted 201 /principals "{\"name\":\"euros\",\"role\":\"service\",\"projects\":[\"p\"],$long}"
check "of its rotation" noted 200 /principals/euros:rotate "{$long}"
check "of its end" noted 200 /principals/euros:revoke "{$long}"

# --- services and agents, who get tokens for a secret ---
# grant NAME SECRET [MEMBERS]: the status; the token is in $token
grant() {
    curl -s -m 120 -o "$tmp/body" -D "$tmp/head" -w '%{http_code}' -H 'Content-Type: application/json' \
        -d "{\"grant_type\":\"client_credentials\",\"client_id\":\"$1\",\"client_secret\":\"$2\"${3:-}}" \
        "http://$client/v1/auth/token"
}
granted() {
    token=$(member access_token "$(cat "$tmp/body")") && [ -n "$token" ]
}
made=$(keys principal create agent:builder --role agent --projects p1,p2 --agent-template builder --tier C --reason "a test" --json)
secret=$(member client_secret "$made")
answer() { # answer PATH BODY: the head of it
    curl -sS -m 120 -o "$tmp/body" -D - -H "$bearer" -H 'Content-Type: application/json' -d "$2" "http://$at$1" | tr -d '\r'
}
check "a principal's place" has "$(answer /principals '{"name":"svc:placed","role":"service","projects":["p1"]}')" 'Location: /principals/svc:placed'
check "its verbs go behind it" has "$(answer /principals/svc:placed:revoke '{"reason":"a test"}')" 'HTTP/1.1 200'
check "a token's place" has "$(answer /tokens:issue '{"subject":"user:placed","role":"viewer","projects":["p1"]}')" "Location: /tokens/$(member jti "$(cat "$tmp/body")")"
check "AMB-21 principal create shows a secret" test "${#secret}" = 53
check "AMB-21 principal list" has "$(keys principal list --json)" '"name":"agent:builder","role":"agent","projects":["p1","p2"],"agent_template":"builder","tier":"C"'
check "AMB-21 for people, too, with its projects" has "$(keys principal list)" 'p1, p2'
check "AMB-21 shows none" lacks "$(keys principal list --json)" cop_
check "AMB-21 the store has none" sh -c "! grep -a -q '$secret' '$tmp/store/data.mdb'"
check "AMB-21 a token for it" is "$(grant agent:builder "$secret")" 200
check "AMB-21 as OAuth has it" has "$(cat "$tmp/body")" '"token_type":"Bearer","expires_in":3600,"scope":"p1 p2"'
check "AMB-21 kept by nobody" has "$(tr A-Z a-z <"$tmp/head")" 'cache-control: no-store'
granted
builder=$token
check "CTL-104 its header names the key" has "$(payload "$builder" 1)" "\"kid\":\"$second\""
for claim in '"iss":"coppice"' '"aud":"coppice"' '"sub":"agent:builder"' '"role":"agent"' '"project_scope":["p1","p2"]' '"session_id":"' '"jti":"' '"iat":' '"exp":'; do
    check "AMB-21 CTL-069..CTL-077 it has $claim" has "$(payload "$builder" 2)" "$claim"
done
check "AMB-21 it opens what its role may" is "$(with "$builder" /jobs/00000000-0000-4000-8000-000000000001)" 404
check "AMB-21 it was audited" has "$(curl -s -H "$bearer" "http://$at/stats/audits?limit=100")" '"who":"agent:builder","verb":"token.issued"'
check "CTL-081 as long as its template allows" is "$(grant agent:builder "$secret" ',"lifetime_seconds":3600')" 200
check "CTL-081 and not a second longer" is "$(grant agent:builder "$secret" ',"lifetime_seconds":3601')" 400
check "CTL-081 which names the field" has "$(cat "$tmp/body")" '"field":"lifetime_seconds"'
check "CTL-081 a token of another hand" eval 'token=$(keys token issue --subject agent:builder --role agent --projects p1 --lifetime 3601s)'
check "CTL-081 isn't taken either" refused "$token"
check "CTL-081 AMB-18 whatever its role" eval 'token=$(keys token issue --subject agent:builder --role service --projects p1 --lifetime 2h)'
check "CTL-081 AMB-18 isn't taken" refused "$token"
check "CTL-125 not another project" is "$(grant agent:builder "$secret" ',"scope":"p3"')" 403
check "CTL-125 in the envelope" has "$(cat "$tmp/body")" '"code":"AUTH_403_SCOPE"'
check "AMB-21 another secret" is "$(grant agent:builder "$(printf '%s' "$secret" | tr 'a-z' 'b-za')")" 401
check "AMB-21 in the envelope" has "$(cat "$tmp/body")" '"code":"AUTH_401_INVALID_TOKEN"'
check "AMB-21 no password" is "$(curl -s -o "$tmp/body" -w '%{http_code}' -H 'Content-Type: application/json' -d '{"grant_type":"password","username":"u","password":"p"}' "http://$client/v1/auth/token")" 400
check "AMB-21 says what there is" has "$(cat "$tmp/body")" 'must be client_credentials: there are no users here'
check "CTL-029 nothing at all" is "$(curl -s -o "$tmp/body" -w '%{http_code}' -H 'Content-Type: application/json' -d '{}' "http://$client/v1/auth/token")" 400
check "CTL-029 names what is missing" has "$(cat "$tmp/body")" '"code":"REQ_400_MISSING_FIELD"'
check "CTL-084 a new token, and the end of the old one" is "$(grant agent:builder "$secret" ",\"replaces\":\"$builder\"")" 200
granted
check "CTL-084 the old one" refused "$builder"
check "CTL-084 the new one" is "$(with "$token" /jobs/00000000-0000-4000-8000-000000000001)" 404
check "CTL-099 another secret" eval 'secret=$(member client_secret "$(keys principal rotate agent:builder --yes --json)")'
check "CTL-099 CTL-101 ends its tokens at once" refused "$token"
check "CTL-099 a token for the new one" is "$(grant agent:builder "$secret")" 200
granted
builder=$token
check "CTL-099 is good at once" is "$(with "$builder" /jobs/00000000-0000-4000-8000-000000000001)" 404
made=$(keys principal create gateway --role service --json)
gateway=$(member client_secret "$made")
check "CTL-100 principal revoke" keys principal revoke gateway --yes --reason gone
check "CTL-100 its secret is nobody's" is "$(grant gateway "$gateway")" 401
check "CTL-100 it was audited" has "$(curl -s -H "$bearer" "http://$at/stats/audits?limit=100")" '"verb":"principal.revoked","target":"gateway","reason":"gone"'
guess() { # until it has to wait: every two seconds one more guess is free
    for guesses in $(seq 300); do
        [ "$(grant agent:builder guess)" != 429 ] || return 0
    done
    return 1
}
check "AMB-21 who guesses has to wait" guess
check "AMB-21 after a few guesses" test "$guesses" -gt 3 # others were refused before
check "AMB-21 and is told for how long" has "$(tr A-Z a-z <"$tmp/head")" 'retry-after:'

wrong() {
    curl -s -m 120 -o "$tmp/body" -D "$tmp/head" -w '%{http_code}' -H "Authorization: Bearer cop_op_wrong" "http://$at/keys"
}
# a thousand in a row: a fragment isn't sent
guess_operator() {
    curl -s -m 120 -o "$tmp/body" -D "$tmp/head" -w '%{http_code}\n' -H "Authorization: Bearer cop_op_wrong" \
        "http://$at/keys#[1-1000]" >"$tmp/statuses"
    grep -qx 429 "$tmp/statuses"
}
check "who guesses on the clients' port hasn't on the operators'" is "$(wrong)" 401
check "who guesses there has to wait, too" guess_operator
check "but not at once" is "$(head -n 500 "$tmp/statuses" | sort -u)" 401
check "and is told for how long" has "$(tr A-Z a-z <"$tmp/head")" 'retry-after:'
check "whoever has the token isn't told to wait" is "$(operator GET /keys)" 200
check "a metric says so" test "$(metric 'http_throttled_total{bucket="operator_failures"}')" -gt 0

# --- what is left after a crash ---
check "erin" issue erin owner '*'
erin=$token
check "erin's token is good" is "$(with "$erin")" 200
kill -9 "$server"
wait "$server" 2>/dev/null
check "a server again" start --schedulers 2 --config "$tmp/settings.json"
check "it has started again" started
check "CTL-095 a revoked token stays so" refused "$bob"
check "CTL-095 a revoked key stays so" refused "$alice"
check "CTL-095 a revoked subject stays so" refused "$dave"
check "AMB-21 a principal is there" is "$(grant agent:builder "$secret")" 200
check "AMB-21 one that was revoked isn't" is "$(grant gateway "$gateway")" 401
check "CTL-092 a token that was used is used again" is "$(with "$erin")" 200
check "one that wasn't is good too, for what its role may do" is "$(with "$carol")" 403
check "the key is the same" has "$(jwks)" "$second"
check "CTL-112 the store holds no private key" sh -c "! grep -a -q -e 'PRIVATE KEY' -e '\"d\":' '$tmp/store/data.mdb'"
check "the master key is for its owner alone" is "$(stat -c %a "$tmp/store/master.key")" 600
check "the operator's token too" is "$(stat -c %a "$tmp/store/operator.token")" 600
check "retention has been at work" looked
check "it ends" stop

# --- a clock that was wrong for a while ---
check "a server whose clock is ahead" start --schedulers 2 --clock-offset 9h
check "retention is at work there" looked
check "it ends" stop
check "a server whose clock is right again" start --schedulers 2
check "it has started" started
check "CTL-095 a clock that was ahead forgot no revocation" refused "$bob"
check "nor what was good" is "$(with "$erin")" 200
check "it ends" stop

# --- another issuer's keys, whose kids are what that issuer likes ---
point='"kty":"EC","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"'
for kid in urn:idp:key:1 urn:idp:key:2 abc/def+gh= 'a b%2F' ..; do printf ',{%s,"kid":"%s"}' "$point" "$kid"; done | sed 's/^,/{"keys":[/; s/$/]}/' >"$tmp/set.json"
check "CTL-110 a server with another issuer's keys" start --schedulers 2 --auth-jwks-file "$tmp/set.json" --auth-jwks-issuer https://idp
check "it has started" started
check "CTL-110 a kid with colons in a path" is "$(operator POST /keys/urn:idp:key:1:revoke '{"reason":"r1"}')" 200
check "CTL-110 and by the command" has "$(keys keys revoke urn:idp:key:2 --yes --reason r2 --json)" '"kid":"urn:idp:key:2","state":"revoked"'
check "CTL-110 one with a slash" has "$(keys keys revoke abc/def+gh= --yes --reason r3 --json)" '"revoked":"key","value":"abc/def+gh="'
check "CTL-110 one with an escape" has "$(keys keys revoke 'a b%2F' --yes --json)" '"revoked":"key","value":"a b%2F"'
check "CTL-110 one that is dots" has "$(keys keys revoke .. --yes --json)" '"revoked":"key","value":".."'
for reason in r1 r2 r3; do
    check "CTL-110 $reason was audited" has "$(curl -s -H "$bearer" "http://$at/stats/audits?limit=100")" "\"reason\":\"$reason\""
done
check "CTL-110 of its issuer" is "$(operator POST /tokens:revoke '{"kid":"abc/def+gh=","issuer":"https://idp"}')" 200
check "CTL-110 of no other" is "$(operator POST /tokens:revoke '{"kid":"abc/def+gh=","issuer":"coppice"}')" 404
check "CTL-110 nobody's" is "$(operator POST /tokens:revoke '{"kid":"abc/def"}')" 404
check "CTL-110 one thing at a time" is "$(operator POST /tokens:revoke '{"kid":"x","jti":"y"}')" 400
check "an issuer of nothing" is "$(operator POST /tokens:revoke '{"subject":"x","issuer":"coppice"}')" 400
check "an issuer alone" is "$(operator POST /tokens:revoke '{"issuer":"coppice"}')" 400
check "it ends" stop

# --- outside dev ---
rm -rf "$tmp/store"
check "a server in stage" start --environment stage
check "CTL-116 hasn't started" is "$(curl -s -o "$tmp/body" -w '%{http_code}' "http://$at/startupz")" 503
check "CTL-116 has no keys" is "$(jwks)" '{"keys":[]}'
check "CTL-116 issues nothing" is "$(operator POST /tokens:issue '{"subject":"u","role":"owner","projects":["*"]}')" 503
check "CTL-116 can't be rotated" is "$(operator POST /keys:rotate)" 404
out=$(keys keys bootstrap --reason RB-015 --json)
check "CTL-116 keys bootstrap says the kid" has "$out" '"kid":"'
check "CTL-116 and the public half alone" without "$out"
check "CTL-116 it has started" started
check "CTL-116 there is one bootstrap" is "$(operator POST /keys:bootstrap)" 409
check "CTL-118 by whom and when" has "$(curl -s -H "$bearer" "http://$at/stats/audits")" '"who":"operator","verb":"key.bootstrapped"'
check "its tokens are good" issue frank owner '*'
check "there" is "$(with "$token")" 200
check "CTL-102 a token of dev isn't" refused "$erin"
check "a signing key's place" has "$(answer /keys:rotate '{"reason":"a test"}')" "Location: /keys/$(member kid "$(cat "$tmp/body")")"
check "it ends" stop

# --- secrets are compared in a time that doesn't tell where they differ ---
for file in http/grants.c http/operator_token.c http/keyring.c http/token_cache.c; do
    check "$file compares digests by secret_equal" grep -q 'secret_equal(' "$file"
    check "$file compares none by memcmp" sh -c "! grep -n 'memcmp(.*\(digest\|hash\)' $file | grep -v secret_equal"
done

finish
