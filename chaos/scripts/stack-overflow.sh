# does: actors of several kinds recurse without end
# holds: each alone ends at the guard page of its stack, and is replaced; the process lives, and no request goes without its answer
# load: served
# runners: die
# process: same
. "${0%/*}/common.sh"
for name in worker:43 scheduler:43 webhooks:9 fetch store.keeper; do
    say "dies $name"
    room_for "$name"
    ends "$name" crash '"how":"stack"'
done
say over
