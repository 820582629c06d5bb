#!/bin/sh
# Settings from outside: where they come from, what is refused, and what a reload does to a running server.
cd "$(dirname "$0")/../.." || exit 1
. tests/api/server.sh

# runs STATUS ARGUMENT...: leaves standard output and error in $tmp
runs() {
    wanted=$1
    shift
    "$COPPICE" "$@" >"$tmp/stdout" 2>"$tmp/stderr"
    is $? "$wanted"
}
out() { has "$(cat "$tmp/stdout")" "$1"; }
err() { has "$(cat "$tmp/stderr")" "$1"; }
settings() { cat >"$tmp/coppice.json"; }
file=$tmp/coppice.json

# --- what is in force, and why ---
settings <<JSON
// a machine
{ "environment": "stage", /* no public address */ "slice": "2ms",
  "store": { "dir": "$tmp/store" }, "log.level": "warn" }
JSON
check "check" runs 0 config check --config "$file"
check "check says so" out "the settings can be used"
check "check as JSON" runs 0 config check --config "$file" --json
check "check as JSON says so" out '{"valid":true,"environment":"stage"}'
COPPICE_SLICE=3ms runs 0 config show --config "$file" --schedulers 2
check "a flag counts" out "schedulers                         2                      flag --schedulers"
check "before the environment" out "slice                              3ms                    environment COPPICE_SLICE"
check "before the file" out "environment                        stage                  file $file:2"
check "before the defaults" out "runaway                            1s                     default"
runs 0 config show --config "$file" --effective --source=default --json
check "AMB-79 defaults alone" lacks "$(cat "$tmp/stdout")" '"source":"file"'
check "CTL-027 config show prints the active versions" out '{"key":"api.versions","value":"v1","source":"default"'
check "CTL-083 and what a job of tier C may take" out '{"key":"timeouts.tier_c.total","value":"3h3m5s"'
check "AMB-79 defaults are there" out '{"key":"keys.rotation_cadence","value":"6h","source":"default","at":null,"reloadable":false}'
COPPICE_CONFIG=$file runs 0 config show --source file
check "the variable names the file" out "log.level"
mkdir -p "$tmp/home/coppice/conf.d"
echo '{"slice": "4ms", "runaway": "2s"}' >"$tmp/home/coppice/coppice.json"
echo '{"slice": "5ms"}' >"$tmp/home/coppice/conf.d/10.json"
if [ "$(id -u)" = 0 ]; then
    runs 0 config show --config "$tmp/home/coppice/coppice.json" --source file
else
    XDG_CONFIG_HOME=$tmp/home runs 0 config show --source file
fi
check "conf.d comes on top" out "slice                              5ms                    file $tmp/home/coppice/conf.d/10.json:1"
check "of what lies beside it" out "runaway                            2s"
check "schema" runs 0 config schema
check "schema names settings" out '"store.dir":{"type":"string"'
check "and those that may be several" out '"http.listen":{"oneOf":[{"type":"string"'

# --- what is refused ---
echo '{"store": {
"dirr": "x"}}' >"$file"
check "JOB-454 an unknown key" runs 78 config check --config "$file"
check "JOB-360 JOB-454 it has a code, a line and a neighbour" err "RFA_CONFIG_INVALID: $file:2: there is no setting 'store.dirr'; did you mean store.dir?"
check "JOB-454 as JSON" runs 78 config check --config "$file" --json
check "JOB-360 as JSON it has a code" out '{"valid":false,"code":"RFA_CONFIG_INVALID","detail":"'
check "JOB-454 a server doesn't start with it" runs 78 serve --config "$file" --store-dir "$tmp/none"
check "JOB-454 and says so by its code" err "RFA_CONFIG_INVALID: $file:"
check "JOB-454 and leaves nothing behind" test ! -e "$tmp/none"
echo '{"slice": 7}' >"$file"
check "JOB-454 a wrong type" runs 78 config check --config "$file"
check "JOB-454 it is named" err "slice is a number; it must be a text: a duration from 100us to 1s"
echo '{"guardian": "yes"}' >"$file"
check "JOB-454 no truth" runs 78 config check --config "$file"
check "JOB-454 it is named once" err "guardian is a text; it must be true or false"
check "JOB-454 and not twice" lacks "$(cat "$tmp/stderr")" 'true or false: true or false'
check "a store where there is no place" runs 78 config check --config /dev/null --store-dir "$tmp/no/such/place"
check "it is said which" err "no store can be kept in '$tmp/no/such/place': '$tmp/no/such': No such file or directory"
mkdir "$tmp/of-others" && : >"$tmp/of-others/theirs"
check "a store among other things" runs 78 config check --config /dev/null --store-dir "$tmp/of-others"
check "a store in a file" runs 78 config check --config /dev/null --store-dir "$file"
check "it is said why" err "Not a directory"
check "a store that is to be made" runs 0 config check --config /dev/null --store-dir "$tmp/to-be-made/"
check "isn't made" test ! -e "$tmp/to-be-made"
echo '{"schedulers": 65}' >"$file"
check "JOB-454 a value out of range" runs 78 config check --config "$file"
check "JOB-454 its key is named" err "$file:1: schedulers is '65'; it must be a whole number from 0 to 64"
echo '{"slice": "1ms", "slice": "2ms"}' >"$file"
check "a key that stands there twice" runs 78 config check --config "$file"
check "a file that isn't there" runs 78 config check --config "$tmp/nothing.json"
check "it is named" err "$tmp/nothing.json: No such file or directory"
: >"$tmp/empty.json"
check "an empty file" runs 78 config check --config "$tmp/empty.json"
check "is named" err "$tmp/empty.json: the file is empty"
check "nothing that was meant is nothing" runs 0 config check --config /dev/null
for env in dev stage prod; do
    case $env in dev) days=30 ;; stage) days=14 ;; prod) days=7 ;; esac
    check "CTL-106..CTL-108 $env has a ceiling" runs 0 config check --env $env --keys-rotation-cadence "${days}d"
    check "CTL-106..CTL-108 $env refuses more" runs 78 config check --env $env --keys-rotation-cadence $((days + 1))d
    check "CTL-115 a release of $env decides three" runs 78 config check --release --env $env
    check "CTL-115 it names them" err "keys.rotation_cadence, keys.overlap, keys.revocation_sla"
done
decided="--release --keys-rotation-cadence 6h --keys-overlap 9h --keys-revocation-sla 1m"
check "CTL-115 with them stage can be released" runs 0 config check --env stage $decided
check "CTL-120 prod needs the record of RB-015" runs 78 config check --env prod $decided
check "CTL-120 it is named" err "RB-015"
check "CTL-120 with it prod can be released" runs 0 config check --env prod $decided --keys-bootstrap-rehearsed 2026-11-18
check "CTL-085 a long cadence is a warning" runs 0 config check --keys-rotation-cadence 8h
check "CTL-085 which is said" err "warning: keys.rotation_cadence is 8h"
check "CTL-085 a short overlap is refused" runs 78 config check --keys-overlap 7h
check "CTL-068 plain HTTP to everybody" runs 78 config check --env prod --http-listen 0.0.0.0:80
check "CTL-068 behind a proxy" runs 0 config check --env prod --http-listen 0.0.0.0:80 --tls-terminated-by-proxy
check "CTL-083 a budget of tier C beyond an agent's token" runs 78 config check --timeouts-tier-c-total 14401s
check "CTL-083 which is said" err "(CTL-083)"
check "CTL-083 as long as it" runs 0 config check --timeouts-tier-c-total 14400s
echo '{"agent_templates": {"builder": {"max_token_seconds": {"C": 14401}}}}' >"$file"
check "CTL-081 a template beyond 4 hours" runs 78 config check --config "$file"
check "CTL-081 which is said" err "agent_templates.builder.max_token_seconds.C is '14401'"
check "CTL-149 inline scripts" runs 78 config check --http-csp-script-src "'self' 'unsafe-inline'"
check "AMB-78 a clock ahead is for dev" runs 78 config check --env prod --clock-offset 1h

# --- what the settings rely on is looked at before anything is made ---
# wrong WHAT SAYS ARGUMENT...: neither is it found good, nor does a server start with it, and nothing is left
wrong() {
    what=$1 says=$2
    shift 2
    check "$what is wrong" runs 78 config check --store-dir "$tmp/none" "$@"
    check "$what is named" err "$says"
    check "$what stops a start" runs 78 serve --store-dir "$tmp/none" --http-listen 127.0.0.1:0 --operator-listen 127.0.0.1:0 "$@"
    check "$what is named there, too" err "$says"
    check "JOB-454 by the code" err "coppice: RFA_CONFIG_INVALID: "
    check "$what leaves nothing behind" test ! -e "$tmp/none"
}
secret() { # secret NAME MODE: of what comes in
    cat >"$tmp/$1"
    chmod "$2" "$tmp/$1"
}
for name in one two; do
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$tmp/$name.key" -out "$tmp/$name.crt" -days 2 -subj /CN=localhost \
        >/dev/null 2>&1
done
wrong "a pair that is none" "--tls-certificate: " --tls-certificate "$tmp/one.crt" --tls-key "$tmp/two.key"
head -c 31 /dev/zero | secret short.key 600
head -c 32 /dev/zero | secret open.key 644
head -c 32 /dev/zero | secret good.key 600
wrong "a short master key" "--auth-master-key: '$tmp/short.key' has 31 bytes, and a master key has 32" --auth-master-key "$tmp/short.key"
wrong "an open master key" "--auth-master-key: '$tmp/open.key' can be read by others" --auth-master-key "$tmp/open.key"
wrong "a master key that isn't there" "--auth-master-key: '$tmp/typo' isn't there" --auth-master-key "$tmp/typo"
check "and none is made" test ! -e "$tmp/typo"
check "a good one is good" runs 0 config check --auth-master-key "$tmp/good.key"
echo nonsense | secret nonsense.token 600
printf 'cop_op_%043d\n' 1 | secret open.token 644
printf 'cop_op_%043d\n' 1 | secret good.token 600
wrong "a token that is none" "--operator-token: '$tmp/nonsense.token' holds no operator's token" --operator-token "$tmp/nonsense.token"
wrong "an open token" "--operator-token: '$tmp/open.token' can be read by others" --operator-token "$tmp/open.token"
wrong "a token that isn't there" "--operator-token: '$tmp/typo' isn't there" --operator-token "$tmp/typo"
check "a good token is good" runs 0 config check --operator-token "$tmp/good.token"
echo nope >"$tmp/nope.json"
echo '{"keys":[]}' >"$tmp/empty.json"
wrong "a key set that is none" "--auth-jwks-file: '$tmp/nope.json' can't be used: it is no JSON" --auth-jwks-issuer a --auth-jwks-file "$tmp/nope.json"
wrong "a key set without keys" "--auth-jwks-file: '$tmp/empty.json' can't be used: it has no keys" --auth-jwks-issuer a --auth-jwks-file "$tmp/empty.json"
wrong "a key set that isn't there" "--auth-jwks-file: '$tmp/typo' can't be used: No such file" --auth-jwks-issuer a --auth-jwks-file "$tmp/typo"
wrong "a journal without a folder" "--store-record: no file can be made in '$tmp/typo'" --store-record "$tmp/typo/journal"
check "JOB-454 the log has the code as well" err '"boot_stage":"check","error_code":"RFA_CONFIG_INVALID"'
check "a journal in the store's folder" runs 0 config check --store-dir "$tmp/none" --store-record "$tmp/none/journal"
wrong "one address for two" "--http-listen is '127.0.0.1:17070' and operator.listen is '127.0.0.1:17070'" --http-listen 127.0.0.1:17070 --operator-listen 127.0.0.1:17070
wrong "more descriptors than there may be" "--descriptors is 1048576, and this process may have $(ulimit -Hn) files" --descriptors 1048576
for pair in PROTOCOL=grpc TIMEOUT=abc HEADERS=bad COMPRESSION=gzip; do
    export "OTEL_EXPORTER_OTLP_$pair" OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1
    wrong "$pair of telemetry" "OTEL_EXPORTER_OTLP_${pair%=*}"
    unset "OTEL_EXPORTER_OTLP_${pair%=*}"
done
OTEL_TRACES_SAMPLER=foo wrong "a sampler nobody knows" OTEL_TRACES_SAMPLER
check "tracing that is off isn't looked at" runs 0 config check --no-trace
unset OTEL_EXPORTER_OTLP_ENDPOINT

# --- where it is to listen: what keeps a start from it keeps the check from saying yes ---
# same STATUS TEXT ARGUMENT...: a start and the check end with this status and the same words
same() {
    wanted=$1 says=$2
    shift 2
    "$COPPICE" serve --store-dir "$tmp/never" "$@" >"$tmp/stdout" 2>"$tmp/served"
    is $? "$wanted" && runs "$wanted" config check --store-dir "$tmp/never" "$@" && err "$says" &&
        is "$(cat "$tmp/stderr")" "$(tail -1 "$tmp/served")" && [ ! -e "$tmp/never" ]
}
check "a socket where there is no directory" same 69 "the directory of the socket isn't there" --operator-listen "unix:$tmp/nope/x.sock" --http-listen 127.0.0.1:0
check "one of clients" same 69 "the directory of the socket isn't there" --http-listen "127.0.0.1:0,unix:$tmp/nope/x.sock" --operator-listen 127.0.0.1:0
check "a socket with a file's name" same 69 "something that is no socket has that name" --operator-listen "unix:$file" --http-listen 127.0.0.1:0
check "an address that isn't this machine's" same 69 "no interface of this machine has that address" --http-listen 192.0.2.1:8080 --tls-terminated-by-proxy --operator-listen 127.0.0.1:0
check "addresses that may be had" runs 0 config check --http-listen "127.0.0.1:0,unix:$tmp/x.sock" --operator-listen "unix:$tmp/y.sock"
check "nothing was made for it" sh -c 'test ! -e "$1" && test ! -e "$2"' sh "$tmp/x.sock" "$tmp/y.sock"
check "a server" start --http-listen "127.0.0.1:0,unix:$tmp/x.sock"
check "says all of where its clients connect" has "$line" "\"client\":\"$client,unix:$tmp/x.sock\""
check "an address that is taken is no reason" runs 0 config check --store-dir "$tmp/never" --http-listen "$client,unix:$tmp/x.sock" --operator-listen "$at"
check "SIGTERM ends it with 0" stop
if [ "$(id -u)" = 0 ] && have setpriv; then
    nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set -all "$@"; }
    mkdir -m 777 "$tmp/free"
    mkdir -m 755 "$tmp/theirs"
    chmod 755 "$tmp"
    cp "$COPPICE" "$tmp/free/coppice"
    # as_nobody STATUS TEXT COMMAND ARGUMENT...
    as_nobody() {
        wanted=$1 says=$2
        shift 2
        nobody "$tmp/free/coppice" "$@" --store-dir "$tmp/free/store" >"$tmp/stdout" 2>"$tmp/stderr"
        is $? "$wanted" && err "$says"
    }
    theirs="this user may not make a socket in that directory"
    check "a directory of somebody else" as_nobody 77 "$theirs" serve --operator-listen "unix:$tmp/theirs/x.sock" --http-listen 127.0.0.1:0
    check "keeps the check from saying yes" as_nobody 77 "$theirs" config check --operator-listen "unix:$tmp/theirs/x.sock" --http-listen 127.0.0.1:0
    if [ "$(cat /proc/sys/net/ipv4/ip_unprivileged_port_start)" -gt 80 ]; then
        check "a port for root alone" as_nobody 77 "a port below 1024 needs CAP_NET_BIND_SERVICE" serve --http-listen 127.0.0.1:80 --operator-listen 127.0.0.1:0
        # A unit's ExecStartPre has none of the descriptors that the server gets.
        maybe="coppice: warning: --http-listen: this user can't listen at 127.0.0.1:80 itself; a socket unit may bring it"
        check "which the check warns of" as_nobody 0 "$maybe" config check --http-listen 127.0.0.1:80 --operator-listen 127.0.0.1:0
        check "and goes on" out "the settings can be used"
        check "of operators, too" as_nobody 0 "--operator-listen: this user can't listen at [::1]:80 itself" config check --http-listen 127.0.0.1:0 --operator-listen '[::1]:80'
        check "and goes on behind it" as_nobody 69 "no interface of this machine has that address" config check --http-listen 127.0.0.1:80,192.0.2.1:8080 --tls-terminated-by-proxy --operator-listen 127.0.0.1:0
    fi
fi

# --- a reload ---
template='"agent_templates.builder.max_token_seconds.C"'
echo "{\"log\": {\"level\": \"info\"}, \"http.idle\": \"60s\", $template: 1800}" >"$file"
check "a server" start --config "$file"
running() { curl -sS -m 120 -H "$bearer" "http://$at/config"; }
reload() {
    kill -HUP "$server"
    await "\"logger\":\"reload\""
}
echo "{\"log\": {\"level\": \"info\"}, \"http.idle\": \"5s\", \"store.map\": \"2GiB\", $template: 1800}" >"$file"
check "SIGHUP" reload
check "it says what was applied" has "$line" '"applied":"http.idle"'
check "and what needs a restart" has "$line" '"needs_restart":"store.map"'
check "the server shows what was applied" has "$(running)" '{"key":"http.idle","value":"5s","source":"file",'
check "of what needs a restart it shows what it runs with" has "$(running)" '{"key":"store.map","value":"1GiB","source":"default","at":null,'
check "SIGHUP with the same file" reload
check "says again what needs a restart, and that alone" has "$line" '"applied":"","needs_restart":"store.map"'
echo "{\"log\": {\"level\": \"info\"}, \"http.idle\": \"5s\", $template: 1800}" >"$file"
check "SIGHUP with what it was started with" reload
check "nothing needs a restart any more" lacks "$line" '"needs_restart"'
echo '{"log": {"level": "info"}, "http.idle": "5s", "tls.certificate": "/nowhere/c", "tls.key": "/nowhere/k", '"$template: 1800}" >"$file"
check "SIGHUP with TLS" reload
check "which needs a restart" has "$line" '"needs_restart":"tls.certificate, tls.key"'
check "the server shows that it has none" has "$(running)" '{"key":"tls.certificate","value":"","source":"default","at":null,'
check "and no key either" has "$(running)" '{"key":"tls.key","value":"","source":"default","at":null,'
echo '{"log": {"level": "info"}, "http.idle": "5s", "agent_templates.builder.max_token_seconds.C": 3600,
  "limits.clients.018f5c8e-0000-7000-8000-000000000001.requests_per_minute": 7}' >"$file"
check "SIGHUP with keys that have a name in them" reload
check "JOB-447 a client's limit counts at once" has "$line" '"applied":"limits.clients"'
check "CTL-162 config show has it" runs 0 config show --config "$file" --source file
check "CTL-162 with its place" out "limits.clients.018f5c8e-0000-7000-8000-000000000001.requests_per_minute 7                      file $file:2"
check "CTL-162 the server shows it" has "$(curl -sS -m 120 -H "$bearer" "http://$at/config")" '{"key":"limits.clients.018f5c8e-0000-7000-8000-000000000001.requests_per_minute","value":7,"source":"file"'
check "CTL-081 an agent's template from the next start on" has "$line" '"needs_restart":"agent_templates"'
check "CTL-081 until then the server shows the one that it has" has "$(running)" '{"key":"agent_templates.builder.max_token_seconds.C","value":1800,"source":"file"'
check "CTL-081 and that alone" lacks "$(running)" '"value":3600,'
echo "{\"log\": {\"level\": \"info\"}, \"http.idle\": \"5s\", $template: 1800}" >"$file"
check "SIGHUP without them" reload
echo '{"log": {"level": "info"}, "http.idle": "4s", "store.mp": "2GiB"}' >"$file"
check "SIGHUP with a mistake" reload
check "everything stays as it was" has "$line" 'everything stays as it was'
check "JOB-454 by its code" has "$line" '"error_code":"RFA_CONFIG_INVALID"'
check "and it says why" has "$line" "did you mean store.map?"
echo "{\"log\": {\"level\": \"info\"}, \"http.idle\": \"4s\",
  \"auth\": {\"master_key\": \"$tmp/typo\"}}" >"$file"
check "SIGHUP with a file that isn't there" reload
check "everything stays as it was then, too" has "$line" 'everything stays as it was'
check "and it says where" has "$line" "$file:2: auth.master_key: '$tmp/typo' isn't there"
check "which is so" has "$(running)" '{"key":"http.idle","value":"5s","source":"file",'
check "JOB-360 a reload that is asked for is refused with the code" runs 1 reload --reason 'a typo' --operator-listen "$at" --store-dir "$tmp/store"
check "JOB-360 which says what is wrong" err "auth.master_key: '$tmp/typo' isn't there"
check "JOB-360 with 503" has "$(curl -sS -m 120 -X POST -H "$bearer" -H 'Content-Type: application/json' -d '{"reason":"a typo"}' "http://$at/config:reload")" '"status":503,"detail":"everything stays as it was'
echo "{\"log\": {\"level\": \"info\"}, \"http.idle\": \"3s\", $template: 1800}" >"$file"
check "coppice reload" runs 0 reload --reason 'a new idle time' --json --operator-listen "$at" --store-dir "$tmp/store"
check "it says the same" out '"applied":"http.idle","needs_restart":""'
check "coppice log level" runs 0 log level debug --reason 'to see more' --operator-listen "$at" --store-dir "$tmp/store"
check "it counts at once" await '"level":"debug"'
check "a level that there is none of" runs 1 log level loud --operator-listen "$at" --store-dir "$tmp/store"
check "is refused with what is right" err "must be one of debug, info, warn, error"
check "each is audited" sh -c '"$1" audit list --operator-listen "$2" --store-dir "$3" | grep "  operator  " | grep -c -e config.reload -e log.level | grep -qx 4' sh "$COPPICE" "$at" "$tmp/store"
check "a signal is audited as one" sh -c '"$1" audit list --operator-listen "$2" --store-dir "$3" | grep -q "  signal  *config.reload  *settings  *SIGHUP  *refused"' sh "$COPPICE" "$at" "$tmp/store"
check "with their reasons" sh -c '"$1" audit list --json --operator-listen "$2" --store-dir "$3" | grep "\"reason\":\"a new idle time\"" | grep -q "\"reason\":\"to see more\""' sh "$COPPICE" "$at" "$tmp/store"
check "SIGTERM ends it with 0" stop

# --- a reload that takes longer than anybody waits ---
# Each SIGHUP is audited, and waits a second for a store whose writer stands still; they stand before the reload.
taken() { # the signal isn't pending any more: the next one isn't the same
    until grep -q '^ShdPnd:.*[02468ace]$' "/proc/$server/status"; do kill -0 "$server" || return 1; done
}
hang_up() {
    for _ in $(seq 200); do kill -HUP "$server" && taken || return 1; done
}
entries() { # of it, with their outcomes
    get '/stats/audits?limit=100' | grep -o '"reason":"a slow one","outcome":"[a-z]*"'
}
check "a server" start --config "$file"
check "gets ready" ready
check "its writer stands still" has "$(chaos suspend store.writer)" '"outcome":"suspended"'
check "SIGHUPs wait for the store" hang_up
code=$(curl -sS -m 300 -o "$tmp/body" -w '%{http_code}' -X POST -H "$bearer" -H 'Content-Type: application/json' -d '{"reason":"a slow one"}' "http://$at/config:reload")
check "a reload behind them is 504" is "$code" 504
check "which may still be done" has "$(cat "$tmp/body")" 'it may still be done'
check "the writer goes on" has "$(chaos resume store.writer)" '"outcome":"resumed"'
until [ -n "$(entries)" ]; do kill -0 "$server" || break; done
check "the reload was done, and has one entry" is "$(entries)" '"reason":"a slow one","outcome":"reloaded"'
check "SIGTERM ends it with 0" stop
finish
