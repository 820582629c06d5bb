#!/bin/sh
# slowhttptest against the server: slow heads, slow bodies, slow reading, ranges, a few hundred connections each, all at the
# same time. Meanwhile and afterwards others are served, nobody spins, nothing is restarted, and all of them are gone in the
# end. tests/hostile looks at single connections, bench-front at 10,000.
. "$(dirname "$0")/api/server.sh"
command -v slowhttptest >/dev/null || {
    echo "slowhttptest is missing; 'make deps' brings it"
    exit 1
}
SECONDS_OF_EACH=8
CONNECTIONS=200

check "a server" start --http-listen 127.0.0.1:0 --operator-auth=false --http-access-log=false --http-head-timeout 3s \
    --http-idle 3s --http-body-grace 2s --http-write-timeout 3s
client=$(member client "$line")

attack() {
    kind=$1 path=$2
    shift 2
    slowhttptest "$@" -c $CONNECTIONS -r 100 -i 1 -l $SECONDS_OF_EACH -p 120 -u "http://$client$path" >"$tmp/$kind" 2>&1 &
    pids="$pids $!"
}
opened() {
    curl -sS -m 120 "http://$at/metrics" | sed -n 's/^coppice_http_connections_open{listener="client"} //p'
}
cpu_ticks() {
    sed 's/.*) //' "/proc/$server/stat" | awk '{ print $12 + $13 }'
}

pids=
attack heads /healthz -H -x 8
attack bodies /v1/clients -B -f application/json -s 8000 -x 8
attack reads /openapi/control.json -X -w 1 -y 512 -n 1 -z 5 -k 3
attack ranges /openapi/control.json -R
before=$(cpu_ticks) began=$(date +%s)
served=0
asked=0
most=0
while kill -0 $pids 2>/dev/null; do
    asked=$((asked + 1))
    [ "$(curl -s -m 120 -o /dev/null -w '%{http_code}' "http://$client/healthz")" != 200 ] || served=$((served + 1))
    open=$(opened)
    [ "$open" -le "$most" ] || most=$open
done
for pid in $pids; do
    wait "$pid"
done
spent=$(($(cpu_ticks) - before)) took=$(($(date +%s) - began))
check "others were asked for meanwhile" test "$asked" -gt 3
check "and served, each time" is "$served" "$asked"
check "there were many slow ones" test "$most" -gt $CONNECTIONS
for kind in heads bodies reads ranges; do
    check "$kind: it was available all the time" has "$(cat "$tmp/$kind")" 'YES'
    check "$kind: never otherwise" lacks "$(cat "$tmp/$kind")" 'service available:   NO'
done
# Ticks are hundredths of a second: a loop that spins would have spent all of them.
check "it has not spun: $spent ticks in $took s" test "$spent" -lt $((took * 50))
until [ "$(opened)" -le 0 ]; do :; done # those that are still there are cut off
check "nobody was killed by this" nobody_died
check "the next one is served" is "$(curl -s -m 120 -o /dev/null -w '%{http_code}' "http://$client/healthz")" 200
check "it can be stopped, and nothing has crashed" stop_unharmed
finish
