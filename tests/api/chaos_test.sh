#!/bin/sh
# coppice chaos, from outside: what it refuses, three scenarios that hold, a control for each of its checks, and the reports that the
# server keeps. All scenarios are run by `make chaos`.
cd "$(dirname "$0")/../.." || exit 1
. tests/api/server.sh

chaos_run() {
    "$COPPICE" chaos run "$@" --url "http://$at" --token-file "$tmp/store/operator.token" --client-url "http://$client" --yes
}
# runs STATUS ARGUMENT...: of the program; what it says is in $tmp/ran
runs() {
    want=$1
    shift
    "$@" >"$tmp/ran" 2>&1
    status=$?
    [ "$status" = "$want" ] && return
    echo "status $status"
    cat "$tmp/ran"
    return 1
}
one_line() { is "$(wc -l <"$tmp/ran")" 1; }

# --- what can't be meant ---
check "the scenarios" runs 0 "$COPPICE" chaos list
check "each says what must hold" is "$(grep -c '^  holds  .' "$tmp/ran")" "$(grep -c '^[a-z]' "$tmp/ran")"
check "for programs, too" has "$("$COPPICE" chaos list --json)" '[{"scenario":"kill-actors","does":"'
check "no scenario of that name" runs 64 "$COPPICE" chaos run nonsense --yes
check "one line" one_line
check "a seed that is no number" runs 64 "$COPPICE" chaos run kill-writer --seed abc --yes
check "one line" one_line
check "a seed that is less than none" runs 64 "$COPPICE" chaos run kill-writer --seed -1 --yes
check "a seed with something behind it" runs 64 "$COPPICE" chaos run kill-writer --seed 1x --yes
check "a server that isn't there" runs 64 "$COPPICE" chaos run kill-writer --operator-listen "unix:$tmp/nobody" --yes
check "one line" one_line
check "a scenario to skip that there is none of" runs 64 "$COPPICE" chaos run all --skip kill-writer,nonsense --yes
check "it is named" has "$(cat "$tmp/ran")" "'nonsense'"

# What a sanitizer takes of memory and time is another matter; what scenarios do there, tests/http/chaos_test.c does under them.
case ${MODE:-} in
asan | tsan) finish ;;
esac

check "a server" start --schedulers 2 --jobs-simulation-speed 100 --limits-requests-per-minute 100000 --guardian
check "nobody is asked, so yes must be said" runs 64 "$COPPICE" chaos run kill-writer --url "http://$at" \
    --token-file "$tmp/store/operator.token" --client-url "http://$client"
check "clients that aren't there" runs 64 "$COPPICE" chaos run kill-writer --url "http://$at" --token-file "$tmp/store/operator.token" \
    --client-url http://127.0.0.1:1 --yes
check "a wrong URL of clients" runs 64 "$COPPICE" chaos run kill-writer --url "http://$at" --token-file "$tmp/store/operator.token" --client-url foo --yes
check "is told by the option that has it" has "$(cat "$tmp/ran")" "--client-url is 'foo'; it must be http://HOST:PORT or unix:/PATH"
check "no other one" lacks "$(cat "$tmp/ran")" ' --url'
check "one of a socket, too" runs 64 "$COPPICE" chaos run kill-writer --url "http://$at" --token-file "$tmp/store/operator.token" --client-url unix: --yes
check "is told by the same" has "$(cat "$tmp/ran")" "--client-url is 'unix:'"
clients_of() { get '/stats/audits?limit=100' | grep -o '"verb":"[a-z_.]*"' | sort | uniq -c | tr -s '\n ' ' '; }
before=$(clients_of)
touch "$tmp/file"
(umask 077; echo cop_op_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA >"$tmp/wrong")
check "a place for reports that is none" runs 1 chaos_run kill-writer --report-dir "$tmp/file"
check "one line" one_line
check "which says so" has "$(cat "$tmp/ran")" "--report-dir is '$tmp/file'"
check "nobody was made or killed for it" is "$(clients_of)" "$before"
check "a wrong token" runs 64 "$COPPICE" chaos run kill-writer --url "http://$at" --token-file "$tmp/wrong" --yes
check "is no reason to start another server" lacks "$(cat "$tmp/ran")" 'coppice serve'
check "no reports so far" is "$(get /stats/chaos)" '{"reports":[]}'
check "nor one of them" is "$(status GET /stats/chaos/1)" 404

# --- what holds ---
for scenario in kill-writer poison kill-actors; do
    check "TOP-029 TOP-031 $scenario holds" runs 0 chaos_run $scenario --report-dir "$tmp/reports"
    check "its page says so" has "$(cat "$tmp/ran")" "$scenario: it held"
done
check "A1..A9 the page has what was measured" has "$(cat "$tmp/reports/kill-writer.txt")" 'died             1, restarted 1, missing 0; untouched '
check "the keys that they had have ended" is "$(get '/stats/audits?limit=100' | grep -o '"verb":"api_key.[a-z]*"' | sort | uniq -c | tr -s '\n ' ' ')" \
    ' 3 "verb":"api_key.issue" 3 "verb":"api_key.revoke" '
check "why they had them, and why no longer, is in the audit log" is \
    "$(get '/stats/audits?limit=100' | tr '}' '\n' | grep '"verb":"api_key\.' | grep -c '"reason":"coppice chaos run"')" 6
check "so has the JSON" has "$(cat "$tmp/reports/kill-writer.json")" '"died":1,"restarted":1,"untouched":'
check "the server has kept them" is "$(get /stats/chaos | grep -o '"id":[0-9]*' | tr '\n' ' ')" '"id":3 "id":2 "id":1 '
check "one of them, whole" has "$(get /stats/chaos/1)" '"check":"contained","good":true'
check "there is no fourth" is "$(status GET /stats/chaos/4)" 404
check "nor one of that name" is "$(status GET /stats/chaos/01)" 404
check "its keeping is in the audit log" has "$(get '/stats/audits?limit=100')" '"verb":"chaos.report","target":"kill-writer"'

# --- each check can say no: beside the scenario something is done that it must notice ---
for control in script contained returned answered served ready jobs bounded; do
    check "the control of '$control' is noticed" runs 0 chaos_run kill-writer --control $control
    check "and the page says no" sh -c 'grep -q "  NO  $1 " "$2"' sh $control "$tmp/ran"
done
# Where runners are hit, jobs may fail with them, and for no other reason.
check "a job that failed by itself is noticed where runners die" runs 0 chaos_run storm --control jobs
check "and the page says no" grep -q '  NO  jobs  ' "$tmp/ran"
# --- where not everybody can be seen, nothing is done ---
reason() { status POST "/chaos/actors/outside:$1" -H 'Content-Type: application/json' -d '{"reason":"x"}'; }
check "a supervisor that doesn't answer" is "$(reason suspend)" 200
kills() { get /metrics | grep '^coppice_chaos_verbs_total{operation="kill"}'; }
trees() { get /metrics | sed -n 's|^http_requests_total{endpoint="/stats/tree",method="GET",status="200"} ||p'; }
before=$(kills)
looks=$(trees)
chaos_run kill-writer >"$tmp/ran" 2>&1 &
run=$!
until [ "$(trees)" -ge $((looks + 2)) ]; do kill -0 $run 2>/dev/null || break; done
check "whoever lives below it is looked for again" kill -0 $run
check "nobody was killed" is "$(kills)" "$before"
check "it answers again" is "$(reason resume)" 200
check "then all are seen, and it is tried" wait $run
check "and held" has "$(cat "$tmp/ran")" 'kill-writer: it held'
check "a control is no report" is "$(get /stats/chaos | grep -o '"id":' | wc -l)" 4
check "a control that there is none of" runs 78 chaos_run kill-writer --control nonsense
check "the control of 'process' is noticed" runs 0 chaos_run kill-writer --control process
check "it was another process" sh -c 'grep -q "  NO  process " "$1"' sh "$tmp/ran"

# --- reports: 64 are kept ---
report='{"scenario":"by-hand","outcome":"held","holds":"nothing","seed":1,"full":false,"started_at":"2026-11-19T09:00:00Z","took_ms":1,"died":0,"restarted":0,"untouched":9,"missing":0,"requests":1,"failed_requests":0,"recover_ms":null,"checks":[]}'
json='Content-Type: application/json'
add() { status POST /chaos/reports -H "$json" -d "$1"; }
check "a report by hand" is "$(add "$report")" 201
check "is where the answer says" has "$(tr -d '\r' <"$tmp/head")" 'Location: /stats/chaos/5'
check "one without what it must have" is "$(add '{"scenario":"x"}')" 400
check "one that is too long" is "$(head -c 40000 /dev/zero | tr '\0' ' ' >"$tmp/long"; status POST /chaos/reports -H "$json" --data-binary "@$tmp/long")" 413
many() {
    n=6
    while [ $n -le 70 ]; do
        add "$report" >/dev/null
        n=$((n + 1))
    done
}
many
check "the last 64 are kept" is "$(get /stats/chaos | grep -o '"id":' | wc -l)" 64
check "the newest first" has "$(get /stats/chaos)" '{"reports":[{"id":70,'
check "the oldest have gone" is "$(status GET /stats/chaos/6)" 404
check "their places are the newest's" is "$(status GET /stats/chaos/70)" 200
check "it stops" stop
check "a server on the same store" start
check "has them still" has "$(get /stats/chaos)" '{"reports":[{"id":70,'
check "and counts on" is "$(add "$report") $(tr -d '\r' <"$tmp/head" | sed -n 's/^Location: //p')" '201 /stats/chaos/71'

# --- all children are seen, however many a tree shows of each; up to a bound ---
check "it stops" stop
check "a server with 256 workers" start --workers-count 64 --workers-max-concurrency 4 --jobs-simulation-speed 100 --limits-requests-per-minute 100000
check "the oldest are killed, and each is known" runs 0 chaos_run storm --report-dir "$tmp/many"
check "so are the others" test "$(sed 's/.*"untouched":\([0-9]*\).*/\1/' "$tmp/many/storm.json")" -gt 256
check "it stops" stop
check "a server with 1001" start --workers-count 1001 --limits-requests-per-minute 100000
before=$(kills)
check "is one too many" runs 1 chaos_run kill-writer --report-dir "$tmp/unable"
check "which is said" has "$(cat "$tmp/ran")" 'more stand below workers than can be compared, which is 1000 of a class'
check "it is no verdict" has "$(cat "$tmp/unable/kill-writer.json")" '"outcome":"unable"'
check "nobody was killed" is "$(kills)" "$before"
check "it stops" stop
check "a server" start

# --- a client may ask 600 times a minute by default: the load stays below it, whatever is asked for ---
check "a load beyond the limits" runs 0 chaos_run kill-writer --rate 1000
check "is made smaller, and that is said" has "$(cat "$tmp/ran")" 'the load is 6 requests a second instead of 1000: limits.requests_per_minute is 600'
check "nobody was told to come again" has "$(cat "$tmp/ran")" ' 0 told to come again'

# --- a loop without end is switched out, and ended by its budget: not by the fault's own clock ---
overruns() { get /metrics | awk '/^coppice_runtime_overruns_total/ { print $2 }'; }
before=$(overruns)
check "A6 endless-loop holds" runs 0 chaos_run endless-loop
check "A6 each was ended at its budget" is "$(grep -c -e 'alone ended and was replaced: overrun$' -e 'had not had its budget when' "$tmp/ran")" 3
check "A6 as many as are counted" is "$(($(overruns) - before))" 3

# --- a file that may not grow is a full disk, and no end ---
if have prlimit; then
    pid=$(get /stats | sed 's/.*"pid":\([0-9]*\).*/\1/')
    prlimit --pid "$pid" --fsize=64:
    new_client() { curl -s -m 120 -o "$tmp/body" -w '%{http_code}' -X POST "http://$client/v1/clients"; }
    check "D2 with no room a change is refused" is "$(new_client)" 503
    check "D2 in words" has "$(cat "$tmp/body")" '"detail":"the disk is full, or '
    check "D2 an operator's, too" runs 1 "$COPPICE" pause all --reason full --url "http://$at" --token-file "$tmp/store/operator.token"
    check "D2 and not by an error's name" has "$(cat "$tmp/ran")" 'the disk is full, or the store has grown to store.map.max; nothing was stored (OPS_507_NO_SPACE)'
    check "D2 nor is a key changed" runs 1 "$COPPICE" keys rotate --reason full --url "http://$at" --token-file "$tmp/store/operator.token"
    check "D2 which is said alike" has "$(cat "$tmp/ran")" ': the disk is full, or '
    check "D2 readiness says why" has "$(get '/readyz?verbose')" '"database":"degraded"'
    check "D2 what is read is served" is "$(status GET /stats/audits)" 200
    check "D2 a report isn't kept" is "$(add "$report")" 507
    prlimit --pid "$pid" --fsize=unlimited:
    check "D2 with room it goes on" is "$(new_client)" 201
    check "D2 and says so" has "$(get '/readyz?verbose')" '"database":"ok"'
    check "D2 the next report is whole" is "$(add "$report")" 201
fi

# --- a server that stands still ---
kill -STOP "$server"
check "who asks a stopped server is told after a while" runs 69 "$COPPICE" tree --url "http://$at" --token-file "$tmp/store/operator.token"
kill -CONT "$server"
check "that it is there" has "$(cat "$tmp/ran")" 'it has taken the connection, and its time is up; is it stopped, or busy?'
check "and not to start another one" lacks "$(cat "$tmp/ran")" 'coppice serve'
check "it stops, too" stop
finish
