#!/bin/sh
# A data directory from outside: what the commands over it print, what they end with, and what they leave alone.
cd "$(dirname "$0")/../.." || exit 1
. tests/api/server.sh
unset COPPICE_STORE_DIR COPPICE_STORE_RECORD

# runs STATUS ARGUMENT...: leaves standard output and error in $tmp
runs() {
    wanted=$1
    shift
    "$COPPICE" "$@" >"$tmp/stdout" 2>"$tmp/stderr"
    is $? "$wanted"
}
out() { has "$(cat "$tmp/stdout")" "$1"; }
err() { has "$(cat "$tmp/stderr")" "$1"; }
silent() { is "$(cat "$tmp/stderr")" ''; }
absent() { ! [ -e "$1" ]; }

# look PATH: names, rights, sizes and bytes of all that lies there
look() { find "$1" -printf '%P %m %s %T@ ' \( -type f -exec md5sum {} \; -o -printf '\n' \) | sort; }

# flip FILE OFFSET: another byte there
flip() {
    byte=$(od -An -tu1 -j "$2" -N 1 "$1" | tr -d ' ')
    printf '%b' "\\0$(printf '%o' $((byte ^ 1)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

store=$tmp/store

# --- no store ---------------------------------------------------------------------------------------------------------

for command in check stat 'export --jsonl' "backup $tmp/none.b"; do
    # shellcheck disable=SC2086 # words
    check "$command of nothing" runs 66 $command --store-dir "$tmp/none"
    check "$command of nothing says where" err "'$tmp/none' doesn't exist"
    check "$command of nothing makes nothing" absent "$tmp/none"
done
check "a failed backup leaves no directory" absent "$tmp/none.b"
check "a failed backup leaves nothing half made" absent "$tmp/none.b.partial"
mkdir "$tmp/empty"
check "check of an empty directory" runs 66 check --store-dir "$tmp/empty"
check "an empty directory stays empty" is "$(ls -A "$tmp/empty")" ''
echo text >"$tmp/file"
check "check of a file" runs 73 check --store-dir "$tmp/file"
mkdir "$tmp/foreign"
head -c 65536 /dev/urandom >"$tmp/foreign/data.mdb"
before=$(look "$tmp/foreign")
check "check of a foreign file" runs 73 check --store-dir "$tmp/foreign"
check "stat of a foreign file" runs 73 stat --store-dir "$tmp/foreign"
check "what is foreign isn't touched" is "$(look "$tmp/foreign")" "$before"

# --- command lines ----------------------------------------------------------------------------------------------------

check "backup without a directory" runs 64 backup
check "backup without a directory says how" err "coppice backup DIR"
check "backup with two" runs 64 backup a b
check "restore without a directory" runs 64 restore
check "replay without a journal" runs 64 replay
check "check with an argument" runs 64 check a
check "export without a form" runs 64 export
check "export without a form says which" err "coppice export --jsonl"
check "help of a command with an argument" runs 0 backup --help
check "help names the argument" out "coppice backup DIR: "

# --- beside a server --------------------------------------------------------------------------------------------------

check "a server that records" start --store-record "$tmp/journal"
check "which is ready" ready
for name in deduper bus telemetry; do
    check "an audit entry about $name" has "$(kill_actor $name)" '"'
done # and one says that the issuer made its first key
check "check beside a server" runs 0 check --store-dir "$store"
check "check says what it saw" out "0 findings"
check "check has nothing to complain about" silent
check "check as JSON" runs 0 check --json --store-dir "$store"
check "check as JSON says so" out '"findings":0}'
check "stat beside a server" runs 0 stat --store-dir "$store"
check "stat counts rows" out "rows   audits"
check "stat as JSON" runs 0 stat --json --store-dir "$store"
check "stat as JSON counts rows" out '"audits":4'
check "the variable is heard" sh -c 'COPPICE_STORE_DIR=$2 "$1" stat --json | grep -q "\"audits\":4"' sh "$COPPICE" "$store"
check "backup beside a server" runs 0 backup "$tmp/backup" --store-dir "$store"
check "backup says what it made" out "$tmp/backup: made and read back; commit "
check "a backup is two files" is "$(find "$tmp/backup" -mindepth 1 -printf '%f ' | tr ' ' '\n' | sort | xargs)" 'data.mdb manifest.json'
before=$(look "$tmp/backup")
check "a server on the backup" runs 73 serve --store-dir "$tmp/backup" --http-listen 127.0.0.1:0 --operator-listen 127.0.0.1:0
check "a server on the backup says whose it is" err "is a backup; 'coppice restore' makes a store of it"
check "the backup isn't touched" is "$(look "$tmp/backup")" "$before"
check "verify" runs 0 backup --verify "$tmp/backup" --json
check "verify as JSON has the sum" out "\"sha256\":\"$(sha256sum "$tmp/backup/data.mdb" | cut -d' ' -f1)\"}"
check "export beside a server" runs 0 export --jsonl --store-dir "$store"
check "export has the audit entries" is "$(grep -c '^{"table":"audits","key":"[0-9a-f]\{32\}","version":1,"record":{.*}}$' "$tmp/stdout")" 4
check "export has nothing but rows" is "$(grep -cv '^{"table":"[a-z_]*","key":"[0-9a-f]*","version":[0-9]*,"record":{.*}}$' "$tmp/stdout")" 0
check "what an audit entry says" out '"verb":"actor.kill"'
row='1!d;s/"record".*//' # the keeper may commit in between, and the first row is the commit's stamp
sed "$row" "$tmp/stdout" >"$tmp/first"
{
    "$COPPICE" export --jsonl --store-dir "$store" 2>"$tmp/stderr"
    echo $? >"$tmp/status"
} | sed 1q | sed "$row" >"$tmp/stdout"
check "export into a reader that goes" sh -c 'case $(cat "$1") in 0 | 141) ;; *) exit 1 ;; esac' sh "$tmp/status"
check "export into a reader that goes is quiet" silent
check "its first line is the first line" cmp "$tmp/first" "$tmp/stdout"
check "restore over a store" runs 73 restore "$tmp/backup" --store-dir "$store"
check "restore over a store says why" err "isn't empty"
check "replay over a store" runs 73 replay "$tmp/journal" --store-dir "$store"
check "the server is as well as before" is "$(status GET /readyz)" 200
check "the server stops" stop

# --- without one ------------------------------------------------------------------------------------------------------

check "check without a server" runs 0 check --store-dir "$store"
check "export without a server" runs 0 export --jsonl --store-dir "$store"
cp "$tmp/stdout" "$tmp/all"
check "replay of the journal" runs 0 replay "$tmp/journal" --store-dir "$tmp/replayed"
check "replay says what it did" out "$tmp/replayed: commit "
check "export of the replayed store" runs 0 export --jsonl --store-dir "$tmp/replayed"
check "a replayed store has the same rows" cmp "$tmp/all" "$tmp/stdout"
check "backup of the replayed store" runs 0 backup "$tmp/replayed.b" --store-dir "$tmp/replayed" --json
check "backup onto itself" runs 73 backup "$tmp/replayed.b" --store-dir "$tmp/replayed"
check "backup onto itself says why" err "is there already"
check "restore" runs 0 restore "$tmp/replayed.b" --store-dir "$tmp/restored"
check "export of the restored store" runs 0 export --jsonl --store-dir "$tmp/restored"
check "a restored store has the same rows" cmp "$tmp/all" "$tmp/stdout"
check "check of the restored store" runs 0 check --store-dir "$tmp/restored"
check "a server on the restored store" start --store-dir "$tmp/restored"
check "it goes on where that was" has "$(kill_actor deduper)" '"'
check "it stops" stop
check "stat of the restored store" runs 0 stat --json --store-dir "$tmp/restored"
check "it has what was restored and what came" out '"audits":5'
if have mdb_stat mdb_dump mdb_copy; then
    check "Debian's mdb_stat reads the store" sh -c 'mdb_stat -a "$1" | grep -q "Status of audits"' sh "$store"
    mkdir "$tmp/copied" "$tmp/compact"
    check "Debian's mdb_copy copies the store" mdb_copy "$store" "$tmp/copied"
    check "a copy of its is a store" runs 0 check --store-dir "$tmp/copied"
    check "and it copies the store compactly" mdb_copy -c "$store" "$tmp/compact"
    check "that copy counts its commits anew" runs 65 check --store-dir "$tmp/compact"
    check "Debian's mdb_dump reads a backup" sh -c 'mdb_dump -s audits "$1" | grep -q "^DATA=END"' sh "$tmp/replayed.b"
fi

# --- damage -----------------------------------------------------------------------------------------------------------

cp -r "$tmp/backup" "$tmp/bad.b"
flip "$tmp/bad.b/data.mdb" 9000
check "verify of a damaged backup" runs 65 backup --verify "$tmp/bad.b"
check "verify of a damaged backup says what" err "the SHA-256 of data.mdb is"
check "restore of a damaged backup" runs 65 restore "$tmp/bad.b" --store-dir "$tmp/bad.s"
check "restore of a damaged backup makes nothing" absent "$tmp/bad.s"
rm "$tmp/bad.b/manifest.json"
check "verify of half a backup" runs 66 backup --verify "$tmp/bad.b"
check "verify of half a backup says what" err "holds no manifest.json"
check "verify of nothing" runs 66 backup --verify "$tmp/none"
cp -r "$tmp/backup" "$tmp/new.b"
sed -i 's/"format":[0-9]*/"format":4000000/' "$tmp/new.b/manifest.json"
check "verify of a newer backup" runs 78 backup --verify "$tmp/new.b"
check "verify of a newer backup says so" err "is of format 4000000"

cp -r "$tmp/restored" "$tmp/bad"
value=$(grep -abo 'actor.kill' "$tmp/bad/data.mdb" | cut -d: -f1)
for offset in $value; do
    flip "$tmp/bad/data.mdb" "$offset"
done
check "check of a damaged store" runs 65 check --store-dir "$tmp/bad"
check "check of a damaged store names the table" err "audits"
check "check of a damaged store counts" out "finding"
check "export of a damaged store" runs 65 export --jsonl --store-dir "$tmp/bad"
check "export of a damaged store says where it ends" err "table audits, the row after key "
check "backup of a damaged store" runs 65 backup "$tmp/bad.c" --store-dir "$tmp/bad"
check "backup of a damaged store makes nothing" absent "$tmp/bad.c"
check "backup of a damaged store leaves nothing half made" absent "$tmp/bad.c.partial"
truncate -s 5000 "$tmp/bad/data.mdb"
check "check of a cut store" runs 65 check --store-dir "$tmp/bad"
check "stat of a cut store" runs 65 stat --store-dir "$tmp/bad"

: >"$tmp/bad/data.mdb"
check "check of an emptied store" runs 65 check --store-dir "$tmp/bad"
check "finds that and nothing else" out ", 1 finding"
check "says it once" is "$(cat "$tmp/stderr")" "coppice: '$tmp/bad' holds no store that could be read: the file is empty"

# --- journals ---------------------------------------------------------------------------------------------------------

check "replay of nothing" runs 66 replay "$tmp/none" --store-dir "$tmp/r"
check "replay of a text" runs 65 replay "$tmp/file" --store-dir "$tmp/r"
check "replay of a text says what" err "isn't a journal of coppice"
cp "$tmp/journal" "$tmp/bad.j"
flip "$tmp/bad.j" 200
check "replay of a damaged journal" runs 65 replay "$tmp/bad.j" --store-dir "$tmp/r1"
check "replay of a damaged journal says where" err "is damaged at byte"
size=$(wc -c <"$tmp/journal")
head -c $((size - 1)) "$tmp/journal" >"$tmp/cut.j"
check "replay of a journal that was cut off" runs 0 replay "$tmp/cut.j" --store-dir "$tmp/r2"
check "replay of a journal that was cut off says so" out "ends within another batch"
finish
