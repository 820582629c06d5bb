#include "http/ssl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

struct ssl ssl;

/* Every function, or the name of one that isn't there. */
static const char *find_all(void *library, struct ssl *found)
{
#define X(name)                                                   \
    found->name = (__typeof__(found->name))dlsym(library, #name); \
    if (!found->name)                                             \
        return #name;
    SSL_FUNCTIONS(X)
#undef X
    return NULL;
}

static bool load(const char *file, char *ret_why, size_t why_size)
{
    struct ssl found = {0};
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(ret_why, why_size, "libssl can't be loaded: %s", dlerror());
        return false;
    }
    const char *missing = find_all(library, &found);
    if (missing) {
        snprintf(ret_why, why_size, "%s has no %s", file, missing);
        return false;
    }
    ssl = found;
    return true;
}

bool ssl_load(const char *file, char *ret_why, size_t why_size)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    bool loaded =
        crypto_load(CRYPTO_FILE, ret_why, why_size) && (ssl.SSL_new || load(file, ret_why, why_size));
    pthread_mutex_unlock(&lock);
    return loaded;
}
