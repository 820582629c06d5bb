# does: actors write to nowhere, abort and divide by zero, in the middle of their work
# holds: each alone ends, by a real signal, and is replaced; the process lives, and no request goes without its answer
# load: served
# runners: die
# process: same
. "${0%/*}/common.sh"
for name in worker:40 scheduler:40 webhooks:8 fetch telemetry.otlp; do
    for how in trap abort divide; do
        say "dies $name"
        room_for "$name"
        ends "$name" crash "\"how\":\"$how\""
    done
done
say over
