#include "chaos/kill9_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "chaos/dice.h"
#include "tests/support/parcel.h"

#define BODY_PLACES 8192u

/* What an id is about, in its fifth byte. */
enum { ABOUT_PARCEL, ABOUT_NOTE, ABOUT_API_KEY, ABOUT_API_KEY_NOTE = ABOUT_API_KEY + SLOTS };

static uint64_t number;
static uint8_t pattern[PARCEL_BODY_MAX + BODY_PLACES];

void names_begin(uint64_t ordeal)
{
    struct dice dice = {.state = 42};
    for (size_t i = 0; number == 0 && i < sizeof(pattern); i++)
        pattern[i] = (uint8_t)dice_draw(&dice);
    number = ordeal;
}

static struct uuid name(uint32_t owner, uint32_t index, uint32_t about)
{
    struct uuid id;
    memset(&id, 0, sizeof(id));
    id.bytes[0] = 1;
    id.bytes[1] = (uint8_t)(index >> 8);
    id.bytes[2] = (uint8_t)index;
    id.bytes[3] = (uint8_t)owner;
    id.bytes[4] = (uint8_t)about;
    id.bytes[6] = 0x70;
    id.bytes[8] = 0x80;
    memcpy(id.bytes + 10, &number, 6);
    return id;
}

struct uuid names_parcel(uint32_t owner, uint32_t index)
{
    return name(owner, index, ABOUT_PARCEL);
}

struct uuid names_note(uint32_t owner, uint32_t index)
{
    return name(owner, index, ABOUT_NOTE);
}

struct uuid names_api_key(uint32_t owner, uint32_t index, uint32_t slot)
{
    return name(owner, index, ABOUT_API_KEY + slot);
}

struct uuid names_api_key_note(uint32_t owner, uint32_t index, uint32_t slot)
{
    return name(owner, index, ABOUT_API_KEY_NOTE + slot);
}

static bool find(const struct uuid *id, uint32_t *ret_owner, uint32_t *ret_index)
{
    uint32_t index = (uint32_t)id->bytes[1] << 8 | id->bytes[2];
    uint32_t owner = id->bytes[3];
    if (owner >= OWNERS || index >= PARCELS)
        return false;
    struct uuid again = name(owner, index, id->bytes[4]);
    if (!uuid_equal(id, &again))
        return false;
    *ret_owner = owner;
    *ret_index = index;
    return true;
}

bool names_find(const struct uuid *id, uint32_t *ret_owner, uint32_t *ret_index)
{
    return id->bytes[4] == ABOUT_PARCEL && find(id, ret_owner, ret_index);
}

bool names_find_note(const struct uuid *id, uint32_t *ret_owner, uint32_t *ret_index, uint32_t *ret_slot)
{
    uint32_t about = id->bytes[4];
    bool of_key = about >= ABOUT_API_KEY_NOTE && about < ABOUT_API_KEY_NOTE + SLOTS;
    if ((about != ABOUT_NOTE && !of_key) || !find(id, ret_owner, ret_index))
        return false;
    *ret_slot = of_key ? about - ABOUT_API_KEY_NOTE : SLOTS;
    return true;
}

struct span names_body(uint32_t owner, uint32_t index, uint32_t size)
{
    return span_of(pattern + (owner * 977 + index * 31) % BODY_PLACES, size);
}

struct digest names_digest(uint32_t owner, uint32_t index, uint32_t variant)
{
    uint16_t parcel = (uint16_t)index;
    struct digest digest;
    memset(&digest, 0, sizeof(digest));
    digest.bytes[0] = (uint8_t)variant;
    digest.bytes[1] = (uint8_t)owner;
    memcpy(digest.bytes + 2, &parcel, sizeof(parcel));
    digest.bytes[31] = 7;
    return digest;
}

struct digest names_api_key_hash(uint32_t owner, uint32_t index, uint32_t slot)
{
    struct digest hash = names_digest(owner, index, slot);
    hash.bytes[31] = 8;
    return hash;
}

const char *names_scope(uint32_t owner)
{
    static const char *const texts[OWNERS] = {"lane0", "lane1", "lane2", "lane3", "lane4",
                                              "lane5", "lane6", "lane7", "crowd"};
    return texts[owner];
}

struct span names_token(uint32_t owner, uint32_t index, char text[NAMES_SIZE])
{
    return span_of(text, (size_t)snprintf(text, NAMES_SIZE, "%" PRIu32 "-%" PRIu32, owner, index));
}
