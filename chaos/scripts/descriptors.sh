# does: the server may open hardly any more descriptors, and as many clients come as it has room for, and more
# holds: newcomers are told to come again, those who are there are served, nobody ends, and afterwards there is room again
# load: unanswered
# process: same
. "${0%/*}/common.sh"
open=$(ask /stats | member open_fds)
was=$(prlimit --pid "$CHAOS_PID" --nofile --raw --noheadings --output SOFT) && prlimit --pid "$CHAOS_PID" --nofile=$((open + 12)): ||
    { say "unable prlimit: not as this user, or not here" && exit 0; }
for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32; do
    # it says half of a request, and stays
    (printf 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n' && sleep 2) |
        curl -s -m 2 "telnet://${CHAOS_CLIENTS#http://}" >>"$CHAOS_DIR/received" 2>&1 3>&- &
done
sleep 1
said=$(as_client -o "$CHAOS_DIR/held" -w '%{http_code}' "$CHAOS_CLIENTS/healthz" 2>&1)
say "note meanwhile a newcomer gets $said"
wait
prlimit --pid "$CHAOS_PID" --nofile="$was": || say "check no the limit can't be put back"
say "check $(grep -q '503 Service Unavailable' "$CHAOS_DIR/received" && echo yes || echo no) who found no room was told so"
say over
