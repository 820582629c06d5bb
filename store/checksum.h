/* The checksum of every stored value: 64 bits over a table, a key and the bytes.
 *
 * It answers one question: are these the bytes that were written under this key? So the key is part of it: a
 * sound value that turns up under another key is damaged, too. It is stored, and therefore defined here to
 * the bit and the same on every machine; docs/store.md draws it. It doesn't resist an adversary.
 *
 * Speed matters because each read verifies: about 40 ns for 1 KiB. Nothing here allocates or blocks.
 */
#ifndef COPPICE_STORE_CHECKSUM_H
#define COPPICE_STORE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* Of these bytes; seed ties them to where they stand. checksum(checksum(s, a), b) is not checksum(s, ab). */
uint64_t checksum(uint64_t seed, const void *bytes, size_t size);

#endif
