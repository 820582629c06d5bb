/* The truth: what there was before anything was damaged: a store as bytes and as rows, an earlier state of it, and two strangers.
 *
 * Made once, by the first process; its children have it by their birth.
 */
#ifndef COPPICE_CHAOS_DAMAGE_TRUTH_H
#define COPPICE_CHAOS_DAMAGE_TRUTH_H

#include "store/store.h"
#include "tests/support/parcel.h"

enum { TRUTH_ROWS_MAX = 4096, TRUTH_FILE_MAX = 8 << 20, TRUTH_PAGE = 4096 };
#define TRUTH_AT_US UINT64_C(1800000000000000)

struct bytes {
    uint8_t *at;
    size_t size;
};

struct row {
    uint32_t table;
    struct span key, bytes; /* allocated */
};

struct rows {
    struct row at[TRUTH_ROWS_MAX]; /* by table and key */
    uint32_t count;
};
/* What the state has under this key is this; NULL: nothing. */
bool rows_hold(const struct rows *rows, uint32_t table, struct span key, const struct span *bytes);

struct truth {
    struct bytes data, earlier, lock, stranger, sibling; /* of LMDB but not ours; ours but not this one */
    size_t used;                                         /* bytes up to the last page in use */
    struct rows now, then;                               /* of data and of earlier */
};
extern struct truth truth;
void truth_make(void);

/* Where stores and images lie: of this process. */
extern char truth_dir[256];
const char *truth_path(const char *name); /* until the next call */
void truth_clear(void);
struct bytes truth_read(const char *path);
void truth_write(const char *path, const void *bytes, size_t size);

/* As the server does. `birth` makes the identity and the secret when there is no store yet: the same images in each run. */
enum error truth_open(uint8_t birth, bool large, struct store **ret_store, char *text, size_t text_size);
/* The command that makes parcel `number`; its body lasts until the next one. */
struct parcel_send truth_send(uint32_t number, char key[32]);

/* The campaign can't go on: status 2. */
_Noreturn __attribute__((format(printf, 1, 2))) void truth_give_up(const char *format, ...);

#endif
