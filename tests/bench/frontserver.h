/* The server under test of bench-front: the product's listener, connections and front over a store, with three routes.
 *
 *     GET  /hello            100 bytes of JSON from a handler
 *     GET  /parcels/{id}     one record of 1 KiB out of FRONTSERVER_PARCELS, for who shows an API key
 *     POST /orders           1 KiB of JSON, checked against a schema
 */
#ifndef COPPICE_TESTS_BENCH_FRONTSERVER_H
#define COPPICE_TESTS_BENCH_FRONTSERVER_H

#include "tests/support/testserver.h"

#define FRONTSERVER_PARCELS 10000u

/* On this CPU, counted from 1, with a store in this folder, which is empty. */
void frontserver_start(const char *folder, uint32_t cpu, struct testserver *ret);
/* One whole request of each route; the strings are good for ever. */
const char *frontserver_get(void);
const char *frontserver_read(void);
const char *frontserver_post(void);

#endif
