# does: supervisors are killed, with all that live below them: two that the seed draws, with --full all but the root's
# holds: each comes back with all of its children, nobody else ends, and what is asked meanwhile is answered or told to come again
# load: unanswered
# runners: die
# process: same
. "${0%/*}/common.sh"
pid_of() { ask "/stats/actors/$1" | member pid; }
for name in $(draw 2 process telemetry outside store scheduler workers outbound relay front.operators front); do
    room_for "$name"
    say "dies-below $name"
    was=$(pid_of "$name")
    record=$(chaos kill "$name")
    case $record in
    *'"outcome":"recovered"'*'"missing":0,'*) say "check yes $name came back: $(printf %s "$record" | member died_count) ended" ;;
    *'"outcome":"asked"'*) # it takes the connection along, so it is done behind the answer
        looks=100
        until is=$(pid_of "$name") && [ -n "$is" ] && [ "$is" != "$was" ] || [ $looks = 0 ]; do
            looks=$((looks - 1))
            sleep 0.1
        done
        say "check $([ $looks -gt 0 ] && echo yes || echo no) $name, who held the door, came back"
        ;;
    *) say "check no $name did not come back: $(printf %s "$record" | head -c 300)" ;;
    esac
done
say over
