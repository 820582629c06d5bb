#!/bin/sh
# A worker as a loop with curl: takes jobs of kind x.echo, one at a time, and gives back what they were given.
#
#     COPPICE_CLIENT_URL=http://127.0.0.1:8080 COPPICE_KEY=cop_... sh worker.sh [how many jobs; 0: for ever]
set -eu
: "${COPPICE_KEY:?must be an API key, such as cop_...}"
url=${COPPICE_CLIENT_URL:-http://127.0.0.1:8080} left=${1:-0}

ask() { # ask VERB BODY
    curl -sS --fail-with-body -H "Authorization: Bearer $COPPICE_KEY" -H 'Content-Type: application/json' -d "$2" "$url/v1/work:$1"
}
field() { # field NAME: the first one of a claim with one job, because what comes last is the payload, which may hold anything
    rest=${claimed#*"\"$1\":\""}
    printf '%s' "${rest%%\"*}"
}

while :; do
    claimed=$(ask claim '{"kinds":["x.echo"],"wait_ms":20000,"worker":"shell"}') || {
        printf '%s\n' "$claimed" >&2
        case $claimed in *'"status":401'* | *'"status":403'*) exit 1 ;; esac # no time makes the key a valid one
        sleep 1
        continue
    }
    [ "$claimed" != '{"jobs":[]}' ] || continue
    lease="\"job_id\":\"$(field job_id)\",\"lease_token\":\"$(field lease_token)\""
    payload=${claimed#*\"payload\":} payload=${payload%\}]\}}
    # The lease lasts 30 s. Work that takes longer says so in between: ask heartbeat "{$lease,\"progress\":0.5}"
    if ! ask complete "{$lease,\"result\":{\"echo\":$payload}}"; then # the result is too large, or the lease is over: nothing is done
        ask fail "{$lease,\"message\":\"its result was refused\"}" >&2 || :
        continue
    fi
    echo
    left=$((left - 1))
    [ "$left" -ne 0 ] || exit 0
done
