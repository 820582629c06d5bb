/* Bodies: room for requests too large for an arena, and for the nodes of their JSON.
 *
 * BODIES_MAX slots of address space, taken when the process starts and touched as far as they are used: a server on which
 * nobody sends large bodies spends nothing, but for BODY_LITTLE of a slot that was used for little. A slot is owned by the actor
 * that took it and comes back with it. None left: the request is refused with 503.
 *
 * Arithmetic: head 32 KiB + body 1 MiB + 64 KiB of what comes behind, and 65,536 nodes of 16 bytes: 2.2 MiB; 256 of them
 * are 541 MiB of addresses.
 */
#ifndef COPPICE_HTTP_BODY_H
#define COPPICE_HTTP_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_node;

#define BODIES_MAX     256u
#define BODY_BYTES_MAX ((1u << 20) + (96u << 10))
#define BODY_NODES_MAX 65536u

struct body {
    char *bytes;
    struct json_node *nodes;
    uint64_t own; /* of the actor that has it */
    uint32_t slot;
    size_t used_bytes, used_nodes; /* body_used */
};

/* Boot, once; false: no addresses. */
bool bodies_open(void);
void bodies_close(void);
/* From an actor. NULL: none left. */
struct body *body_take(void);
/* Nothing behind the first so many bytes and nodes was written: a slot of which little was used is wiped when it comes back, and keeps
 * its memory, which is a tenth of the work of giving it to the system and asking for it again. */
#define BODY_LITTLE (64u << 10)
void body_used(struct body *body, size_t bytes, size_t nodes);
/* Gives it back before the actor ends. */
void body_drop(struct body *body);
uint32_t bodies_used(void);

#endif
