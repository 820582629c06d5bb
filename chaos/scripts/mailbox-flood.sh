# does: 100,000 messages go to one actor after the other, to some of them while they are suspended
# holds: mailboxes take what they have room for and refuse the rest to the sender; nobody ends, and memory is what it was
# load: served
# process: same
. "${0%/*}/common.sh"
for name in deduper scheduler:10 worker:45 webhooks:11; do
    record=$(chaos flood "$name" '"messages":100000')
    case $record in
    *'"outcome":"flooded"'*) say "check yes $name took $(printf %s "$record" | member sent) of 100000" ;;
    *) say "check no $name was not flooded: $(printf %s "$record" | head -c 200)" ;;
    esac
done
for name in deduper worker:46; do
    chaos suspend "$name" >>"$CHAOS_DIR/held"
    record=$(chaos flood "$name" '"messages":100000')
    chaos resume "$name" >>"$CHAOS_DIR/held"
    refused=$(printf %s "$record" | member refused)
    # Who stands on another scheduler refuses when the messages come there: then they are dropped, and counted as that.
    say "check yes $name, suspended: $(printf %s "$record" | member sent) taken, ${refused:-0} refused at once, a mailbox of $(printf %s "$record" | member mailbox_depth)"
    [ "$(printf %s "$record" | member mailbox_depth)" -le 65536 ] || say "check no the mailbox of $name has no end"
done
say over
