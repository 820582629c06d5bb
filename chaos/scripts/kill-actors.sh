# does: one actor of each kind is killed, one after the other; of the children of the root two that the seed draws, with --full all
# holds: each is replaced, nobody else ends, no supervisor gives up, and no request goes without its answer
# load: served
# runners: die
# process: same
. "${0%/*}/common.sh"
for name in worker:3 scheduler:5 queues relay:2 webhooks:7 fetch api_keys keys store.keeper telemetry.otlp signals notify; do
    kill_one "$name"
done
for name in $(draw 2 deduper bus registry.rooms registry.agents registry.instances runtime); do
    kill_one "$name"
done
say over
