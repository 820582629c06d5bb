# does: the store's writer is killed twice, under load
# holds: what was acknowledged is there, another writer goes on, nobody else ends, and each request has its answer
# load: refused
# process: same
. "${0%/*}/common.sh"
for turn in 1 2; do
    kill_one store.writer
    sleep 0.3
done
say over
