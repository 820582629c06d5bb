# does: 12 workers are killed at the same moment, four at a time: a storm in one domain, within its budget
# holds: each is replaced, nobody outside of them ends, no supervisor gives up, and no request goes without its answer
# load: served
# runners: die
# process: same
. "${0%/*}/common.sh"
room workers 12
for first in 8 12 16; do
    for n in 0 1 2 3; do
        say "dies worker:$((first + n))"
        chaos kill "worker:$((first + n))" >>"$CHAOS_DIR/held" 3>&- &
    done
    wait
done
say "check $([ "$(grep -o '"end_reason":"killed"' "$CHAOS_DIR/held" | wc -l)" = 12 ] && echo yes || echo no) 12 were told to end, and did"
say over
