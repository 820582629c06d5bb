# does: the wall clock of the server leaps forward, by an hour, a day and a week (dev)
# holds: nobody ends, every request is served, what is told of time goes forward only, and of the jobs only those that run at that moment may lose their runner
# load: served
# runners: die
# process: same
. "${0%/*}/common.sh"
for by in 1h 1d 7d; do
    before=$(ask /stats | member now)
    answer=$(post /clock:advance "{\"by\":\"$by\",\"reason\":\"chaos ${0##*/}\"}")
    case $answer in
    *ahead_seconds*) ;;
    *OPS_404* | *OPS_403* | *OPS_409*) say "unable the clock of this server can't be moved" && exit 0 ;;
    *) say "check no the clock was not moved: $(printf %s "$answer" | head -c 200)" ;;
    esac
    after=$(ask /stats | member now)
    say "check $([ "$(printf '%s\n%s\n' "$before" "$after" | sort | head -n 1)" = "$before" ] && echo yes || echo no) by $by: $before, then $after"
    status=$(as_client -o "$CHAOS_DIR/held" -w '%{http_code}' -d '{"type":"EXECUTE","work_kind":"SUCCESS_FAST"}' "$CHAOS_CLIENTS/v1/jobs")
    say "check $([ "$status" = 202 ] && echo yes || echo no) a job is taken after $by: $status"
    sleep 0.5
done
say over
