/* Refusal: the catalogue of requests that must be refused (spec/jobs.md, section 15 and the error rows of 9 and 16).
 *
 * Each is a case of the verdict, under a name that begins with its requirements. Not in it, because nothing outside can
 * bring it about: expired keys, a store that fails, runners that crash, a queue that is full.
 */
#ifndef COPPICE_CHAOS_REFUSAL_H
#define COPPICE_CHAOS_REFUSAL_H

struct stage;

/* All of them once; of a strand. */
void refusal_all(struct stage *stage);

#endif
