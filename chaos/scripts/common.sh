# For the scripts beside it, which source it: how an operator asks a server, with curl. `coppice chaos run` runs them and measures
# what comes of it. By hand, against a server of the same user:
#
#     CHAOS_OPERATOR=http://127.0.0.1:7070 CHAOS_TOKEN=$(cat coppice-data/operator.token) sh chaos/scripts/kill-writer.sh
#
# then what a script says to who measures is printed: who is to end (dies, dies-below), what it has checked itself (check yes|no),
# what else happened (note), that the fault is over (over), or that it can't be tried there (unable).
set -u
: "${CHAOS_OPERATOR:=http://127.0.0.1:7070}" "${CHAOS_CLIENTS:=http://127.0.0.1:8080}" "${CHAOS_SEED:=1}" "${CHAOS_FULL:=}"
[ -n "${CHAOS_DIR:-}" ] || { # by hand: what a script notes goes with it
    CHAOS_DIR=$(mktemp -d)
    trap 'rm -rf "$CHAOS_DIR"' EXIT
}
{ true >&3; } 2>/dev/null || exec 3>&1
say() { echo "$*" >&3; }
command -v curl >/dev/null || {
    say "unable curl isn't here"
    exit 0
}

# op ARGUMENT...: curl with what opens the operators' door; $CHAOS_CURL is a file of its options, so that no list of processes shows
# the token.
op() {
    if [ -n "${CHAOS_CURL:-}" ]; then
        curl -sS -m 120 -K "$CHAOS_CURL" "$@"
    else
        curl -sS -m 120 -H "Authorization: Bearer ${CHAOS_TOKEN:-}" "$@"
    fi
}
ask() { op "$CHAOS_OPERATOR$1"; }
post() { op -H 'Content-Type: application/json' -d "$2" "$CHAOS_OPERATOR$1"; }

# as_client ARGUMENT...: a request of a client that has a key
as_client() {
    curl -sS -m 120 -K "${CHAOS_KEY:?}" -H 'Content-Type: application/json' "$@"
}

# member NAME: of the JSON on standard input, the first value of this name
member() { sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p" | head -n 1; }

# chaos VERB TARGET [MEMBERS]: prints the record. Whose scheduler waits for the disk just then can't be asked in time who he is: nothing
# was done, and it is asked again. In a shell of its own: who calls it may have a record, too.
chaos() (
    for _ in $(seq 60); do
        record=$(post "/chaos/actors/$2:$1" "{\"reason\":\"chaos ${0##*/}\"${3:+,$3}}")
        case $record in *'nothing could be learned of'*) ;; *) break ;; esac
    done
    printf '%s\n' "$record"
)

# judge NAME RECORD [REASON]: by the record it alone ended, and was replaced; and for this reason
judge() {
    case $2 in
    *"\"end_reason\":\"${3:-}"*) ;;
    *) say "check no $1 did not end with ${3:-a reason}, but with $(printf %s "$2" | member end_reason)" && return ;;
    esac
    case $2 in
    *'"outcome":"recovered","complete":true'*'"died_count":1,'*'"missing":0,'*) say "check yes $1 alone ended and was replaced: $(printf %s "$2" | member end_reason)" ;;
    *) say "check no $1 did not end alone, or was not replaced: $(printf %s "$2" | head -c 300)" ;;
    esac
}

# ends NAME [VERB] [MEMBERS]: it alone ends, and is replaced
ends() { judge "$1" "$(chaos "${2:-kill}" "$1" "${3:-}")"; }

# kill_one NAME: the same by a kill, said before, and within the budget
kill_one() {
    say "dies $1"
    room_for "$1"
    ends "$1"
}

# actors CLASS: names of those that live
actors() { ask "/stats/tree?class=$1&limit=1000" | grep -o '"name":"[^"]*"' | cut -d '"' -f 4; }

# spent SUPERVISOR: how many of its restarts are, and how many there are
spent() {
    ask '/stats/tree?format=text' | awk -v name="$1" '{
        for (i = 1; i < NF; i++) if ($i == name && $(i + 1) ~ /^0x/) { split($(i + 7), of, "/"); print $(i + 5), of[1]; exit } }'
}

# room SUPERVISOR N: waits until so many restarts are left
room() {
    looks=200
    while [ $looks -gt 0 ]; do
        left=$(spent "$1" | { read -r used of && echo $((of - used)); })
        [ "${left:-0}" -lt "$2" ] || return 0
        looks=$((looks - 1))
        sleep 0.5
    done
    say "check no the budget of $1 did not come back"
}

# room_for NAME: waits until its supervisor may start it again
room_for() {
    looks=200
    while [ $looks -gt 0 ]; do
        case $(chaos kill "$1" '"dry_run":true') in
        *'"cause":"escalation"'*) ;;
        *) return 0 ;;
        esac
        looks=$((looks - 1))
        sleep 0.5
    done
    say "check no the budget of the supervisor of $1 did not come back"
}

# until_slow: waits until the disk is, which whoever measures says by a file; by hand nobody does
until_slow() {
    looks=600
    while [ -n "${CHAOS_CURL:-}" ] && [ ! -e "$CHAOS_DIR/slow" ] && [ $looks -gt 0 ]; do
        looks=$((looks - 1))
        sleep 0.1
    done
}

# draw N NAME...: so many of them, as the seed has it; all of them when everything is to be tried
draw() {
    n=$1
    shift
    [ -z "$CHAOS_FULL" ] || n=$#
    printf '%s\n' "$@" | awk -v seed="$CHAOS_SEED" 'BEGIN { srand(seed) } { print rand(), $0 }' | sort -n | head -n "$n" | cut -d ' ' -f 2
}
