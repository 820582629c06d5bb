#!/bin/sh
# TLS on the client port from outside: what curl and openssl see, what comes of bytes that are no handshake, certificates that
# are replaced while the server works, and clients that must show one of their own.
cd "$(dirname "$0")/../.." || exit 1
. tests/api/server.sh

# authority NAME: a CA of its own, in NAME.crt and NAME.key
authority() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$1" -keyout "$tmp/$1.key" -out "$tmp/$1.crt"
}
# certificate NAME CA SERIAL KIND...: for localhost, signed by the authority
certificate() {
    name=$1 ca=$2 number=$3
    shift 3
    openssl req -newkey "$@" -nodes -subj "/CN=$name" -keyout "$tmp/$name.key" -out "$tmp/$name.csr" &&
        printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\n' >"$tmp/san" &&
        openssl x509 -req -in "$tmp/$name.csr" -CA "$tmp/$ca.crt" -CAkey "$tmp/$ca.key" -set_serial "$number" -days 1 -extfile "$tmp/san" -out "$tmp/$name.crt"
}
# late NAME CA FROM UNTIL: a certificate with these dates, YYYYMMDD
late() {
    : >"$tmp/index" && printf '[ca]\ndefault_ca=d\n[d]\ndatabase=%s/index\nnew_certs_dir=%s\nrand_serial=yes\ndefault_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n' "$tmp" "$tmp" >"$tmp/ca.conf" &&
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=localhost" -keyout "$tmp/$1.key" -out "$tmp/$1.csr" &&
        openssl ca -batch -notext -config "$tmp/ca.conf" -cert "$tmp/$2.crt" -keyfile "$tmp/$2.key" -in "$tmp/$1.csr" -startdate "${3}000000Z" -enddate "${4}000000Z" -out "$tmp/$1.crt"
}
# use NAME: this is the server's from its next reload on
use() {
    cp "$tmp/$1.crt" "$tmp/server.crt" && cp "$tmp/$1.key" "$tmp/server.key"
}
# ask PATH ARGUMENT...: the status; body and head stay in files
ask() {
    path=$1
    shift
    curl -sS -m 120 --cacert "$tmp/ours.crt" -o "$tmp/body" -D "$tmp/head" -w '%{http_code}' "$@" "https://$client$path"
}
fails() {
    ! "$@"
}
header() {
    tr -d '\r' <"$tmp/head" | grep -qix "$1" || cat "$tmp/head"
    tr -d '\r' <"$tmp/head" | grep -qix "$1"
}
client_of_openssl() {
    timeout "${patience:-120}" openssl s_client -connect "$client" -CAfile "$tmp/ours.crt" -verify_return_error "$@"
}
# serial: of the certificate that a new connection is shown
serial() {
    client_of_openssl </dev/null 2>/dev/null | openssl x509 -noout -serial | sed 's/serial=0*//'
}
# reload TEXT: and wait until the log says so
reload() {
    kill -HUP "$server" && await "$1"
}
# raw BYTES: as printf has them, to the port, then the end; what comes back. The connection ends by itself.
raw() {
    timeout 120 bash -c 'exec 5<>/dev/tcp/127.0.0.1/$0; printf "$1" >&5; cat <&5 | head -c 4096 | base64 -w0' "${client##*:}" "$1"
}
curve='ec -pkeyopt ec_paramgen_curve:P-256'
check "an authority" authority ours
check "another authority" authority theirs
check "a certificate" certificate first ours 0x1001 $curve
check "another" certificate second ours 0x1002 $curve
check "a large one" certificate large ours 0x1003 rsa:4096
check "a client's, of the other authority" certificate stranger theirs 0x2001 $curve
check "a client's, of ours" certificate friend ours 0x3001 $curve
check "one that has expired" late expired ours 20200101 20210101
check "one that is of the future" late future ours 20980101 20990101
use first

check "a server" start --schedulers 2 --tls-certificate "$tmp/server.crt" --tls-key "$tmp/server.key" --http-idle 1h
check "which is ready" ready

# --- requests ---
check "a request" is "$(ask /healthz)" 200
check "CTL-152 HSTS over TLS" header 'strict-transport-security: max-age=31536000; includeSubDomains'
check "CTL-150 nosniff" header 'x-content-type-options: nosniff'
check "HTTP/1.1 is chosen" has "$(client_of_openssl -alpn h2,http/1.1 </dev/null 2>/dev/null)" 'ALPN protocol: http/1.1'
check "who offers only others is refused" fails client_of_openssl -alpn h2 </dev/null
check "CTL-068 TLS 1.3" has "$(client_of_openssl -tls1_3 </dev/null 2>/dev/null)" 'TLSv1.3'
check "CTL-068 TLS 1.2" has "$(client_of_openssl -tls1_2 </dev/null 2>/dev/null)" 'TLSv1.2'
check "CTL-068 nothing older" fails client_of_openssl -tls1_1 -cipher 'ALL:@SECLEVEL=0' </dev/null
check "who does not know the authority goes no further" fails curl -s -m 120 "https://$client/healthz"
check "HEAD" is "$(ask /healthz --head)" 200
check "HEAD has a length" header 'content-length: [1-9][0-9]*'
check "HEAD has no body" is "$(curl -sS -m 120 --cacert "$tmp/ours.crt" -I -o /dev/null -w '%{size_download}' "https://$client/healthz")" 0
check "keep-alive: one handshake for three" is \
    "$(curl -sS -m 120 --cacert "$tmp/ours.crt" -w '%{num_connects}' "https://$client/healthz" "https://$client/healthz" "https://$client/livez" -o /dev/null -o /dev/null -o /dev/null)" 100
three='GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
check "pipelined" is "$(printf "$three" | client_of_openssl -quiet -ign_eof 2>"$tmp/err" | grep -a -o 'HTTP/1.1 [0-9]*' | tr '\n' ' ')" \
    'HTTP/1.1 200 HTTP/1.1 404 HTTP/1.1 200 '
check "closed as TLS has it" lacks "$(cat "$tmp/err")" 'unexpected eof'

# --- a body of the largest size ---
token=$("$COPPICE" token issue --url "http://$at" --token-file "$tmp/store/operator.token" --subject alice --role owner --projects p1)
whole='{"meta":{"schema_version":"v1","request_id":"r","trace_id":"t","actor_id":"alice","project_id":"p1"},"idempotency_key":"k","intent":"i","risk_tier":"A","payload":{"a":"'
{
    printf '%s' "$whole"
    head -c $((1048576 - ${#whole} - 3)) /dev/zero | tr '\0' x
    printf '"}}'
} >"$tmp/large"
post() {
    ask /jobs:submit -H 'Content-Type: application/json' -H "Authorization: Bearer $token" --data-binary "@$tmp/large" "$@"
}
check "it is 1 MiB" is "$(stat -c %s "$tmp/large")" 1048576
check "CTL-056 1 MiB goes in" is "$(post)" 503
check "CTL-056 as far as the domain" has "$(cat "$tmp/body")" JOB_503_QUEUE_UNAVAILABLE
check "CTL-056 in chunks" is "$(post -H 'Transfer-Encoding: chunked')" 503
check "CTL-056 once it is asked for" is "$(post -H 'Expect: 100-continue')" 503
printf ' ' >>"$tmp/large"
check "CTL-056 a byte more does not" is "$(post)" 400
check "CTL-056 in its code" has "$(cat "$tmp/body")" REQ_400_INVALID_SCHEMA
check "a large answer" is "$(ask /openapi/control.json)" 200
check "comes out whole" cmp "$tmp/body" docs/contract/generated/control.openapi.json
check "also to who reads slowly" is "$(ask /openapi/control.json --limit-rate 100k)" 200
check "comes out whole" cmp "$tmp/body" docs/contract/generated/control.openapi.json

# --- what is no handshake ---
check "plain HTTP gets no answer of HTTP" lacks "$(raw 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n' | base64 -d | tr -d '\0')" 'HTTP/1.1'
check "zeros" raw '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
check "a record that is too long" raw '\026\003\001\377\377\001\000\000'
check "an alert" raw '\025\003\001\000\002\002\050'
head -c 3000 /dev/urandom >"$tmp/random"
check "3000 random bytes" sh -c "timeout 120 bash -c 'exec 5<>/dev/tcp/127.0.0.1/\$0; cat \"\$1\" >&5 2>/dev/null; cat <&5 >/dev/null 2>&1; true' ${client##*:} '$tmp/random'"
check "good clients are served as before" is "$(ask /healthz)" 200

# --- another certificate ---
# A client that stays: its first request before the reload, its second one behind it.
mkfifo "$tmp/say" "$tmp/hear"
patience=300 client_of_openssl -quiet -ign_eof <"$tmp/say" >"$tmp/hear" 2>/dev/null &
stays=$!
exec 7>"$tmp/say" 8<"$tmp/hear"
# asks_again: the status of one more request of it
asks_again() {
    printf 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n' >&7
    read -r answer <&8
    while read -r text <&8; do
        [ "$text" != "$(printf '\r')" ] || break
        case $text in
        [Cc]ontent-[Ll]ength:*) length=$(printf '%s' "${text#*: }" | tr -d '\r') ;;
        esac
    done
    head -c "$length" <&8 >"$tmp/body"
    printf '%s' "$answer" | cut -d' ' -f2
}
check "a client that stays" is "$(asks_again)" 200
check "the first certificate" is "$(serial)" 1001
use second
check "is used until the reload" is "$(serial)" 1001
check "a reload" reload 'settings reloaded'
check "new connections see the new one" is "$(serial)" 1002
check "the log says that it is another one" has "$line" '"applied":"tls.certificate (until 20'
check "a reload that brings the same one" reload 'settings reloaded'
check "applies nothing" has "$line" '"applied":""'
check "signals leave entries, too" has "$(get '/stats/audits?limit=100')" '"who":"signal","verb":"config.reload","target":"settings","reason":"SIGHUP","outcome":"reloaded"'
check "the old connection goes on" is "$(asks_again)" 200
printf 'nothing' >"$tmp/server.crt"
check "a broken certificate is refused" reload "can't be used"
check "by its name" has "$line" server.crt
check "and the one in force stays" is "$(serial)" 1002
cp "$tmp/first.crt" "$tmp/server.crt"
check "a certificate that isn't the key's is refused" reload "can't be used"
check "and the one in force stays" is "$(serial)" 1002
use expired
check "an expired one doesn't take the place of a good one" reload "can't be used"
check "by its date" has "$line" 'server.crt expired on 2021-01-01T00:00:00.000Z'
check "and the one in force stays" is "$(serial)" 1002
rm "$tmp/server.key"
check "without a key it is refused" reload "can't be used"
check "and the one in force stays" is "$(serial)" 1002
check "the old connection goes on still" is "$(asks_again)" 200
use large
check "a reload with RSA of 4096 bits" reload 'settings reloaded'
check "is seen" is "$(serial)" 1003
check "and used" is "$(ask /healthz)" 200
# The files are read while requests come.
use first
turn() {
    for i in 1 2 3 4 5 6 7 8 9 10; do
        [ "$(ask /healthz)" = 200 ] || return 1
    done
}
for i in 1 2 3 4 5; do
    kill -HUP "$server"
    check "requests while certificates are read again" turn
    await 'settings reloaded'
done
check "the old connection goes on to the end" is "$(asks_again)" 200
printf 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&7
check "which the client asks for" has "$(cat <&8)" '200 OK'
wait "$stays" 2>/dev/null
exec 7>&- 8<&-
check "it stops" stop
rm "$tmp/say" "$tmp/hear"

# --- clients show certificates, too ---
check "a server that asks for them" start --tls-certificate "$tmp/server.crt" --tls-key "$tmp/server.key" --tls-client-ca "$tmp/ours.crt" --http-idle 8s
check "with one" is "$(ask /healthz --cert "$tmp/friend.crt" --key "$tmp/friend.key")" 200
check "again" is "$(ask /nowhere --cert "$tmp/friend.crt" --key "$tmp/friend.key")" 404
check "without one" fails ask /healthz
check "of another authority" fails ask /healthz --cert "$tmp/stranger.crt" --key "$tmp/stranger.key"
check "in TLS 1.2 without one" fails ask /healthz --tls-max 1.2
check "in TLS 1.2 with one" is "$(ask /healthz --tls-max 1.2 --cert "$tmp/friend.crt" --key "$tmp/friend.key")" 200
check "half a hello, and then nothing: as long as who says nothing" raw '\026\003\001\000\100\001\000\000\074\003\003'
check "nothing at all" raw ''
check "operators need none" is "$(curl -s -o /dev/null -w '%{http_code}' "http://$at/healthz")" 200
check "it stops" stop

# --- what can't be started with ---
# refuses TEXT ARGUMENT...: the server doesn't start, and says this; so does config check
refuses() {
    text=$1
    shift
    timeout 60 "$COPPICE" serve --operator-listen 127.0.0.1:0 --http-listen 127.0.0.1:0 --store-dir "$tmp/store" "$@" >"$tmp/said" 2>&1
    is $? 78 && has "$(cat "$tmp/said")" "$text" || return 1
    "$COPPICE" config check "$@" >"$tmp/said" 2>&1
    is $? 78 && has "$(cat "$tmp/said")" "$text"
}
printf 'nothing' >"$tmp/broken"
check "a broken certificate" refuses broken --tls-certificate "$tmp/broken" --tls-key "$tmp/first.key"
check "a key of another" refuses second.key --tls-certificate "$tmp/first.crt" --tls-key "$tmp/second.key"
check "no such file" refuses missing --tls-certificate "$tmp/missing" --tls-key "$tmp/first.key"
check "a certificate without a key" refuses 'tls.key is missing' --tls-certificate "$tmp/first.crt"
check "broken authorities" refuses broken --tls-certificate "$tmp/first.crt" --tls-key "$tmp/first.key" --tls-client-ca "$tmp/broken"

# --- out of their time: warned about, and refused before a release ---
late_pair() {
    echo "--tls-certificate $tmp/$1.crt --tls-key $tmp/$1.key"
}
for row in "expired:expired on 2021-01-01T00:00:00.000Z" "future:isn't valid before 2098-01-01T00:00:00.000Z"; do
    pair=${row%%:*} says=${row#*:}
    check "config check warns: $pair" has "$("$COPPICE" config check $(late_pair $pair) 2>&1 >/dev/null)" "coppice: warning: certificate $tmp/$pair.crt $says"
    check "and finds the settings good: $pair" is "$("$COPPICE" config check $(late_pair $pair) 2>/dev/null)" 'the settings can be used'
    check "but not for a release: $pair" sh -c '"$0" config check --release --environment stage --keys-rotation-cadence 6h --keys-overlap 9h --keys-revocation-sla 1m $1 2>"$2"; test $? = 78' "$COPPICE" "$(late_pair $pair)" "$tmp/said"
    check "and says why: $pair" has "$(cat "$tmp/said")" "$says"
done
rm -rf "$tmp/store"
check "a server starts with it, in the middle of the night" start $(late_pair expired)
check "and a reload says so again" reload 'expired on 2021-01-01T00:00:00.000Z'
check "it is served" is "$(curl -sk -o /dev/null -w '%{http_code}' "https://$client/healthz")" 200
check "metrics tell since when" sh -c 'curl -sS -H "$1" "http://$2/metrics" | grep -q "^coppice_tls_certificate_expiry_seconds -[0-9]*$"' sh "$bearer" "$at"
check "a reload of other settings isn't held up by it" await 'settings reloaded'
check "it stops" stop
check "the start says so, too" has "$(timeout 60 "$COPPICE" serve --operator-listen 127.0.0.1:0 --http-listen 127.0.0.1:0 --store-dir "$tmp/server.crt" $(late_pair expired) 2>&1)" 'expired on 2021-01-01T00:00:00.000Z'

# --- coppice chaos run speaks no TLS ---
chaos() {
    "$COPPICE" chaos run kill-writer --url "http://$at" --token-file "$tmp/store/operator.token" --yes "$@" >"$tmp/stdout" 2>"$tmp/said"
    is $? 64
}
rm -rf "$tmp/store"
use first
check "a server of chaos" start --tls-certificate "$tmp/server.crt" --tls-key "$tmp/server.key"
check "clients' port by TLS is none for chaos run" chaos
check "which says so, of an address that it can't know" has "$(cat "$tmp/said")" "clients connect by TLS at 127.0.0.1:0, which this command can't; --client-url takes a unix: address"
check "nor is it when it is named" chaos --client-url "http://$client"
check "which says so, too" has "$(cat "$tmp/said")" "the server's clients connect by TLS, which this command can't; --client-url takes a unix: address"
check "it stops" stop

# --- stage and prod ---
for env in stage prod; do
    rm -rf "$tmp/store"
    check "a server in $env" start --environment $env --tls-certificate "$tmp/server.crt" --tls-key "$tmp/server.key"
    check "CTL-152 $env" is "$(ask /healthz)" 200
    check "CTL-152 $env has HSTS" header 'strict-transport-security: max-age=31536000; includeSubDomains'
    check "CTL-152 $env, refusals too" is "$(ask /nowhere)" 404
    check "CTL-152 $env has HSTS" header 'strict-transport-security: max-age=31536000; includeSubDomains'
    check "CTL-154 once" is "$(grep -ci '^strict-transport-security' "$tmp/head")" 1
    check "it stops" stop
done
finish
