#!/bin/sh
# The guardian, from outside: what it starts again, what it doesn't, and how it ends.
cd "$(dirname "$0")/../.." || exit 1
. tests/api/server.sh

child() { member pid "$line"; }

check "a guarded server" start --guardian --guardian-intensity 2/3600s
one=$(child)
check "the guardian is another process" test "$one" != "$server"
check "it serves" has "$(get /healthz)" '{"status":"ok"'
kill -9 "$one"
check "its end is told" await '"msg":"the server ended and is started again"'
check "it is told which" is "$(member server "$line")" "$one"
check "it is told why" has "$line" '"signal":"Killed"'
check "it is started again" await '"msg":"started"'
two=$(child)
check "by a new process" test "$two" != "$one"
check "at the same address" is "$(member operator "$line")" "$at"
check "it serves again" has "$(get /healthz)" '{"status":"ok"'

# The root's own exhaustion ends the server with 70, which is abnormal like any other.
kill_actor root >/dev/null 2>&1 # which may be answered, or not any more
check "its status is told" await '"msg":"the server ended and is started again"'
check "TOP-068 it is 70" is "$(member status "$line")" 70
check "it is started a second time" await '"msg":"started"'
three=$(child)
kill -SEGV "$three"
check "the third end is one too many" await '"msg":"restart budget spent"'
check "what was spent" is "$(member restarts "$line")/$(member window_s "$line")" 2/3600
check "then the guardian ends with 70" ends_with 70

check "a guarded server to be stopped" start --guardian
check "SIGTERM to the guardian ends both with 0" stop
check "and nobody is started again" lacks "$(cat <&9)" started

check "a guarded server whose guardian is killed" start --guardian
guarded=$(child)
kill -9 "$server"
wait "$server" 2>/dev/null
check "the server is told to stop" await '"msg":"ended","status":0'
# The kernel closes a process's files before it takes the process away: between the two lie a few looks.
check "and is gone when its log ends" sh -c '
    cat <&9 >/dev/null
    for look in $(seq 10000); do
        kill -0 "$1" 2>/dev/null || exit 0
        ! grep -q "State:.*Z" "/proc/$1/status" 2>/dev/null || exit 0
    done
    exit 1' sh "$guarded"

# A server that is killed while it stops has shut no listening socket of the guardian's: the next one has them.
# A request that isn't whole holds the stop up; a connection that is idle ends behind the listener.
kill_while_it_stops() {
    bearer=$bearer timeout 120 bash -c 'port=${1##*:} cr=$(printf "\r")
        exec 4<>"/dev/tcp/127.0.0.1/$port"
        printf "POST /log:level HTTP/1.1\r\nHost: localhost\r\n%s\r\nContent-Type: application/json\r\nContent-Length: 99\r\nExpect: 100-continue\r\n\r\n" "$bearer" >&4
        read -r said <&4 && [ "$said" = "HTTP/1.1 100 Continue$cr" ] || exit 1
        exec 5<>"/dev/tcp/127.0.0.1/$port"
        printf "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n" >&5
        read -r said <&5 && [ "$said" = "HTTP/1.1 200 OK$cr" ] || exit 1
        kill -TERM "$2"
        cat <&5 >/dev/null
        kill -9 "$2"' bash "$at" "$1"
}
check "a guarded server that is to be stopped" start --guardian --http-drain 1h --http-body-grace 1h --http-request-timeout 1h
check "and is killed meanwhile" kill_while_it_stops "$(child)"
check "is started again" await '"msg":"started"'
check "operators are answered at the same address" has "$(get /healthz)" '{"status":"ok"'
check "so are clients" is "$(curl -s -m 120 -o /dev/null -w '%{http_code}' "http://$client/livez")" 200
check "until SIGTERM ends it" stop

# A server that is started again has the settings of now, as far as they aren't the guardian's.
file=$tmp/coppice.json
setting() { curl -sS -m 120 -H "$bearer" "http://$at/config"; }
again() { # again TEXT: the server is killed; it says this on its way up
    kill -9 "$server_now"
    await '"msg":"the server ended and is started again"' && await "$1" && { [ "$1" = '"msg":"started"' ] || await '"msg":"started"'; } &&
        server_now=$(child)
}
echo '{"limits.requests_per_minute": 111, "schedulers": 1}' >"$file"
check "a guarded server with a file" start --guardian --guardian-intensity 100/3600s --config "$file"
server_now=$(child)
echo '{"limits.requests_per_minute": 222, "schedulers": 2, "store.step": "2MiB"}' >"$file"
kill -HUP "$server"
check "a reload applies what it can" await '"applied":"limits.requests_per_minute"'
check "killed, it is started" again '"msg":"started"'
check "with what the reload has applied" has "$(setting)" '{"key":"limits.requests_per_minute","value":222,"source":"file"'
check "and what needed a start" has "$(setting)" '{"key":"store.step","value":"2MiB","source":"file"'
check "as many schedulers as sockets are for" has "$(setting)" '{"key":"schedulers","value":1,"source":"file"'
check "which it runs with, and the writer's" has "$line" '"schedulers":2,'
echo '{"limits.requests_per_minute": 333, "schedulerz": 2}' >"$file"
check "with a mistake in the file" again "the settings can't be used; those of the guardian's start count"
check "it is started all the same" has "$(setting)" '{"key":"limits.requests_per_minute","value":111,"source":"file"'
echo '{"limits.requests_per_minute": 444}' >"$file"
check "without it" again '"msg":"started"'
check "the file counts" has "$(setting)" '{"key":"limits.requests_per_minute","value":444,"source":"file"'
check "SIGTERM ends both with 0" stop

# A certificate under another name: the one that the guardian was started with may be gone.
certificate() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$tmp/$1.key" -out "$tmp/$1.crt" -days 2 -subj "/CN=$1" \
        >/dev/null 2>&1
    echo "{\"tls\": {\"certificate\": \"$tmp/$1.crt\", \"key\": \"$tmp/$1.key\"}}" >"$file"
}
shown() { # shown NAME: the certificate that clients are shown is of this one
    curl -sS -v -k -m 120 -o /dev/null "https://$client/livez" 2>"$tmp/verbose"
    has "$(cat "$tmp/verbose")" "CN=$1"
}
certificate old
check "a guarded server with a certificate" start --guardian --guardian-intensity 3/3600s --config "$file"
server_now=$(child)
check "which it shows" shown old
certificate new
kill -HUP "$server"
check "a reload brings another one" await '"msg":"settings reloaded"'
rm "$tmp/old.crt" "$tmp/old.key"
check "killed, it is started without the first one" again '"msg":"started"'
check "and shows the other one" shown new
rm "$tmp/new.crt"
kill -9 "$server_now"
check "without any" await "the settings can't be used; those of the guardian's start count"
check "it can't be started" await '"status":78'
check "and is tried again" has "$line" '"msg":"the server ended and is started again"'
check "as often as it may" await '"msg":"restart budget spent"'
check "then the guardian ends with 70" ends_with 70

# There may be no room for a process just when the server has ended: it is tried again, and is stopped meanwhile. (Sanitizers want to be
# loaded first.)
if [ -z "${MODE:-}" ]; then
    "${CC:-cc}" -O1 -shared -fPIC -o "$tmp/forks.so" tests/api/forks.c -ldl || exit 1
    start_where_forks_fail() {
        export LD_PRELOAD="$tmp/forks.so" FORKS_FAIL="$1"
        shift
        start --guardian "$@"
        set -- $?
        unset LD_PRELOAD FORKS_FAIL
        return "$1"
    }
    check "a guarded server of which no other can be made at first" start_where_forks_fail 1 --guardian-intensity 2/3600s
    kill -9 "$(child)"
    check "that there is no room is told" await '"msg":"the server could not be started"'
    check "it is tried again" await '"msg":"started"'
    check "it serves again" has "$(get /healthz)" '{"status":"ok"'
    kill -9 "$(child)"
    check "each try counts" await '"msg":"restart budget spent"'
    check "then the guardian ends with 70, as ever" ends_with 70
    check "one of which no other can be made at all" start_where_forks_fail 1000 --guardian-intensity 1000/3600s
    kill -9 "$(child)"
    check "that there is no room is told again" await '"msg":"the server could not be started"'
    check "SIGTERM ends the guardian with 0 meanwhile" stop
    check "one of which no other can be made for a while" start_where_forks_fail 2 --guardian-intensity 10/3600s
    kill -9 "$(child)"
    check "that there is no room is told once more" await '"msg":"the server could not be started"'
    kill -HUP "$server"
    # Whatever there is to read until the next server has started.
    started_once() {
        : >"$tmp/seen"
        while read -r line <&9; do
            echo "$line" >>"$tmp/seen"
            case $line in
            *'"msg":"started"'*) break ;;
            esac
        done
        lacks "$(cat "$tmp/seen")" 'is started again'
    }
    heard() {
        grep -q '"logger":"reload"' "$tmp/seen" && return
        ! grep -q 'is started again' "$tmp/seen" && await '"logger":"reload"'
    }
    check "a SIGHUP of meanwhile ends no server" started_once
    check "it reaches the next one" heard
    check "which serves" has "$(get /healthz)" '{"status":"ok"'
    check "until SIGTERM" stop
    check "no other was started" lacks "$(cat <&9)" '"msg":"started"'
fi

# What can't succeed isn't tried again: address space for a runtime is missing. (Sanitizers can't start at all then.)
[ -n "${MODE:-}" ] || check "a server without room" sh -c '
    ulimit -v 1000000
    "$1" serve --guardian --store-dir "$2/room" --store-map 8MiB --store-step 1MiB --operator-listen 127.0.0.1:0 --http-listen 127.0.0.1:0 2>"$2/err"
    [ $? = 71 ] && ! grep -q "started again" "$2/err"' sh "$COPPICE" "$tmp"
[ -n "${MODE:-}" ] || check "says so in a sentence, by the setting's name" sh -c '
    tail -1 "$1/err" | cut -c1-200 && tail -1 "$1/err" | grep -q "^coppice: memory or descriptors .*; lower actors\.max, or "' sh "$tmp"
finish
