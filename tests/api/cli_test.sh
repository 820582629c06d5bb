#!/bin/sh
# The command line, from outside: what it prints where, and what it ends with.
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

check "version" runs 0 version
check "version says so" out "coppice "
check "version as JSON" runs 0 version --json
check "version as JSON says so" out '{"version":"'
check "help" runs 0 help
check "help names serve" out "serve"
check "help serve" runs 0 serve --help
check "help serve names options" out "--operator-listen"
check "topology" runs 0 topology
check "topology names rows" out "instance:<instance_id>"
check "TOP-005 topology as JSON" runs 0 topology --json
check "TOP-005 topology cites its contract" out '"contract":"ST-OCM-000"'
check "no command" runs 64
check "no command says what" err "coppice serve"
check "a wrong command" runs 64 sreve
check "a wrong command has a neighbour" err "did you mean serve?"
check "a wrong option" runs 64 serve --operator-lisen x
check "a wrong option has a neighbour" err "did you mean --operator-listen?"
check "a bad value" runs 78 serve --slice 7
check "a bad value is named" err "--slice is '7'; it must be a duration from 100us to 1s, such as 1ms"
check "a bad time of none" runs 78 tree --watch 1
check "is shown how one is written" err "--watch is '1'; it must be a duration from 0s to 1h, such as 2s"
check "a public address" runs 78 serve --operator-listen 0.0.0.0:7070
check "a public address is refused with the reason" err "for this machine only"
echo '{"operator": {"listen": "0.0.0.0:7070"}}' >"$tmp/public.json"
check "one of the file" runs 78 tree --config "$tmp/public.json"
check "is refused with its place" err "$tmp/public.json:1: operator.listen is '0.0.0.0:7070'; it must be"
check "a host name" runs 78 serve --operator-listen example.org:80
check "a bad port" runs 78 serve --operator-listen 127.0.0.1:65536
check "a relative path" runs 78 serve --operator-listen unix:x
check "a path that is too long" runs 78 serve --operator-listen "unix:/$(printf '%0120d' 0)"
check "TOP-073 an adapter that there is none of" runs 78 serve --adapters clok
check "TOP-073 the adapter is named" err "--adapters names 'clok'; it must be a list"
check "TOP-073 the adapter has a neighbour" err "did you mean clock"
check "TOP-072 TOP-075 boot failures are events" err '"msg":"failure.boot_config","component":"runtime","failure_class":"fatal","reason":"--adapters'
check "TOP-075 they name the stage" err '"boot_stage":"check"'
check "nobody listens" runs 69 tree --operator-listen 127.0.0.1:1
check "nobody listens says what to do" err "coppice serve"

COPPICE_SLICE=9m
export COPPICE_SLICE
check "a bad variable" runs 78 serve
check "a bad variable is named" err "COPPICE_SLICE is '9m'"
unset COPPICE_SLICE
COPPICE_SCHEDULER=2
export COPPICE_SCHEDULER
check "a variable that is nearly one" runs 78 serve
check "a variable that is nearly one has a neighbour" err "did you mean COPPICE_SCHEDULERS?"
unset COPPICE_SCHEDULER

# A reader that has gone is no failure, and nothing to talk about. (141: the signal, where it isn't ignored.)
{
    "$COPPICE" topology --json 2>"$tmp/stderr"
    echo $? >"$tmp/status"
} | head -c 10 >"$tmp/stdout"
check "output into nothing" sh -c 'case $(cat "$1") in 0 | 141) ;; *) exit 1 ;; esac' sh "$tmp/status"
check "output into nothing is quiet" is "$(cat "$tmp/stderr")" ''

# What can't be written is told, also when one of the three isn't there: its number is nobody else's then.
full() { # full ARGUMENT...: what it prints goes onto a full disk, which is said in one line
    "$COPPICE" "$@" >/dev/full 2>"$tmp/stderr" </dev/null
    is $? 74 && is "$(cat "$tmp/stderr")" "coppice: standard output: No space left on device"
}
for words in version --help 'serve --help' 'help keys' topology 'config check' 'config show' 'config schema' 'contract check' \
    'contract show openapi' acl 'completion bash' 'completion zsh' 'completion fish' 'manual coppice.1' 'chaos list'; do
    # shellcheck disable=SC2086 # words
    check "onto a full disk: $words" full $words
done
check "output that is closed" sh -c '"$1" version >&- 2>"$2"; test $? = 74' sh "$COPPICE" "$tmp/stderr"
check "it is said as well" err "standard output: Bad file descriptor"
if have script; then
    check "TERM=dumb is no terminal to draw on" sh -c '
        TERM=dumb script -qec "$1 top" "$2" </dev/null >/dev/null; test $? = 64' sh "$COPPICE" "$tmp/typescript"
fi

# --- what is printed without a server ---
check "help of a noun" runs 0 help keys
check "help of a noun names its verbs" out "keys revoke KID"
check "help behind a noun" runs 0 keys --help
check "a noun alone" runs 64 keys
check "a noun alone says what there is" err "list, rotate, revoke, bootstrap, history, issue"
check "a wrong verb" runs 64 keys lst
check "a wrong verb has a neighbour" err "did you mean keys list?"
check "acl" runs 0 acl
check "acl names routes and who may" out "POST    /dlq/items/{event_id}:reprocess"
check "acl has both buckets of a first key" out "optional key client/register+register_all"
check "acl as JSON" runs 0 acl --json
check "acl as JSON has them too" out '"limit":"client","limit_anonymous":"register","limit_everybody":"register_all"'
check "acl as JSON has roles" out '"roles":["owner","infra-approver"'
for shell in bash zsh fish; do
    check "completion for $shell" runs 0 completion $shell
    check "it knows commands" out backup
    check "and options" out operator-listen
    if have $shell; then check "$shell reads it" $shell -n "$tmp/stdout"; fi
done
check "completion for nobody" runs 64 completion csh
"$COPPICE" completion bash >"$tmp/completion"
completes() { # completes WANTED WORD...: what bash makes of the last word
    wanted=$1
    shift
    is "$(bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _coppice; echo "${COMPREPLY[*]}"' bash "$tmp/completion" coppice "$@")" "$wanted"
}
check "a command" completes "completion" comple
check "a verb" completes "rotate revoke" keys r
check "an option" completes "--operator-listen" tree --operator-l
check "an argument" completes "kill-actors kill-writer kill-supervisors kill-process" chaos run kill
check "an option before it" completes "--report-dir" chaos run --rep
check "a document" completes "openapi ops" contract show op
check "a value" completes "stage" config check --environment s
check "a level" completes "warn" log level w
check "a role" completes "viewer" token issue --role v
groff=
! have groff || groff=yes
for page in $("$COPPICE" manual list); do
    check "manual page $page" runs 0 manual "$page"
    check "manual page $page has its sections" sh -c 'grep -q "^.SH NAME" "$1" && grep -q "^.SH SEE ALSO" "$1"' sh "$tmp/stdout"
    if [ -n "$groff" ]; then
        check "manual page $page is sound" is "$(groff -man -ww -Tutf8 "$tmp/stdout" 2>&1 >/dev/null)" ''
    fi
done
check "a page that there is none of" runs 64 manual coppice.9
check "every setting is in coppice.json(5)" sh -c '"$1" config show | cut -d" " -f1 | while read -r key; do
    "$1" manual coppice.json.5 | grep -q -F "\\fB$(printf %s "$key" | sed "s/-/\\\\-/g")\\fR" || { echo "$key"; exit 1; }; done' sh "$COPPICE"
check "top without a terminal" runs 64 top </dev/null
check "top says what works" err "--once"
check "kill without a reason" runs 64 kill deduper
check "kill without a yes" runs 64 kill deduper --reason x </dev/null
check "kill says so" err "needs --yes"
check "-- ends the options" runs 64 tree -- --json
check "and what follows is an argument" err "tree takes no argument '--json'"

# Nothing is started by a refusal: the address stays free.
check "a server" start
check "which is ready" ready
first=$server
ask() { # ask STATUS COMMAND...: of that server
    status=$1
    shift
    runs "$status" "$@" --operator-listen "$at" --store-dir "$tmp/store"
}
check "coppice tree" ask 0 tree
check "coppice tree draws" out "├─ front"
check "coppice tree as JSON" ask 0 tree --json
check "coppice tree as JSON has the rows" out '"contract":"ST-OCM-000"'
check "coppice stats" ask 0 stats
check "coppice stats has figures" out "messages handled"
check "coppice top --once" ask 0 top --once
check "it has a line per actor" out "  signals "
check "its lines have 80 columns" sh -c '! grep -q "^.\{81\}" "$1"' sh "$tmp/stdout"
check "and no escapes" sh -c '! grep -q "$(printf "\033")" "$1"' sh "$tmp/stdout"
# on_a_terminal KEYS COMMAND: with a terminal of its own, these keys are pressed; what is drawn goes to $tmp/screen
on_a_terminal() {
    printf "$1" | TERM=xterm timeout 60 script -qec "stty rows 24 cols 80; $2" /dev/null >"$tmp/screen"
}
if have script; then
    check "top on a terminal" on_a_terminal '?qs/dedup\rq' "'$COPPICE' top --operator-listen $at --store-dir '$tmp/store'"
    check "it has a screen of its own" has "$(head -c 100 "$tmp/screen" | cat -v)" '^[[?1049h^[[?25l'
    check "with help" has "$(cat -v "$tmp/screen")" 'space   stop the clock'
    check "and a filter" has "$(cat -v "$tmp/screen")" 'by handled/s, only dedup'
    check "which it gives back" has "$(tail -c 20 "$tmp/screen" | cat -v)" '^[[?25h^[[?1049l'
    : >"$tmp/screen" # what stands there is of the one before
    TERM=xterm script -qfec "echo \$\$ >'$tmp/pid'; exec '$COPPICE' top --operator-listen $at --store-dir '$tmp/store'" /dev/null \
        >"$tmp/screen" </dev/null &
    watching=$!
    while kill -0 $watching && ! grep -q 1049h "$tmp/screen"; do :; done
    kill -TERM "$(cat "$tmp/pid")"
    wait $watching
    check "top that is ended gives it back as well" has "$(tail -c 60 "$tmp/screen" | cat -v)" '^[[?25h^[[?1049l'
    # Ctrl-Z and fg, by a shell that has jobs
    cat >"$tmp/jobs" <<END
set -m
sh -c 'echo \$\$ >"$tmp/pid"; exec "$COPPICE" top --operator-listen $at --store-dir "$tmp/store"'
echo "stopped: \$? \$(stty -a | tr -s ' ;' '\n' | grep -x -e icanon -e -icanon)"
fg
END
    : >"$tmp/screen"
    SHELL=/bin/sh TERM=xterm script -qfec ". '$tmp/jobs'" /dev/null >"$tmp/screen" </dev/null &
    watching=$!
    shows() { # shows N TEXT: until the text was there so often, or nobody draws any more
        while kill -0 $watching && [ "$(grep -oF -e "$2" "$tmp/screen" | wc -l)" -lt "$1" ]; do :; done
        [ "$(grep -oF -e "$2" "$tmp/screen" | wc -l)" -ge "$1" ]
    }
    check "top under a shell with jobs" shows 1 '[?1049h'
    kill -TSTP "$(cat "$tmp/pid")"
    check "Ctrl-Z stops it" shows 1 'stopped: '
    check "it has given the terminal back" has "$(cat -v "$tmp/screen")" '^[[?25h^[[?1049l'
    check "with its modes" grep -q '^stopped: 1[0-9]* icanon' "$tmp/screen"
    if grep -qF '[?1049l' "$tmp/screen"; then
        check "continued it takes it again" shows 2 '[?1049h'
        check "and draws" shows 2 'by mailbox'
    fi
    kill -TERM "$(cat "$tmp/pid")"
    kill -CONT "$(cat "$tmp/pid")" 2>/dev/null
    wait $watching
    check "and gives it back at its end" has "$(tail -c 60 "$tmp/screen" | cat -v)" '^[[?25h^[[?1049l'
    NO_COLOR=1 on_a_terminal 'q' "'$COPPICE' top --operator-listen $at --store-dir '$tmp/store'"
    check "NO_COLOR is heard" lacks "$(cat -v "$tmp/screen")" '^[[7m'
    on_a_terminal 'n\n' "'$COPPICE' kill deduper --reason x --operator-listen $at --store-dir '$tmp/store' || echo kept"
    check "kill asks" has "$(cat "$tmp/screen")" "End deduper? [y/N]"
    check "after it has shown what would be hit" has "$(cat "$tmp/screen")" "predicted"
    check "no is no" has "$(cat "$tmp/screen")" "kept"
    check "and said to be" has "$(cat "$tmp/screen")" "coppice: nothing was done"
fi
check "a dry run" ask 0 kill deduper --dry-run
check "a dry run predicts" out "outcome   predicted"
check "kill" ask 0 kill deduper --yes --reason 'game day' --json
check "kill says who came" out '"successor":"0x'
for words in "keys list" "keys history" "token issue --subject a --role viewer --projects p" "stats" "tree" "audit list" "principal list" \
    "kill deduper --dry-run"; do
    check "$words --json" ask 0 $words --json
    check "$words --json is a whole line" is "$(tail -c 1 "$tmp/stdout" | od -An -tx1)" ' 0a'
done
for words in tree stats events 'events --json' 'top --once' 'audit list' 'audit list --output jsonl' 'keys list' 'keys history --json' \
    'token issue --subject a --role owner' 'kill deduper --dry-run' pauses 'outbox dead' report 'report --json' check stat 'export --jsonl'; do
    case $words in check | stat | export*) where= ;; *) where="--operator-listen $at" ;; esac
    # shellcheck disable=SC2086 # words
    check "onto a full disk: $words" full $words $where --store-dir "$tmp/store"
done
# Somebody edits the file while the server runs.
edited() { # edited STATUS SAYS COMMAND...: with that file, and one line of warning or refusal
    status=$1 says=$2
    shift 2
    runs "$status" "$@" --config "$tmp/edited.json"
    has "$(cat "$tmp/stderr")" "$says" && is "$(wc -l <"$tmp/stderr")" 1
}
printf '{\n"operator.listen": "%s",\n"store.dir": "%s",\n"log.level": "wa\n}\n' "$at" "$tmp/store" >"$tmp/edited.json"
warning="coppice: warning: going on with the server at $at (file), without what is wrong in the settings: $tmp/edited.json:4: "
for words in tree stats events 'top --once' pauses 'log level info' 'kill deduper --dry-run'; do
    # shellcheck disable=SC2086 # words
    check "$words with a file that is being edited" edited 0 "$warning" $words
done
check "a store with such a file" edited 0 "going on with the store in $tmp/store (file), without what is wrong" stat
check "what the server thinks of it is said by config check" edited 78 "RFA_CONFIG_INVALID: $tmp/edited.json:4: " config check
echo '{"store.dirr": "x"}' >"$tmp/edited.json"
check "a file that doesn't say where" runs 69 tree --config "$tmp/edited.json" --operator-listen 127.0.0.1:1
check "where else it was looked is said" err "going on with the server at 127.0.0.1:1 (flag), without"
check "what changes something isn't done to just any server" edited 78 \
    "which server is meant can't be known, --operator-listen or --url says it: $tmp/edited.json:1: there is no setting 'store.dirr'" log level info
check "nor just any store looked at" edited 78 "which store is meant can't be known, --store-dir says it: $tmp/edited.json:1: " stat
check "but where it is said" edited 0 "going on with the server at http://$at (flag), without" log level info --url "http://$at" \
    --token-file "$tmp/store/operator.token"
check "audit list" ask 0 audit list
check "the kill is there, and why" out "game day"
check "the dry run is not" is "$(grep -c actor.kill "$tmp/stdout")" 1
check "audit list by severity" ask 0 audit list --severity SEV1
check "CTL-118 the first key is" out "key.bootstrapped"
check "the kill is not" lacks "$(cat "$tmp/stdout")" actor.kill
check "top as JSON" ask 0 top --json
check "is a list of actors" out '{"actors":[{"name":"'
check "a list a line each" ask 0 audit list --output jsonl
check "is one entry a line" sh -c '! grep -v "^{\"id\":" "$1"' sh "$tmp/stdout"
check "a list with whole cells" ask 0 audit list --output wide
columns=$(sed 's/  */ /g; q' "$tmp/stdout")
check "stats as JSON by another name" ask 0 stats --output json
check "is JSON" out '{"version":'
check "an output that isn't there" ask 78 audit list --output xml
check "is no setting that is wrong" err "coppice: --output is 'xml'; it must be table"
check "less, quietly" ask 0 audit list --limit 1 -q
check "a table has the same columns, whatever its rows hold" is "$(sed 's/  */ /g; q' "$tmp/stdout")" "$columns"
check "says nothing of more" is "$(cat "$tmp/stderr")" ''
check "nobody is asked" ask 64 kill deduper --reason x --no-input
watches() { # until the reader has gone
    "$COPPICE" tree --watch 1ms --operator-listen "$at" --store-dir "$tmp/store" | awk '/^root /{ if (++n == 3) exit }  END { exit n != 3 }'
}
check "a tree that is drawn again" watches
# Twice as many as a page of the list has; the restart at their end is on the last one.
awk 'BEGIN { for (i = 0; i < 1000; i++) printf "url = \"http://%s/chaos/actors/bus:%s\"\noutput = \"/dev/null\"\n", ARGV[1], i % 2 ? "resume" : "suspend" }' \
    "$at" >"$tmp/verbs"
check "a thousand events" is "$(curl -s -K "$tmp/verbs" -X POST -H "Authorization: Bearer $(cat "$tmp/store/operator.token")" \
    -H 'Content-Type: application/json' -d '{"reason":"x"}' -w '%{http_code}\n' | sort | uniq -c | tr -d ' ')" 1000200
check "and one more" ask 0 kill deduper --yes --reason 'the last one'
check "events so far" ask 0 events
check "are all of them" is "$(grep -c ' chaos.verb ' "$tmp/stdout")" 1002
check "to the last one" sh -c 'tail -n 20 "$1" | grep -q " supervisor.restart "' sh "$tmp/stdout"
check "events of one name" ask 0 events --event 'supervisor.*'
check "are no others" sh -c '! grep -v "^[^ ]* supervisor\." "$1"' sh "$tmp/stdout"
check "a name that there is none of" ask 1 events --event supervisr.restart
check "is refused by the server" err "there is none of that name"
check "events so far, as it was said once" ask 0 events --no-follow
check "events say what happened" out "supervisor.restart"
check "and when" sh -c 'grep -q "^20..-..-..T..:..:..\....Z supervisor.restart " "$1"' sh "$tmp/stdout"
check "events as JSON" ask 0 events --no-follow --json
check "a line each" sh -c '! grep -v "^{\"at\":" "$1"' sh "$tmp/stdout"
check "keys list" ask 0 keys list
check "CTL-119 it says when the next rotation is" out "next rotation at"
check "keys rotate" ask 0 keys rotate --reason x --json
check "CTL-112 without a private half" lacks "$(cat "$tmp/stdout")" '"d":'
check "keys history" ask 0 keys history
check "it shows the retired one" out retiring
check "less of it" ask 0 keys history --limit 1 --json
check "says that there is more" out '"more":true'
check "to people as well" err "there may be more"
check "token issue" ask 0 token issue --subject me --role owner
check "CTL-104 a token, alone, with a kid" sh -c 'cut -d. -f1 "$1" | tr -d "\n" | base64 -d 2>/dev/null | grep -q "\"kid\":\""' sh "$tmp/stdout"
check "token issue without a subject" ask 64 token issue --role owner
check "token issue with a role that there is none of" ask 78 token issue --subject me --role king
check "and which roles there are" err "coppice: --role is 'king'; it must be owner, infra-approver"
check "keys revoke asks" ask 64 keys revoke x
check "keys revoke of nobody" ask 1 keys revoke x --yes
check "CTL-117 nothing without the token" runs 1 keys list --operator-listen "$at" --store-dir "$tmp/elsewhere"
check "CTL-117 and what helps" err "--token-file"
check "with the token's file" runs 0 keys list --operator-listen "$at" --token-file "$tmp/store/operator.token"
# bare COMMAND...: without root's right to read what isn't for it
bare() {
    if [ "$(id -u)" = 0 ]; then setpriv --bounding-set=-all --inh-caps=-all "$@"; else "$@"; fi
}
# forbidden SAYS ARGUMENT...: status 77, and one line
forbidden() {
    says=$1
    shift
    bare "$COPPICE" "$@" >"$tmp/stdout" 2>"$tmp/stderr"
    is $? 77 && has "$(cat "$tmp/stderr")" "$says" && is "$(wc -l <"$tmp/stderr")" 1
}
if [ "$(id -u)" != 0 ] || have setpriv; then
    mkdir "$tmp/shut"
    echo nonsense >"$tmp/shut/operator.token"
    chmod 0 "$tmp/shut/operator.token"
    for words in tree 'stats --json' 'top --once' 'reload' 'kill deduper --dry-run'; do
        # shellcheck disable=SC2086 # words
        check "$words with a token that this user may not read" forbidden \
            "$at: the server asks for a token, and the token's file $tmp/shut/operator.token: Permission denied" \
            $words --operator-listen "$at" --store-dir "$tmp/shut"
    done
    check "one that is named" forbidden "coppice: the token's file $tmp/shut/operator.token: Permission denied" tree \
        --operator-listen "$at" --token-file "$tmp/shut/operator.token"
    chmod 0 "$tmp/shut"
    check "a socket that this user may not reach" forbidden \
        "coppice: unix:$tmp/shut/s: this user may not connect there: Permission denied" tree --operator-listen "unix:$tmp/shut/s"
    check "nor make" forbidden \
        "unix:$tmp/shut/s': Permission denied; this user may not make a socket in that directory" serve --operator-listen "unix:$tmp/shut/s"
    check "nor make for clients" forbidden "this user may not make a socket in that directory" serve --http-listen "unix:$tmp/shut/s" \
        --operator-listen 127.0.0.1:0
    chmod 700 "$tmp/shut"
fi
check "a socket whose directory isn't there" runs 69 serve --operator-listen "unix:$tmp/no/s"
check "says so" err "the directory of the socket isn't there"
check "an address of another machine" runs 69 serve --http-listen 192.0.2.1:80 --operator-listen 127.0.0.1:0
check "says so" err "no interface of this machine has that address"
check "at the listener of clients" runs 1 keys list --url "http://$client" --token-file "$tmp/store/operator.token"
check "that is said" err "is that the operators' listener"
check "with a URL" runs 0 keys list --url "http://$at" --token-file "$tmp/store/operator.token"
check "with a file that isn't there" runs 78 keys list --operator-listen "$at" --token-file "$tmp/none"
echo nonsense >"$tmp/wrong"
check "with another token" runs 1 keys list --operator-listen "$at" --token-file "$tmp/wrong"
check "which is not repeated" lacks "$(cat "$tmp/stderr")" nonsense
check "a URL that can't be meant" runs 78 tree --url ftp://x
check "a name that nobody has" ask 1 kill nobody --yes --reason x
check "is named by the answer" err "(OPS_404"
check "the address is taken" runs 69 serve --operator-listen "$at" --http-listen 127.0.0.1:0
check "the address is taken, and says so" err "is another server running?"
echo "no socket" >"$tmp/file"
check "a name that a file has" runs 69 serve --operator-listen "unix:$tmp/file" --http-listen 127.0.0.1:0
check "is left to it, and says so" err "something that is no socket has that name"
check "the file is as it was" is "$(cat "$tmp/file")" "no socket"
check "so is the clients'" runs 69 serve --operator-listen 127.0.0.1:0 --http-listen "$client"
{
    "$COPPICE" events --follow --json --operator-listen "$at" --store-dir "$tmp/store" 2>"$tmp/stderr"
    echo $? >"$tmp/status"
} >"$tmp/followed" &
following=$!
streams() { # until somebody follows
    while kill -0 $following; do
        case $("$COPPICE" stats --json --operator-listen "$at" --store-dir "$tmp/store") in
        *'"streams":1'*) return 0 ;;
        esac
    done
    return 1
}
check "events as they happen" streams
server=$first
check "SIGTERM ends it with 0" stop
check "those who follow end with it" wait $following
check "they had what was kept before" has "$(cat "$tmp/followed")" '"event":"supervisor.restart"'
check "and each event once" is "$(grep -o '"sequence":"[^"]*"' "$tmp/followed" | sort | uniq -d)" ""
check "quietly" is "$(cat "$tmp/stderr")" ''
check "the variable is heard" sh -c 'COPPICE_OPERATOR_LISTEN=127.0.0.1:1 "$1" tree 2>&1 | grep -q 127.0.0.1:1' sh "$COPPICE"

# --- a server that has more to tell than can be looked into at once ---
if have node; then
    mkfifo "$tmp/large.in" "$tmp/large.out"
    node tests/api/large.js "$tmp/large.sock" <"$tmp/large.in" >"$tmp/large.out" &
    large=$!
    exec 7>"$tmp/large.in" 8<"$tmp/large.out"
    check "a server with much to tell" sh -c 'read -r word <&8 && [ "$word" = there ]'
    much() { # much STATUS COMMAND...: of that server
        status=$1
        shift
        runs "$status" "$@" --operator-listen "unix:$tmp/large.sock"
    }
    check "top of thousands" much 0 top --once
    check "says how many of them it shows" sh -c 'grep -Eq ": [0-9]+ of 3209 actors, " "$1"' sh "$tmp/stdout"
    check "audit entries of a thousand values" much 0 audit list
    check "as a table" is "$(wc -l <"$tmp/stdout")" 101
    check "all of them" is "$(grep -c ' large\.[0-9]* ' "$tmp/stdout")" 100
    check "in order" has "$(tail -n 1 "$tmp/stdout")" ' large.99 '
    check "without what no cell holds" lacks "$(head -n 1 "$tmp/stdout")" DETAILS
    check "there are more, which is said" err 'there may be more'
    check "audit entries of a thousand values, a line each" much 0 audit list --output jsonl --limit 1000
    check "all of them" is "$(wc -l <"$tmp/stdout")" 150
    check "whole" is "$(grep -c '^{"id":.*"0x889"\],"list":\[{}\]}}$' "$tmp/stdout")" 150
    check "audit entries of a thousand values as JSON" much 0 audit list --json --limit 120
    check "is JSON" node -e 'const d = JSON.parse(require("fs").readFileSync(process.argv[1])); process.exit(d.audits.length === 120 && d.more === true ? 0 : 1)' "$tmp/stdout"
    exec 7>&- 8<&-
    check "it ends" wait $large
fi
finish
