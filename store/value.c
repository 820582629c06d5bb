#include "store/value.h"

#include "store/checksum.h"

static uint64_t seal(uint64_t seed, struct span key, uint8_t version, const void *bytes, size_t size)
{
    return checksum(checksum(seed, key.bytes, key.size) + version, bytes, size) << 8 | version;
}

uint64_t value_seed(const char *table)
{
    return checksum(0, table, strlen(table));
}

size_t value_write(uint64_t seed, struct span key, const struct record_class *class, const void *record,
                   void *bytes, size_t room)
{
    uint8_t *at = bytes;
    if (room < VALUE_HEAD)
        return 0;
    size_t size = record_encode(class, record, at + VALUE_HEAD, room - VALUE_HEAD);
    if (!size)
        return 0;
    uint64_t head = seal(seed, key, class->version, at + VALUE_HEAD, size);
    memcpy(at, &head, sizeof(head));
    return VALUE_HEAD + size;
}

enum error value_open(uint64_t seed, struct span key, struct span value, uint8_t *ret_version,
                      struct span *ret_record)
{
    const uint8_t *at = value.bytes;
    uint64_t head;
    if (value.size <= VALUE_HEAD || value.size > VALUE_SIZE_MAX)
        return ERR_DAMAGED;
    memcpy(&head, at, sizeof(head));
    if (head != seal(seed, key, (uint8_t)head, at + VALUE_HEAD, value.size - VALUE_HEAD))
        return ERR_DAMAGED;
    *ret_version = (uint8_t)head;
    *ret_record = span_of(at + VALUE_HEAD, value.size - VALUE_HEAD);
    return OK;
}
