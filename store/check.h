/* Check: everything that must be true of a store, looked at row by row.
 *
 * The structure of the file comes first, page by page and without LMDB (store/image.h): nobody walks through a file
 * that is wrong there. Then every row: its checksum and record, its key, that looking the key up finds this row, what its
 * table's check function demands (cross references), streams without gaps and from their first event on, a scope and
 * key in one row of the ledger with the end that its lifetime has, the commit stamp; and every counter is computed again and
 * compared byte for byte. Findings are told one by one, up to a limit, and counted.
 *
 * Reading a damaged file through a map can kill the reader (SIGBUS): check_directory does all of it in a child
 * process, and tells of its death as a finding.
 */
#ifndef COPPICE_STORE_CHECK_H
#define COPPICE_STORE_CHECK_H

#include "store/environment.h"
#include "store/txn.h"

#define CHECK_TOLD_MAX 1000u /* findings that are told; all are counted */

struct check_report {
    uint64_t rows, pages, findings;
    uint64_t commit; /* the transaction that was looked at */
};

/* Called for each finding, a sentence without a newline. */
typedef void check_tell(void *context, const char *finding);

/* In a child process; beside a living server or without one. OK: look at the report; the others as
 * environment_open, when there is nothing that could be checked. A store that is too damaged to be opened is a
 * finding. ERR_UNAVAILABLE: it is of an older format, which no server has brought forward yet, and its pages are sound. What was found is told after the child's end. */
enum error check_directory(const char *dir, const struct schema *schema, check_tell *tell, void *context,
                           struct check_report *ret_report, char *ret_text, size_t text_size);
/* In this process, over an open transaction: rows, references, counters; not the pages. OK or ERR_MEMORY. */
enum error check_rows(struct txn *txn, const struct schema *schema, check_tell *tell, void *context,
                      struct check_report *ret_report);

/* ---- for the check functions of tables ---- */

__attribute__((format(printf, 2, 3))) void check_complain(struct check *check, const char *format, ...);
/* A name that only one of some rows may have: `place` is where this one has it (not 0). What an earlier row of the same
 * name gave, or 0. The name is known by 64 bits of a hash: whoever is told of an earlier one compares the two. */
uint64_t check_named(struct check *check, const void *name, size_t size, uint64_t place);
/* This row adds `delta` to that counter. */
void check_count(struct check *check, uint16_t counter, struct span label, int64_t delta);
/* The counter must be at least this (those that never go back). */
void check_count_least(struct check *check, uint16_t counter, struct span label, int64_t least);

#endif
