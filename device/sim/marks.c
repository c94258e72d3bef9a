/* Which of the harness's work wrote to memory last, byte for byte: what is read from a range is a
 * mark as long as nothing else was written there. Marks belong to physical memory, so that two
 * addresses of the same memory share them; copies carry them along; any other write leaves none.
 * They are kept as runs of equal marks: a range of any size costs the same. */
#include "marks.h"

#include "address_map.h"
#include "gmd_intervals.h"

#include <stddef.h>

static struct {
    gmd_intervals runs;
    bool is_on;
    bool has_failed; /* the host has no memory: nothing is known until the reset */
    uint64_t next_place;
} marks;

bool marks_are_on(void)
{
    return marks.is_on;
}

bool marks_are_known(void)
{
    return marks.is_on && !marks.has_failed;
}

void marks_start(void)
{
    marks.is_on = true;
}

void marks_reset(void)
{
    gmd_intervals_free(&marks.runs);
    marks.is_on = marks.has_failed = false;
    marks.next_place = ADDRESS_SPACE_END;
}

uint64_t marks_new_place(uint64_t size)
{
    uint64_t physical = marks.next_place;
    marks.next_place += size;
    return physical;
}

/* --- runs -------------------------------------------------------------------------------- */

static void give_up(void)
{
    gmd_intervals_free(&marks.runs);
    marks.has_failed = true;
}

static void insert(uint64_t from, uint64_t to, uint64_t mark)
{
    if (!gmd_intervals_insert(&marks.runs, from, to, mark)) {
        give_up();
    }
}

static void cut_at(uint64_t physical)
{
    gmd_interval *run = gmd_intervals_after(&marks.runs, physical);
    if (run && run->address < physical) {
        uint64_t end = run->end, mark = run->value;
        run->end = physical;
        insert(physical, end, mark);
    }
}

void marks_write_places(uint64_t from, uint64_t to, uint64_t mark)
{
    gmd_interval *run = gmd_intervals_after(&marks.runs, from);
    if (marks.has_failed || (!mark && (!run || run->address >= to))) {
        return;
    }
    if (mark && run && run->address == from && run->end == to) {
        run->value = mark;
        return;
    }
    cut_at(from);
    cut_at(to);
    while ((run = gmd_intervals_after(&marks.runs, from)) != NULL && run->address < to) {
        gmd_intervals_remove(&marks.runs, run->address);
    }
    if (mark) {
        insert(from, to, mark);
    }
}

void marks_forget(uint64_t from, uint64_t size)
{
    if (marks.is_on) {
        marks_write_places(from, from + size, 0);
    }
}

const gmd_interval *marks_run_after(uint64_t place)
{
    return gmd_intervals_after(&marks.runs, place);
}
