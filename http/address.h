/* Addresses of operators: "127.0.0.1:7070", "[::1]:7070", "localhost:7070", or "unix:/run/coppice.sock".
 *
 * Only loopback and unix sockets: this listener is for this machine only, because whoever it lets in may kill actors. On
 * loopback it asks for the operator's token; a unix socket is made with mode 0600, so file permissions decide. One left behind by a dead
 * server is removed; one that somebody answers is left alone.
 *
 * Called at start and by the command line's client; blocks for as long as a local connect takes. Refusals are
 * sentences that name the value and what would be right.
 */
#ifndef COPPICE_HTTP_ADDRESS_H
#define COPPICE_HTTP_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#define ADDRESS_TEXT_MAX 128
#define ADDRESS_BACKLOG  256 /* may wait while the listener is busy or being started again */

struct address {
    union {
        struct sockaddr base;
        struct sockaddr_storage storage;
        struct sockaddr_un local;
    };
    socklen_t size;
    bool local_file; /* unix:PATH */
};

bool address_parse(const char *text, struct address *ret_address, char *ret_why, size_t why_size);
/* A non-blocking, close-on-exec listening socket, or -1 with errno and why. */
int address_listen(const struct address *address, char *ret_why, size_t why_size);
/* Whether it could be listened at: a port is bound and given back, of a socket's file the directory is looked at. One that is taken
 * could: whoever has it may be the server that is to be replaced. False with errno, and why in the words of address_listen. */
bool address_look(const struct address *address, char *ret_why, size_t why_size);
/* A blocking, close-on-exec connection, or -1 with errno. */
int address_connect(const struct address *address);
/* What to do about an address that can't be listened at, to stand behind the errno's own words; "": nothing is known. */
const char *address_advice(int error, bool local_file);
/* Where the socket really listens: port 0 has become a port. */
void address_text(int listening, char text[ADDRESS_TEXT_MAX]);
/* Removes a unix socket's file; nothing for others. */
void address_remove(const struct address *address);

#endif
