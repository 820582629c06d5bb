# does: a sync of the disk takes 20 seconds, until somebody has been told to come again
# holds: what needs the disk is told so, readiness says why, probes and reads go on, nobody ends, all is well by itself, and only jobs whose lease ran out meanwhile have lost their runner
# load: refused
# runners: die
# process: same
. "${0%/*}/common.sh"
say "slow 20000"
until_slow
(as_client -o "$CHAOS_DIR/held" -w '%{http_code}' -d '{"type":"EXECUTE","work_kind":"SUCCESS_FAST"}' "$CHAOS_CLIENTS/v1/jobs" >"$CHAOS_DIR/received") 3>&- &
hung=no
for look in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    [ "$(op -o /dev/null -w '%{http_code}' "$CHAOS_OPERATOR/readyz")" != 503 ] || {
        hung=yes
        break
    }
    sleep 0.5
done
say "check $hung readiness says that the store doesn't answer"
live=$(op -o /dev/null -w '%{http_code}' "$CHAOS_OPERATOR/livez")
say "check $([ "$live" = 200 ] && echo yes || echo no) the process is alive all the same: $live"
wait
status=$(cat "$CHAOS_DIR/received")
say "check $([ "$status" = 503 ] && echo yes || echo no) a submit is told to come again: $status"
say "fast"
say over
