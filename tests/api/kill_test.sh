#!/bin/sh
# Every kind of actor that jobs need is killed through the operators' surface, one after the other and then at random, while the clients of
# chaos/traffic submit jobs of all kinds: nobody else notices. No request goes without its answer, no job is lost, none is reported twice,
# and no supervisor gives up (architecture, 3: an actor keeps nothing that it cannot rebuild).
cd "$(dirname "$0")/../.." || exit 1
. tests/api/server.sh
traffic=${COPPICE%/*}/chaos/traffic
driver=
trap 'kill -9 $server $driver 2>/dev/null; rm -rf "$tmp"' EXIT
seed=${KILL_SEED:-1} # of the traffic, and of who is killed

# Jobs of the server's own kinds take an eightieth of their time here: some are always running.
check "a server" start --schedulers 2 --workers-count 16 --workers-lease-timeout 3s --workers-heartbeat-interval 500ms --jobs-simulation-speed 80 --retry-backoff-base 400ms --webhooks-timeout 8s \
    --webhooks-backoff-base 20ms --limits-requests-per-minute 100000 --outbound-allow-private
# drive JOBS RATE: traffic begins
drive() {
    "$traffic" --url "http://$client" --speed 80 --clients 16 --retry-base-ms 400 --ahead-ms 6000 --webhook-timeout-ms 8000 --requests-per-minute 0 \
        --late-ms 60000 --refusals 0 --restarts --jobs "$1" --rate "$2" --seed "$seed" --json >"$tmp/report" 2>"$tmp/said" &
    driver=$!
    for _ in $(seq 20000); do
        [ "$(metric jobs_succeeded_total)" -lt 5 ] || return 0
    done
    return 1
}
metric() {
    value=$(get /metrics | sed -n "s/^$1 //p")
    echo "${value:-0}"
}
drives() {
    kill -0 "$driver"
}
# No check failed.
ends_well() {
    wait "$driver" || { head -c 4000 "$tmp/said" && return 1; }
}
# made NAME: it was checked, and nothing was wrong
made() {
    tr '{' '\n' <"$tmp/report" | sed -n "s/^\"name\":\"$1\".*\"passed\":\([0-9]*\),\"failed\":\([0-9]*\).*/\1 \2/p" >"$tmp/counts"
    read -r good bad <"$tmp/counts" && [ "$good" -gt 0 ] && [ "$bad" = 0 ]
}
# counted NAME: among the report's counts
counted() {
    sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" "$tmp/report"
}
# comes_back NAME: somebody of that name can be told to end, if it were for real.
comes_back() {
    for _ in $(seq 20000); do
        curl -sS -m 120 -H "$bearer" -H 'Content-Type: application/json' -d '{"dry_run":true}' "http://$at/chaos/actors/$1:kill" >"$tmp/again"
        ! grep -q '"predicted":{"ends":\[{"name":"'"$1"'"' "$tmp/again" || return 0
    done
    return 1
}
# kills NAME: it alone ends, and comes back. 504: on a machine this busy it didn't say in time who it is, so nothing was done, and
# the answer is to try again. "not_recovered": its successor wasn't there within the 5 s after which the record is closed, but must come.
kills() {
    for _ in $(seq 20); do
        chaos kill "$1" >"$tmp/record"
        grep -q '"code":"OPS_504_TIMEOUT"' "$tmp/record" || break
    done
    grep -q '"outcome":"not_recovered"' "$tmp/record" && grep -q '"died_count":1,' "$tmp/record" && comes_back "$1" && return
    grep -q '"outcome":"recovered"' "$tmp/record" && grep -q '"complete":true' "$tmp/record" &&
        grep -q '"died_count":1,' "$tmp/record" && grep -q '"missing":0,' "$tmp/record" && return
    head -c 2000 "$tmp/record"
    return 1
}

# --- one of each kind ---

check "traffic comes" drive 500 60
for name in worker:3 scheduler:5 queues relay:2 webhooks:7 fetch bus deduper api_keys keys store.keeper; do
    check "TOP-030 $name ends and comes back" kills $name
done
check "in the middle of it" drives

# --- some at random: within what their supervisors allow (30 in a minute; of relays 15) ---

kinds='worker 16 16
scheduler 64 10
webhooks 16 10
relay 8 6'
echo "$kinds" | awk -v seed="$seed" 'BEGIN { srand(seed) } { for (i = 0; i < $3; i++) print rand(), $1 ":" int(rand() * $2) }' |
    sort | cut -d ' ' -f 2 >"$tmp/victims"
while read -r name <&7; do
    check "TOP-030 $name ends and comes back" kills "$name"
done 7<"$tmp/victims"
check "JOB-005 nothing is wrong" ends_well
check "JOB-005 every request has its answer" is "$(counted 'requests without an answer, sent again')" 0
check "some were struck" [ $(($(counted 'runs that ended with their runner') + $(counted 'assignments that ended with their lease'))) -gt 0 ]
check "none was put off" is "$(counted 'answers 503 that were waited for')" 0
for name in answer.came list.complete submit.distinct report.at_once report.shape events.sequence events.kept job.ends job.moves \
    webhook.order webhook.all; do
    check "JOB-080 JOB-082 JOB-286 JOB-293 $name" made $name
done

# --- the writer: whoever waits for a commit waits a little longer, or is told to come again ---

# With the keeper it has died three times then, in whatever time: as often as its supervisor allows.
check "traffic comes again" drive 150 60
for _ in 1 2; do
    check "TOP-030 the writer ends and comes back" kills store.writer
done
check "JOB-286 nothing is wrong" ends_well
check "JOB-005 every request has its answer" is "$(counted 'requests without an answer, sent again')" 0
for name in answer.came list.complete report.at_once events.sequence job.ends webhook.all; do
    check "JOB-080 JOB-082 JOB-286 JOB-293 $name" made $name
done

# --- and nobody gave up ---

check "cascade_count is 0" is "$(metric 'coppice_slo_events{slo="cascade_count"}')" 0
check "it is well" has "$(curl -s "http://$at/healthz"; curl -s -o /dev/null -w '%{http_code}' "http://$at/readyz")" 200
check "it stops" stop_unharmed
check "its store is whole" "$COPPICE" check --store-dir "$tmp/store"
finish
