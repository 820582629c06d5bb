/* Digest: one number for everything that a data file shows.
 *
 * Reads it through LMDB, read only and without its lock file: every row of every table, the table of tables and the
 * list of free pages. Two files with the same digest show the same to everybody, so a state that has the digest
 * of a sound one is sound in every value. Rows are summed, so their order doesn't matter.
 *
 * A damaged file can kill the reader; who digests one does it in a process that may die.
 */
#ifndef COPPICE_CHAOS_DIGEST_H
#define COPPICE_CHAOS_DIGEST_H

#include <stdint.h>

/* NULL and the numbers, or what LMDB said. More than rows_max rows: a tree that runs in circles. */
const char *digest_of(const char *path, uint64_t rows_max, uint64_t *ret_digest, uint64_t *ret_rows);

#endif
