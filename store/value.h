/* Values: how a record lies in LMDB, with 8 bytes in front that say whether to believe it.
 *
 *      0        1                               8
 *     +--------+-------------------------------+----------- - -
 *     | version| checksum, low 7 bytes, LE     | the record
 *     +--------+-------------------------------+----------- - -
 *
 * The checksum covers the table's name, the key, the version and the record: a sound value under another key, in
 * another table or of another version is damaged. Pure functions of their arguments.
 */
#ifndef COPPICE_STORE_VALUE_H
#define COPPICE_STORE_VALUE_H

#include "runtime/error.h"
#include "store/record.h"
#include "store/span.h"

#define VALUE_HEAD     8u
#define VALUE_SIZE_MAX 65536u

/* Of a table, computed once. */
uint64_t value_seed(const char *table);
/* Head and record; 0 when a field breaks its limit or the room is too small. */
size_t value_write(uint64_t seed, struct span key, const struct record_class *class, const void *record,
                   void *bytes, size_t room);
/* Verifies. OK or ERR_DAMAGED. */
enum error value_open(uint64_t seed, struct span key, struct span value, uint8_t *ret_version,
                      struct span *ret_record);

#endif
