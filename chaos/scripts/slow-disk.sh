# does: each sync of the disk takes 100 ms longer, for three seconds
# holds: every request is served, those that wait for the disk later, the others at once; nobody ends
# load: served
# process: same
. "${0%/*}/common.sh"
say "slow 100"
until_slow
slow=0 fast=0
for turn in 1 2 3 4 5 6; do
    took=$(as_client -o "$CHAOS_DIR/held" -w '%{http_code} %{time_total}' -d '{"type":"EXECUTE","work_kind":"SUCCESS_FAST"}' "$CHAOS_CLIENTS/v1/jobs")
    case $took in
    '202 0.0'*) fast=$((fast + 1)) ;;
    '202 '*) slow=$((slow + 1)) ;;
    *) say "check no a submit: $took" ;;
    esac
done
[ $slow -gt 0 ] && say "check yes $slow of 6 submits took 100 ms or more" || say "check no the disk was not slow"
say "fast"
say over
