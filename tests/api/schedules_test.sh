#!/bin/sh
# Schedules from outside: jobs come at their times, on a clock that is moved; what is left out says why.
cd "$(dirname "$0")/../.." || exit 1
. tests/api/server.sh

# ask STATUS METHOD PATH KEY [BODY [OPTION...]]: the answer stays in $tmp/body, its head in $tmp/head
ask() {
    status=$1 method=$2 path=$3 who=$4 body=${5:-}
    shift $(($# < 5 ? $# : 5))
    is "$(curl -s -m 120 -o "$tmp/body" -D "$tmp/head" -w '%{http_code}' -X "$method" -H "$who" -H 'Content-Type: application/json' \
        ${body:+--data-binary "$body"} "$@" "http://$client$path")" "$status"
}
answer() {
    has "$(cat "$tmp/body")" "$1"
}
join() {
    id=$(curl -s -X POST "http://$client/v1/clients" | sed 's/.*"client_id":"\([^"]*\)".*/\1/')
    key="Authorization: Bearer $(curl -s -X POST "http://$client/v1/clients/$id/keys" | sed 's/.*"api_key":"\([^"]*\)".*/\1/')"
}
advance() {
    "$COPPICE" clock advance "$1" --url "http://$at" --token-file "$tmp/store/operator.token" >"$tmp/stdout" 2>&1
}
# shows TEXT: asks for the schedule until it says so; each answer is a round trip
shows() {
    for _ in $(seq 20000); do
        ask 200 GET "$one" "$mine" || return 1
        grep -q "$1" "$tmp/body" && return 0
    done
    answer "$1"
}

check "a server without workers" start --schedulers 2 --workers-count 0
join
mine=$key
join
other=$key
hour=$((($(date -u +%-H) + 12) % 24)) # not now, whatever the clock says
check "a schedule" ask 201 POST /v1/schedules "$mine" '{"cron":"0 '$hour' * * *","name":"nightly","work_kind":"SUCCESS_FAST","grace_s":86400}'
one=/v1/schedules/$(member schedule_id "$(cat "$tmp/body")")
check "it says where" grep -qi "^location: $one" "$tmp/head"
check "and when" answer "$(printf 'T%02d:00:00.000Z' $hour)"'"],"history":[]'
check "it is listed" ask 200 GET /v1/schedules "$mine"
check "by its name" answer '"name":"nightly"'
check "nothing was submitted yet" answer '"last_job_id":null,"submitted":0,"skipped":0'
check "the other client sees none" ask 200 GET /v1/schedules "$other"
check "none" is "$(cat "$tmp/body")" '{"items":[]}'
check "nor this one" ask 403 GET "$one" "$other"

check "with a key" ask 201 POST /v1/schedules "$other" '{"cron":"5 5 5 5 *"}' -H 'Idempotency-Key: once'
twin=$(member schedule_id "$(cat "$tmp/body")")
check "it is new" is "$(grep -ci '^idempotent-replayed' "$tmp/head")" 0
check "the same again" ask 201 POST /v1/schedules "$other" '{ "cron": "5 5 5 5 *" }' -H 'Idempotency-Key: once'
check "is the same one" is "$(member schedule_id "$(cat "$tmp/body")")" "$twin"
check "and says so" grep -qi '^idempotent-replayed: true' "$tmp/head"
check "another body isn't" ask 409 POST /v1/schedules "$other" '{"cron":"6 6 6 6 *"}' -H 'Idempotency-Key: once'
check "by its code" answer RFA_EXEC_IDEMPOTENCY_CONFLICT
check "another client's key is its own" ask 201 POST /v1/schedules "$mine" '{"cron":"6 6 6 6 *"}' -H 'Idempotency-Key: once'
check "which goes again" ask 200 DELETE "/v1/schedules/$(member schedule_id "$(cat "$tmp/body")")" "$mine"
check "a key that is none" ask 400 POST /v1/schedules "$other" '{"cron":"6 6 6 6 *"}' -H 'Idempotency-Key: a b'
check "one was made" ask 200 GET /v1/schedules "$other"
check "and no other" is "$(grep -o schedule_id "$tmp/body" | wc -l)" 1
check "it is removed" ask 200 DELETE "/v1/schedules/$twin" "$other"
check "a repeat makes no other" ask 404 POST /v1/schedules "$other" '{"cron":"5 5 5 5 *"}' -H 'Idempotency-Key: once'

check "a day passes" advance 24h
check "it was submitted" shows '"submitted":1,"skipped":0'
check "and says which" answer '"outcome":"submitted","job_id":"'
job=$(member last_job_id "$(cat "$tmp/body")")
check "the job is there" ask 200 GET "/v1/jobs/$job" "$mine"
check "and waits" answer '"state":"QUEUED"'
check "another day" advance 24h
check "it overlaps, and is left out" shows '"submitted":1,"skipped":1'
check "that is why" answer '"outcome":"overlap","job_id":null'
check "by hand" ask 200 POST "$one:run" "$mine" '{}'
check "at once" answer '"outcome":"by_hand"'
check "it rests" ask 200 POST "$one:pause" "$mine"
check "without times" answer '"next_runs":[]'
check "days pass" advance 72h
check "nothing is made up for" ask 200 POST "$one:resume" "$mine"
check "it goes on" answer '"submitted":2,"skipped":1'
check "another's hands off" ask 403 DELETE "$one" "$other"
check "it ends" ask 200 DELETE "$one" "$mine"
check "it is gone" ask 404 GET "$one" "$mine"

check "an expression that can't be" ask 400 POST /v1/schedules "$mine" '{"cron":"0 25 * * *"}'
check "says where" answer "the hour is '25'; it must be made of 0 to 23"
# which MEMBER: the refusal names it, by itself and in its list
which() {
    is "$(member field "$(cat "$tmp/body")")" "$1" && answer '"errors":[{"field":"'"$1"'","message":"'
}
check "and of which member" which cron
check "one that never comes" ask 400 POST /v1/schedules "$mine" '{"cron":"0 0 30 2 *"}'
check "says why" answer "none of its months has such a day"
check "and of which member" which cron
check "a day that comes in some years" ask 201 POST /v1/schedules "$mine" '{"cron":"0 0 29 2 *"}'
check "a name of 64 characters" ask 201 POST /v1/schedules "$mine" '{"cron":"5 5 5 5 *","name":"'"$(printf %064d 0 | sed 's/0/ä/g')"'"}'
check "is told whole" answer '"name":"'"$(printf %064d 0 | sed 's/0/ä/g')"'"'
check "it runs" ask 200 POST "/v1/schedules/$(member schedule_id "$(cat "$tmp/body")"):run" "$mine"
check "and is told whole again" answer '"name":"'"$(printf %064d 0 | sed 's/0/ä/g')"'"'
check "a name of 65" ask 400 POST /v1/schedules "$mine" '{"cron":"5 5 5 5 *","name":"'"$(printf %065d 0 | sed 's/0/ä/g')"'"}'
check "says so" answer '"field":"name"'
check "too few fields" ask 400 POST /v1/schedules "$mine" '{"cron":"* * *"}'
check "are named so" which cron
check "no expression" ask 400 POST /v1/schedules "$mine" '{}'
# refuses FIELD TEXT MEMBERS: what is wrong is named, and what it is
refuses() {
    ask 400 POST /v1/schedules "$mine" "{\"cron\":\"* * * * *\",$3}" && is "$(member field "$(cat "$tmp/body")")" "$1" && answer "$2"
}
check "no such kind" refuses work_kind 'work_kind must be one of the catalogue' '"work_kind":"NOPE"'
check "one that is refused always" refuses work_kind 'work_kind must be one of the catalogue' '"work_kind":"PAYLOAD_INVALID"'
check "a name that is none" refuses work_kind 'or one of your own that begins with x.' '"work_kind":"x.A"'
check "a payload without a kind" refuses payload 'payload is for kinds that begin with x.' '"payload":{}'
check "a payload for one of the catalogue" refuses payload 'payload is for kinds that begin with x.' '"work_kind":"SUCCESS_FAST","payload":{}'
check "a payload that is too large" refuses payload 'payload has 4097 bytes; 4096 may be sent here' "\"work_kind\":\"x.a\",\"payload\":\"$(head -c 4095 /dev/zero | tr '\0' a)\""
check "no such policy" refuses overlap 'must be' '"overlap":"queue"'
check "no such way to make up for it" refuses missed 'must be' '"missed":"all"'
check "nobody's payload may have 4096 bytes" ask 201 POST /v1/schedules "$mine" "{\"cron\":\"5 5 5 5 *\",\"work_kind\":\"x.a\",\"payload\":\"$(head -c 4094 /dev/zero | tr '\0' a)\"}"
check "nobody died" nobody_died
check "the end" stop_unharmed

check "a server whose clock is a month ahead" start --schedulers 2 --workers-count 0 --clock-offset 720h
join
mine=$key
check "a schedule of each minute" ask 201 POST /v1/schedules "$mine" '{"cron":"* * * * *","grace_s":86400}'
one=/v1/schedules/$(member schedule_id "$(cat "$tmp/body")")
check "a restart" stop_unharmed
check "with the right clock" start --schedulers 2 --workers-count 0
check "a minute passes" advance 61s
check "it goes on at once" shows '"submitted":[1-9]'
check "the end" stop_unharmed
finish
