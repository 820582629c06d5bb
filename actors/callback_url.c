#include "actors/callback_url.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <strings.h>

#include "actors/fetch.h"
#include "actors/reach.h"
#include "runtime/assert.h"

STATIC_ASSERT(CALLBACK_URL_MAX < FETCH_URL_MAX, "what is kept can be fetched");

#define NAME_MAX_BYTES 253u /* of a host, as DNS has it */
#define LABEL_MAX      63u

/* What a part of a URL is made of: from `at` to `end`. */
struct part {
    const char *at, *end;
};

static size_t part_size(struct part part)
{
    return (size_t)(part.end - part.at);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* ---- taking it apart ---- */

/* Behind "http://" or "https://"; NULL: it is something else. */
static const char *after_scheme(struct span url)
{
    static const char plain[] = "http://", safe[] = "https://";
    const char *text = url.bytes;
    if (url.size >= sizeof(plain) - 1 && memcmp(text, plain, sizeof(plain) - 1) == 0)
        return text + sizeof(plain) - 1;
    if (url.size >= sizeof(safe) - 1 && memcmp(text, safe, sizeof(safe) - 1) == 0)
        return text + sizeof(safe) - 1;
    return NULL;
}

/* Up to the path or the query. */
static struct part authority_of(struct span url)
{
    const char *at = after_scheme(url), *end = (const char *)url.bytes + url.size;
    struct part part = {at, at};
    while (at && part.end < end && !strchr("/?#", *part.end))
        part.end++;
    return part;
}

struct span callback_url_host(struct span url)
{
    struct part authority = authority_of(url);
    return span_of(authority.at, part_size(authority));
}

/* host [ ":" port ], or "[" address "]" [ ":" port ]. False: there is something between or behind. */
static bool split_port(struct part authority, struct part *ret_host, struct part *ret_port)
{
    const char *at = authority.at, *end = authority.end;
    const char *stop = *at == '[' ? memchr(at, ']', (size_t)(end - at)) : memchr(at, ':', (size_t)(end - at));
    if (*at == '[' && !stop)
        return false;
    if (*at == '[')
        stop++;
    if (!stop)
        stop = end;
    *ret_host = (struct part){at, stop};
    *ret_port = (struct part){stop, end};
    return stop == end || *stop == ':';
}

/* ---- each part ---- */

/* RFC 3986: what may stand anywhere in a URL as it is. */
static const char *bytes_refused(struct span url)
{
    const char *text = url.bytes;
    for (uint32_t i = 0; i < url.size; i++) {
        if (text[i] <= ' ' || text[i] >= 0x7f || strchr("\"<>\\^`{|}", text[i]))
            return "holds a byte that must be escaped";
        if (text[i] == '#')
            return "has a fragment, which would not be sent";
    }
    return NULL;
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Behind the authority: brackets are for addresses alone, and a percent sign begins an escape. */
static const char *rest_refused(struct part rest)
{
    for (const char *at = rest.at; at < rest.end; at++) {
        if (*at == '[' || *at == ']')
            return "holds a byte that must be escaped";
        if (*at == '%' && (rest.end - at < 3 || !is_hex(at[1]) || !is_hex(at[2])))
            return "has a '%' that no two hexadecimal digits follow";
    }
    return NULL;
}

static const char *port_refused(struct part port)
{
    uint32_t number = 0;
    if (part_size(port) == 0)
        return NULL;
    for (const char *at = port.at + 1; at < port.end; at++) {
        number = is_digit(*at) && number <= UINT16_MAX ? number * 10 + (uint32_t)(*at - '0') : UINT32_MAX;
        if (number > UINT16_MAX)
            break;
    }
    return number == 0 || number > UINT16_MAX ? "has a port that is not a number from 1 to 65535" : NULL;
}

/* Two dozen bytes suffice for any address of either family. */
static bool to_address(int family, struct part host, void *ret)
{
    char text[INET6_ADDRSTRLEN];
    size_t size = part_size(host);
    if (size >= sizeof(text))
        return false;
    memcpy(text, host.at, size);
    text[size] = 0;
    return inet_pton(family, text, ret) == 1;
}

static const char closed[] = "leads to an address that may not be reached";

static const char *six_refused(struct part host, bool allow_private)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    if (host.end[-1] != ']' ||
        !to_address(AF_INET6, (struct part){host.at + 1, host.end - 1}, &six.sin6_addr))
        return "has a host in brackets that is not an IPv6 address";
    return allow_private || reach_public((const struct sockaddr *)(const void *)&six) ? NULL : closed;
}

static const char *four_refused(struct part host, bool allow_private)
{
    struct sockaddr_in four = {.sin_family = AF_INET};
    if (!to_address(AF_INET, host, &four.sin_addr))
        return "has a host that looks like an address and is not four decimal numbers";
    return allow_private || reach_public((const struct sockaddr *)(const void *)&four) ? NULL : closed;
}

/* The last label, by which a resolver tells a number from a name. */
static struct part last_label(struct part host)
{
    struct part label = {host.end, host.end};
    while (label.at > host.at && label.at[-1] != '.')
        label.at--;
    return label;
}

static bool is_number(struct part label)
{
    bool hex = part_size(label) >= 2 && label.at[0] == '0' && (label.at[1] | 0x20) == 'x';
    for (const char *at = label.at + (hex ? 2 : 0); at < label.end; at++)
        if (!is_digit(*at) && !(hex && (*at | 0x20) >= 'a' && (*at | 0x20) <= 'f'))
            return false;
    return true;
}

static const char *label_refused(struct part label)
{
    if (part_size(label) == 0)
        return "has a host with an empty part or a dot at its end";
    if (part_size(label) > LABEL_MAX)
        return "has a host with a part of more than 63 bytes";
    for (const char *at = label.at; at < label.end; at++)
        if (!is_digit(*at) && !is_letter(*at) && *at != '-' && *at != '_')
            return "has a host with a byte that no name has";
    return NULL;
}

static const char *name_refused(struct part host, bool allow_private)
{
    static const char local[] = "localhost";
    const char *why = part_size(host) > NAME_MAX_BYTES ? "has a host of more than 253 bytes" : NULL;
    struct part rest = host, label;
    do {
        label = last_label(rest);
        why = why ? why : label_refused(label);
        rest.end = label.at > host.at ? label.at - 1 : host.at;
    } while (!why && label.at > host.at);
    label = last_label(host);
    bool is_local =
        part_size(label) == sizeof(local) - 1 && strncasecmp(label.at, local, sizeof(local) - 1) == 0;
    return !why && is_local && !allow_private ? closed : why;
}

static const char *host_refused(struct part host, bool allow_private)
{
    if (part_size(host) == 0)
        return "has no host";
    if (*host.at == '[')
        return six_refused(host, allow_private);
    struct part label = last_label(host);
    if (part_size(label) > 0 && is_number(label))
        return four_refused(host, allow_private);
    return name_refused(host, allow_private);
}

static const char *authority_refused(struct part authority, bool allow_private)
{
    struct part host, port;
    if (part_size(authority) == 0)
        return "has no host";
    if (memchr(authority.at, '@', part_size(authority)))
        return "names a user";
    if (!split_port(authority, &host, &port))
        return "has a host and port that can't be told apart";
    const char *why = port_refused(port);
    return why ? why : host_refused(host, allow_private);
}

bool callback_url_check(struct span url, bool allow_private, const char **ret_why)
{
    const char *why = NULL;
    if (url.size > CALLBACK_URL_MAX)
        why = "is longer than 2048 bytes";
    else if (!after_scheme(url))
        why = "must begin with http:// or https://";
    if (!why)
        why = bytes_refused(url);
    struct part authority = authority_of(url);
    if (!why)
        why = authority_refused(authority, allow_private);
    if (!why)
        why = rest_refused((struct part){authority.end, (const char *)url.bytes + url.size});
    if (why)
        *ret_why = why;
    return !why;
}
