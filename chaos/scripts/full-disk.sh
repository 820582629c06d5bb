# does: the files of the server can't grow, nor be written where they end, for two seconds (RLIMIT_FSIZE)
# holds: changes are refused, readiness says why, what is read is served, nobody ends, and with room there all goes on by itself
# load: refused
# process: same
. "${0%/*}/common.sh"
prlimit --pid "$CHAOS_PID" --fsize=8192: || { say "unable prlimit: not as this user, or not here" && exit 0; }
full=no
for look in 1 2 3 4 5 6 7 8 9 10; do
    status=$(as_client -o "$CHAOS_DIR/held" -w '%{http_code}' -d '{"type":"EXECUTE","work_kind":"SUCCESS_FAST"}' "$CHAOS_CLIENTS/v1/jobs")
    case $status in 503 | 507) full=yes ;; esac
    [ $full = yes ] && break
    sleep 0.2
done
say "check $full a submit is refused with $status"
status=$(as_client -o "$CHAOS_DIR/held" -w '%{http_code}' "$CHAOS_CLIENTS/v1/jobs?limit=1")
say "check $([ "$status" = 200 ] && echo yes || echo no) jobs can be read: $status"
case $(ask '/readyz?verbose') in
*'"database":"degraded"'*) say "check yes readiness says that the store is degraded" ;;
*) say "check no readiness doesn't say that the store is degraded" ;;
esac
sleep 1
prlimit --pid "$CHAOS_PID" --fsize=unlimited:
say over
