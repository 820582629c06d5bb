# does: webhooks lead to receivers that hang, drip, never end, talk no HTTP, lead elsewhere and slam the door, beside a good one
# holds: the good one gets its events, nobody follows elsewhere, nobody ends, and no request goes without its answer
# load: served
# process: same
# receivers: yes
. "${0%/*}/common.sh"
[ -n "${CHAOS_RECEIVER_good:-}" ] || { say "unable there are no receivers: CHAOS_RECEIVER_good and so on say where" && exit 0; }
register() {
    hook=$(as_client -d "{\"url\":\"$1\",\"events\":[\"job.succeeded\"]}" "$CHAOS_CLIENTS/v1/webhooks")
    case $hook in
    *webhook_id*) printf %s "$hook" | member webhook_id >>"$CHAOS_DIR/held" ;;
    *VALIDATION*) say "unable webhooks may not lead to loopback here: outbound.allow_private" && exit 0 ;;
    *) say "check no a webhook could not be registered: $(printf %s "$hook" | head -c 200)" ;;
    esac
}
for url in "$CHAOS_RECEIVER_hang" "$CHAOS_RECEIVER_drip" "$CHAOS_RECEIVER_endless" "$CHAOS_RECEIVER_garbage" "$CHAOS_RECEIVER_redirect" \
    "$CHAOS_RECEIVER_slam" "$CHAOS_RECEIVER_good"; do
    register "$url"
done
jobs=8
for n in $(seq $jobs); do
    as_client -o /dev/null -d '{"type":"EXECUTE","work_kind":"SUCCESS_FAST"}' "$CHAOS_CLIENTS/v1/jobs"
done
looks=120
count() { if [ -e "$CHAOS_DIR/received" ]; then wc -l <"$CHAOS_DIR/received"; else echo 0; fi; }
until [ "$(count)" -ge $jobs ] || [ $looks = 0 ]; do
    looks=$((looks - 1))
    sleep 0.25
done
say "check $([ "$(count)" -ge $jobs ] && echo yes || echo no) the good receiver has got $(count) events of $jobs jobs and of the load's"
say "check $(grep -q redirected "$CHAOS_DIR/received" && echo no || echo yes) nobody has followed a redirect"
while read -r id; do
    as_client -o /dev/null -X DELETE "$CHAOS_CLIENTS/v1/webhooks/$id"
done <"$CHAOS_DIR/held"
say over
