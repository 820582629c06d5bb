#!/bin/sh
# Every scenario of chaos (chaos/scripts) against a server that is started for it: what `make chaos` does. Ends with
# `N passed, N failed`; the reports are in build/chaos.
#
#     COPPICE=build/gcc/coppice sh chaos/run.sh [ARGUMENT of coppice chaos run]...
#
# The server is one with a guardian, because one scenario kills it; with receivers on loopback; and with work that takes a
# hundredth of its time.
set -u
: "${COPPICE:?must name the program}"
dir=$(mktemp -d)
server=
trap 'kill -9 $server 2>/dev/null; rm -rf "$dir"' EXIT
reports=build/chaos
mkdir -p build
"$COPPICE" serve --guardian --guardian-intensity 9/60s --operator-listen "unix:$dir/operator.sock" --http-listen 127.0.0.1:0 \
    --store-dir "$dir/store" --limits-requests-per-minute 100000 --outbound-allow-private --jobs-simulation-speed 100 \
    --workers-lease-timeout 15s --workers-heartbeat-interval 500ms --http-check-answers 2>"$dir/log" &
server=$!
looks=600
until line=$(grep '"msg":"started"' "$dir/log"); do
    looks=$((looks - 1))
    [ $looks -gt 0 ] && kill -0 $server 2>/dev/null || {
        cat "$dir/log"
        echo "0 passed, 1 failed"
        exit 1
    }
    sleep 0.05
done
client=$(printf '%s\n' "$line" | sed 's/.*"client":"\([^",]*\).*/\1/')
"$COPPICE" chaos run all --yes --operator-listen "unix:$dir/operator.sock" --client-url "http://$client" --report-dir $reports "$@" >"$dir/said"
cat "$dir/said"
kept=$(curl -s --unix-socket "$dir/operator.sock" http://localhost/stats/chaos | grep -o '"id":' | wc -l)
kill $server
wait $server
ended=$?
counts=$(tail -n 1 "$dir/said")
good=${counts%% *} bad=${counts##*, }
bad=${bad%% *}
# and two of our own: the server has kept the reports, and ends as ever
[ "$kept" -ge "$good" ] && good=$((good + 1)) || { echo "FAILED: $kept reports were kept" && bad=$((bad + 1)); }
[ "$ended" = 0 ] && good=$((good + 1)) || { echo "FAILED: the server ended with $ended" && bad=$((bad + 1)); }
if [ "$bad" != 0 ]; then
    mkdir -p $reports
    cp "$dir/log" $reports/log # for who wants to know why
    echo "the server's log is $reports/log"
fi
echo "$good passed, $bad failed"
[ "$bad" = 0 ]
