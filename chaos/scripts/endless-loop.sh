# does: two workers and a shard get into a loop without end
# holds: each alone is ended when it has computed for as long as an actor may, for that reason, and is replaced; nobody waits meanwhile for as long as a loop lasts
# load: served
# runners: die
# process: same
. "${0%/*}/common.sh"
bound=2.5 # seconds, beside those for which the machine stands still: a loop that nobody ended would last for three

overruns() { ask /metrics | awk '/^coppice_runtime_overruns_total / { print $2 }'; }

# meanwhile FILE: asks, on new connections, so that each scheduler has some, until there is this file. The longest took $longest.
meanwhile() {
    longest=0 asked=0
    until [ -e "$1" ]; do
        took=$(curl -sS -m 60 -o "$CHAOS_DIR/asked" -w '%{time_total}' "$CHAOS_CLIENTS/healthz")
        asked=$((asked + 1))
        longest=$(echo "$longest ${took:-60}" | awk '{ print ($2 > $1 ? $2 : $1) }')
    done
}

# pulse FILE: until there is this file: by how much the longest of short sleeps was too long is in FILE-still. Whoever only sleeps can't be
# late by anything that a server does.
pulse() {
    still=0
    read -r was _ </proc/uptime
    until [ -e "$1" ]; do
        sleep 0.1
        read -r now _ </proc/uptime
        still=$(echo "$still $was $now" | awk '{ late = $3 - $2 - 0.1; print (late > $1 ? late : $1) }')
        was=$now
    done
    echo "$still" >"$1-still"
}

pid_of() { chaos kill "$1" '"dry_run":true' | grep -o '"pid":"[^"]*"' | head -n 1; } # nothing while there is none

# loops_in NAME: a second of a processor may take longer than the server waits for the end; then the count says whether it was the budget's.
loops_in() {
    was=$(pid_of "$1") looks=600
    record=$(chaos crash "$1" '"how":"loop"')
    case $record in
    *'has not ended within'*) ;;
    *)
        judge "$1" "$record" overrun
        return
        ;;
    esac
    say "note $1 had not had its budget when the server answered"
    while is=$(pid_of "$1") && [ $looks -gt 0 ] && { [ -z "$is" ] || [ "$is" = "$was" ]; }; do
        looks=$((looks - 1))
        sleep 0.1
    done
}

before=$(overruns) loops=0
for name in worker:41 worker:42 scheduler:41; do
    say "dies $name"
    room_for "$name"
    {
        loops_in "$name"
        : >"$CHAOS_DIR/over-$loops"
    } &
    pulse "$CHAOS_DIR/asked-$loops" &
    meanwhile "$CHAOS_DIR/over-$loops"
    : >"$CHAOS_DIR/asked-$loops"
    wait
    still=$(cat "$CHAOS_DIR/asked-$loops-still")
    loops=$((loops + 1))
    good=$(echo "$longest $still $bound" | awk '{ print ($1 - $2 < $3 ? "yes" : "no") }')
    say "check $good meanwhile the slowest of $asked requests took $longest s, and may take $bound; the machine stood still for $still s"
done
more=$(($(overruns) - before))
say "check $([ $more -ge $loops ] && echo yes || echo no) $more handlers were ended at their budget, and there were $loops loops"
say over
