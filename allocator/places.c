#include "places.h"

#include "gmd_assert.h"
#include "gmd_grow.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_FREE_PLACE ((uint64_t)1 << 52) /* above every address that a device gives */

bool places_set(places *p, const uint64_t *given, size_t count)
{
    uint64_t *copy = malloc((count + 1) * sizeof *copy);
    if (!copy) {
        return false;
    }
    if (count) {
        memcpy(copy, given, count * sizeof *copy);
    }
    free(p->given);
    p->given = copy;
    p->given_count = count;
    p->given_used = 0;
    p->next = p->next ? p->next : FIRST_FREE_PLACE;
    p->is_on = true;
    return true;
}

void places_release(places *p)
{
    free(p->given);
    free(p->by_place);
    free(p->by_address);
    *p = (places){0};
}

bool places_reserve(places *p)
{
    if (!p->is_on) {
        return true;
    }
    size_t of_places = p->capacity, of_addresses = p->capacity;
    if (!GMD_GROW(&p->by_place, &of_places, p->count + 1) ||
        !GMD_GROW(&p->by_address, &of_addresses, p->count + 1)) {
        return false;
    }
    p->capacity = of_places; /* of both alike */
    return true;
}

/* The number of segments in a list that begin at or below a place, or an address. */
static size_t count_up_to(const placed_segment *list, size_t count, bool is_by_place,
                          uint64_t where)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if ((is_by_place ? list[middle].place : list[middle].address) <= where) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static size_t places_up_to(const places *p, uint64_t place)
{
    return count_up_to(p->by_place, p->count, true, place);
}

static size_t addresses_up_to(const places *p, uint64_t address)
{
    return count_up_to(p->by_address, p->count, false, address);
}

static bool is_taken(const places *p, uint64_t place, uint64_t size)
{
    size_t below = places_up_to(p, place);
    if (below && p->by_place[below - 1].place + p->by_place[below - 1].size > place) {
        return true;
    }
    return below < p->count && p->by_place[below].place < place + size;
}

static void insert(placed_segment *list, size_t count, size_t at, const placed_segment *added)
{
    memmove(&list[at + 1], &list[at], (count - at) * sizeof *list);
    list[at] = *added;
}

static void erase(placed_segment *list, size_t count, size_t at)
{
    memmove(&list[at], &list[at + 1], (count - at - 1) * sizeof *list);
}

uint64_t places_add(places *p, uint64_t address, uint64_t size)
{
    if (!p->is_on) {
        return address;
    }
    uint64_t place = p->given_used < p->given_count ? p->given[p->given_used++] : 0;
    if (!place || place > FIRST_FREE_PLACE - size || is_taken(p, place, size)) {
        place = p->next;
        p->next += size;
    }
    GMD_ASSERT(p->count < p->capacity, "room for the segment was reserved");
    placed_segment added = {place, address, size};
    insert(p->by_place, p->count, places_up_to(p, place), &added);
    insert(p->by_address, p->count, addresses_up_to(p, address), &added);
    p->count++;
    return place;
}

void places_remove(places *p, uint64_t place)
{
    if (!p->is_on) {
        return;
    }
    size_t at = places_up_to(p, place) - 1;
    GMD_ASSERT(at < p->count && p->by_place[at].place == place, "a segment lies at the place");
    uint64_t address = p->by_place[at].address;
    erase(p->by_place, p->count, at);
    size_t below = addresses_up_to(p, address);
    GMD_ASSERT(below && p->by_address[below - 1].place == place, "both lists have the segment");
    erase(p->by_address, p->count, below - 1);
    p->count--;
}

uint64_t places_address(const places *p, uint64_t place)
{
    if (!p->is_on) {
        return place;
    }
    const placed_segment *s = &p->by_place[places_up_to(p, place) - 1];
    GMD_ASSERT_INTERNAL(s >= p->by_place && place - s->place < s->size, "a segment has the place");
    return s->address + (place - s->place);
}

uint64_t places_place(const places *p, uint64_t address)
{
    if (!p->is_on) {
        return address;
    }
    size_t below = addresses_up_to(p, address);
    const placed_segment *s = below ? &p->by_address[below - 1] : NULL;
    return s && address - s->address < s->size ? s->place + (address - s->address) : 0;
}

static const char *list_violation(const placed_segment *list, size_t count, bool is_by_place)
{
    uint64_t end = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t start = is_by_place ? list[i].place : list[i].address;
        if (!list[i].size || start < end) {
            return "placed segments are in order, and none begins within another";
        }
        end = start + list[i].size;
    }
    return NULL;
}

const char *places_violation(const places *p)
{
    for (size_t i = 0; i < p->count; i++) {
        const placed_segment *s = &p->by_place[i];
        size_t below = addresses_up_to(p, s->address);
        const placed_segment *same = below ? &p->by_address[below - 1] : NULL;
        if (!same || same->place != s->place || same->address != s->address ||
            same->size != s->size) {
            return "both lists of placed segments have the same ones";
        }
    }
    const char *violation = list_violation(p->by_place, p->count, true);
    return violation ? violation : list_violation(p->by_address, p->count, false);
}
