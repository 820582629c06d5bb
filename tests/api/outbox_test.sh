#!/bin/sh
# What the outbox has given up, from outside, by an operator: an event of a job that is damaged is listed with the reason, is given up again
# when it is revived too early, and arrives when it is revived behind the repair.
cd "$(dirname "$0")/../.." || exit 1
. tests/api/server.sh
"${CC:-cc}" -O1 -o "$tmp/receiver" tests/api/receiver.c || exit 1
receiver=
trap 'kill -9 $server $receiver 2>/dev/null; rm -rf "$tmp"' EXIT
json='Content-Type: application/json'

# A receiver at $port; what it prints is read from 8.
mkfifo "$tmp/got"
"$tmp/receiver" >"$tmp/got" &
receiver=$!
exec 8<"$tmp/got"
read -r port <&8
# got TEXT: reads what came until a request has it
got() {
    while read -r request <&8; do
        case $request in *"$1"*) return 0 ;; esac
    done
    return 1
}
serve() {
    start --schedulers 2 --outbound-allow-private --webhooks-timeout 60s --webhooks-max-retries 100 --webhooks-backoff-base 20ms
}
# runs STATUS ARGUMENT...: leaves standard output and error in $tmp
runs() {
    wanted=$1
    shift
    "$COPPICE" "$@" --url "http://$at" --token-file "$tmp/store/operator.token" >"$tmp/stdout" 2>"$tmp/stderr"
    is $? "$wanted"
}
out() { has "$(cat "$tmp/stdout")" "$1"; }
err() { has "$(cat "$tmp/stderr")" "$1"; }
listed() { has "$(get /outbox/dead)" "$1"; }
# becomes TEXT: asked until the list of the dead has it
becomes() {
    for _ in $(seq 20000); do
        get /outbox/dead >"$tmp/dead" || break
        ! grep -q -- "$1" "$tmp/dead" || return 0
    done
    cat "$tmp/dead"
    return 1
}
checks() {
    "$COPPICE" check --store-dir "$tmp/store"
    is $? "$1"
}
# swap FROM TO: of the same length, wherever the file of the store has it, which the server sees at once; meanwhile it stands still
swap() {
    kill -STOP "$server"
    LC_ALL=C grep -abo -- "$1" "$tmp/store/data.mdb" | cut -d : -f 1 >"$tmp/places"
    while read -r place; do
        printf %s "$2" | dd of="$tmp/store/data.mdb" bs=1 seek="$place" conv=notrunc status=none
    done <"$tmp/places"
    kill -CONT "$server"
    [ -s "$tmp/places" ]
}
status() {
    curl -s -m 120 -o "$tmp/body" -w '%{http_code}' "$@"
}

check "a server" serve
check "nothing is dead" is "$(get /outbox/dead)" '{"dead":[],"next":null}'
check "nor counted" has "$(get /stats)" '"outbox_dead":[0,0,0,0,0,0,0,0]'
check "nor told to people" runs 0 outbox dead
check "an unknown row" runs 1 outbox revive 3-17
check "isn't there" err "OPS_404_NOT_FOUND"
check "clients can't see it" is "$(status -H "$bearer" "http://$client/outbox/dead")" 404
check "nor revive" is "$(status -X POST -H "$bearer" "http://$client/outbox/dead/3-17:revive")" 404
check "nobody can without the token" is "$(status "http://$at/outbox/dead")" 401
check "nor revive" is "$(status -X POST "http://$at/outbox/dead/3-17:revive")" 401

# --- an event that can't be handed on ---
id=$(member client_id "$(curl -s -m 120 -X POST "http://$client/v1/clients")")
key=$(member api_key "$(curl -s -m 120 -X POST "http://$client/v1/clients/$id/keys")")
post() { curl -s -m 120 -X POST -H "Authorization: Bearer $key" -H "$json" -d "$2" "http://$client$1"; }
job=$(member job_id "$(post /v1/work:submit "{\"work_kind\":\"x.mend\",\"payload\":1,\"callback\":\"http://127.0.0.1:$port/ok-sound\"}")")
check "a job with a receiver" got '"event_name":"job.queued"'
check "where the job is told to is damaged" swap ok-sound ok-wrong
post "/v1/jobs/$job/cancel" '' >"$tmp/body"
check "what can't be handed on is listed" becomes "\"job_id\":\"$job\""
row=$(member id "$(cat "$tmp/dead")")
check "of what it is" listed '"topic":"job"'
check "with the reason" listed '"reason":"damaged","attempts":0,"unreadable":null'
check "and when" listed '"buried_at":"20'
check "it is counted" has "$(get /stats | grep -o '"outbox_dead":\[[0-9,]*\]')" 1
check "for people" runs 0 outbox dead
check "in a table" out "$job"
check "as lines" runs 0 outbox dead --output jsonl --limit 1
check "a line each" is "$(wc -l <"$tmp/stdout")" 1
check "coppice check tells of what is damaged" checks 65

# --- revived too early ---
before=$(member buried_at "$(get /outbox/dead)")
again() {
    for _ in $(seq 20000); do
        kill -0 "$server" || return 1
        after=$(member buried_at "$(get /outbox/dead)")
        [ -z "$after" ] || [ "$after" = "$before" ] || return 0
    done
    return 1
}
check "revived while its job is damaged" runs 0 outbox revive "$row" --reason "a try" --json
check "says which" is "$(cat "$tmp/stdout")" "{\"id\":\"$row\",\"revived\":true}"
check "it is given up again" again
check "as the same row" listed "\"id\":\"$row\",\"topic\":\"job\""
check "with attempts from 0" listed '"attempts":0'

# --- and behind the repair ---
check "the job is mended" swap ok-wrong ok-sound
check "revived" runs 0 outbox revive "$row" --reason "it is mended"
check "the receiver gets it" got "\"job_id\":\"$job\",\"event_name\":\"job.canceled\""
check "nothing is dead any more" is "$(get /outbox/dead)" '{"dead":[],"next":null}'
check "revived twice" runs 1 outbox revive "$row"
check "it isn't dead" err "OPS_404_NOT_FOUND"
audits=$(get /stats/audits)
check "both are in the audit log" is "$(printf '%s' "$audits" | grep -o '"verb":"outbox.revived"' | wc -l)" 2
check "with the row and the reason" has "$audits" "\"verb\":\"outbox.revived\",\"target\":\"$row\",\"reason\":\"it is mended\",\"outcome\":\"done\""
check "and who did it" has "$audits" '"who":"operator","verb":"outbox.revived"'
check "TOP-089 to TOP-091 and of what was given up there is an event" has "$(get '/stats/events?event=failure.poison_message')" \
    "\"dimensions\":{\"component\":\"relay\",\"failure_class\":\"degraded\",\"message_id\":\"$row\",\"reason\":\"damaged\",\"disposition\":\"dead_letter\"}"
check "nobody died" nobody_died
check "the end" stop
check "the store is sound" checks 0
finish
