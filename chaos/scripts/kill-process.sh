# does: the process is killed (SIGKILL), under load
# holds: its guardian, or its service manager, starts it again; what was acknowledged is there, and clients find it at the same address
# load: unanswered
# runners: die
# process: another
. "${0%/*}/common.sh"
guarded=$(ps -o args= -p "$(ps -o ppid= -p "$CHAOS_PID" 2>/dev/null | tr -d ' ')" 2>/dev/null)
case $guarded in
*coppice*serve* | *systemd* | */init*) ;;
*) say "unable nobody would start the process again: it has no guardian and no service manager" && exit 0 ;;
esac
kill -KILL "$CHAOS_PID" || { say "unable the process isn't ours" && exit 0; }
say over
