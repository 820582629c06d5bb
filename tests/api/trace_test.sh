#!/bin/sh
# One trace, from outside: what a client sends goes on in the answer, in the log and in what a collector gets, down to the
# store's commit.
cd "$(dirname "$0")/../.." || exit 1
. tests/api/server.sh
unset OTEL_SDK_DISABLED OTEL_TRACES_EXPORTER OTEL_TRACES_SAMPLER OTEL_TRACES_SAMPLER_ARG OTEL_RESOURCE_ATTRIBUTES
"${CC:-cc}" -O1 -o "$tmp/collector" tests/api/collector.c || exit 1
trap 'kill -9 $server $collector 2>/dev/null; rm -rf "$tmp"' EXIT
mkfifo "$tmp/posts"
"$tmp/collector" >"$tmp/posts" &
collector=$!
exec 8<"$tmp/posts"
read -r port <&8

id=0af7651916cd43dd8448eb211c80319c
parent=b7ad6b7169203331

# asked PATH ARGUMENT...: the answer's head, to the operator's listener
asked() {
    path=$1
    shift
    curl -sS -m 120 -o /dev/null -D - -H "Authorization: Bearer $token" "$@" "http://$at$path" | tr -d '\r'
}
field() { printf '%s\n' "$2" | sed -n "s/^$1: //Ip"; }
matches() {
    printf '%s\n' "$1" | grep -E -q "$2" || {
        echo "'$1' does not match $2"
        return 1
    }
}

# spans TEXT TEXT: the post's, each on a line, that hold both
spans() { printf '%s\n' "$post" | sed 's/{"traceId"/\n&/g' | grep -F -e "$1" | grep -F -e "${2:-$1}"; }
# posted TEXT [TEXT]: reads what comes to the collector until one span holds the texts; sets post. Those of one request needn't
# come in one post.
posted() {
    while read -r post <&8; do
        [ -z "$(spans "$@")" ] || return 0
    done
    return 1
}
# span TEXT [TEXT]: the span of the post that holds them
span() { spans "$@" | head -1; }

export OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:$port" OTEL_SERVICE_NAME=traced

# --- what can't be meant keeps the server from starting, with the variable's name ---
OTEL_EXPORTER_OTLP_PROTOCOL=grpc "$COPPICE" serve --operator-listen 127.0.0.1:0 --http-listen 127.0.0.1:0 \
    --store-dir "$tmp/store" >"$tmp/refused" 2>&1
check "a variable that can't be meant is status 78" is $? 78
check "and is named" has "$(cat "$tmp/refused")" 'OTEL_EXPORTER_OTLP_PROTOCOL'

check "a server" start --schedulers 2 --http-listen 127.0.0.1:0
client=$(member client "$line")
token=$(cat "$tmp/store/operator.token")

# --- a trace that comes with a request goes on ---
head=$(asked /stats -H "traceparent: 00-$id-$parent-01" -H 'tracestate: a=b' -H 'X-Request-Id: mine-1')
ours=$(field traceparent "$head")
check "CTL-251 the request id comes back" is "$(field x-request-id "$head")" mine-1
check "the trace goes on" matches "$ours" "^00-$id-[0-9a-f]{16}-01\$"
own=$(printf '%s' "$ours" | cut -c 37-52)
check "with a span of our own" test "$own" != "$parent"
check "the log has the request" await '"request_id":"mine-1"'
check "with its trace" has "$line" "\"trace_id\":\"$id\",\"span_id\":\"$own\""
check "the collector gets the span" posted "\"spanId\":\"$own\""
check "of the service" has "$post" '{"key":"service.name","value":{"stringValue":"traced"}}'
one=$(span "\"spanId\":\"$own\"")
check "below the client's" has "$one" "{\"traceId\":\"$id\",\"spanId\":\"$own\",\"parentSpanId\":\"$parent\""
check "with what others keep of it" has "$one" '"traceState":"a=b"'
check "named after its method and its route" has "$one" '"name":"GET /stats"'
check "a server's" has "$one" '"kind":2,'
check "times are texts" matches "$one" '"startTimeUnixNano":"[0-9]{19}","endTimeUnixNano":"[0-9]{19}"'
check "with its status" has "$one" '{"key":"http.response.status_code","value":{"intValue":"200"}}'

# --- none, or a bad one ---
for bad in "00-$id-$parent-0" "00-00000000000000000000000000000000-$parent-01" "ff-$id-$parent-01" "00-$id-$parent-01-x" \
    "$(echo "00-$id-$parent-01" | tr a-f A-F)" nonsense; do
    head=$(asked /healthz -H "traceparent: $bad")
    check "'$bad' never fails a request" has "$head" 'HTTP/1.1 200 OK'
    check "'$bad' is as if none had come" matches "$(field traceparent "$head")" '^00-[0-9a-f]{32}-[0-9a-f]{16}-01$'
    check "'$bad' is not gone on with" lacks "$(field traceparent "$head")" "$id"
done
head=$(asked /healthz -H 'X-Request-Id: with space')
check "CTL-251 a bad request id is replaced by a UUID" matches "$(field x-request-id "$head")" \
    '^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'
head=$(asked /nowhere -H "traceparent: 00-$id-$parent-01")
check "CTL-251 an error's trace goes on as well" matches "$(field traceparent "$head")" "^00-$id-"

# --- who doesn't want it sampled isn't ---
unsampled=11111111111111111111111111111111
head=$(asked /stats -H "traceparent: 00-$unsampled-$parent-00")
check "not sampled stays so" matches "$(field traceparent "$head")" "^00-$unsampled-[0-9a-f]{16}-00\$"

# --- from the request to the store's commit ---
committed=22222222222222222222222222222222
head=$(curl -sS -m 120 -o /dev/null -D - -X POST -H 'Content-Type: application/json' -d '{}' \
    -H "traceparent: 00-$committed-$parent-01" "http://$client/v1/clients" | tr -d '\r')
check "a change is taken" has "$head" 'HTTP/1.1 201 '
own=$(field traceparent "$head" | cut -c 37-52)
check "the commit is a span below its request" posted '"name":"store.commit"' "\"traceId\":\"$committed\""
check "and of its span" has "$(span '"name":"store.commit"' "\"traceId\":\"$committed\"")" "\"parentSpanId\":\"$own\""
check "the unsampled one was left out" lacks "$post" "$unsampled"
check "spans are counted" has "$(curl -sS -H "Authorization: Bearer $token" "http://$at/metrics")" \
    'coppice_trace_spans{kind="exported"}'
check "the server ends" stop

# --- as lines of the log (AMB-J-52) ---
unset OTEL_EXPORTER_OTLP_ENDPOINT
export OTEL_TRACES_EXPORTER=console
check "AMB-J-52 a server that writes spans as lines" start --schedulers 2 --http-listen 127.0.0.1:0
head=$(asked /stats -H "traceparent: 00-$id-$parent-01")
own=$(field traceparent "$head" | cut -c 37-52)
check "AMB-J-52 a span is a line" await "\"logger\":\"trace\",\"msg\":\"span\",\"span\":{\"traceId\":\"$id\",\"spanId\":\"$own\",\"parentSpanId\":\"$parent\""
check "that server ends" stop
unset OTEL_TRACES_EXPORTER

# --- off ---
check "a server without a collector" start --schedulers 2 --http-listen 127.0.0.1:0
head=$(asked /stats)
check "new traces aren't sampled" matches "$(field traceparent "$head")" '^00-[0-9a-f]{32}-[0-9a-f]{16}-00$'
check "the second server ends" stop
finish
