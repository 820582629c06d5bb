/* A table of keys is opened by whoever reads it first, without libcrypto until then. Keys are made in a child, so that this
 * process hasn't loaded anything when it opens them. */
#include "acutest.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "http/keyring_impl.h"

enum { ROWS = 3, READERS = 4 };

static char dir[64], master[96], why[256];
static struct own_row *rows; /* shared with the child */

static struct keyring *ring_make(void)
{
    const struct keyring_options options = {
        .issuer = "coppice", .audience = "coppice", .environment = "dev", .master_key_file = master};
    struct keyring *k = keyring_create(&options, why, sizeof(why));
    TEST_ASSERT_(k != NULL, "%s", why);
    return k;
}

static void row_make(struct keyring *k, struct own_row *row, unsigned number)
{
    static const uint8_t nonce[VAULT_NONCE_SIZE] = {1};
    char name[128];
    uint8_t secret[JWT_SECRET_SIZE] = {[31] = (uint8_t)(number + 1)};
    snprintf(row->kid, sizeof(row->kid), "key-%u", number);
    struct jwt_signer *signer = jwt_signer_create(row->kid, secret);
    TEST_ASSERT(signer != NULL);
    row->own.state = number ? SIGNING_KEY_RETIRING : SIGNING_KEY_ACTIVE;
    row->own.created_us = 7;
    row->own.expires_us = UINT64_MAX;
    row->jwk_size = (uint32_t)jwt_signer_jwk(signer, row->jwk);
    vault_seal(&k->vault, nonce, keyring_sealed_name(name, k, row->kid), span_of(secret, sizeof(secret)),
               row->sealed);
    row->sealed_size = sizeof(secret) + VAULT_OVERHEAD;
    jwt_signer_free(signer);
}

static void rows_make(void)
{
    struct keyring *k = ring_make();
    for (unsigned i = 0; i < ROWS; i++)
        row_make(k, &rows[i], i);
    keyring_destroy(k);
}

static void begin(void)
{
    int status = -1;
    snprintf(dir, sizeof(dir), "/dev/shm/coppice-key-table-%d", (int)getpid());
    snprintf(master, sizeof(master), "%s/master", dir);
    TEST_ASSERT(mkdir(dir, 0700) == 0);
    rows = mmap(NULL, ROWS * sizeof(*rows), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    TEST_ASSERT(rows != MAP_FAILED);
    pid_t pid = fork();
    if (pid == 0) {
        rows_make();
        _exit(0);
    }
    TEST_ASSERT(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

static void end(struct keyring *k)
{
    keyring_destroy(k);
    unlink(master);
    TEST_CHECK(rmdir(dir) == 0);
}

static bool publish(struct keyring *k)
{
    struct json_node *nodes = calloc(KEYRING_SET_NODES, sizeof(*nodes));
    bool made = nodes && key_table_make(k, rows, ROWS, nodes);
    free(nodes);
    return made;
}

static void *read_once(void *arg)
{
    struct keyring *k = arg;
    const struct key_table *table = keyring_read_begin(k);
    bool good = table->opened && table->count == ROWS && table->signer && table->created_us == 7 &&
                strcmp(jwt_key_kid(table->entries[ROWS - 1].key), "key-2") == 0;
    keyring_read_end(k);
    return good ? k : NULL;
}

static void test_the_first_of_many_readers_opens_it(void)
{
    pthread_t threads[READERS];
    void *good;
    begin();
    struct keyring *k = ring_make();
    TEST_CHECK(publish(k) && !crypto_loaded() && !atomic_load(&k->table)->opened);
    for (int i = 0; i < READERS; i++)
        TEST_ASSERT(pthread_create(&threads[i], NULL, read_once, k) == 0);
    for (int i = 0; i < READERS; i++)
        TEST_CHECK(pthread_join(threads[i], &good) == 0 && good == k);
    TEST_CHECK(crypto_loaded() && !atomic_load(&k->table)->rows);
    TEST_CHECK(publish(k) && atomic_load(&k->table)->opened); /* there is nothing to wait for any more */
    end(k);
}

static void test_one_that_nobody_reads_needs_no_libcrypto(void)
{
    begin();
    struct keyring *k = ring_make();
    TEST_CHECK(publish(k) && publish(k));
    keyring_reclaim(k);
    end(k);
    TEST_CHECK(!crypto_loaded());
}

static void test_a_table_without_rows_is_open(void)
{
    begin();
    struct keyring *k = ring_make();
    TEST_CHECK(atomic_load(&k->table)->opened && key_table_make(k, NULL, 0, NULL));
    const struct key_table *table = keyring_read_begin(k);
    TEST_CHECK(table->opened && table->count == 0 && !table->signer);
    TEST_CHECK(span_equal(span_of(table->jwks, table->jwks_size), span_text("{\"keys\":[]}")));
    keyring_read_end(k);
    end(k);
    TEST_CHECK(!crypto_loaded());
}

static void test_CTL_112_with_a_master_key_that_was_made_now_it_is_opened_at_once(void)
{
    begin();
    unlink(master);
    struct keyring *k = ring_make();
    TEST_CHECK(publish(k) && atomic_load(&k->table)->opened && atomic_load(&k->signless));
    const struct key_table *table = keyring_read_begin(k);
    TEST_CHECK(table->count == ROWS && !table->signer);
    keyring_read_end(k);
    end(k);
}

TEST_LIST
= {
    {"the first of many readers opens it", test_the_first_of_many_readers_opens_it},
    {"one that nobody reads needs no libcrypto", test_one_that_nobody_reads_needs_no_libcrypto},
    {"a table without rows is open", test_a_table_without_rows_is_open},
    {"CTL-112 with a master key that was made now, it is opened at once",
     test_CTL_112_with_a_master_key_that_was_made_now_it_is_opened_at_once},
    {NULL, NULL},
};
