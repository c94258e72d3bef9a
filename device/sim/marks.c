/* marks.c - which of the harness's work wrote to memory last, byte for byte: what is read from a
 * range is a mark as long as nothing else was written there. Marks belong to physical memory, so
 * that two addresses of the same memory share them; copies carry them along; any other write leaves
 * none. They are kept as runs of equal marks: a range of any size costs the same. */
#include "marks.h"

#include "gmd_intervals.h"

/* Memory of cudaMalloc lies where its address says; physical memory that is mapped has a place of
 * its own beyond all addresses. */
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

static void start(void)
{
    marks.is_on = true;
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

/* `mark` 0: something else was written there, or the memory is gone. */
static void write_run(uint64_t from, uint64_t to, uint64_t mark)
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
        write_run(from, from + size, 0);
    }
}

/* --- addresses --------------------------------------------------------------------------- */

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
    *length = size < left ? size : left;
    return true;
}

/* Where nothing is mapped or allocated, nothing is written: the device is lost anyway. */
void marks_write(uint64_t address, uint64_t size, uint64_t mark)
{
    uint64_t physical, length = 0;
    for (uint64_t done = 0;
         done < size && place_of(address + done, size - done, &physical, &length); done += length) {
        write_run(physical, physical + length, mark);
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
        for (uint64_t at = physical, end = physical + length; at < end && !marks.has_failed;) {
            const gmd_interval *run = gmd_intervals_after(&marks.runs, at);
            if (!run || run->address >= end) {
                break;
            }
            uint64_t first = run->address > at ? run->address : at;
            uint64_t last = run->end < end ? run->end : end;
            uint64_t mark = run->value;
            marks_write(to + done + (first - physical), last - first, mark);
            at = last;
        }
    }
}

/* --- control ----------------------------------------------------------------------------- */

void gmd_sim_mark(uint64_t address, uint64_t size, uint64_t mark)
{
    sim_lock();
    sim_start();
    start();
    marks_write(address, size, mark);
    sim_unlock();
}

void marks_start(void)
{
    start();
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
        const gmd_interval *run = gmd_intervals_after(&marks.runs, at);
        bool is_marked = run && run->address <= at;
        uint64_t next = is_marked ? run->end : run ? run->address : end;
        next = next < end ? next : end;
        count_run(out, address + (at - physical), next - at, is_marked ? run->value : 0, wanted);
        at = next;
    }
}

int gmd_sim_find_mark(uint64_t address, uint64_t size, uint64_t mark, gmd_sim_marked *out)
{
    *out = (gmd_sim_marked){0};
    sim_lock();
    sim_start();
    bool is_known = marks.is_on && !marks.has_failed;
    uint64_t physical, length = 0, done = 0;
    while (is_known && done < size && place_of(address + done, size - done, &physical, &length)) {
        look_at_run(out, address + done, physical, length, mark);
        done += length;
    }
    sim_unlock();
    return is_known && done >= size ? 0 : -1;
}
