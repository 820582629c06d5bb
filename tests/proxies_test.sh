#!/bin/sh
# The server behind proxies that read HTTP with other eyes: nginx, which keeps request bodies or passes them on as they come,
# and haproxy; both keep their connections to it. curl asks. Sockets of the proxies are files, so that no port is guessed.
. "$(dirname "$0")/api/server.sh"
PATH=$PATH:/sbin # where Debian keeps daemons
for tool in nginx haproxy; do
    command -v $tool >/dev/null || {
        echo "$tool is missing; 'make deps' brings it"
        exit 1
    }
done

check "a server" start --http-listen 127.0.0.1:0 --operator-auth=false --http-access-log=false
client=$(member client "$line")

cat >"$tmp/nginx.conf" <<END
daemon off;
master_process off;
error_log $tmp/nginx.log;
pid $tmp/nginx.pid;
events { worker_connections 1000; }
http {
    access_log off;
    client_body_temp_path $tmp/nginx-body;
    proxy_temp_path $tmp/nginx-proxy;
    fastcgi_temp_path $tmp/nginx-fastcgi;
    uwsgi_temp_path $tmp/nginx-uwsgi;
    scgi_temp_path $tmp/nginx-scgi;
    client_max_body_size 16m;
    upstream product { server $client; keepalive 4; keepalive_requests 1000000; }
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    proxy_set_header Host \$http_host;
    server { listen unix:$tmp/kept.sock; location / { proxy_pass http://product; } }
    server { listen unix:$tmp/passed.sock; location / { proxy_pass http://product; proxy_request_buffering off; } }
}
END
cat >"$tmp/haproxy.cfg" <<END
defaults
    mode http
    timeout connect 5s
    timeout client 20s
    timeout server 20s
frontend front
    bind unix@$tmp/haproxy.sock
    default_backend product
backend product
    http-reuse always
    server one $client
END
nginx -c "$tmp/nginx.conf" -p "$tmp" 2>"$tmp/nginx.err" &
nginx=$!
haproxy -db -f "$tmp/haproxy.cfg" >"$tmp/haproxy.err" 2>&1 &
haproxy=$!
trap 'kill -9 $server $nginx $haproxy 2>/dev/null; rm -rf "$tmp"' EXIT

# ask ARGUMENT...: curl through the proxy of the moment, whose socket is $by
ask() {
    curl -sS -m 120 --unix-socket "$by" "$@"
}
# The status alone; what came is in body, and in head with its names in lower case, since proxies write them as they like.
code() {
    ask -o "$tmp/body" -D "$tmp/sent" -w '%{http_code}' "$@"
    tr -d '\r' <"$tmp/sent" | sed 's/^[^:]*:/\L&/' >"$tmp/head"
}
expect_one_of() {
    said=$1
    shift
    for good in "$@"; do
        [ "$said" != "$good" ] || return 0
    done
    echo "'$said'"
    return 1
}
# Until it answers; both are started in the background.
comes() {
    until ask -o /dev/null http://localhost/healthz 2>/dev/null; do
        kill -0 "$1" || return 1
    done
}
blanks() {
    head -c "$1" /dev/zero | tr '\0' ' '
}
opened() {
    curl -sS -m 120 "http://$at/metrics" | sed -n 's/^coppice_http_connections_open{listener="client"} //p'
}
json='Content-Type: application/json'

for proxy in kept passed haproxy; do
    by=$tmp/$proxy.sock
    pid=$nginx
    [ $proxy != haproxy ] || pid=$haproxy
    check "$proxy: it answers" comes "$pid"
    check "$proxy: GET" is "$(code http://localhost/healthz)" 200
    check "$proxy: the answer is the server's" has "$(cat "$tmp/body")" '{"status":"ok"'
    check "$proxy: so are its fields" has "$(cat "$tmp/head")" 'x-content-type-options: nosniff'
    check "$proxy: HEAD" is "$(code -I http://localhost/healthz)" 200
    check "$proxy: HEAD and then GET on one connection" is \
        "$(ask -o /dev/null -w '%{http_code} ' -I http://localhost/healthz --next -sS --unix-socket "$by" -o /dev/null -w '%{http_code} ' http://localhost/healthz)" '200 200 '
    check "$proxy: nothing there" is "$(code http://localhost/nowhere)" 404
    check "$proxy: in the shape of a problem" has "$(cat "$tmp/head")" 'application/problem+json'
    check "$proxy: a method that isn't taken" is "$(code -X DELETE http://localhost/healthz)" 405
    check "$proxy: Allow" has "$(cat "$tmp/head")" 'allow: GET, HEAD'
    check "$proxy: POST" is "$(code -H "$json" -d '{}' http://localhost/v1/clients)" 201
    check "$proxy: POST without a body" is "$(code -X POST http://localhost/v1/clients)" 201
    check "$proxy: chunks" is "$(code -H "$json" -H 'Transfer-Encoding: chunked' -d '{}' http://localhost/v1/clients)" 201
    check "$proxy: chunks out of a pipe" is "$( (printf '{'; printf '}') | code -H "$json" -X POST -T - http://localhost/v1/clients)" 201
    check "$proxy: Expect" is "$(code -H "$json" -H 'Expect: 100-continue' -d '{}' http://localhost/v1/clients)" 201
    check "$proxy: JSON that isn't" is "$(code -H "$json" -d '{' http://localhost/v1/clients)" 400
    check "$proxy: a large body is refused" is "$(blanks 4000000 | code -H "$json" --data-binary @- http://localhost/v1/clients)" 413
    check "$proxy: so are many chunks" is "$(blanks 4000000 | code -H "$json" -H 'Transfer-Encoding: chunked' --data-binary @- http://localhost/v1/clients)" 413
    check "$proxy: and the next one is served" is "$(code http://localhost/healthz)" 200
    ask http://localhost/openapi/control.json >"$tmp/through"
    curl -sS -m 120 "http://$client/openapi/control.json" >"$tmp/direct"
    check "$proxy: a long answer arrives whole" cmp "$tmp/through" "$tmp/direct"
    check "$proxy: it is long" test "$(wc -c <"$tmp/direct")" -gt 10000
    code -I http://localhost/openapi/control.json >/dev/null
    etag=$(sed -n 's/^etag: //p' "$tmp/head")
    check "$proxy: a client that has it already" is "$(code -H "If-None-Match: $etag" http://localhost/openapi/control.json)" 304
    check "$proxy: an answer to 1.0" is "$(code --http1.0 http://localhost/openapi/control.json)" 200
    check "$proxy: as long" is "$(wc -c <"$tmp/body")" "$(wc -c <"$tmp/direct")"
    # 300 requests by 20 at a time, with and without bodies
    n=0
    : >"$tmp/urls"
    while [ $n -lt 300 ]; do
        printf 'url = "http://localhost/healthz?%s"\noutput = "%s"\n' $n "$tmp/parallel" >>"$tmp/urls"
        n=$((n + 1))
    done
    check "$proxy: many at a time" is "$(ask -Z --parallel-max 20 -w '%{http_code}\n' -K "$tmp/urls" 2>/dev/null | sort | uniq -c | tr -s ' ')" ' 300 200'
    check "$proxy: they kept to a few connections" test "$(opened)" -lt 30
    # Who has both a length and a coding is refused by the proxy, or its coding counts for both of us; nothing in between.
    printf 'POST /v1/clients HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >"$tmp/raw"
    ask telnet://localhost/ <"$tmp/raw" 2>/dev/null | grep -a '^HTTP/1.1' | cut -c 10-12 | tr '\n' ' ' >"$tmp/answer"
    check "$proxy: a length and a coding" expect_one_of "$(cat "$tmp/answer")" '400 ' '201 ' '201 404 '
    check "$proxy: it still serves" is "$(code http://localhost/healthz)" 200
done

check "nobody was killed by this" nobody_died
kill $nginx $haproxy
wait $nginx $haproxy 2>/dev/null
check "it can be stopped, and nothing has crashed" stop_unharmed
finish
