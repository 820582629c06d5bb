#include "config/outside.h"

bool outside_sockets(const struct options *o, const struct sockets *sockets, char *ret_text, size_t text_size)
{
    for (size_t i = 0; i < sockets->clients_count; i++) {
        const struct socket_set *set = &sockets->clients[i];
        if (set->activated && set->exposed &&
            !options_plain_allowed(o, "the service manager's socket for clients", set->text, ret_text,
                                   text_size))
            return false;
    }
    return true;
}
