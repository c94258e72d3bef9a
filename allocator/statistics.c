#include "statistics.h"

#include "gmd_min.h"

/* --- what a heap has --------------------------------------------------------------------- */

static uint64_t value_in(const heap_statistics *h, int kind, int which)
{
    return which < COUNTED_FIGURE_COUNT ? h->counts[kind][which].current
                                        : h->counts[kind][which - FIGURE_ACTIVE].current +
                                              h->pending[kind][which - FIGURE_ACTIVE];
}

static uint64_t value_of(const heap_statistics *h, int row, int which)
{
    return row == POOL_ALL ? value_in(h, POOL_LARGE, which) + value_in(h, POOL_SMALL, which)
                           : value_in(h, row, which);
}

static uint64_t pending_of(const heap_statistics *h, int row, int which)
{
    uint64_t pending = 0;
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        pending += row == POOL_ALL || row == kind ? h->pending[kind][which] : 0;
    }
    return pending;
}

/* Where the room for a counted figure ends: at its own ceiling, and where what is active, which is
 * more by what is pending, comes to its ceiling. */
static uint64_t end_of(const heap_statistics *h, int row, int which)
{
    uint64_t end = h->shares[row][which].ceiling;
    int active = FIGURE_ACTIVE + which;
    if (active < HEAP_FIGURE_COUNT) {
        end = gmd_min(end, h->shares[row][active].ceiling - pending_of(h, row, which));
    }
    return end;
}

static void set_end(heap_statistics *h, int row, int which)
{
    *(row == POOL_ALL ? &h->ends[which] : &h->counts[row][which].end) = end_of(h, row, which);
}

static int counted(int which) /* the figure that `which` is counted by */
{
    return which < COUNTED_FIGURE_COUNT ? which : which - FIGURE_ACTIVE;
}

static void raise_ceiling(heap_statistics *h, int row, int which)
{
    heap_share *share = &h->shares[row][which];
    uint64_t value = value_of(h, row, which);
    share->ceiling = gmd_max(value, share->ceiling);
    set_end(h, row, counted(which));
}

void statistics_follow(heap_statistics *h, pool_kind kind, heap_figure which)
{
    const int rows[] = {(int)kind, POOL_ALL};
    for (int i = 0; i < 2; i++) {
        raise_ceiling(h, rows[i], (int)which);
        if (FIGURE_ACTIVE + (int)which < HEAP_FIGURE_COUNT) {
            raise_ceiling(h, rows[i], FIGURE_ACTIVE + (int)which);
        }
    }
}

static void change_pending(heap_statistics *h, int kind, uint64_t blocks, uint64_t bytes)
{
    h->pending[kind][0] += blocks;
    h->pending[kind][1] += bytes;
    for (int which = 0; which < 2; which++) {
        set_end(h, kind, which);
        set_end(h, POOL_ALL, which);
    }
}

void statistics_add_pending(heap_statistics *h, pool_kind kind, uint64_t bytes)
{
    change_pending(h, (int)kind, 1, bytes);
}

void statistics_end_pending(heap_statistics *h, pool_kind kind, uint64_t bytes)
{
    GMD_ASSERT(h->pending[kind][0] && h->pending[kind][1] >= bytes, "the block was pending");
    change_pending(h, (int)kind, (uint64_t)-1, (uint64_t)0 - bytes);
}

/* --- shares of the peaks ----------------------------------------------------------------- */

static uint64_t sum_of(const statistics *s, int row, int which)
{
    uint64_t sum = s->settled.current[row][which];
    for (const heap_statistics *h = s->sharing; h; h = h->next) {
        sum += value_of(h, row, which);
    }
    return sum;
}

/* The peak as it stands: a heap that is the only one moves its ceiling instead. */
static uint64_t peak_of(const statistics *s, int row, int which)
{
    return s->sharing && s->sharing->is_only ? s->sharing->shares[row][which].ceiling
                                             : s->peaks[row][which];
}

/* Calls `change` with each figure of each row. */
static void each_figure(statistics *s, heap_statistics *heap,
                        void (*change)(statistics *s, heap_statistics *heap, int row, int which))
{
    for (int row = 0; row <= POOL_ALL; row++) {
        for (int which = HEAP_FIGURE_COUNT; which-- > 0;) { /* ends follow from what is active */
            change(s, heap, row, which);
        }
    }
}

static void give_peak(statistics *s, heap_statistics *only, int row, int which)
{
    only->shares[row][which].ceiling = s->peaks[row][which];
    set_end(only, row, counted(which));
}

static void take_peak(statistics *s, heap_statistics *only, int row, int which)
{
    s->peaks[row][which] = only->shares[row][which].high = only->shares[row][which].ceiling;
}

static void make_only(statistics *s, heap_statistics *heap)
{
    heap->is_only = true;
    each_figure(s, heap, give_peak);
}

static void end_only(statistics *s, heap_statistics *heap)
{
    heap->is_only = false;
    each_figure(s, heap, take_peak);
}

/* --- who shares -------------------------------------------------------------------------- */

/* Heaps that are not used while somebody looks so often share no more. As many may share without
 * being used: more of them make each look dearer, and with fewer of them a stream whose requests
 * come rarely needs the device for each. */
#define PATIENCE 64

/* All so far: whoever hands out or frees a block changes it. */
static uint64_t requests_of(const heap_statistics *h)
{
    uint64_t requests = 0;
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        const heap_count *c = &h->counts[kind][FIGURE_ALLOCATION];
        requests += c->allocated + (c->allocated - c->current);
    }
    return requests;
}

static void unlink_sharing(statistics *s, heap_statistics *h)
{
    *(h->previous ? &h->previous->next : &s->sharing) = h->next;
    *(h->next ? &h->next->previous : &s->least_used) = h->previous;
}

static void link_first(statistics *s, heap_statistics *h)
{
    h->requests = requests_of(h);
    h->last_used = s->now;
    h->previous = NULL;
    h->next = s->sharing;
    *(h->next ? &h->next->previous : &s->least_used) = h;
    s->sharing = h;
}

void statistics_add_current(const heap_statistics *h, settled_figures *to)
{
    for (int row = 0; row <= POOL_ALL; row++) {
        for (int which = 0; which < HEAP_FIGURE_COUNT; which++) {
            to->current[row][which] += value_of(h, row, which);
        }
    }
}

static void settle_figure(statistics *s, heap_statistics *heap, int row, int which)
{
    s->settled.current[row][which] += value_of(heap, row, which);
    if (row < POOL_KINDS && which < COUNTED_FIGURE_COUNT) {
        s->settled.allocated[row][which] += heap->counts[row][which].allocated;
    }
}

/* Back from the sum, with no share of the peak but what it has. */
static void unsettle_figure(statistics *s, heap_statistics *heap, int row, int which)
{
    uint64_t value = value_of(heap, row, which);
    s->settled.current[row][which] -= value;
    if (row < POOL_KINDS && which < COUNTED_FIGURE_COUNT) {
        s->settled.allocated[row][which] -= heap->counts[row][which].allocated;
    }
    heap->shares[row][which].ceiling = value;
    set_end(heap, row, counted(which));
}

static void settle(statistics *s, heap_statistics *heap)
{
    unlink_sharing(s, heap);
    heap->is_sharing = false;
    each_figure(s, heap, settle_figure);
}

static void settle_unused(statistics *s)
{
    while (s->least_used != s->sharing && s->now - s->least_used->last_used > PATIENCE) {
        settle(s, s->least_used);
    }
}

void statistics_share(statistics *s, heap_statistics *heap)
{
    if (heap->is_sharing) {
        return;
    }
    s->now++;
    settle_unused(s);
    heap->is_sharing = true;
    link_first(s, heap);
    each_figure(s, heap, unsettle_figure);
    if (s->heap_count == 1) {
        make_only(s, heap);
    }
}

void statistics_look(statistics *s)
{
    s->now++;
    for (heap_statistics *h = s->sharing, *next; h; h = next) {
        next = h->next;
        if (requests_of(h) != h->requests) {
            unlink_sharing(s, h);
            link_first(s, h);
        }
    }
    settle_unused(s);
}

void statistics_add_heap(statistics *s, heap_statistics *heap)
{
    if (s->sharing && s->sharing->is_only) {
        end_only(s, s->sharing);
    }
    s->heap_count++;
    statistics_share(s, heap);
}

void statistics_remove_heap(statistics *s, heap_statistics *heap)
{
    GMD_ASSERT(!statistics_is_active(heap), "a heap that goes has nothing in use");
    if (heap->is_only) {
        end_only(s, heap);
    }
    if (heap->is_sharing) {
        settle(s, heap);
    }
    s->heap_count--;
    if (s->heap_count == 1 && s->sharing) { /* else when it shares again */
        make_only(s, s->sharing);
    }
}

/* --- room -------------------------------------------------------------------------------- */

/* What a heap would need to come to its highest again; nothing, if it was idle since it was asked
 * last: what it had once would be kept from the others for ever. */
static uint64_t wanted(heap_statistics *h, int row, int which, bool is_asking)
{
    heap_share *share = &h->shares[row][which];
    uint64_t value = value_of(h, row, which);
    uint64_t activity = h->counts[POOL_LARGE][FIGURE_ALLOCATION].allocated +
                        h->counts[POOL_SMALL][FIGURE_ALLOCATION].allocated;
    bool is_idle = !is_asking && activity == share->activity;
    share->high = is_idle || share->high < value ? value : share->high;
    share->activity = activity;
    return share->high - value;
}

/* Shares out what the peak leaves over: to each that shares what it wants and an equal part of the
 * rest, or as much in proportion. Rounded so that all of it is given: the parts of a small number
 * are not all nothing. */
static void share_out(statistics *s, const heap_statistics *asking, int row, int which,
                      uint64_t left)
{
    uint64_t all = 0, heaps = 0;
    for (heap_statistics *h = s->sharing; h; h = h->next) {
        all += wanted(h, row, which, h == asking);
        heaps++;
    }
    double part = all <= left ? 1 : (double)left / (double)all, sum = 0;
    uint64_t extra = all < left && heaps ? (left - all) / heaps : 0, given = 0;
    for (heap_statistics *h = s->sharing; h; h = h->next) {
        uint64_t value = value_of(h, row, which);
        sum += (double)(h->shares[row][which].high - value) * part;
        uint64_t share =
            all <= left ? h->shares[row][which].high - value : gmd_min((uint64_t)sum, left) - given;
        given += share;
        h->shares[row][which].ceiling = value + share + extra;
        set_end(h, row, counted(which));
    }
}

/* What a new peak leaves over. Everybody is asked all the same: it is remembered. */
static void share_nothing(statistics *s, const heap_statistics *asking, int row, int which)
{
    for (heap_statistics *h = s->sharing; h; h = h->next) {
        uint64_t more = wanted(h, row, which, h == asking);
        h->shares[row][which].ceiling = h->shares[row][which].high - more;
        set_end(h, row, counted(which));
    }
}

static void make_room_in(statistics *s, heap_statistics *heap, int row, int which, uint64_t amount)
{
    heap_share *share = &heap->shares[row][which];
    uint64_t value = value_of(heap, row, which);
    if (value + amount <= share->ceiling) {
        return;
    }
    uint64_t sum = sum_of(s, row, which) + amount;
    if (sum >= s->peaks[row][which]) {
        s->peaks[row][which] = sum;
        share_nothing(s, heap, row, which);
    } else {
        share_out(s, heap, row, which, s->peaks[row][which] - sum);
    }
    share->ceiling += amount;
    set_end(heap, row, counted(which));
}

void statistics_make_room(statistics *s, heap_statistics *heap, pool_kind kind, heap_figure which,
                          uint64_t amount)
{
    GMD_ASSERT(heap->is_sharing, "room is made for a heap that shares");
    if (heap->is_only) { /* its ceilings follow what it has */
        return;
    }
    const int rows[] = {(int)kind, POOL_ALL};
    for (int i = 0; i < 2; i++) {
        make_room_in(s, heap, rows[i], (int)which, amount);
        if (FIGURE_ACTIVE + (int)which < HEAP_FIGURE_COUNT) {
            make_room_in(s, heap, rows[i], FIGURE_ACTIVE + (int)which, amount);
        }
    }
}

/* --- the device's ------------------------------------------------------------------------ */

static void raise_figure(figure *f, uint64_t amount)
{
    f->current += amount;
    f->allocated += amount;
    f->peak = gmd_max(f->current, f->peak);
}

void statistics_raise_device(statistics *s, pool_kind kind, device_figure which, uint64_t amount)
{
    raise_figure(&s->pooled[kind][which], amount);
    raise_figure(&s->pooled[POOL_ALL][which], amount);
}

void statistics_lower_device(statistics *s, pool_kind kind, device_figure which, uint64_t amount)
{
    GMD_ASSERT(s->pooled[kind][which].current >= amount, "what goes was counted");
    s->pooled[kind][which].current -= amount;
    s->pooled[POOL_ALL][which].current -= amount;
}

void statistics_raise_oversize(statistics *s, oversize_figure which)
{
    raise_figure(&s->oversize[which], 1);
}

void statistics_lower_oversize(statistics *s, oversize_figure which)
{
    GMD_ASSERT(s->oversize[which].current, "what goes was counted");
    s->oversize[which].current--;
}

figure statistics_sum(const statistics *s, pool_kind kind, heap_figure which)
{
    figure f = {.current = sum_of(s, (int)kind, (int)which),
                .peak = peak_of(s, (int)kind, (int)which)};
    int by = counted((int)which);
    for (int row = 0; row < POOL_KINDS; row++) {
        if (kind != POOL_ALL && row != (int)kind) {
            continue;
        }
        f.allocated += s->settled.allocated[row][by];
        for (const heap_statistics *h = s->sharing; h; h = h->next) {
            f.allocated += h->counts[row][by].allocated;
        }
    }
    return f;
}

static void reset_peak(statistics *s, heap_statistics *heap, int row, int which)
{
    (void)heap;
    s->peaks[row][which] = sum_of(s, row, which);
    for (heap_statistics *h = s->sharing; h; h = h->next) {
        h->shares[row][which].ceiling = h->shares[row][which].high = value_of(h, row, which);
        set_end(h, row, counted(which));
    }
}

void statistics_reset_peaks(statistics *s)
{
    each_figure(s, NULL, reset_peak);
    for (int row = 0; row <= POOL_ALL; row++) {
        for (int which = 0; which < DEVICE_FIGURE_COUNT; which++) {
            s->pooled[row][which].peak = s->pooled[row][which].current;
        }
    }
    for (int which = 0; which < OVERSIZE_FIGURE_COUNT; which++) {
        s->oversize[which].peak = s->oversize[which].current;
    }
}

/* --- telling ----------------------------------------------------------------------------- */

void statistics_summary(const statistics *s, gmd_stats *out)
{
    const figure *device = s->pooled[POOL_ALL];
    out->allocated_bytes = sum_of(s, POOL_ALL, FIGURE_ALLOCATED_BYTES);
    out->allocated_bytes_peak = peak_of(s, POOL_ALL, FIGURE_ALLOCATED_BYTES);
    out->reserved_bytes = device[FIGURE_RESERVED_BYTES].current;
    out->reserved_bytes_peak = device[FIGURE_RESERVED_BYTES].peak;
    out->active_bytes = sum_of(s, POOL_ALL, FIGURE_ACTIVE_BYTES);
    out->active_bytes_peak = peak_of(s, POOL_ALL, FIGURE_ACTIVE_BYTES);
    out->inactive_split_bytes = sum_of(s, POOL_ALL, FIGURE_INACTIVE_SPLIT_BYTES);
    out->requested_bytes = sum_of(s, POOL_ALL, FIGURE_REQUESTED_BYTES);
    out->allocation_count = sum_of(s, POOL_ALL, FIGURE_ALLOCATION);
    out->segment_count = device[FIGURE_SEGMENT].current;
    out->num_alloc_retries = s->num_alloc_retries;
    out->num_ooms = s->num_ooms;
}

/* --- validity ---------------------------------------------------------------------------- */

static const char *share_violation(const heap_statistics *h, int row, int which)
{
    if (value_of(h, row, which) > h->shares[row][which].ceiling) {
        return "no figure of a heap is above its ceiling";
    }
    int by = counted(which);
    uint64_t end = row == POOL_ALL ? h->ends[by] : h->counts[row][by].end;
    return end == end_of(h, row, by) ? NULL
                                     : "the room of a figure ends at the lower of its ceilings";
}

static const char *shares_violation(const statistics *s, int row, int which)
{
    uint64_t ceilings = s->settled.current[row][which];
    for (const heap_statistics *h = s->sharing; h; h = h->next) {
        const char *violation = share_violation(h, row, which);
        if (violation) {
            return violation;
        }
        ceilings += h->shares[row][which].ceiling;
    }
    return ceilings <= peak_of(s, row, which) ? NULL
                                              : "the heaps' shares of a peak fit under the peak";
}

static const char *figure_violation(const figure *f)
{
    return f->current <= f->peak && f->peak <= f->allocated
               ? NULL
               : "a figure is at most its peak, and that is at most all that was allocated";
}

static const char *device_figures_violation(const statistics *s)
{
    const char *violation = NULL;
    for (int which = 0; which < DEVICE_FIGURE_COUNT && !violation; which++) {
        const figure *all = &s->pooled[POOL_ALL][which];
        const figure *large = &s->pooled[POOL_LARGE][which], *small = &s->pooled[POOL_SMALL][which];
        violation = figure_violation(all);
        violation = violation ? violation : figure_violation(large);
        violation = violation ? violation : figure_violation(small);
        if (!violation && (all->current != large->current + small->current ||
                           all->allocated != large->allocated + small->allocated)) {
            violation = "a figure over all pools is the sum of the pools'";
        }
    }
    for (int which = 0; which < OVERSIZE_FIGURE_COUNT && !violation; which++) {
        violation = figure_violation(&s->oversize[which]);
    }
    return violation;
}

static const char *sharing_violation(const statistics *s)
{
    const heap_statistics *last = NULL;
    for (const heap_statistics *h = s->sharing; h; h = h->next) {
        if (h->is_only != (s->heap_count == 1)) {
            return "a heap knows whether it is the only one";
        }
        if (!h->is_sharing || h->previous != last || (last && last->last_used < h->last_used)) {
            return "the heaps that share are in the order of their latest use";
        }
        last = h;
    }
    return s->least_used == last ? NULL : "the heap that was not used for longest is known";
}

const char *statistics_violation(const statistics *s)
{
    const char *violation = device_figures_violation(s);
    violation = violation ? violation : sharing_violation(s);
    for (int row = 0; row <= POOL_ALL && !violation; row++) {
        for (int which = 0; which < HEAP_FIGURE_COUNT && !violation; which++) {
            violation = shares_violation(s, row, which);
        }
    }
    return violation;
}
