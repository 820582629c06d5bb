# does: actors of several kinds take memory without end
# holds: each alone ends at its quota, and is replaced; what the process has of memory is what it was
# load: served
# runners: die
# process: same
. "${0%/*}/common.sh"
for name in worker:44 scheduler:44 webhooks:10 fetch deduper; do
    say "dies $name"
    room_for "$name"
    ends "$name" crash '"how":"memory"'
done
say over
