/* A worker in C with libcurl: takes jobs of kind x.echo, one at a time, and gives back what they were given.
 *
 *     cc worker.c -o worker -lcurl
 *     COPPICE_CLIENT_URL=http://127.0.0.1:8080 COPPICE_KEY=cop_... ./worker [how many jobs; 0: for ever]
 */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct answer {
    size_t size;
    char text[65536];
};

static size_t keep(char *bytes, size_t one, size_t count, void *to)
{
    struct answer *a = to;
    size_t room = sizeof(a->text) - 1 - a->size, size = one * count < room ? one * count : room;
    memcpy(a->text + a->size, bytes, size);
    a->text[a->size += size] = 0;
    return one * count;
}

/* POST /v1/work:VERB; the status, or 0 and why there is none. */
static long ask(CURL *curl, const char *verb, const char *body, struct answer *a)
{
    char url[512];
    long status = 0;
    const char *base = getenv("COPPICE_CLIENT_URL");
    snprintf(url, sizeof(url), "%s/v1/work:%s", base ? base : "http://127.0.0.1:8080", verb);
    a->text[a->size = 0] = 0;
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, keep);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, a);
    CURLcode e = curl_easy_perform(curl);
    if (e == CURLE_OK)
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    else
        snprintf(a->text, sizeof(a->text), "%s: %s", url, curl_easy_strerror(e));
    return status;
}

/* The string behind "name":" in an answer of ours, which has no spaces between. */
static int field(const char *text, const char *name, char *value, size_t size)
{
    char key[64];
    snprintf(key, sizeof(key), "\"%s\":\"", name);
    const char *at = strstr(text, key);
    return at && snprintf(value, size, "%.*s", (int)strcspn(at + strlen(key), "\""), at + strlen(key)) > 0;
}

int main(int argc, char **argv)
{
    static struct answer a, done;
    char header[256], id[64], token[32], body[sizeof(a.text) + 256];
    const char *key = getenv("COPPICE_KEY");
    if (!key || !*key)
        return fprintf(stderr, "COPPICE_KEY must be an API key, such as cop_...\n"), 64;
    CURL *curl = curl_easy_init();
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    snprintf(header, sizeof(header), "Authorization: Bearer %s", key);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, curl_slist_append(headers, header));
    for (int left = argc > 1 ? atoi(argv[1]) : 0;;) {
        if (ask(curl, "claim", "{\"kinds\":[\"x.echo\"],\"wait_ms\":20000,\"worker\":\"c\"}", &a) != 200)
            return fprintf(stderr, "claim: %s\n", a.text), 1;
        char *payload = strstr(a.text, "\"payload\":"); /* the last member: up to the end of the job, "}]}" */
        if (!field(a.text, "job_id", id, sizeof(id)) || !field(a.text, "lease_token", token, sizeof(token)) || !payload)
            continue; /* there was none in time */
        snprintf(body, sizeof(body), "{\"job_id\":\"%s\",\"lease_token\":\"%s\",\"result\":{\"echo\":%.*s}}", id, token,
                 (int)(strlen(payload) - strlen("\"payload\":") - 3), payload + strlen("\"payload\":"));
        long status = ask(curl, "complete", body, &done);
        printf("%ld %s\n", status, done.text);
        if (status != 200) {
            snprintf(body, sizeof(body), "{\"job_id\":\"%s\",\"lease_token\":\"%s\",\"message\":\"its result was refused\"}", id, token);
            (void)ask(curl, "fail", body, &done);
        }
        if (status == 200 && --left == 0) /* a result that is too large, or a lease that is over, is nothing done */
            return 0;
    }
}
