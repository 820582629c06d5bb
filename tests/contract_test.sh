#!/bin/sh
# coppice contract: what it prints is what lies in docs/contract, and what it checks is what it serves (CTL-019, CTL-064 to
# CTL-066, CTL-284, CTL-301). Ends with `N passed, N failed`.
set -u
cd "$(dirname "$0")/.." || exit 1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
program=${COPPICE:-build/coppice}
passed=0
failed=0

# expect NAME COMMAND...
expect() {
    name=$1
    shift
    if "$@" >"$tmp/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $name"
        sed 's/^/    /' "$tmp/log"
    fi
}

# prints FILE ARGUMENT...: the command's output is the file, byte for byte
prints() {
    file=$1
    shift
    "$program" contract show "$@" >"$tmp/shown" && cmp "$tmp/shown" "$file"
}

# leaves STATUS WORDS ARGUMENT...: the command ends so and says this
leaves() {
    status=$1
    words=$2
    shift 2
    "$program" contract "$@" >"$tmp/shown" 2>&1
    [ $? = "$status" ] && grep -qF -- "$words" "$tmp/shown" || {
        cat "$tmp/shown"
        return 1
    }
}

expect 'CTL-019 show openapi' prints docs/contract/control.openapi.yaml openapi
expect 'CTL-301 show asyncapi' prints docs/contract/control.asyncapi.yaml asyncapi
expect 'show jobs' prints docs/contract/jobs.openapi.yaml jobs
expect 'show work' prints docs/contract/work.openapi.yaml work
expect 'show ops' prints docs/contract/ops.openapi.yaml ops
expect 'CTL-406 show events' prints docs/contract/control.events.tsv events
expect 'show openapi --json' prints docs/contract/generated/control.openapi.json openapi --json

sed 's/^    deprecated:/    x-deprecated:/' docs/contract/control.asyncapi.yaml >"$tmp/strict"
expect 'AMB-53 show asyncapi --strict' prints "$tmp/strict" asyncapi --strict

# code, http, retryable, retry class, meaning
cut -f 1-5 docs/contract/control.errors.tsv >"$tmp/wanted"
rows() {
    "$program" contract show errors >"$tmp/all" && awk -F '\t' 'NR == 1 || $7 == "control" && $8 == "false"' "$tmp/all" |
        cut -f 1-5 >"$tmp/shown" && cmp "$tmp/shown" "$tmp/wanted"
}
expect 'CTL-284 show errors' rows

expect 'show what there is nothing of' leaves 64 "there is no 'swagger'" show swagger
expect 'CTL-019 check' leaves 0 ' 0 findings' check
expect 'check --json' leaves 0 '"findings":0}' check --json
expect 'CTL-064 check --base with itself' leaves 0 ' 0 breaking and 0 compatible differences' check --base docs/contract

base=$tmp/base
mkdir "$base"
sed 's/"job.retrying": {/"job.retry": {/' docs/contract/generated/control.asyncapi.json >"$base/control.asyncapi.json"
expect 'CTL-065 check --base with a channel that had another name' leaves 1 'breaking: /channels/job.retry is gone' check --base "$base"
expect 'CTL-066 and what that needs' leaves 1 'info.x-migration-guide-ref' check --base "$base/control.asyncapi.json"
sed 's/"x-path-versions":{/&"v0":{"deprecated_in_release":1},/; s/"x-path-versions": {/&"v0":{"deprecated_in_release":1},/' \
    docs/contract/generated/ops.openapi.json >"$base/ops.openapi.json"
expect 'CTL-026 a version of paths goes too early' leaves 1 'v0 is gone in release 1' check --base "$base/ops.openapi.json"
sed 's/"deprecated_in_release":1/"deprecated_in_release":-1/' "$base/ops.openapi.json" >"$base/never.json"
expect 'CTL-026 one that was never deprecated' leaves 1 'v0 is gone, and was never deprecated' check --base "$base/never.json"
expect 'check --base with nothing' leaves 64 'there is no such file' check --base "$tmp/nothing.json"
expect 'and prints nothing else' sh -c '! "$0" contract check --base "$1" 2>/dev/null | grep -q .' "$program" "$tmp/nothing.json"
expect 'check --base with YAML' leaves 64 'its JSON form is meant' check --base docs/contract/control.openapi.yaml

echo "$passed passed, $failed failed"
[ $failed = 0 ]
