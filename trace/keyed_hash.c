#include "gmd_keyed_hash.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>

/* Where the kernel has no random numbers to give, the place of the stack and the time have to do:
 * the table is right with any key. */
gmd_hash_key gmd_hash_key_draw(void)
{
    gmd_hash_key key;
    if (getrandom(&key, sizeof key, GRND_NONBLOCK) != sizeof key) {
        struct timespec now = {0};
        clock_gettime(CLOCK_MONOTONIC, &now);
        key = (gmd_hash_key){(uint64_t)(uintptr_t)&key,
                             (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec};
    }
    return key;
}

typedef struct sip_state {
    uint64_t v0, v1, v2, v3;
} sip_state;

static uint64_t rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static void sip_round(sip_state *s)
{
    s->v0 += s->v1;
    s->v2 += s->v3;
    s->v1 = rotate(s->v1, 13) ^ s->v0;
    s->v3 = rotate(s->v3, 16) ^ s->v2;
    s->v0 = rotate(s->v0, 32);
    s->v2 += s->v1;
    s->v0 += s->v3;
    s->v1 = rotate(s->v1, 17) ^ s->v2;
    s->v3 = rotate(s->v3, 21) ^ s->v0;
    s->v2 = rotate(s->v2, 32);
}

static void absorb(sip_state *s, uint64_t word)
{
    s->v3 ^= word;
    sip_round(s);
    sip_round(s);
    s->v0 ^= word;
}

/* Up to eight bytes, the first the lowest. */
static uint64_t word_of(const unsigned char *bytes, size_t count)
{
    uint64_t word = 0;
    for (size_t i = 0; i < count; i++) {
        word |= (uint64_t)bytes[i] << 8 * i;
    }
    return word;
}

uint64_t gmd_hash_keyed(gmd_hash_key key, const void *bytes, size_t length)
{
    const unsigned char *next = bytes;
    sip_state s = {
        key.first ^ UINT64_C(0x736f6d6570736575), key.second ^ UINT64_C(0x646f72616e646f6d),
        key.first ^ UINT64_C(0x6c7967656e657261), key.second ^ UINT64_C(0x7465646279746573)};
    for (size_t left = length / 8; left > 0; left--, next += 8) {
        absorb(&s, word_of(next, 8));
    }
    absorb(&s, (uint64_t)length << 56 | word_of(next, length % 8));
    s.v2 ^= 0xff;
    for (int i = 0; i < 4; i++) {
        sip_round(&s);
    }
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
