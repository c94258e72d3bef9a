#include "loan.h"

#include "cuda_work.h"
#include "gmd_cuda_scope.h"
#include "host_image.h"
#include "pending.h"
#include "private_pools.h"
#include "segments.h"
#include "transfer.h"
#include "virtual_memory.h"

#include "gmd_grow.h"
#include "gmd_min.h"

#include <inttypes.h>
#include <stdlib.h>

#define MIB ((uint64_t)1 << 20)

typedef struct range_list {
    image_range *ranges;
    size_t count, capacity;
    bool is_short; /* of host memory */
} range_list;

struct loan {
    range_list saved; /* in ascending order of addresses and of offsets */
    host_image image;
};

/* --- what has bytes to keep -------------------------------------------------------------- */

static void add_range(range_list *list, uint64_t address, uint64_t size, uint64_t offset)
{
    if (!GMD_GROW(&list->ranges, &list->capacity, list->count + 1)) {
        list->is_short = true;
        return;
    }
    list->ranges[list->count++] = (image_range){.address = address, .size = size, .offset = offset};
}

static void add_block(void *list, block *b)
{
    const segment *s = block_detail_seen(b)->expandable;
    add_range(list, s->address + (b->address - s->place), b->size, 0);
}

static int compare_addresses(const void *a, const void *b)
{
    const image_range *x = a, *y = b;
    return (x->address > y->address) - (x->address < y->address);
}

/* Graphs use the free blocks of captured pools, too: their addresses are in the graphs. */
static void add_captured(const pool *p, range_list *list)
{
    for (size_t i = 0; i < p->heap_count; i++) {
        for (int kind = 0; kind < POOL_KINDS; kind++) {
            free_set_each(&p->heaps[i]->sets[kind], add_block, list);
        }
    }
}

/* By address. False: no host memory. */
static bool find_kept(const device_allocator *d, range_list *list)
{
    for (const heap *h = d->heaps; h; h = h->next_of_device) {
        for (uint64_t i = 0; h->allocated.slots && i <= h->allocated.mask; i++) {
            block *b = block_map_at(&h->allocated, i);
            if (b) {
                add_block(list, b);
            }
        }
    }
    for (const pool *p = d->default_pool.next; p; p = p->next) {
        if (private_pools_keeps_segments(d, p)) {
            add_captured(p, list);
        }
    }
    if (list->count) {
        qsort(list->ranges, list->count, sizeof *list->ranges, compare_addresses);
    }
    return !list->is_short;
}

static uint64_t give_offsets(range_list *list)
{
    uint64_t offset = 0;
    for (size_t i = 0; i < list->count; i++) {
        list->ranges[i].offset = offset;
        offset += list->ranges[i].size;
    }
    return offset;
}

/* What was saved and still has an owner: blocks were freed in between. */
static bool find_wanted(const device_allocator *d, const range_list *saved, range_list *wanted)
{
    range_list kept = {0};
    bool is_found = find_kept(d, &kept);
    for (size_t i = 0, j = 0; is_found && i < saved->count && j < kept.count;) {
        const image_range *s = &saved->ranges[i], *k = &kept.ranges[j];
        uint64_t s_end = s->address + s->size, k_end = k->address + k->size;
        uint64_t from = gmd_max(s->address, k->address);
        uint64_t to = gmd_min(s_end, k_end);
        if (from < to) {
            add_range(wanted, from, to - from, s->offset + (from - s->address));
        }
        i += s_end <= k_end;
        j += k_end <= s_end;
    }
    free(kept.ranges);
    return is_found && !wanted->is_short;
}

/* --- the loan ---------------------------------------------------------------------------- */

static void close_loan(struct loan *l)
{
    host_image_close(&l->image);
    free(l->saved.ranges);
    free(l);
}

/* NULL: `status` says why. */
static struct loan *open_loan(const device_allocator *d, gmd_status *status, gmd_error *error)
{
    struct loan *l = calloc(1, sizeof *l);
    if (!l) {
        *status = gmd_fail(error, GMD_NO_MEMORY, "no host memory");
        return NULL;
    }
    *status = find_kept(d, &l->saved)
                  ? host_image_open(&l->image, give_offsets(&l->saved), error)
                  : gmd_fail(error, GMD_NO_MEMORY, "no host memory for the list of live blocks");
    if (*status != GMD_OK) {
        close_loan(l);
        return NULL;
    }
    return l;
}

void loan_forget(device_allocator *d)
{
    if (d->loan) {
        close_loan(d->loan);
    }
    d->loan = NULL;
    device_attend(d, ATTEND_YIELDED, false);
}

static void lend(device_allocator *d, struct loan *l)
{
    d->loan = l;
    device_attend(d, ATTEND_YIELDED, true);
}

static void release_free_pages(device_allocator *d)
{
    d->is_known_idle = true; /* it was asked as a whole: streams may have been destroyed */
    segments_release_pool(d, &d->default_pool);
    private_pools_release_free(d);
    d->is_known_idle = false;
}

static bool copy_ranges(const device_allocator *d, const struct loan *l, const range_list *list,
                        bool is_to_host)
{
    const transfer t = {.device = d->device,
                        .is_to_host = is_to_host,
                        .image = l->image.data,
                        .image_bytes = l->image.bytes,
                        .ranges = list->ranges,
                        .range_count = list->count};
    return transfer_run(&t);
}

/* All memory goes, or what the driver refuses to take stays for the next attempt. Unmapping comes
 * first for all: until then nothing is lost, and a refusal is undone without a copy. */
static bool put_away(const device_allocator *d)
{
    bool is_away = true;
    for (segment *s = d->segments; s && is_away; s = s->next) {
        is_away = segment_detach(s);
    }
    for (segment *s = d->segments; s && is_away; s = s->next) {
        is_away = segment_drop_memory(s);
    }
    return is_away;
}

static bool bring_memory_back(const device_allocator *d)
{
    bool is_back = true;
    for (segment *s = d->segments; s && is_back; s = s->next) {
        is_back = segment_take_memory(s);
    }
    for (segment *s = d->segments; s && is_back; s = s->next) {
        is_back = segment_attach(s);
    }
    return is_back;
}

static bool bring_back(const device_allocator *d, const struct loan *l)
{
    range_list wanted = {0};
    bool is_back = find_wanted(d, &l->saved, &wanted) && bring_memory_back(d) &&
                   copy_ranges(d, l, &wanted, false);
    free(wanted.ranges);
    return is_back;
}

/* --- yield ------------------------------------------------------------------------------- */

static gmd_status check_work(device_allocator *d, gmd_error *error)
{
    switch (cuda_work_now()) {
    case CUDA_WORK_NONE:
        break;
    case CUDA_WORK_PENDING:
        return gmd_fail(error, GMD_FAILED,
                        "work is pending on the device, which may use the memory; synchronise with "
                        "it first (torch.cuda.synchronize)");
    case CUDA_WORK_CAPTURED:
        return gmd_fail(error, GMD_FAILED,
                        "a stream is being captured into a graph; end the capture first");
    case CUDA_WORK_UNKNOWN:
        return gmd_fail(error, GMD_FAILED,
                        "the device does not tell whether work is pending: a driver of CUDA 12.5 "
                        "or later and a working context are needed");
    }
    pending_poll(d);
    return pending_is_empty(&d->pending)
               ? GMD_OK
               : gmd_fail(error, GMD_FAILED,
                          "freed blocks wait for the work of other streams; synchronise with them "
                          "first (torch.cuda.synchronize)");
}

static gmd_status check_lendable(device_allocator *d, gmd_error *error)
{
    if (loan_is_yielded(d)) {
        return gmd_fail(error, GMD_BAD_INPUT, "the memory is lent already");
    }
    if (!d->settings->expandable_segments) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "memory of cudaMalloc cannot come back at its addresses; use the setting "
                        "expandable_segments:True");
    }
    if (d->has_both_kinds) {
        return gmd_fail(error, GMD_FAILED,
                        "some of the memory may be cudaMalloc's, which cannot come back at its "
                        "addresses: expandable_segments was switched while memory was reserved");
    }
    if (d->routes) {
        return gmd_fail(error, GMD_FAILED,
                        "requests go to a private pool (a capture or a torch.cuda.use_mem_pool is "
                        "under way); end that first");
    }
    return check_work(d, error);
}

static gmd_status undo_yield(device_allocator *d, struct loan *l, gmd_error *error)
{
    if (bring_back(d, l)) {
        close_loan(l);
        return gmd_fail(error, GMD_FAILED,
                        "the driver refused to take the memory back; nothing is changed");
    }
    lend(d, l);
    return gmd_fail(error, GMD_FAILED,
                    "the driver refused to take some of the memory back and to map the rest again; "
                    "all bytes are on the host: restore brings them back");
}

static gmd_status yield_now(device_allocator *d, gmd_error *error)
{
    gmd_status status = check_lendable(d, error);
    struct loan *l = status == GMD_OK ? open_loan(d, &status, error) : NULL;
    if (!l) {
        return status;
    }
    if (!copy_ranges(d, l, &l->saved, true)) {
        close_loan(l);
        return gmd_fail(error, GMD_FAILED,
                        "the live blocks could not be copied to the host (a copy failed, or there "
                        "is no page-locked memory for it); nothing is changed");
    }
    release_free_pages(d);
    pending_drop_events(d);
    if (!put_away(d)) {
        return undo_yield(d, l, error);
    }
    lend(d, l);
    return GMD_OK;
}

/* --- restore ----------------------------------------------------------------------------- */

static gmd_status refuse_restore(device_allocator *d, gmd_error *error)
{
    uint64_t needed = 0;
    size_t free_bytes = 0, total = 0;
    put_away(d);
    for (const segment *s = d->segments; s; s = s->next) {
        needed += s->mapped_pages * s->page_bytes;
    }
    cuda_succeeded(cudaMemGetInfo(&free_bytes, &total));
    return gmd_fail(error, GMD_FAILED,
                    "%" PRIu64 " MiB of device memory could not be had again (%" PRIu64
                    " MiB are free: others may use the rest) or filled; the memory is still lent, "
                    "restore can be tried again",
                    needed / MIB, (uint64_t)free_bytes / MIB);
}

static gmd_status restore_now(device_allocator *d, gmd_error *error)
{
    if (!loan_is_yielded(d)) {
        return gmd_fail(error, GMD_BAD_INPUT, "the memory is not lent");
    }
    pending_poll(d);
    release_free_pages(d); /* what was freed meanwhile needs no memory */
    if (!bring_back(d, d->loan)) {
        return refuse_restore(d, error);
    }
    loan_forget(d);
    return GMD_OK;
}

/* --- both -------------------------------------------------------------------------------- */

static gmd_status on_device(device_allocator *d, const char *what,
                            gmd_status (*step)(device_allocator *, gmd_error *), gmd_error *error)
{
    cuda_scope scope;
    gmd_status status;
    if (cuda_scope_enter(&scope, d->device)) {
        status = step(d, error);
        cuda_scope_leave(&scope);
    } else {
        status = gmd_fail(error, GMD_FAILED, "the device cannot be used");
    }
    if (status != GMD_OK) {
        gmd_error_prefix(error, what);
    }
    return status;
}

gmd_status loan_yield(device_allocator *d, gmd_error *error)
{
    return on_device(d, "yield_memory", yield_now, error);
}

gmd_status loan_restore(device_allocator *d, gmd_error *error)
{
    return on_device(d, "restore_memory", restore_now, error);
}
