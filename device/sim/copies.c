#include "copies.h"

#include "accesses.h"
#include "marked_memory.h"
#include "marks.h"
#include "memory.h"
#include "placement.h"
#include "state.h"
#include "virtual_memory.h"

#include <string.h>

uint64_t copy_extent(uint64_t width, uint64_t height, uint64_t pitch)
{
    uint64_t bytes;
    return __builtin_mul_overflow(height - 1, pitch, &bytes) ||
                   __builtin_add_overflow(bytes, width, &bytes)
               ? UINT64_MAX
               : bytes;
}

/* The host memory of one side of a copy; NULL: the device is not backed, or the memory has been
 * freed meanwhile, which only a lenient or a stream-ordered free allows. */
static unsigned char *bytes_at(uint64_t address, uint64_t size)
{
    if (!sim.config.backed && placement_owns(address)) {
        return NULL; /* without a search */
    }
    allocation *a = map_find(address);
    if (!a) {
        return placement_owns(address) ? NULL : (unsigned char *)(uintptr_t)address;
    }
    uint64_t bad;
    a = memory_find_run(address, size);
    bool is_there =
        a && a->data && (!a->reservation || virtual_is_usable(a, address, size, a->device, &bad));
    return is_there ? a->data + (address - a->address) : NULL;
}

static bool is_gone(uint64_t address, uint64_t size, int device)
{
    if (!placement_owns(address)) {
        return false; /* the host's */
    }
    uint64_t bad;
    const allocation *a = memory_find_run(address, size);
    return !a || (a->reservation && !virtual_is_usable(a, address, size, device, &bad));
}

static void fill_row(unsigned char *to, const entry *e)
{
    if (e->count == 1) {
        memset(to, (int)e->value, e->move.width);
        return;
    }
    for (uint64_t i = 0; i < e->move.width; i += sizeof e->value) {
        memcpy(to + i, &e->value, sizeof e->value);
    }
}

static void move_marks(const entry *e)
{
    bool is_copied = e->kind == ENTRY_COPY && !e->move.staged;
    for (uint64_t row = 0; row < e->move.height; row++) {
        uint64_t to = e->move.to + row * e->move.to_pitch;
        if (is_copied) {
            marks_copy(to, e->move.from + row * e->move.from_pitch, e->move.width);
        } else {
            marks_write(to, e->move.width, 0);
        }
    }
}

void copy_complete(entry *e, int device)
{
    uint64_t to_size = copy_extent(e->move.width, e->move.height, e->move.to_pitch);
    uint64_t from_size = copy_extent(e->move.width, e->move.height, e->move.from_pitch);
    bool has_source = e->kind == ENTRY_COPY && !e->move.staged;
    if (is_gone(e->move.to, to_size, device) ||
        (has_source && is_gone(e->move.from, from_size, device))) {
        device_break(device);
        return;
    }
    if (marks_are_on()) {
        move_marks(e);
    }
    unsigned char *to = bytes_at(e->move.to, to_size);
    const unsigned char *from = e->move.staged;
    from = has_source ? bytes_at(e->move.from, from_size) : from;
    for (uint64_t row = 0; to && row < e->move.height; row++) {
        if (e->kind == ENTRY_FILL) {
            fill_row(to + row * e->move.to_pitch, e);
        } else if (from) {
            memmove(to + row * e->move.to_pitch, from + row * e->move.from_pitch, e->move.width);
        }
    }
}

bool copy_value_holds(const entry *e)
{
    const unsigned char *at = bytes_at(e->move.to, sizeof e->value);
    uint32_t is;
    if (!at) {
        return true; /* no data is kept that could tell */
    }
    memcpy(&is, at, sizeof is);
    switch (e->count) {
    case CU_STREAM_WAIT_VALUE_EQ:
        return is == e->value;
    case CU_STREAM_WAIT_VALUE_AND:
        return (is & e->value) != 0;
    case CU_STREAM_WAIT_VALUE_NOR:
        return ~(is | e->value) != 0;
    default:
        return (int32_t)(is - e->value) >= 0;
    }
}
