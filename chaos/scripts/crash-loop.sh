# does: one relay is killed again and again, as often as its domain's budget allows, and once more
# holds: up to the budget it alone ends; beyond it its domain is started anew, which costs the root one restart and nobody else anything
# load: served
# process: same
. "${0%/*}/common.sh"
room root 1
say "dies-below relay"
turns=0
while [ $turns -lt 40 ]; do
    turns=$((turns + 1))
    record=$(chaos kill relay:0)
    used=$(printf %s "$record" | member used_before)
    restarts=$(printf %s "$record" | sed 's/.*"strategy":"[a-z_]*","restarts":\([0-9]*\).*/\1/')
    died=$(printf %s "$record" | member died_count)
    outcome=$(printf %s "$record" | member outcome)
    [ "$outcome" = recovered ] || break
    if [ "$used" -lt "$restarts" ]; then
        [ "$died" = 1 ] || break
        continue
    fi
    [ "$died" = 1 ] && continue # an earlier one left the window in between
    [ "$died" = 9 ] && escalated=yes
    break
done
say "check ${escalated:-no} after $turns kills, $used of $restarts restarts spent: $outcome, $died ended"
say "check $(ask '/stats/events?event=supervisor.escalation' | grep -q '"domain":"relay"' && echo yes || echo no) the escalation is an event that names the domain"
say over
