#!/bin/sh
# The operator's view, from outside: what lives beside what was declared, kills and what they leave alone, and requests that
# can't be meant.
cd "$(dirname "$0")/../.." || exit 1
. tests/api/server.sh
rows="root telemetry store store.writer store.keeper registry.rooms registry.agents registry.instances bus scheduler workers runs control rooms agents
    instances deduper runtime ingest outbound sessions operations onboarding replay relay front front.operators front.operator front.clients"

check "a server" start --schedulers 2
check "which is ready" ready

# --- what is served ---
healthy() { has "$(get /healthz)" '{"status":"ok","timestamp":"'; }
check "healthz" healthy
check "readyz" has "$(get /readyz)" '{"status":"ready","checks":{"database":"ok","redis":"ok","event_bus":"ok"},"timestamp":"'
check "readyz tells operators more" has "$(get '/readyz?verbose')" '"event_bus":"ok","actors":"ok","adapters":"ok","start":"ok","workers":"ok","drain":"ok"}'
check "CTL-524 clients' port has the probes, too" is "$(curl -s -o /dev/null -w '%{http_code}' "http://$client/readyz")" 200
check "CTL-538 and says no more there" lacks "$(curl -s "http://$client/readyz?verbose")" adapters
check "nothing else of ours is there" is "$(curl -s -o /dev/null -w '%{http_code}' -H "$bearer" "http://$client/stats")" 404
check "startupz" has "$(get /startupz)" '{"status":"started","timestamp":"'
check "without the token there are no stats" is "$(curl -s -o /dev/null -w '%{http_code}' "http://$at/stats")" 401
check "nor with another one" is "$(curl -s -o /dev/null -w '%{http_code}' -H 'Authorization: Bearer cop_op_nonsense' "http://$at/stats")" 401
stats=$(get /stats)
check "stats" has "$stats" '"schedulers":[{"scheduler":0,"dedicated":false,"busy_ratio":'
check "each scheduler" is "$(printf '%s' "$stats" | grep -o '"busy_ratio":[01][.0-9]*,"busy_seconds":[0-9.]*,"run_queue":' | wc -l)" 3
check "the store's is known" has "$stats" '{"scheduler":2,"dedicated":true,"busy_ratio":'
check "all together" has "$stats" '"runtime":{"actors":'
check "pressure is there at normal, too" has "$stats" '"store.writer":"normal"'
tree=$(get /stats/tree)
text=$(get '/stats/tree?format=text')
for row in $rows; do
    check "TOP-001 $row is declared" has "$tree" "{\"name\":\"$row\",\"parent\":"
    check "TOP-008..TOP-012 TOP-015 TOP-017 TOP-021 TOP-022 $row lives" has "$text" "$row "
    check "TOP-001 $row has a row beside it" has "$tree" "\"row\":\"$row\""
done
check "TOP-007 one root" is "$(printf '%s' "$text" | grep -c '^root ')" 1
check "nothing is missing" has "$tree" '"missing":[]'
check "TOP-006 every row has all columns" is "$(printf '%s' "$tree" | grep -o '"scaling_rule":"[^"]' | wc -l)" "$(printf '%s' "$tree" | grep -o '"name":"[^"]*","parent":' | wc -l)"
check "TOP-026 intensity as n/ms" has "$tree" '"intensity":"20/60s"'
check "a budget" has "$tree" '"budget":{"restarts":3,"period_ms":10000,"used":0,"left":3}'
check "long answers come in chunks" has "$(curl -sS -H "$bearer" -D - -o /dev/null "http://$at/stats/tree")" 'Transfer-Encoding: chunked'
check "to HTTP/1.0 until the end" has "$(curl -sS -H "$bearer" -0 -D - -o "$tmp/ten" "http://$at/stats/tree")" 'Connection: close'
check "and whole" is "$(tail -c 2 "$tmp/ten")" '}'
check "metrics" has "$(get /metrics)" 'coppice_actor_restarts_total'
check "metrics of the build" has "$(get /metrics)" 'coppice_build_info{version="'
if have promtool; then
    check "promtool has nothing to say of them" sh -c 'curl -sS -H "$1" "http://$2/metrics" | promtool check metrics' sh "$bearer" "$at"
fi
openmetrics=$(curl -sS -D - -H "$bearer" -H 'Accept: application/openmetrics-text; version=1.0.0' "http://$at/metrics")
check "OpenMetrics for who asks" has "$openmetrics" 'Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8'
check "with its end" is "$(printf '%s' "$openmetrics" | tail -1)" '# EOF'
if have promtool; then
    # Its check reads the old form alone; what makes blocks reads this one, and wants a time with each sample.
    curl -sS -H "$bearer" -H 'Accept: application/openmetrics-text; version=1.0.0' "http://$at/metrics" |
        sed 's/^[^#].*/& 1700000000/' >"$tmp/openmetrics"
    check "promtool reads it whole" promtool tsdb create-blocks-from openmetrics "$tmp/openmetrics" "$tmp/blocks"
    sed '$d' "$tmp/openmetrics" >"$tmp/cut"
    check "it would not without its end" sh -c '! promtool tsdb create-blocks-from openmetrics "$1" "$2"' sh "$tmp/cut" "$tmp/blocks"
fi
check "CTL-028 versions of the contract" has "$(get /metrics)" 'routing_decision_count{version="v1"} 0'
check "a drawing for Graphviz" has "$(get '/stats/tree?format=dot')" 'digraph coppice {'
# What can't be meant is refused, not passed over: by the table, by the contract, by the handler.
while read -r why path; do
    check "$why: $path" is "$(curl -s -o /dev/null -w '%{http_code}' -H "$bearer" "http://$at$path")" 400
done <<'END'
twice /stats/tree?n=3&limit=7
a-list-of-children /stats/tree?top=memory&children=5
a-list-of-children /stats/tree?name=keys&children=5
a-list-of-children /stats/tree?class=keyring&children=5
a-list-of-children /stats/tree?state=running&children=5
a-list-without /stats/tree?class=keyring&without=connection
empty /stats/tree?without=
empty /stats/tree?name=
empty /stats/tree?class=
empty /stats/events?event=
empty /stats/events?since=
empty /stats/audits?after=
empty /keys/history?after=
empty /principals?after=
empty /jobs/pauses?after=
empty /outbox/dead?after=
END
check "a stream has no limit" is "$(curl -s -o /dev/null -w '%{http_code}' -H "$bearer" -H 'Accept: text/event-stream' "http://$at/stats/events?limit=2")" 400
for body in '{"issuer":"x"}' '{"subject":"x","issuer":"x"}' '{"session_id":"x","issuer":"x"}' '{"token":"x","issuer":"x"}'; do
    check "an issuer of nothing: $body" is "$(curl -s -o /dev/null -w '%{http_code}' -H "$bearer" -H 'Content-Type: application/json' -d "$body" "http://$at/tokens:revoke")" 400
done
check "those of a class" has "$(get '/stats/tree?class=registry')" '"matched":3,'
check "those with the most memory" has "$(get '/stats/tree?top=memory&n=2')" '"actors":[{"name":"'
check "one actor, by name" has "$(get /stats/actors/deduper)" '"child":{"supervisor":"0x100000001","id":"deduper","state":"running"'
check "a dry run" has "$(curl -sS -H "$bearer" -H 'Content-Type: application/json' -d '{"dry_run":true}' "http://$at/chaos/actors/store:kill")" '"outcome":"predicted"'
check "HEAD has a length and no body" has "$(curl -sS -I "http://$at/healthz")" 'Content-Length: 55'
check "HEAD of a long answer ends" has "$(curl -sS -H "$bearer" -m 120 -I "http://$at/stats/tree")" '200 OK'
check "three requests on one connection" is "$(curl -sS "http://$at/healthz" "http://$at/startupz" "http://$at/healthz" -w '%{num_connects}' | tail -c 1)" 0

# --- kill one: it comes back, and nobody else notices ---
died() { ! nobody_died; }
check "nobody has died so far" nobody_died
before=$(pids deduper)
old=$(pids | grep '^deduper ')
record=$(kill_actor deduper)
check "TOP-029 the record says who" has "$record" '"name":"deduper","class":"deduper",'
check "TOP-029 how it ended" has "$record" '"outcome":"recovered","complete":true,'
check "TOP-029 the record says how" has "$record" '"end_reason":"killed"'
check "TOP-029 the record says who came" has "$record" '"successor":"0x'
check "TOP-029 it has a new pid" test "$old" != "$(pids | grep '^deduper ')"
check "TOP-029 TOP-031 all others keep theirs" is "$(pids deduper)" "$before"
check "whoever looks for deaths finds it" died
check "its restart is counted" has "$(get '/stats/tree?format=text' | grep deduper)" 'killed'
check "the budget shows it" has "$(get /stats/tree)" '"budget":{"restarts":3,"period_ms":10000,"used":1,"left":2}'
# Of restarts alone, and as many as are kept: what goes on in the background has events, too.
restarts='/stats/events?event=supervisor.restart&limit=100000'
events=$(get "$restarts")
check "the restart is an event" has "$events" '"dimensions":{"supervisor":"root","child":"deduper","reason":"killed"'
next=$(member next "$events")
check "what comes with each batch of the store is counted" has "$(get /metrics | grep '^coppice_store_commits_total{outcome="ok"} [1-9]')" commits
check "and not kept, where it would push out all else" lacks "$(get '/stats/events?event=store.commit&limit=100000')" '"event":"store.commit"'
check "nothing is newer" has "$(get "$restarts&since=$next")" '{"events":[],"missed":0,"next":"'
kill_actor bus >/dev/null
check "what is newer is shown alone" lacks "$(get "$restarts&since=$next")" '"child":"deduper"'
check "what is newer is shown" has "$(get "$restarts&since=$next")" '"child":"bus"'
check "C.1 a time in text is no number of microseconds" has "$(get '/stats/audits?limit=1')" '"at":"20'
check "as many as asked for" is "$(get '/stats/events?limit=1' | grep -o '"event":' | wc -l)" 1
check "the restart is counted in metrics" has "$(get /metrics)" 'coppice_actor_restarts_total{supervisor="root"} 2'
pid=$(pids | sed -n 's/^telemetry //p')
check "a pid is as good as a name" has "$(kill_actor "$pid")" '"name":"telemetry"'
why="{\"reason\":\"a test\"}"
json='Content-Type: application/json'
check "the same pid is nobody's now" is "$(status POST "/chaos/actors/$pid:kill" -H "$json" -d "$why")" 404
check "TOP-030 the process lives after three kills" healthy
check "a name with escapes" has "$(kill_actor 'front%2Eoperator')" '"name":"front.operator"'
check "the listener's death turns nobody away" healthy
check "SIGTERM ends it with 0" stop

# --- the store: what is shown, what is kept of each kill, and that its actors come back ---
check "a server with its store" start
check "readyz says how the store is" has "$(get /readyz)" '"database":"ok"'
check "stats say whose it is" has "$(get /stats)" '"store":{"identity":"'
check "and how it is" has "$(get /stats)" '"state":"open","commits":'
check "and what is in it" has "$(get /stats)" '"rows":{"meta":3,"audits":'
kill_actor deduper >/dev/null
check "a kill leaves an entry" has "$(get '/stats/audits?limit=1')" '"who":"operator","verb":"actor.kill","target":"deduper","reason":"a test","outcome":"recovered"'
check "a kill of nobody" is "$(status POST /chaos/actors/nobody%22:kill -H "$json" -d "$why")" 404
check "leaves one, too" has "$(get '/stats/audits?limit=1')" '"target":"nobody\"","reason":"a test","outcome":"404"'
before=$(pids 'store.writer')
old=$(pids | grep '^store.writer ')
check "killing the writer" has "$(kill_actor store.writer)" '"name":"store.writer","class":"store.writer",'
check "it is another one" test "$old" != "$(pids | grep '^store.writer ')"
check "its kill is kept by the next one" has "$(get '/stats/audits?limit=1')" '"target":"store.writer","reason":"a test","outcome":"recovered"'
check "nobody else has noticed" is "$(pids 'store.writer')" "$before"
before=$(pids 'store.keeper')
check "killing the keeper" has "$(kill_actor store.keeper)" '"name":"store.keeper","class":"store.keeper",'
check "nobody else has noticed that" is "$(pids 'store.keeper')" "$before"
check "commands go on" has "$(get '/stats/audits?limit=1')" '"target":"store.keeper","reason":"a test","outcome":"recovered"'
check "and it is ready" has "$(get /readyz)" '"status":"ready","checks":{"database":"ok"'
ids() { grep -o '"id":"[^"]*"'; }
all=$(get '/stats/audits?limit=100')
check "all entries fit on a large page" has "$all" '"next":null'
: >"$tmp/pages"
after=
for page in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
    answer=$(get "/stats/audits?limit=3${after:+&after=$after}")
    printf '%s\n' "$answer" | ids >>"$tmp/pages"
    after=$(member next "$answer")
    [ "$after" != null ] || break
done
check "pages end" is "$after" null
check "there were several of them" test "$page" -gt 1
check "pages hold the same, each once, in the same order" is "$(cat "$tmp/pages")" "$(printf '%s' "$all" | ids)"
check "as many as asked for" is "$(get '/stats/audits?limit=2' | ids | wc -l)" 2
token=$(member next "$(get '/stats/audits?limit=1')")
check "a token is good" is "$(status GET "/stats/audits?after=$token")" 200
first=$(printf '%s' "$token" | cut -c1)
other=A
[ "$first" != A ] || other=B
check "one that was changed is not" is "$(status GET "/stats/audits?after=$other${token#?}")" 400
check "it is said" has "$(cat "$tmp/body")" 'after is no token of this list'
check "nor one in the middle" is "$(status GET "/stats/audits?after=$(printf '%s' "$token" | sed 's/^\(.\{20\}\)./\1~/')")" 400
check "nor one that was cut" is "$(status GET "/stats/audits?after=${token%?}")" 400
check "nor one with more behind it" is "$(status GET "/stats/audits?after=${token}A")" 400
check "nor anything else" is "$(status GET '/stats/audits?after=1')" 400
check "nor one of great length" is "$(status GET "/stats/audits?after=$(printf '%0300d' 0)")" 400
check "that is said" has "$(cat "$tmp/body")" 'after is longer than 255 bytes'
check "nor a long limit beside it" is "$(status GET "/stats/audits?limit=$(printf '%016d' 3)")" 400
check "no entries asked for" is "$(status GET '/stats/audits?limit=0')" 400
check "too many asked for" is "$(status GET '/stats/audits?limit=101')" 400
check "it can be stopped" stop
check "the same server again" start
check "the entries are still there" is "$(get '/stats/audits?limit=100')" "$all"
check "and its tokens are good" is "$(status GET "/stats/audits?after=$token")" 200
check "it can be stopped again" stop

# --- more than a domain's budget ends that domain alone ---
check "a server for the front's budget" start
before=$(pids 'front[^ ]*|api_keys|keys')
front=$(pids | grep '^front ')
n=0
while [ $n -lt 30 ]; do
    kill_actor front.operator >/dev/null
    n=$((n + 1))
done
check "TOP-067 thirty kills are absorbed" is "$(pids | grep '^front ')" "$front"
check "an ending that takes the connection along is answered before" has "$(kill_actor front.operator)" '"outcome":"asked","complete":false'
check "TOP-067 the next one is an escalation" await '"msg":"supervisor.escalation"'
check "TOP-067 TOP-098 the domain is named" has "$line" '"domain":"front"'
check "TOP-067 it is back" healthy
check "TOP-067 with a new pid" test "$front" != "$(pids | grep '^front ')"
check "TOP-067 TOP-098 all other domains keep theirs" is "$(pids 'front[^ ]*|api_keys|keys')" "$before"
check "TOP-098 the root has spent one" has "$(get '/stats/tree?format=text' | grep '^root ')" '1 of 3/10s'
check "TOP-096 TOP-099 exhaustion is an event" has "$(get '/stats/events?event=failure.restart_exhausted')" '"event":"failure.restart_exhausted"'
check "it can still be stopped" stop

# --- the root's budget is the process's ---
check "a server for the root's budget" start
for n in 1 2 3; do
    check "TOP-030 kill $n of 3 is absorbed" has "$(kill_actor deduper)" '"successor":"0x'
done
"$COPPICE" kill deduper --yes --json --reason 'a test' --operator-listen "$at" --store-dir "$tmp/store" >"$tmp/record" 2>"$tmp/err"
check "TOP-029 a kill that ends the process is no success" is $? 1
check "TOP-029 its record says what it does" has "$(cat "$tmp/record")" '"outcome":"ends_process","complete":false'
check "TOP-029 and counts nobody" lacks "$(cat "$tmp/record")" died_count
check "TOP-030 TOP-068 the fourth ends the process" await '"exit_status":70'
check "TOP-068 the last words name the domain" has "$line" '"domain":"root"'
check "TOP-030 TOP-068 with status 70" ends_with 70

check "a server whose root is killed" start
check "TOP-029 the entry of the one before it is as true" has "$(get '/stats/audits?limit=1')" '"outcome":"ends_process"'
check "TOP-029 nor is it counted there" lacks "$(get '/stats/audits?limit=1')" died_count
check "TOP-068 a kill of the root is accepted" is "$(status POST /chaos/actors/root:kill -H "$json" -d "$why")" 202
check "TOP-068 and ends the process" ends_with 70

# --- an adapter that fails ---
check "a server whose machine will change" start --descriptors 128
prlimit --pid "$server" --nofile=100
kill_actor runtime >/dev/null 2>&1 # the connection may go with the process
cat <&9 >"$tmp/err"
check "TOP-076 TOP-078 an adapter that fails ends the process" ends_with 70
check "TOP-078 after three restarts, the first of which is the kill's" is \
    "$(grep -c '"msg":"supervisor.restart".*"child":"runtime"' "$tmp/err")" 3
check "TOP-077 TOP-079 each failure is an event with all dimensions" is \
    "$(grep -c '"component":"runtime","failure_class":"fatal","adapter":"descriptors","reason":"the limit is 100' "$tmp/err")" 3

# --- requests that can't be meant ---
check "a server for bad requests" start
raw() { curl -s -m 10 "telnet://$at"; }
answer() { raw | head -1 | tr -d '\r'; }
long=$(printf '%09000d' 0)
huge=$(printf '%033000d' 0)
check "nothing there" is "$(status GET /nowhere)" 404
check "problem details" has "$(tr -d '\r' <"$tmp/head")" 'Content-Type: application/problem+json'
check "the problem names the path" has "$(cat "$tmp/body")" '"status":404,"detail":"there is nothing at this path"'
check "POST where GET is meant" is "$(status POST /stats)" 405
check "it says what is allowed" has "$(cat "$tmp/head")" 'Allow: GET, HEAD'
check "GET where POST is meant" is "$(status GET /chaos/actors/bus:kill)" 405
check "no reason" is "$(status POST /chaos/actors/bus:kill)" 400
check "it is named" has "$(cat "$tmp/body")" 'reason is missing'
check "nobody of that name" is "$(status POST /chaos/actors/nobody:kill -H "$json" -d "$why")" 404
check "no such verb" is "$(status POST /chaos/actors/bus:hug)" 404
check "no verb" is "$(status POST /chaos/actors/bus)" 404
check "a bad escape" is "$(status POST /chaos/actors/b%zz:kill)" 400
check "a hidden slash" is "$(status POST /chaos/actors/a%2Fb:kill)" 400
check "a bad number" is "$(status GET '/stats/tree?children=0')" 400
check "a number too large" is "$(status GET '/stats/tree?children=201')" 400
check "a bad format" is "$(status GET '/stats/tree?format=dance')" 400
check "a format that begins well" is "$(status GET '/stats/tree?format=text-or-more')" 400
check "a number that is too long, whatever it is" is "$(status GET "/stats/tree?children=$(printf '%020d' 7)")" 400
check "a parameter that there is none of" is "$(status GET '/stats/tree?nam=deduper')" 400
check "it is named, and the nearest" has "$(cat "$tmp/body")" "nam is no parameter of this path; 'name' is"
check "one that is like no other" is "$(status GET '/keys/history?limit=1&elsewhere')" 400
check "it is named alone" has "$(cat "$tmp/body")" '"detail":"elsewhere is no parameter of this path"'
check "one that can't be read" is "$(status GET "/keys/history?$(printf '%0100d' 7)=%01")" 400
check "where there are none" is "$(status GET '/stats/actors/bus?x=1')" 400
check "clients may say more than is known" is "$(curl -s -o /dev/null -w '%{http_code}' "http://$client/healthz?x=1")" 200
check "a position that is too long" is "$(status GET "/stats/events?since=$(printf '%080d' 0)-0-0")" 400
check "a bad position" is "$(status GET '/stats/events?since=yesterday')" 400
check "a page from elsewhere may not kill" is "$(status POST /chaos/actors/bus:kill -H 'Origin: http://evil.example')" 403
check "nor without an origin" is "$(status POST /chaos/actors/bus:kill -H 'Sec-Fetch-Site: cross-site')" 403
check "our own page may" is "$(status POST /chaos/actors/bus:kill -H "Origin: http://$at" -H "$json" -d "$why")" 200
check "a foreign host name" is "$(status GET /healthz -H 'Host: evil.example')" 421
check "a host name that begins like ours" is "$(status GET /healthz -H 'Host: 127.0.0.1.evil.example')" 421
check "a host name that begins like ours in IPv6" is "$(status GET /healthz -H 'Host: [::1].evil.example')" 400
check "our own in IPv6" is "$(status GET /healthz -H 'Host: [::1]:7070')" 200
check "localhost" is "$(status GET /healthz -H 'Host: localhost:1')" 200
check "a target that is too long" is "$(status GET "/$long")" 414
check "a header that is too long" is "$(status GET /healthz -H "X: $huge")" 431
check "a body that is too long" is "$(head -c 65537 /dev/zero | status POST /chaos/actors/nobody:kill --data-binary @- -H "$json")" 413
check "a body that isn't JSON" is "$(printf 'x' | status POST /chaos/actors/nobody:kill --data-binary @- -H "$json")" 400
check "nor says what it is" is "$(printf 'x' | status POST /chaos/actors/nobody:kill --data-binary @-)" 415
check "no HTTP at all" is "$(printf 'hello\r\n\r\n' | answer)" 'HTTP/1.1 400 Bad Request'
check "no host" is "$(printf 'GET /healthz HTTP/1.1\r\n\r\n' | answer)" 'HTTP/1.1 400 Bad Request'
check "two hosts" is "$(printf 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n' | answer)" 'HTTP/1.1 400 Bad Request'
check "length and chunks" is "$(printf 'POST /chaos/actors/x:kill HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n' | answer)" 'HTTP/1.1 400 Bad Request'
check "an upgrade that nobody takes up" is "$(printf 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n' | answer)" 'HTTP/1.1 200 OK'
check "two requests at once" is "$(printf 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /startupz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' | raw | grep -c '^HTTP/1.1 200')" 2
check "chunks" is "$(printf 'POST /chaos/actors/x:kill HTTP/1.1\r\nHost: localhost\r\n%s\r\n%s\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n7\r\n{"reaso\r\n8\r\nn":"no"}\r\n0\r\n\r\n' "$bearer" "$json" | answer)" 'HTTP/1.1 404 Not Found'
check "and it can be stopped" stop

# --- connections that stay ---
check "a server for two connections" start --operator-connections 2
with_connections '
    for n in 3 4; do
        open $n
        printf "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" >&$n
        read -r line <&$n
        echo "$n $line"
    done
    curl -s -D - "http://$at/healthz"' >"$tmp/held"
check "two connections are served" is "$(grep -c '^[34] HTTP/1.1 200 OK' "$tmp/held")" 2
check "a third one is turned away" has "$(cat "$tmp/held")" 'HTTP/1.1 503 Service Unavailable'
check "and told when to come back" has "$(cat "$tmp/held")" 'Retry-After: 1'
check "it can be stopped" stop

check "a server for slow clients" start --operator-idle 1s
check "a request that doesn't arrive is 408" has "$(with_connections 'open 3; printf "GET /heal" >&3; cat <&3')" '408 Request Timeout'
check "an idle connection is closed without a word" is "$(with_connections 'open 3; cat <&3')" ''
# Two hundred times a contract, 28 MB, asked for and not one byte taken: the writer waits, gives up, and nobody else notices.
# Its first answer, which it does read, shows that it is one of the connections; they are counted with the one that asks.
check "a client who doesn't read is cut off" with_connections '
    open 3
    ask GET /healthz >&3
    read -r line <&3
    for n in {1..200}; do ask GET /openapi/ops.json; done >&3
    other() { get "/stats/tree?format=text" | grep -c " connection \|─ connection"; }
    until [ "$(other)" = 1 ]; do :; done'
check "and it can be stopped" stop

check "a server for a connection to be killed" start
with_connections '
    alive() { printf "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" >&3 && read -r -t 20 line <&3 && echo "$line"; }
    open 3
    alive
    pid=$(get "/stats/tree?format=text" | grep "─ connection" | tail -1 | tr -s " " | sed "s/.* \(0x[0-9a-f]*\) .*/\1/")
    curl -s -H "$bearer" -H "Content-Type: application/json" -d "{\"reason\":\"a test\"}" "http://$at/chaos/actors/$pid:kill"
    echo
    cat <&3 >/dev/null
    echo closed' >"$tmp/held"
# One who reads late: the writer waits, and afterwards the connection hears what is asked next.
with_connections '
    open 3
    for n in {1..200}; do ask GET /openapi/ops.json; done >&3
    waits() { get /stats/tree | grep -q "\"waiting_for\":\"fd\""; }
    until waits; do :; done
    cat <&3 &
    idles() { get /stats/tree | grep -q "\"class\":\"connection\"[^{]*\"status\":\"IDLE\""; }
    until idles; do :; done
    printf "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" >&3
    wait' | grep -c '^HTTP/1.1 200' >"$tmp/late"
check "who reads late gets everything" is "$(cat "$tmp/late")" 201
check "it is served before" has "$(cat "$tmp/held")" 'HTTP/1.1 200 OK'
check "killing its actor" has "$(cat "$tmp/held")" '"end_reason":"killed","successor":null'
check "closes it" has "$(cat "$tmp/held")" closed
check "and counts nobody's budget" lacks "$(get /stats/tree)" '"used":1'
check "and is a death all the same" died
check "it can be stopped" stop

# --- descriptors used up: whoever comes then is told, and nothing spins or dies ---
printf '#!/bin/sh\nulimit -n 96\nexec "%s" "$@"\n' "$COPPICE" >"$tmp/limited"
chmod +x "$tmp/limited"
plenty=$COPPICE
COPPICE=$tmp/limited
check "D8 a server with 96 descriptors" start --descriptors 96 --operator-connections 256
COPPICE=$plenty
with_connections '
    n=10
    while [ $n -lt 80 ]; do
        open $n
        printf "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" >&$n
        read -r -t 20 line <&$n
        echo "$line"
        n=$((n + 1))
    done' >"$tmp/held"
served=$(grep -c '^HTTP/1.1 200' "$tmp/held")
check "D8 some are served" test "$served" -gt 30
check "D8 not all are" test "$served" -lt 64
check "D8 the others are told to come back" is "$(grep -c '^HTTP/1.1 503' "$tmp/held")" $((70 - served))
until [ "$(status GET /healthz)" = 200 ]; do :; done # until the server has seen those connections close
check "D8 then there is room again, and nobody has died" nobody_died
# Clients take what there is, but for some: operators are served meanwhile, and why nobody else is is said once.
export operators="$at"
at=$client
with_connections '
    n=10
    while [ $n -lt 120 ]; do
        open $n
        printf "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" >&$n
        read -r -t 20 line <&$n
        echo "$line"
        n=$((n + 1))
    done
    for n in 1 2 3 4; do curl -s -o /dev/null -w "operators: %{http_code}\n" "http://$operators/readyz"; done' >"$tmp/held"
at=$operators
check "D8 clients have most of them" test "$(grep -c '^HTTP/1.1 200' "$tmp/held")" -gt 25
check "D8 and are told to come back" test "$(grep -c '^HTTP/1.1 503' "$tmp/held")" -gt 20
check "D8 operators are served meanwhile" is "$(grep -c '^operators: 200' "$tmp/held")" 4
check "D8 why is an event" has "$(get '/stats/events?event=http.crowded')" '"listener":"client","reason":"descriptors"'
check "D8 which isn't said of each of them" test "$(get '/stats/events?event=http.crowded' | grep -o '"event":' | wc -l)" -lt 10
until [ "$(curl -s -m 120 -o /dev/null -w '%{http_code}' "http://$client/healthz")" = 200 ]; do :; done
check "D8 then there is room for clients again" nobody_died
check "D8 it can be stopped, and nothing has crashed" stop_unharmed

# The contracts: each form has an ETag of its own.
check "contracts: a server" start
check "the JSON form" is "$(status GET /openapi/ops.json)" 200
etag=$(tr -d '\r' <"$tmp/head" | sed -n 's/^ETag: //p')
check "has an ETag" test -n "$etag"
check "which is known" is "$(status GET /openapi/ops.json -H "If-None-Match: $etag")" 304
check "and not the YAML form's" is "$(status GET /openapi/ops.yaml -H "If-None-Match: $etag")" 200
check "any will do" is "$(status GET /openapi/ops.yaml -H 'If-None-Match: *')" 304
check "another won't" is "$(status GET /openapi/ops.json -H 'If-None-Match: "0123"')" 200
for where in "$at" "$client"; do
    curl -s "http://$where/openapi.json" >"$tmp/all.json"
    check "C.1 one document for all" has "$(cat "$tmp/all.json")" '"/v1/jobs/{job_id}":{"$ref":"openapi/jobs.json#/paths/~1jobs~1%7Bjob_id%7D"}'
    check "C.1 with the webhooks" has "$(cat "$tmp/all.json")" '"webhooks":{"jobEvent":{"$ref":"openapi/jobs.json#/webhooks/jobEvent"}}'
    check "C.1 YAML of it" is "$(curl -s "http://$where/openapi.yaml" | cksum)" "$(cksum <"$tmp/all.json")"
    check "C.1 the events" is "$(curl -s "http://$where/asyncapi.yaml" | cksum)" "$(cksum <docs/contract/control.asyncapi.yaml)"
done
for where in "$at" "$client"; do
    for href in $(curl -s "http://$where/" | grep -o '"href":"[^"]*"' | cut -d '"' -f 4); do
        check "what GET / names is there: $href" test "$(curl -s -o /dev/null -w '%{http_code}' "http://$where/$href")" != 404
    done
done
check "GET / of clients" has "$(curl -s "http://$client/")" '"listener":"client"'
check "GET / of operators" has "$(curl -s "http://$at/")" '"listener":"operator"'
check "a page for a browser" has "$(curl -s -H 'Accept: text/html' "http://$client/")" '<!DOCTYPE html>'
check "whom to tell isn't known" is "$(status GET /.well-known/security.txt)" 404
check "contracts: the end" stop
check "a server with somebody to tell" start --security-contact mailto:security@example.com --security-validity 2d
told=$(get /.well-known/security.txt)
check "RFC 9116 whom" has "$told" 'Contact: mailto:security@example.com'
expires=$(printf '%s\n' "$told" | sed -n 's/^Expires: //p')
check "RFC 9116 it is good for as long as was said" test "$(($(date -d "$expires" +%s) - $(date +%s)))" -gt 86000
check "it can be stopped" stop
check "a contact that is none" sh -c '"$1" config check --security-contact somebody 2>&1 | grep -q "it must be a URI"' sh "$COPPICE"


# --- a unix socket ---
socket=$tmp/operator.sock
ask() { curl -sS -m 10 --unix-socket "$socket" http://localhost/healthz; }
check "a server on a unix socket" start --operator-listen "unix:$socket"
check "no token is asked for there" has "$(curl -sS --unix-socket "$socket" http://localhost/stats)" '{"version":"'
check "it says where" is "$at" "unix:$socket"
check "only its owner may connect" is "$(stat -c %a "$socket")" 600
check "it serves" has "$(ask)" '{"status":"ok"'
check "coppice tree finds it" sh -c '"$1" tree --operator-listen "unix:$2" | grep -q "^root "' sh "$COPPICE" "$socket"
check "a second server is refused" sh -c '"$1" serve --operator-listen "unix:$2" 2>/dev/null; [ $? = 69 ]' sh "$COPPICE" "$socket"
check "and has left the first alone" has "$(ask)" '{"status":"ok"'
kill -9 "$server"
wait "$server" 2>/dev/null
check "a killed one leaves its socket" test -S "$socket"
check "which the next one replaces" start --operator-listen "unix:$socket"
check "and serves on" has "$(ask)" '{"status":"ok"'
check "a stop" stop
check "removes it" test ! -e "$socket"
echo precious >"$socket"
check "a file is no socket" sh -c '"$1" serve --operator-listen "unix:$2" 2>/dev/null; [ $? = 69 ]' sh "$COPPICE" "$socket"
check "and is left alone" is "$(cat "$socket")" precious
finish
