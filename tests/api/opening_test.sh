#!/bin/sh
# CTL-535: the probes answer before the store is open. Its opening is held up by who has the lock of its readers' table.
cd "$(dirname "$0")/../.." || exit 1
. tests/api/server.sh
"${CC:-cc}" -O1 -o "$tmp/holder" tests/api/holder.c || exit 1

# hold: nobody can open the store until let_go
hold() {
    rm -f "$tmp/hold" "$tmp/held"
    mkfifo "$tmp/hold" "$tmp/held"
    "$tmp/holder" "$tmp/store/lock.mdb" <"$tmp/hold" >"$tmp/held" &
    exec 7>"$tmp/hold"
    read -r held <"$tmp/held" && is "$held" held
}
let_go() {
    exec 7>&-
}
# opens ARGUMENT...: a server that says it is still opening its store
opens() {
    exec 9>&-
    rm -f "$tmp/log"
    mkfifo "$tmp/log"
    "$COPPICE" serve --operator-listen 127.0.0.1:0 --http-listen 127.0.0.1:0 --http-check-answers --store-dir "$tmp/store" "$@" \
        2>"$tmp/log" 7>&- &
    server=$!
    exec 9<"$tmp/log"
    await 'the store is still being opened' && at=$(member operator "$line") && client=$(member client "$line")
}
# asks [ARGUMENT...] URL: sets code, type, body and head
asks() {
    code=$(curl -sS -m 120 -o "$tmp/body" -D "$tmp/head" -w '%{http_code}' "$@")
    body=$(cat "$tmp/body")
    head=$(tr -d '\r' <"$tmp/head" | tr '[:upper:]' '[:lower:]')
}
told() { # told CODE: and to come back
    is "$code" "$1" && has "$head" 'retry-after: 1' && has "$head" 'connection: close'
}

check "a server makes a store" start
check "which has a client" is "$(curl -s -m 120 -o "$tmp/body" -w '%{http_code}' -X POST "http://$client/v1/clients")" 201
who=$(member client_id "$(cat "$tmp/body")")
check "it ends" stop

# --- CTL-535: what answers while the store is being opened ---
check "somebody holds the store up" hold
check "CTL-535 a server that can't open it yet" opens --schedulers 2
for port in "$at" "$client"; do
    asks "http://$port/startupz"
    check "CTL-534 CTL-535 /startupz is reachable, and 503" told 503
    check "AMB-46 it is starting" has "$body" '{"status":"starting","timestamp":"'
    asks "http://$port/readyz"
    check "CTL-530 /readyz is 503" told 503
    check "CTL-532 with its checks" has "$body" '{"status":"not_ready","checks":{"database":"down","redis":"down","event_bus":"down"},"timestamp":"'
    for path in /livez /healthz; do
        asks "http://$port$path"
        check "CTL-525 $path is 200" is "$code" 200
        check "CTL-528 it is ok" has "$body" '{"status":"ok","timestamp":"'
    done
    asks -I "http://$port/livez"
    check "AMB-46 HEAD as well" is "$code" 200
    asks "http://$port/nothing/here"
    check "what isn't there isn't there" is "$code" 404
done
asks "http://$at/readyz?verbose"
check "our own checks" has "$body" '"actors":"down","adapters":"down","start":"down","workers":"ok","drain":"ok"'
asks "http://$at/stats"
check "the operator's surface is 503, whoever asks" told 503
check "in its shape" has "$body" '"code":"OPS_503_UNAVAILABLE"'
asks -X POST "http://$client/v1/clients"
check "the jobs surface is 503" told 503
check "in its shape" has "$body" '"code":"RFA_STORAGE_UNAVAILABLE"'
check "which is a problem" has "$head" 'content-type: application/problem+json'
asks -H 'Authorization: Bearer a.b.c' "http://$client/dlq/items"
check "the control surface is 503" told 503
check "in its shape" has "$body" 'INFRA_503_DEPENDENCY_DOWN'
head -c 900000 /dev/zero | tr '\0' ' ' >"$tmp/large"
asks -X POST -H 'Content-Type: application/json' --data-binary @"$tmp/large" "http://$client/v1/jobs"
check "a body isn't waited for" is "$code" 503
let_go
check "the store is open" await '"msg":"started"'
check "the same sockets" is "$(member operator "$line") $(member client "$line")" "$at $client"
until [ "$(curl -s -m 120 -o /dev/null -w '%{http_code}' "http://$at/startupz")" = 200 ]; do kill -0 "$server" || break; done
asks "http://$client/startupz"
check "CTL-533 CTL-534 then /startupz is 200" is "$code" 200
check "it is started" has "$body" '{"status":"started","timestamp":"'
asks -X POST "http://$client/v1/clients/$who/keys"
check "and the store is the one that was opened" is "$code" 201
check "it ends" stop

# --- the service manager hears that it takes long ---
"${CC:-cc}" -O1 -o "$tmp/manager" tests/api/manager.c || exit 1
managed() {
    exec 9>&-
    rm -f "$tmp/told"
    mkfifo "$tmp/told"
    "$tmp/manager" 60000000 "$COPPICE" serve --operator-listen 127.0.0.1:0 --http-listen 127.0.0.1:1 --store-dir "$tmp/store" \
        >"$tmp/told" 2>"$tmp/manager.log" 7>&- &
    manager=$!
    exec 9<"$tmp/told"
    await 'pid ' && server=${line#pid } && read -r line <&9
}
check "the store is held up once more" hold
check "a service manager starts the server" managed
check "it asks for more time" is "$line" 'EXTEND_TIMEOUT_USEC=20000000|STATUS=opening the store, for 0 s|WATCHDOG=1'
let_go
check "the store is open" await 'READY=1|STATUS=serving'
kill -TERM "$server"
check "it ends" await 'ended 0'
wait "$manager"

# --- an end that is asked for meanwhile ---
check "the store is held up again" hold
check "a server waits for it" opens
kill -TERM "$server"
check "SIGTERM doesn't" ends_with 0
check "it says so" await 'stopped before the store was open'
check "the guardian's, too" opens --guardian
kill -TERM "$server"
check "ends at once" ends_with 0

# --- a wrong configuration answers nobody ---
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$tmp/key.pem" -out "$tmp/cert.pem" -days 2 -subj /CN=localhost \
    >/dev/null 2>&1
# refuses STATUS TEXT ARGUMENT...
refuses() {
    wanted=$1 text=$2
    shift 2
    "$COPPICE" serve --operator-listen 127.0.0.1:0 --http-listen 127.0.0.1:0 --store-dir "$tmp/store" "$@" 2>"$tmp/said" 7>&-
    is $? "$wanted" && has "$(cat "$tmp/said")" "$text" && lacks "$(cat "$tmp/said")" 'probes answer'
}
check "a certificate that isn't one" refuses 78 '"msg":"failure.boot_config"' --tls-certificate "$tmp/key.pem" --tls-key "$tmp/key.pem"
echo short >"$tmp/master.key"
chmod 600 "$tmp/master.key"
check "a master key that isn't one" refuses 78 'and a master key has 32' --auth-master-key "$tmp/master.key"
check "TLS" opens --tls-certificate "$tmp/cert.pem" --tls-key "$tmp/key.pem"
asks -k "https://$client/startupz"
check "CTL-535 by TLS as well" told 503
check "a port that is taken" refuses 69 "$client" --http-listen "$client"
let_go
check "the store is open" await '"msg":"started"'
check "it ends" stop

# --- a reload that is asked for meanwhile ---
# recorded TEXT: as await, and keeps what it reads in $tmp/seen
recorded() {
    : >"$tmp/seen"
    while read -r line <&9; do
        printf '%s\n' "$line" >>"$tmp/seen"
        case $line in *"$1"*) return 0 ;; esac
    done
    return 1
}
echo '{"limits.requests_per_minute": 111}' >"$tmp/coppice.json"
check "somebody holds the store" hold
check "a server waits, with a file" opens --config "$tmp/coppice.json"
echo '{"limits.requests_per_minute": 222}' >"$tmp/coppice.json"
kill -HUP "$server"
asks "http://$at/livez"
check "SIGHUP ends nobody" is "$code" 200
let_go
check "the store is open" recorded '"msg":"started"'
check "it ends" stop
cat <&9 >>"$tmp/seen"
check "the reload was done before" has "$(grep '"logger":"reload"' "$tmp/seen")" '"msg":"settings reloaded"'
check "of what had changed" has "$(cat "$tmp/seen")" '"applied":"limits.requests_per_minute"'

# --- a store that can't be opened ---
check "the store is held up" hold
check "a server waits" opens
dd if=/dev/zero of="$tmp/store/data.mdb" bs=4096 count=2 conv=notrunc 2>/dev/null
let_go
check "what is wrong is said" await 'the store could not be opened'
check "and for people, in one sentence" await "coppice: '$tmp/store' holds a damaged store"
check "with its status" ends_with 65

finish
