# does: two workers and a shard get into a loop without end
# holds: each alone is ended when it has computed for as long as an actor may, and is replaced; the others go on meanwhile
# load: served
# runners: die
# process: same
. "${0%/*}/common.sh"
for name in worker:41 worker:42 scheduler:41; do
    say "dies $name"
    room_for "$name"
    ends "$name" crash '"how":"loop"'
done
say over
