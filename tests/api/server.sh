# For the scripts beside it, which source it: starts the real binary and asks it things. Nothing waits by the clock: what a
# script waits for is a line that the server writes, or its end. COPPICE is the program, made by `make`.
# The times of curl, 120 s, only keep a test from hanging: a machine may stand still for half a minute.
#
# After `. ./server.sh`: check NAME COMMAND... counts a case; finish prints the counts.
set -u
[ -n "${COPPICE:-}" ] || {
    echo "COPPICE must name the program to test"
    exit 1
}
case $COPPICE in
/*) ;;
*) COPPICE=$PWD/$COPPICE ;;
esac
unset COPPICE_SCHEDULERS COPPICE_HTTP_LISTEN COPPICE_OPERATOR_LISTEN COPPICE_GUARDIAN COPPICE_LOG_LEVEL
tmp=$(mktemp -d)
# What a sanitizer has found would be lost in the server's log.
[ -z "${ASAN_OPTIONS:-}" ] || export ASAN_OPTIONS="$ASAN_OPTIONS:log_path=$tmp/sanitizer"
[ -z "${TSAN_OPTIONS:-}" ] || export TSAN_OPTIONS="$TSAN_OPTIONS:log_path=$tmp/sanitizer"
passed=0
failed=0
server=
trap 'kill -9 $server 2>/dev/null; rm -rf "$tmp"' EXIT

check() {
    name=$1
    shift
    if "$@" >"$tmp/out" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $name: $*"
        head -c 6000 "$tmp/out" | sed 's/^/    /'
    fi
}

# have TOOL...: whether all of them are there. In CI, where `make deps` was to bring them, one that isn't is a failure;
# elsewhere what needs it is left out, and that is said.
have() {
    for tool; do
        command -v "$tool" >/dev/null && continue
        [ "${CI:-}" != true ] || check "$tool is there" false
        echo "SKIP    what needs $tool"
        return 1
    done
}

finish() {
    echo "$passed passed, $failed failed"
    [ "$failed" = 0 ]
    exit
}

# start ARGUMENT...: sets server (its pid), line (what it says that with), at (where operators connect), client (where
# clients do) and bearer (a header with the operator's token).
start() {
    [ -z "$server" ] || ! kill -0 "$server" 2>/dev/null || {
        echo "the last server was left running"
        return 1
    }
    exec 9>&-
    rm -f "$tmp/log"
    mkfifo "$tmp/log"
    "$COPPICE" serve --operator-listen 127.0.0.1:0 --http-listen 127.0.0.1:0 --http-check-answers \
        --store-op-timeout 1m --http-request-timeout 1m --store-dir "$tmp/store" "$@" 2>"$tmp/log" &
    server=$!
    exec 9<"$tmp/log"
    await '"msg":"started"' && at=$(member operator "$line") && client=$(member client "$line") &&
        bearer="Authorization: Bearer $(cat "$tmp/store/operator.token")"
}

# ready: until /readyz is 200: keys are read, and in dev the first one is made, behind the start. Who issues tokens, shows one
# or asks for readiness waits for it. However many looks that takes on a busy machine; the test's own time is the limit.
ready() {
    until [ "$(curl -s -m 120 -o /dev/null -w '%{http_code}' "http://$at/readyz")" = 200 ]; do
        kill -0 "$server" || return 1
    done
}

# await TEXT: reads what the server writes until a line holds the text; sets line. False: it ended first.
await() {
    while read -r line <&9; do
        case $line in
        *"$1"*) return 0 ;;
        esac
    done
    line=
    return 1
}

# keep: from now on all that the server writes goes to $tmp/seen. The pipe holds 64 KiB, and what is written while it is full is
# lost: whoever asks the server often before it awaits a line keeps the log and looks with logged.
keep() {
    cat <&9 >>"$tmp/seen" &
}
# logged TEXT...: a line of what is kept has them all, now or in a moment
logged() {
    until logged_now "$@"; do kill -0 "$server" || logged_now "$@" || return 1; done
}
logged_now() {
    cp "$tmp/seen" "$tmp/lines"
    for text; do
        grep -F -e "$text" "$tmp/lines" >"$tmp/fewer"
        mv "$tmp/fewer" "$tmp/lines"
    done
    [ -s "$tmp/lines" ]
}

# member NAME JSON: the value of the first member of this name.
member() {
    printf '%s\n' "$2" | sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p" | head -1
}

# ends_with STATUS: the server ends, or has ended, with this status.
ends_with() {
    wait "$server"
    status=$?
    [ "$status" = "$1" ] || {
        echo "status is $status"
        cat "$tmp"/sanitizer.* 2>/dev/null
    }
    [ "$status" = "$1" ]
}

stop() {
    kill -TERM "$server"
    ends_with 0
}

get() {
    curl -sS -m 120 -H "$bearer" "http://$at$1"
}

# Nobody has crashed, failed or been killed, and nobody was started again, since the server began. A connection costs no
# budget when it dies, so budgets don't tell.
nobody_died() {
    get /metrics >"$tmp/metrics"
    has "$(cat "$tmp/metrics")" 'coppice_runtime_actors_crashed_total 0' || return 1
    awk '/^coppice_(actor_exits|actor_crashes|actor_restarts)_total/ && !/reason="(normal|shutdown)"/ && $NF != 0' \
        "$tmp/metrics" >"$tmp/deaths"
    cat "$tmp/deaths"
    [ ! -s "$tmp/deaths" ]
}

# stop_unharmed: as stop, and of what the server wrote since it was last awaited nothing is a crash report.
stop_unharmed() {
    stop || return 1
    ! grep 'actor crashed' <&9
}

# chaos VERB TARGET: with a reason
# One that ran into the time in which an actor's picture must be there was not done.
chaos() {
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        record=$(curl -sS -m 120 -H "$bearer" -H 'Content-Type: application/json' -d '{"reason":"a test"}' "http://$at/chaos/actors/$2:$1")
        case $record in *'"code":"OPS_504_TIMEOUT"'*) ;; *) break ;; esac
    done
    printf '%s' "$record"
}

kill_actor() {
    chaos kill "$1"
}

# status METHOD PATH ARGUMENT...: the HTTP status alone
status() {
    method=$1 path=$2
    shift 2
    curl -s -m 120 -o "$tmp/body" -D "$tmp/head" -w '%{http_code}' -H "$bearer" -X "$method" "$@" "http://$at$path"
}

is() {
    [ "$1" = "$2" ] || echo "'$1' is not '$2'"
    [ "$1" = "$2" ]
}

# has TEXT NEEDLE
has() {
    case $1 in
    *"$2"*) return 0 ;;
    esac
    printf '%s\n' "no '$2' in: $1"
    return 1
}

lacks() {
    ! has "$1" "$2" >/dev/null
}

# with_connections SCRIPT: bash runs it, in which `open NUMBER` connects that descriptor to the server, `ask METHOD PATH`
# writes a request with the token, and `get PATH` is an answer's body.
with_connections() {
    bearer=$bearer timeout 120 bash -c 'open() { eval "exec $1<>/dev/tcp/${at%:*}/${at##*:}"; }
        ask() { printf "%s %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n%s\r\n" "$1" "$2" "$bearer" "${3:-}"; }
        get() { curl -s -H "$bearer" "http://$at$1"; }
        at=$1; '"$1" bash "$at"
}

# The pids of what boot started, without those named.
pids() {
    get '/stats/tree?format=text' | grep -v ' connection ' | awk '{ for (i = 1; i < NF; i++) if ($(i + 1) ~ /^0x/) print $i, $(i + 1) }' |
        grep -v -E "^(${1:-nobody}) "
}
