# does: two workers and a shard get into a loop without end
# holds: each alone is ended when it has computed for as long as an actor may, for that reason, and is replaced; nobody waits meanwhile for as long as a loop lasts
# load: served
# runners: die
# process: same
. "${0%/*}/common.sh"
bound=2.5 # seconds: a loop that nobody ended would last for three, and a machine may stand still for a moment

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

before=$(overruns) loops=0
for name in worker:41 worker:42 scheduler:41; do
    say "dies $name"
    room_for "$name"
    {
        ends "$name" crash '"how":"loop"' overrun
        : >"$CHAOS_DIR/over-$loops"
    } &
    meanwhile "$CHAOS_DIR/over-$loops"
    wait
    loops=$((loops + 1))
    say "check $(echo "$longest $bound" | awk '{ print ($1 < $2 ? "yes" : "no") }') meanwhile the slowest of $asked requests took $longest s, and may take $bound"
done
more=$(($(overruns) - before))
say "check $([ $more -ge $loops ] && echo yes || echo no) $more handlers were ended at their budget, and there were $loops loops"
say over
