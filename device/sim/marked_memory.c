#include "marked_memory.h"

#include "address_map.h"
#include "marks.h"
#include "virtual_memory.h"

#include "gmd_intervals.h"
#include "gmd_min.h"

/* The physical memory at `address`: its place, and how much of `size` lies in one run there. False:
 * none. */
static bool place_of(uint64_t address, uint64_t size, uint64_t *physical, uint64_t *length)
{
    const allocation *a = map_find(address);
    if (!a) {
        return false;
    }
    if (a->reservation) {
        return virtual_place(a, address, size, physical, length);
    }
    uint64_t left = a->address + a->span - address;
    *physical = address;
    *length = gmd_min(size, left);
    return true;
}

/* Where nothing is mapped or allocated, nothing is written: the device is lost anyway. */
void marks_write(uint64_t address, uint64_t size, uint64_t mark)
{
    uint64_t physical, length = 0;
    for (uint64_t done = 0;
         done < size && place_of(address + done, size - done, &physical, &length); done += length) {
        marks_write_places(physical, physical + length, mark);
    }
}

/* Run by run; what has none in the source has none in the target. Where they overlap, runs of the
 * source are lost, and none is wrong. */
void marks_copy(uint64_t to, uint64_t from, uint64_t size)
{
    uint64_t physical, length = 0;
    bool is_apart = to + size <= from || from + size <= to;
    marks_write(to, size, 0);
    for (uint64_t done = 0;
         is_apart && done < size && place_of(from + done, size - done, &physical, &length);
         done += length) {
        for (uint64_t at = physical, end = physical + length; at < end && marks_are_known();) {
            const gmd_interval *run = marks_run_after(at);
            if (!run || run->address >= end) {
                break;
            }
            uint64_t first = gmd_max(run->address, at);
            uint64_t last = gmd_min(run->end, end);
            uint64_t mark = run->value;
            marks_write(to + done + (first - physical), last - first, mark);
            at = last;
        }
    }
}

static void count_run(gmd_sim_marked *out, uint64_t address, uint64_t size, uint64_t found,
                      uint64_t wanted)
{
    if (found == wanted) {
        out->marked_bytes += size;
    } else if (out->other_bytes == 0) {
        out->other_address = address;
        out->other_mark = found;
    }
    out->other_bytes += found == wanted ? 0 : size;
}

static void look_at_run(gmd_sim_marked *out, uint64_t address, uint64_t physical, uint64_t length,
                        uint64_t wanted)
{
    for (uint64_t at = physical, end = physical + length; at < end;) {
        const gmd_interval *run = marks_run_after(at);
        bool is_marked = run && run->address <= at;
        uint64_t next = is_marked ? run->end : run ? run->address : end;
        next = gmd_min(next, end);
        count_run(out, address + (at - physical), next - at, is_marked ? run->value : 0, wanted);
        at = next;
    }
}

bool marks_find(uint64_t address, uint64_t size, uint64_t mark, gmd_sim_marked *out)
{
    *out = (gmd_sim_marked){0};
    uint64_t physical, length = 0, done = 0;
    while (marks_are_known() && done < size &&
           place_of(address + done, size - done, &physical, &length)) {
        look_at_run(out, address + done, physical, length, mark);
        done += length;
    }
    return marks_are_known() && done >= size;
}
