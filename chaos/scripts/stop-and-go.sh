# does: the process is stopped (SIGSTOP) for four seconds, and goes on (SIGCONT)
# holds: requests wait and are served, nobody ends, and no job is lost
# load: served
# runners: die
# process: same
. "${0%/*}/common.sh"
kill -STOP "$CHAOS_PID" || { say "unable the process isn't ours" && exit 0; }
sleep 4
kill -CONT "$CHAOS_PID"
say over
