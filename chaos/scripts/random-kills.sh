# does: actors drawn by the seed are killed without a pause: shards, senders of webhooks and relays; 16 of them, with --full 60, as budgets allow
# holds: each is replaced, nobody else ends, no supervisor gives up, and no request goes without its answer
# load: served
# process: same
. "${0%/*}/common.sh"
count=16
[ -z "$CHAOS_FULL" ] || count=60
awk -v seed="$CHAOS_SEED" -v count="$count" 'BEGIN { srand(seed)
    split("scheduler webhooks relay", kind); split("64 16 8", many)
    for (i = 0; i < count; i++) { k = rand(); k = k < 0.5 ? 1 : k < 0.8 ? 2 : 3; print kind[k] ":" int(rand() * many[k]) } }' |
    while read -r name; do
        kill_one "$name"
    done
say over
