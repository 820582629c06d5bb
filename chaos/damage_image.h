/* An image: the bytes of a data file after one kind of damage, drawn from a seed and its number, and put into the directory.
 */
#ifndef COPPICE_CHAOS_DAMAGE_IMAGE_H
#define COPPICE_CHAOS_DAMAGE_IMAGE_H

#include "chaos/damage_truth.h"

/* X(name, images of a thousand, what is done) */
#define IMAGES_KINDS(X)             \
    X(bit, 250, hit_bit)            \
    X(bits, 200, hit_bits)          \
    X(meta, 80, hit_meta)           \
    X(number, 20, hit_number)       \
    X(head, 100, hit_head)          \
    X(length, 40, hit_length)       \
    X(pages_cut, 40, hit_pages_cut) \
    X(empty, 5, hit_all)            \
    X(zeros, 50, hit_zeros)         \
    X(noise, 50, hit_noise)         \
    X(swap, 50, hit_swap)           \
    X(stale, 75, hit_stale)         \
    X(foreign, 10, hit_foreign)     \
    X(stranger, 10, hit_stranger)   \
    X(sibling, 10, hit_sibling)     \
    X(gone, 5, hit_gone)            \
    X(lock_gone, 5, hit_lock_gone)

enum kind {
#define X(name, share, hit) KIND_##name,
    IMAGES_KINDS(X)
#undef X
        KIND_COUNT
};
const char *image_kind_name(enum kind kind);

struct image {
    uint8_t data[TRUTH_FILE_MAX];
    size_t size;
    bool data_gone, lock_gone;
};

/* Image `number` of a seed is always the same one. */
enum kind image_make(struct image *image, uint64_t seed, uint64_t number);
void image_place(const struct image *image);

#endif
