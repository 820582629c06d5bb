#include "actors/curl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct curl curl;

/* Every function, or the name of one that isn't there. */
static const char *find_all(void *library, struct curl *found)
{
#define X(name)                                                           \
    found->name = (__typeof__(found->name))dlsym(library, "curl_" #name); \
    if (!found->name)                                                     \
        return "curl_" #name;
    CURL_FUNCTIONS(X)
#undef X
    return NULL;
}

/* What was loaded and can't be used stays as well: others may have begun to use what came with it. */
static bool load(const char *file, char *ret_why, size_t why_size)
{
    struct curl found = {0};
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(ret_why, why_size, "libcurl can't be loaded: %s", dlerror());
        return false;
    }
    const char *missing = find_all(library, &found);
    if (missing) {
        snprintf(ret_why, why_size, "%s has no %s", file, missing);
        return false;
    }
    const curl_version_info_data *version = found.version_info(CURLVERSION_NOW);
    if (version->version_num < CURL_OLDEST) {
        snprintf(ret_why, why_size, "libcurl %s is too old: 7.85.0 is needed", version->version);
        return false;
    }
    if (found.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) { /* never undone: others may use it */
        snprintf(ret_why, why_size, "libcurl %s can't be initialised", version->version);
        return false;
    }
    if (version->ssl_version && strncmp(version->ssl_version, "OpenSSL/", strlen("OpenSSL/")) == 0)
        found.ssl_ctx_ctrl = (__typeof__(found.ssl_ctx_ctrl))dlsym(library, "SSL_CTX_ctrl");
    found.version = version->version;
    found.version_num = version->version_num;
    curl = found;
    return true;
}

bool curl_load(const char *file, char *ret_why, size_t why_size)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    bool loaded = curl.version || load(file, ret_why, why_size);
    pthread_mutex_unlock(&lock);
    return loaded;
}
