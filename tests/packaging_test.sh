#!/bin/sh
# What Prometheus and Grafana are given: the rules are sound and say what alerts.test.yml expects, and every metric that a
# rule or a panel names is one that the server has.
. "$(dirname "$0")/api/server.sh"
command -v promtool >/dev/null || {
    echo "promtool is missing; 'make deps' brings it"
    exit 1
}

check "C.9 the rules are sound" promtool check rules packaging/alerts.yml
check "C.9 and say what is expected" promtool test rules packaging/alerts.test.yml

# names FILE: of metrics in it, one a line; those of a histogram by the histogram's name
names() {
    grep -oE '\b(coppice|process|http_request)_[a-z0-9_]+' "$1" | sed 's/_bucket$//' | sort -u
}
# Is that JSON, in which every panel has its place and something to show?
panels() {
    node -e '
        const d = JSON.parse(require("fs").readFileSync(process.argv[1]));
        const ids = new Set(d.panels.map(p => p.id));
        const bad = d.panels.filter(p => !p.title || !p.gridPos || p.gridPos.x + p.gridPos.w > 24 || !p.targets.every(t => t.expr));
        process.exit(ids.size === d.panels.length && bad.length === 0 ? 0 : 1)' "$1"
}
# LoadCredential=: the service manager's files are root's, readable through an ACL, which shows as a group's bit.
mkdir -m 700 "$tmp/credentials"
head -c 32 /dev/urandom >"$tmp/credentials/master.key"
chmod 440 "$tmp/credentials/master.key"
check "C.14 a secret from the service manager" env CREDENTIALS_DIRECTORY="$tmp/credentials" "$COPPICE" config check --auth-master-key "$tmp/credentials/master.key"
check "C.14 the same file elsewhere is refused" sh -c '"$1" config check --auth-master-key "$2"; test $? = 78' sh "$COPPICE" "$tmp/credentials/master.key"
chmod 444 "$tmp/credentials/master.key"
check "C.14 one that all may read, too" sh -c 'CREDENTIALS_DIRECTORY=$3 "$1" config check --auth-master-key "$2"; test $? = 78' sh "$COPPICE" "$tmp/credentials/master.key" "$tmp/credentials"

check "C.9 the dashboard can be read" panels packaging/dashboard.json

check "a server" start
get /metrics | sed -n 's/^# TYPE \([^ ]*\) .*/\1/p' >"$tmp/metrics"
check "it has metrics" test "$(wc -l <"$tmp/metrics")" -gt 50
get /metrics >"$tmp/first"
for series in 'coppice_supervisor_escalations_total{domain="relay"} 0' 'coppice_supervisor_escalations_total{domain="front.connections:0"} 0' \
    'coppice_actor_crashes_total{class="relay"} 0' 'coppice_store_damaged_total{reason="jobs"} 0'; do
    check "C.9 before its first time there is $series" grep -qxF "$series" "$tmp/first"
done
for file in packaging/alerts.yml packaging/dashboard.json; do
    check "$file names some" test "$(names $file | wc -l)" -gt 10
    for name in $(names $file); do
        check "C.9 $name of $file is one of ours" grep -qx "$name" "$tmp/metrics"
    done
done
check "nobody else is taken for one of ours" sh -c '! grep -qx coppice_nothing_total "$1"' sh "$tmp/metrics"
check "it stops" stop
finish
