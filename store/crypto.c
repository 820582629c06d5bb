#include "store/crypto.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct crypto crypto;
static _Atomic bool loaded; /* behind the table */

static const struct {
    const char *name;
    size_t at; /* in the table */
} functions[] = {
#define X(name) {#name, offsetof(struct crypto, name)},
    CRYPTO_FUNCTIONS(X)
#undef X
};

/* Every function, or the name of one that isn't there. */
static const char *find_all(void *library, struct crypto *found)
{
    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
        void *function = dlsym(library, functions[i].name);
        if (!function)
            return functions[i].name;
        memcpy((char *)found + functions[i].at, &function, sizeof(function));
    }
    return NULL;
}

/* What was loaded and can't be used stays as well: others may have begun to use what came with it. */
static bool load(const char *file, char *ret_why, size_t why_size)
{
    struct crypto found = {0};
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(ret_why, why_size, "libcrypto can't be loaded: %s", dlerror());
        return false;
    }
    const char *missing = find_all(library, &found);
    if (missing) {
        snprintf(ret_why, why_size, "%s has no %s", file, missing);
        return false;
    }
    crypto = found;
    atomic_store_explicit(&loaded, true, memory_order_release);
    return true;
}

bool crypto_loaded(void)
{
    return atomic_load_explicit(&loaded, memory_order_acquire);
}

bool crypto_load(const char *file, char *ret_why, size_t why_size)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (crypto_loaded())
        return true;
    pthread_mutex_lock(&lock);
    bool good = crypto_loaded() || load(file, ret_why, why_size);
    pthread_mutex_unlock(&lock);
    return good;
}
