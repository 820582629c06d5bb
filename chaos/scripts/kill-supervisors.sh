# does: supervisors are killed, with all that live below them: two that the seed draws, with --full all but the root's
# holds: each comes back with all of its children, nobody else ends, and what is asked meanwhile is answered or told to come again
# load: unanswered
# runners: die
# process: same
. "${0%/*}/common.sh"
for name in $(draw 2 process telemetry outside store scheduler workers outbound relay front.operators front); do
    room root 1
    say "dies-below $name"
    record=$(chaos kill "$name")
    case $record in
    *'"outcome":"recovered"'*'"missing":0,'* | *'"outcome":"asked"'*) say "check yes $name came back: $(printf %s "$record" | member died_count) ended" ;;
    *) say "check no $name did not come back: $(printf %s "$record" | head -c 300)" ;;
    esac
done
say over
