/* places.h - where segments lie for the order of blocks, as opposed to where the device put them.
 *
 * Best fit breaks ties by address, so an allocator's decisions depend on where the device places
 * its segments, which differs from run to run on a real device. With an order given, blocks live in
 * a space of places: the k-th segment lies at the k-th place given, later ones above all others.
 * Only pointers that come from or go to the caller and the device are translated. Without an order
 * a place is the address itself and nothing is translated. Sync: the owner's lock. */
#ifndef GMD_PLACES_H
#define GMD_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct placed_segment {
    uint64_t place, address, size;
} placed_segment;

typedef struct places { /* zero-initialised: no order */
    bool is_on;
    uint64_t *given; /* places of the segments to come */
    size_t given_count, given_used;
    uint64_t next;                         /* place of a segment beyond those given */
    placed_segment *by_place, *by_address; /* the live segments, in either order */
    size_t count, capacity;
} places;

/* Segments from now on lie at these places, in this order. False: no host memory. */
bool places_set(places *p, const uint64_t *given, size_t count);
void places_release(places *p);

/* Makes room for one more segment, so that the following add cannot fail. */
bool places_reserve(places *p);
uint64_t places_add(places *p, uint64_t address, uint64_t size); /* gives the place */
void places_remove(places *p, uint64_t place);

uint64_t places_address(const places *p, uint64_t place); /* of any byte in a live segment */
uint64_t places_place(const places *p, uint64_t address); /* 0: in no live segment */

/* What does not hold of the lists; NULL: all does. */
const char *places_violation(const places *p);

#endif
