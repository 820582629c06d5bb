#!/bin/sh
# The process from outside: signals, the service manager's protocol and sockets, and a log that nobody reads.
cd "$(dirname "$0")/../.." || exit 1
. tests/api/server.sh
manager=
"${CC:-cc}" -O1 -o "$tmp/manager" tests/api/manager.c || exit 1
trap 'kill -9 $server $manager 2>/dev/null; rm -rf "$tmp"' EXIT

# --- SIGUSR1: the tree and the figures ---
check "a server" start --schedulers 2
check "which makes its signing key" ready
kill -USR1 "$server"
check "SIGUSR1 tells the figures" await '"logger":"stats","msg":"figures of the runtime"'
check "all of them" has "$line" '"schedulers":3,"actors":'
check "SIGUSR1 draws the tree" await '"logger":"tree","msg":"root '
check "down to its last row" await '"logger":"tree","msg":"└─ notify'

# --- secrets ---
secret=hunter2hunter2
curl -sS -m 120 -o /dev/null -H "Authorization: Bearer $secret" "http://$at/stats?token=$secret"
key=cop_8uTzhunter2hunter2hunter2hunter2hunter2hunter2hunter2 jwt=eyJhbhunter2hunter2.eyJzdhunter2hunter2.AAhunter2hunter2
curl -sS -m 120 -o /dev/null -H "X-Request-Id: a-$key" "http://$client/v1/jobs/$key:x"
curl -sS -m 120 -o /dev/null -H "X-Request-Id: $jwt" "http://$client/jobs/$jwt/cop_short"
kill -USR1 "$server"
secrets() {
    while read -r line <&9; do
        case $line in
        *"$secret"*)
            echo "$line"
            return 1
            ;;
        *'"msg":"└─ notify'*) return 0 ;;
        esac
    done
}
check "no secret of a request is in the log" secrets
curl -sS -m 120 -o /dev/null -H "X-Request-Id: a-$key" "http://$client/v1/jobs/$key:x"
check "a key is masked wherever it stands" await '"path":"/v1/jobs/cop_***:x"'
check "also in the request's id" has "$line" '"request_id":"a-cop_***"'
check "the line says who asked" has "$line" '"peer":"127.0.0.1"'
curl -sS -m 120 -o /dev/null -H "X-Request-Id: $jwt" "http://$client/jobs/$jwt/cop_short"
check "so is a token, and no word that is like a key" await '"path":"/jobs/eyJ***/cop_short"'
check "also in the request's id" has "$line" '"request_id":"eyJ***"'
check "SIGTERM ends it with 0" stop

# --- libraries that a start doesn't need: its store has a signing key by now ---
loaded() { # loaded LIBRARY: whether it is in the server's memory
    grep -q "/$1\." "/proc/$server/maps"
}
not_loaded() {
    ! loaded "$1"
}
check "a server that nobody shows a token to" start
check "an operator's token is known" is "$(curl -s -m 120 -o /dev/null -w '%{http_code}' -H "$bearer" "http://$at/stats")" 200
check "a contract is served" is "$(curl -s -m 120 -o /dev/null -w '%{http_code}' "http://$client/openapi/control.json")" 200
keys="http://$client/v1/clients/$(member client_id "$(curl -sS -m 120 -X POST "http://$client/v1/clients")")/keys"
key=$(member api_key "$(curl -sS -m 120 -X POST "$keys")")
check "an API key is known" is "$(curl -s -m 120 -o /dev/null -w '%{http_code}' -X POST -H "Authorization: Bearer $key" "$keys")" 201
case $key in *x) other=${key%?}y ;; *) other=${key%?}x ;; esac # the last character is a check of the others
check "and another one isn't" is "$(curl -s -m 120 -o /dev/null -w '%{http_code}' -X POST -H "Authorization: Bearer $other" "$keys")" 401
for library in libcrypto libssl libcurl; do check "all that without $library" not_loaded $library; done
check "CTL-103 the key set is whole" has "$(curl -sS -m 120 "http://$client/.well-known/jwks.json")" '"crv":"P-256"'
check "with libcrypto" loaded libcrypto
token=$("$COPPICE" token issue --subject u1 --role owner --projects '*' --url "http://$at" --token-file "$tmp/store/operator.token" </dev/null)
check "a token of a key that an earlier server made" is "$(curl -s -m 120 -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $token" "http://$client/dlq/items")" 200
check "and ends" stop
check "the next server" start
check "which has read its keys" ready
check "knows the token" is "$(curl -s -m 120 -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $token" "http://$client/dlq/items")" 200
check "by libcrypto" loaded libcrypto
check "without TLS" not_loaded libssl
check "and ends, too" stop

# --- and where they can't be loaded ---
mkdir "$tmp/broken"
: >"$tmp/broken/libcrypto.so.3"
start_without() {
    export LD_LIBRARY_PATH="$tmp/broken"
    start "$@"
    set -- $?
    unset LD_LIBRARY_PATH
    return "$1"
}
check "a server without libcrypto" start_without
check "is alive" is "$(curl -s -m 120 -o /dev/null -w '%{http_code}' "http://$client/livez")" 200
keys="http://$client/v1/clients/$(member client_id "$(curl -sS -m 120 -X POST "http://$client/v1/clients")")/keys"
key=$(member api_key "$(curl -sS -m 120 -X POST "$keys")")
check "serves clients with keys" is "$(curl -s -m 120 -o /dev/null -w '%{http_code}' -X POST -H "Authorization: Bearer $key" "$keys")" 201
check "can't say whether a token is good" is "$(curl -s -m 120 -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $token" "http://$client/dlq/items")" 503
check "issues none" sh -c "! '$COPPICE' token issue --subject u1 --role owner --projects '*' --url 'http://$at' --token-file '$tmp/store/operator.token'"
check "ends" stop
check "outside dev" start_without --env stage
check "it isn't ready" is "$(curl -s -m 120 -o /dev/null -w '%{http_code}' "http://$client/readyz")" 503
check "ends as well" stop

# --- a mask of signals is inherited: one that blocks them all ---
if env --block-signal=TERM true 2>/dev/null; then
    printf '#!/bin/sh\nexec env --block-signal "%s" "$@"\n' "$COPPICE" >"$tmp/blocked"
    chmod +x "$tmp/blocked"
    plain=$COPPICE COPPICE=$tmp/blocked
    check "a server whose starter has blocked its signals" start
    check "which makes its signing key" ready
    kill -USR1 "$server"
    check "SIGUSR1 is heard" await '"logger":"stats","msg":"figures of the runtime"'
    # crashed HOW: what was answered. 504: on a machine that stood still the loop had not had its budget within the time of the answer;
    # then its budget ends it all the same, and who comes after it is told.
    loops=0
    crashed() {
        for _ in 1 2 3 4 5 6 7 8 9 10; do
            was=$(get /stats/actors/deduper | sed 's/^{"pid":"\([^"]*\)".*/\1/')
            record=$(curl -sS -m 120 -H "$bearer" -H 'Content-Type: application/json' -d "{\"reason\":\"a test\",\"how\":\"$1\"}" \
                "http://$at/chaos/actors/deduper:crash")
            case $record in *'has not ended within'* | *'"end_reason":"'*) [ "$1" != loop ] || loops=$((loops + 1)) ;; esac
            case $record in *'"code":"OPS_504_TIMEOUT"'*) ;; *) break ;; esac
            until [ "$(status GET /stats/actors/deduper)" = 200 ] && lacks "$(cat "$tmp/body")" "\"pid\":\"$was\""; do
                case $record in *'has not ended within'*) ;; *) break ;; esac
            done
        done
    }
    for how in trap loop; do # of which neither is where sanitizers are
        [ -z "${MODE:-}" ] || break
        crashed $how
        check "a $how is contained" has "$record" '"outcome":"recovered"'
    done
    check "nor is a loop more than an overrun" sh -c '[ -n "$1" ] || [ "$2" = "$3" ]' sh "${MODE:-}" \
        "$(get /metrics | awk '/^coppice_runtime_overruns_total/ { print $2 }')" $loops
    check "SIGTERM ends it with 0" stop
    check "a guarded one" start --guardian
    check "SIGTERM ends both with 0" stop
    COPPICE=$plain
else
    echo "SKIP    what needs env --block-signal"
fi

# --- whoever hears of a stop, or of a resumption, can't be suspended ---
check "a server whose actors are suspended" start --schedulers 2
for needed in signals front.operator front.operators; do
    check "$needed is not" has "$(chaos suspend $needed)" '"code":"OPS_409_CONFLICT"'
done
check "that is said" has "$(chaos suspend signals)" "'signals' can't be suspended: SIGTERM and SIGINT would not be heard"
for other in front process; do
    check "$other is" has "$(chaos suspend $other)" '"outcome":"suspended"'
done
check "and can be resumed" has "$(chaos resume front)" '"outcome":"resumed"'
check "SIGTERM ends it with 0" stop

# --- a drain ---
check "a server that waits for its balancer" start --http-shutdown-delay 1h
check "gets ready" ready
check "is ready" is "$(curl -s -m 120 -o /dev/null -w '%{http_code}' "http://$client/readyz")" 200
kill -TERM "$server"
check "SIGTERM is heard" await '"logger":"signals","msg":"stopping"'
check "readiness has gone" is "$(curl -s -m 120 -o "$tmp/body" -w '%{http_code}' "http://$client/readyz")" 503
check "health has not" is "$(curl -s -m 120 -o /dev/null -w '%{http_code}' "http://$client/livez")" 200
kill -TERM "$server"
check "the second one ends it at once" ends_with 0

# --- a request that is on its way when the end is asked for ---
mkfifo "$tmp/slow" "$tmp/heard"
check "a server with a slow client" start
curl -sv -m 60 --http1.1 -o "$tmp/answer" -X POST -H 'Expect: 100-continue' -H 'Content-Type: application/json' -T - "http://$client/v1/clients" \
    <"$tmp/slow" 2>"$tmp/heard" &
slow=$!
exec 7>"$tmp/slow"
exec 8<"$tmp/heard"
while read -r said <&8; do
    case $said in *"100 Continue"*) break ;; esac
done
kill -TERM "$server"
check "SIGTERM is heard meanwhile" await '"logger":"signals","msg":"stopping"'
printf '{}' >&7
exec 7>&-
while read -r said <&8; do :; done
check "the slow client is answered" wait "$slow"
check "as ever" has "$(cat "$tmp/answer")" '"client_id":"'
check "and the server ends with 0" ends_with 0

# --- the guardian passes signals on ---
check "a guarded server" start --guardian
kill -HUP "$server"
check "SIGHUP reaches it" await '"logger":"reload","msg":"settings reloaded"'
kill -USR1 "$server"
check "so does SIGUSR1" await '"logger":"stats","msg":"figures of the runtime"'
check "and SIGTERM" stop

# --- AMB-78: a clock that is ahead, in dev only ---
check "a server of tomorrow" start --clock-offset 30d
today=$(date +%s)
ahead() { # ahead DAYS: of this machine's clock, by what the server says
    now=$(curl -sS -m 120 "http://$client/livez")
    then=$(date -d "$(member timestamp "$now")" +%s)
    test "$((then - today))" -ge $(($1 * 86400)) && test "$((then - today))" -lt $(($1 * 86400 + 3600))
}
check "AMB-78 its time is ahead" ahead 30
# across COMMAND...: two requests of one connection, and the command between them
across() {
    timeout 60 bash -c 'exec 5<>"/dev/tcp/127.0.0.1/${0##*:}"
        printf "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n" >&5
        read -r first <&5 && "$@" && printf "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" >&5 &&
            grep -q "HTTP/1.1 200 OK" <&5' "$client" "$@"
}
moved() { curl -sS -m 120 -H "$bearer" -H 'Content-Type: application/json' -d "$1" "http://$at/clock:advance"; }
check "AMB-78 the operator's document has it" has "$("$COPPICE" contract show ops)" '/clock:advance:'
check "AMB-78 and what it takes: a time" has "$(moved '{}')" '"field":"by"'
check "AMB-78 one that is a duration" has "$(moved '{"by":"soon"}')" 'by must be a duration, such as 24h'
check "AMB-78 and nothing else" has "$(moved '{"by":"1s","to":"x"}')" '"field":"to"'
check "AMB-78 a jump of the clock leaves idle connections open" across "$COPPICE" clock advance 2d --operator-listen "$at" --store-dir "$tmp/store"
cp "$tmp/out" "$tmp/stdout"
check "AMB-78 it moves" has "$(cat "$tmp/stdout")" "ahead seconds  2764800"
check "AMB-78 at once" ahead 32
check "and ends" stop
check "a server that is meant" start --env stage
"$COPPICE" clock advance 2d --operator-listen "$at" --store-dir "$tmp/store" >"$tmp/stdout" 2>&1
check "AMB-78 outside dev time is what it is" has "$(cat "$tmp/stdout")" "(OPS_403"
check "and ends as well" stop

# --- words for people; priorities for the journal ---
# begins TEXT ARGUMENT...: a server whose first line of interest holds the text
begins() {
    text=$1
    shift
    exec 9>&-
    rm -f "$tmp/log"
    mkfifo "$tmp/log"
    JOURNAL_STREAM=$(stat -c '%d:%i' "$tmp/log") "$COPPICE" serve --operator-listen 127.0.0.1:0 \
        --http-listen 127.0.0.1:0 --store-dir "$tmp/store" "$@" 2>"$tmp/log" &
    server=$!
    exec 9<"$tmp/log"
    await "$text"
}
check "words and priorities" begins 'Z INFO  boot: started actor=0x' --log-format text
check "the line begins with its priority" is "$(printf '%.3s' "$line")" '<6>'
check "SIGINT ends it with 0" sh -c 'kill -INT "$1"' sh "$server"
check "as SIGTERM does" ends_with 0

# --- D10: a log that nobody reads stops nobody ---
check "a server with a log that nobody reads" start --log-level debug
answers=$(curl -sS -m 60 -o /dev/null -w '%{http_code}\n' "http://$at/healthz?[1-2000]" | sort | uniq -c | tr -s ' ')
check "D10 every request is answered" is "$answers" " 2000 200"
check "D10 the log begins where it was" await '"path":"/healthz"'
dropped() { # what is read makes room for what comes next, which says how much is missing
    (
        while curl -sS -m 5 -o /dev/null "http://$at/healthz" 2>/dev/null; do :; done
    ) &
    asking=$!
    await 'lines were dropped because standard error was full","count":'
    found=$?
    kill $asking
    wait $asking 2>/dev/null
    return $found
}
check "D10 it says how many lines are missing" dropped
kill -TERM "$server"
check "D10 and the server ends as ever" sh -c 'cat <&9 >/dev/null' &
reading=$!
check "with 0" ends_with 0
wait $reading

# --- the service manager ---
exec 9>&-
mkfifo "$tmp/told"
"$tmp/manager" 400000 "$COPPICE" serve --operator-listen 127.0.0.1:0 --http-listen 127.0.0.1:1 \
    --store-dir "$tmp/store" >"$tmp/told" 2>"$tmp/manager.log" &
manager=$!
exec 9<"$tmp/told"
await 'port ' && port=${line#port }
await 'pid ' && server=${line#pid }
told() { # told TEXT: the next notification that isn't the watchdog's, nor of a store that is slow to open
    while read -r line <&9; do
        case $line in
        WATCHDOG=1 | EXTEND_TIMEOUT_USEC=*) ;;
        *"$1"*) return 0 ;;
        *)
            echo "'$line' instead of '$1'"
            return 1
            ;;
        esac
    done
}
check "READY=1" told 'READY=1|STATUS=serving'
check "the watchdog is fed" await 'WATCHDOG=1'
check "again and again" await 'WATCHDOG=1'
check "its socket is the manager's" is "$(curl -s -m 120 -o /dev/null -w '%{http_code}' "http://127.0.0.1:$port/livez")" 200
kill -HUP "$server"
check "RELOADING=1 has its time" told 'RELOADING=1|MONOTONIC_USEC='
check "READY=1 ends it" told 'READY=1|STATUS=serving'
kill -TERM "$server"
check "STOPPING=1" told 'STOPPING=1'
check "and it ends with 0" told 'ended 0'

# --- the operators' socket of the service manager ---
managed() { # managed VARIABLE=VALUE... -- ARGUMENT...: until it says READY, or ends
    rm -f "$tmp/told"
    mkfifo "$tmp/told"
    for word in "$@"; do
        shift
        [ "$word" != -- ] || break
        export "${word?}"
    done
    exec 9>&-
    "$tmp/manager" 60000000 "$COPPICE" serve --http-listen 127.0.0.1:1 "$@" >"$tmp/told" 2>"$tmp/manager.log" &
    manager=$!
    exec 9<"$tmp/told"
    unset MANAGER_OPERATOR MANAGER_CLIENT MANAGER_STARTS
    await 'port ' && port=${line#port } && await 'pid ' && server=${line#pid } && await "$until"
}
operators="--operator-listen unix:$tmp/managed --store-dir $tmp/store"
until=READY=1
check "an operators' socket is the manager's" managed MANAGER_OPERATOR="$tmp/managed" -- $operators
check "its mode is the credential" "$COPPICE" tree $operators
check "for changes, too" "$COPPICE" kill deduper --yes --reason 'a test' $operators
check "by any name of a host" is "$(curl -s -m 120 -o /dev/null -w '%{http_code}' -H 'Host: x' --unix-socket "$tmp/managed" http://localhost/stats)" 200
kill -TERM "$server"
check "and it ends with 0" await 'ended 0'
check "its file is left to the manager" test -S "$tmp/managed"
# Its sockets are the next server's, who must find them as they were.
alive() { # alive: at both
    is "$(curl -s -m 120 -o /dev/null -w '%{http_code}' "http://127.0.0.1:$port/livez")" 200 &&
        is "$(curl -s -m 120 -o /dev/null -w '%{http_code}' --unix-socket "$tmp/managed" http://localhost/livez)" 200
}
rm "$tmp/managed"
check "a server with both sockets of the manager's" managed MANAGER_OPERATOR="$tmp/managed" MANAGER_STARTS=2 -- $operators
check "answers at both" alive
kill -TERM "$server"
check "it ends with 0" await 'ended 0'
next() { await 'pid ' && server=${line#pid } && await READY=1; }
check "the next one has the same sockets" next
check "and answers at both, too" alive
kill -TERM "$server"
check "it ends as well" await 'ended 0'
service=$(sed -n 's/.*COPPICE_OPERATOR_LISTEN=unix:\([^ ]*\).*/\1/p' packaging/coppice.service)
check "L10 the shipped unit lets nothing be swapped out" grep -qx MemorySwapMax=0 packaging/coppice.service
check "the shipped units name one path" is "$(sed -n 's/^ListenStream=//p' packaging/coppice-operator.socket)" "$service"
until=ended
check "CTL-068 a clients' socket that others reach" managed MANAGER_CLIENT=0.0.0.0 -- --env prod --operator-listen 127.0.0.1:0 --store-dir "$tmp/none"
check "CTL-068 without TLS is refused" is "$line" 'ended 78'
check "CTL-068 with a sentence" has "$(cat "$tmp/manager.log")" "which other machines reach, without TLS"
check "CTL-068 and no store is made" test ! -e "$tmp/none"
finish
