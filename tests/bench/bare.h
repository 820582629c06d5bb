/* The yardstick of the front: an epoll loop with llhttp that answers each request with the same 100 bytes, and does
 * nothing else. Bodies are read and dropped. Answers to requests that came together go out together.
 */
#ifndef COPPICE_TESTS_BENCH_BARE_H
#define COPPICE_TESTS_BENCH_BARE_H

#define BARE_BODY_SIZE 100
extern const char bare_body[]; /* of everybody's answer */

/* Serves for ever. */
_Noreturn void bare_serve(int listening);

#endif
