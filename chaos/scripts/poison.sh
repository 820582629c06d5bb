# does: messages that nobody knows go to an actor of each kind, and requests that can't be meant to both ports
# holds: each is refused for what it is, nobody ends, and nobody else notices
# load: served
# process: same
. "${0%/*}/common.sh"
for name in worker:1 scheduler:1 queues webhooks:1 relay:1 fetch bus deduper api_keys keys runtime registry.rooms store.keeper store.writer \
    telemetry.otlp signals notify front.operator root store front; do
    case $(chaos flood "$name" '"messages":3') in
    *'"flood":{"sent":3,"refused":0}'*) ;;
    *) say "check no $name took no message" ;;
    esac
done
say "check yes an actor of each kind took what it doesn't know"

# refused STATUS WHAT ARGUMENT...: of a client
refused() {
    want=$1 what=$2
    shift 2
    is=$(as_client -o /dev/null -w '%{http_code}' "$@")
    [ "$is" = "$want" ] && say "check yes $what: $is" || say "check no $what: $is, not $want"
}
jobs=$CHAOS_CLIENTS/v1/jobs
refused 400 "no JSON" -d '{"type":' "$jobs"
refused 400 "a name twice" -d '{"type":"EXECUTE","type":"EXECUTE"}' "$jobs"
refused 400 "half a character" --data-binary "$(printf '{"type":"\377"}')" "$jobs"
refused 400 "half a pair" -d '{"type":"EXECUTE","work_kind":"\ud800"}' "$jobs"
refused 400 "a hundred levels" -d "$(awk 'BEGIN { for (i = 0; i < 100; i++) printf "["; for (i = 0; i < 100; i++) printf "]" }')" "$jobs"
refused 400 "a kind that there is none of" -d '{"type":"EXECUTE","work_kind":"NO SUCH KIND"}' "$jobs"
refused 400 "a length that isn't one" -H 'Content-Length: 0x10' -d '{}' "$jobs"
head -c 2000000 /dev/zero >"$CHAOS_DIR/held"
refused 413 "a body that is too long" --data-binary "@$CHAOS_DIR/held" "$jobs"
refused 400 "dots in the path" --path-as-is "$CHAOS_CLIENTS/v1/../../etc/passwd"
say over
