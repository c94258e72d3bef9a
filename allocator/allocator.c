#include "gmd_allocator.h"

#include "blocks.h"
#include "device_access.h"
#include "device_allocator.h"
#include "device_limit.h"
#include "device_segments.h"
#include "expandable.h"
#include "gmd_cuda_scope.h"
#include "history.h"
#include "loan.h"
#include "pending.h"
#include "pool_checkpoint.h"
#include "private_pools.h"
#include "requests.h"
#include "segments.h"
#include "snapshot.h"
#include "validity.h"
#include "virtual_memory.h"
#include "walk.h"

#include "gmd_assert.h"
#include "gmd_min.h"

#include <stdlib.h>
#include <string.h>

/* A request may still read settings that were replaced: they stay until the end. */
typedef struct settings_version {
    settings values;
    struct settings_version *before; /* NULL: it is the first one */
    char *conf;                      /* what they were given as */
} settings_version;

struct gmd_allocator {
    settings_version first;
    settings_version *_Atomic settings; /* those in force */
    stacks *stacks;
    int device_count;
    device_allocator devices[];
};

/* --- from creation to the end ------------------------------------------------------------ */

static void open_device(device_allocator *d, int device, const gmd_allocator *a)
{
    d->device = device;
    d->settings = &a->settings->values;
    d->stacks = a->stacks;
    d->limit_bytes = UINT64_MAX;
    pthread_mutex_init(&d->lock, NULL);
}

/* Aligned to cache lines, as heaps are, so that the distance between the two does not follow what
 * the process has allocated before, such as the copy of a path. At some distances a cached request
 * takes 3 % longer: a load from the device waits for a store to the heap just before it where the
 * lower 12 bits of both addresses are the same. */
static gmd_allocator *make(int device_count)
{
    size_t size = sizeof(gmd_allocator) + (size_t)device_count * sizeof(device_allocator);
    gmd_allocator *a = aligned_alloc(_Alignof(gmd_allocator), size);
    if (a) {
        memset(a, 0, size);
    }
    return a;
}

static void free_allocator(gmd_allocator *a)
{
    for (settings_version *v = a->settings, *before; v != &a->first; v = before) {
        before = v->before;
        free(v->conf);
        free(v);
    }
    free(a->first.conf);
    stacks_destroy(a->stacks);
    free(a);
}

gmd_status gmd_allocator_create(gmd_allocator **allocator, int device_count, const char *conf,
                                gmd_error *error)
{
    if (device_count < 1 || device_count > 1024) {
        return gmd_fail(error, GMD_BAD_INPUT, "reference allocator: %d devices", device_count);
    }
    settings parsed;
    gmd_status status = settings_parse(&parsed, conf, error);
    if (status != GMD_OK) {
        return status;
    }
    gmd_allocator *a = make(device_count);
    if (!a) {
        return gmd_fail(error, GMD_NO_MEMORY, "reference allocator: no host memory");
    }
    a->first = (settings_version){.values = parsed, .conf = strdup(conf ? conf : "")};
    a->settings = &a->first;
    a->stacks = stacks_create();
    if (!a->first.conf || !a->stacks) {
        free_allocator(a);
        return gmd_fail(error, GMD_NO_MEMORY, "reference allocator: no host memory");
    }
    a->device_count = device_count;
    for (int i = 0; i < device_count; i++) {
        open_device(&a->devices[i], i, a);
    }
    *allocator = a;
    return GMD_OK;
}

static void free_all_blocks(device_allocator *d)
{
    for (heap *h = d->heaps; h; h = h->next_of_device) {
        for (uint64_t i = 0; h->allocated.slots && i <= h->allocated.mask;) {
            block_map_slot *slot = &h->allocated.slots[i];
            if (!*slot) { /* removing one may move another into its place: look again */
                i++;
                continue;
            }
            block *b = block_map_block(*slot);
            block_map_remove(&h->allocated, slot);
            if (b->size >= d->settings->max_split_bytes) {
                statistics_lower_oversize(&d->stats, FIGURE_OVERSIZE_ALLOCATION);
            }
            blocks_make_room_to_release(&d->stats, h, b);
            blocks_disown(h, b);
            if (b->set_and_state & BLOCK_USED) {
                pending_add(d, b);
            } else {
                blocks_release(d->settings, h, b);
            }
        }
    }
}

static bool wait_for_all(const device_allocator *d)
{
    cuda_scope scope;
    if (!d->segments || !cuda_scope_enter(&scope, d->device)) {
        return false;
    }
    bool is_done = cuda_succeeded(cudaDeviceSynchronize());
    cuda_scope_leave(&scope);
    return is_done;
}

static void release_all(device_allocator *d)
{
    segments_release_pool(d, &d->default_pool);
    private_pools_release_free(d);
    expandable_release_empty(d);
}

static void destroy_device(device_allocator *d)
{
    device_enter(d);
    GMD_ASSERT_VALID(device_violation(d));
    history_switch(d, 0, GMD_STACKS_OFF);
    free_all_blocks(d);
    for (pool *p = d->default_pool.next; p; p = p->next) {
        p->holders = 0;
    }
    if (!pending_settle(d)) {
        pending_abandon(d);
    }
    d->is_known_idle = wait_for_all(d); /* streams may have been destroyed: they are not asked */
    release_all(d);
    release_all(d); /* what was refused is tried twice; then it is lost */
    GMD_ASSERT_VALID(device_violation(d));
    device_leave(d);
    expandable_abandon(d);
    loan_forget(d);
    private_pools_destroy(d);
    pending_release(d);
    for (heap *h = d->heaps, *next; h; h = next) {
        next = h->next_of_device;
        heap_destroy(h);
    }
    for (memory_callback *c = d->callbacks, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    free(d->default_pool.heaps);
    device_release_segments(d);
    pthread_mutex_destroy(&d->lock);
}

void gmd_allocator_destroy(gmd_allocator *allocator)
{
    if (!allocator) {
        return;
    }
    for (int i = 0; i < allocator->device_count; i++) {
        destroy_device(&allocator->devices[i]);
    }
    free_allocator(allocator);
}

static device_allocator *device_at(gmd_allocator *allocator, int device)
{
    return device >= 0 && device < allocator->device_count ? &allocator->devices[device] : NULL;
}

/* --- other settings while it is in use ------------------------------------------------------ */

/* What segments that are there already were made by. NULL: nothing that matters differs. */
static const char *fixed_difference(const settings *now, const settings *then)
{
    return now->expandable_segments && now->large_segment_bytes != then->large_segment_bytes
               ? "large_segment_size_mb"
               : NULL;
}

static gmd_status check_change(const gmd_allocator *a, const settings *now, const settings *then,
                               gmd_error *error)
{
    const char *fixed = fixed_difference(now, then);
    bool is_limit_new = now->memory_fraction < then->memory_fraction ||
                        now->memory_fraction > then->memory_fraction;
    for (int i = 0; i < a->device_count; i++) {
        const device_allocator *d = &a->devices[i];
        if (fixed && (statistics_reserved(&d->stats) || d->segments)) {
            return gmd_fail(error, GMD_FAILED,
                            "%s cannot change while memory of device %d is reserved", fixed, i);
        }
        if (is_limit_new && d->is_limit_known) {
            return gmd_fail(error, GMD_FAILED,
                            "per_process_memory_fraction cannot change any more; "
                            "set_per_process_memory_fraction() can");
        }
    }
    return GMD_OK;
}

static bool is_expandable_at(const device_allocator *d, uint64_t place)
{
    const segment *s = d->segments;
    while (s && s->place != place) {
        s = s->next;
    }
    return s;
}

static void recount(statistics *all, oversize_figure which, bool was, bool is)
{
    if (is && !was) {
        statistics_raise_oversize(all, which);
    } else if (was && !is) {
        statistics_lower_oversize(all, which);
    }
}

/* Blocks and segments stay as they are, and are oversize or not by the new size. */
static void recount_oversize(device_allocator *d, uint64_t before, uint64_t now)
{
    for (const heap *h = d->heaps; h; h = h->next_of_device) {
        for (uint64_t i = 0; h->allocated.slots && i <= h->allocated.mask; i++) {
            const block *b = block_map_at(&h->allocated, i);
            if (b) {
                recount(&d->stats, FIGURE_OVERSIZE_ALLOCATION, b->size >= before, b->size >= now);
            }
        }
    }
    const gmd_interval *at;
    for (uint64_t place = 0; (at = gmd_intervals_after(&d->owners, place)) != NULL;) {
        uint64_t size = at->end - at->address;
        place = at->end;
        if (!is_expandable_at(d, at->address)) {
            recount(&d->stats, FIGURE_OVERSIZE_SEGMENT, size >= before, size >= now);
        }
    }
}

static void use_settings(device_allocator *d, const settings *values)
{
    if (d->settings->max_split_bytes != values->max_split_bytes) {
        recount_oversize(d, d->settings->max_split_bytes, values->max_split_bytes);
    }
    bool is_switched = d->settings->expandable_segments != values->expandable_segments;
    d->has_both_kinds =
        (d->has_both_kinds || is_switched) && (statistics_reserved(&d->stats) || d->segments);
    d->settings = values;
    if (d->is_limit_known) {
        device_set_limit(d, d->limit_bytes); /* whether ages are counted follows the settings */
    }
}

static void each_device(gmd_allocator *a, void (*each)(device_allocator *))
{
    for (int i = 0; i < a->device_count; i++) {
        each(&a->devices[i]);
    }
}

/* NULL: no host memory. */
static settings_version *new_version(settings_version *before, const settings *values,
                                     const char *conf)
{
    settings_version *v = malloc(sizeof *v);
    char *copy = strdup(conf ? conf : "");
    if (!v || !copy) {
        free(v);
        free(copy);
        return NULL;
    }
    *v = (settings_version){.values = *values, .before = before, .conf = copy};
    return v;
}

gmd_status gmd_allocator_change_settings(gmd_allocator *allocator, const char *conf,
                                         gmd_error *error)
{
    each_device(allocator, device_enter);
    settings values;
    settings_version *before = allocator->settings, *v = NULL;
    gmd_status status = settings_parse_later(&values, &before->values, conf, error);
    if (status == GMD_OK) {
        status = check_change(allocator, &before->values, &values, error);
    }
    if (status == GMD_OK && !(v = new_version(before, &values, conf))) {
        status = gmd_fail(error, GMD_NO_MEMORY, "settings: no host memory");
    }
    if (v) {
        allocator->settings = v;
        for (int i = 0; i < allocator->device_count; i++) {
            use_settings(&allocator->devices[i], &v->values);
        }
    }
    each_device(allocator, device_leave);
    return status;
}

/* --- requests ---------------------------------------------------------------------------- */

void *gmd_allocator_malloc(gmd_allocator *allocator, size_t size, int device, cudaStream_t stream)
{
    device_allocator *d = device_at(allocator, device);
    return d ? requests_malloc(d, size, stream) : NULL;
}

__attribute__((noinline)) static bool free_elsewhere(gmd_allocator *allocator, void *ptr,
                                                     int device, cudaStream_t stream)
{
    for (int i = 0; i < allocator->device_count; i++) {
        if (i != device && requests_free(&allocator->devices[i], ptr, stream)) {
            return true;
        }
    }
    return false;
}

bool gmd_allocator_free(gmd_allocator *allocator, void *ptr, int device, cudaStream_t stream)
{
    if (!ptr) {
        return true;
    }
    device_allocator *d = device_at(allocator, device);
    if (d && requests_free(d, ptr, stream)) {
        return true;
    }
    return free_elsewhere(allocator, ptr, device, stream);
}

uint64_t gmd_allocator_block_size(gmd_allocator *allocator, int device, const void *ptr)
{
    device_allocator *d = device_at(allocator, device);
    return d ? requests_block_size(d, ptr) : 0;
}

bool gmd_allocator_record_stream(gmd_allocator *allocator, void *ptr, cudaStream_t stream)
{
    for (int i = 0; ptr && i < allocator->device_count; i++) {
        if (requests_record_stream(&allocator->devices[i], ptr, stream)) {
            return true;
        }
    }
    return !ptr;
}

void gmd_allocator_forget_stream(gmd_allocator *allocator, int device, cudaStream_t stream)
{
    device_allocator *d = device_at(allocator, device);
    if (d) {
        requests_forget_stream(d, stream);
    }
}

void gmd_allocator_empty_cache(gmd_allocator *allocator)
{
    for (int i = 0; i < allocator->device_count; i++) {
        requests_empty_cache(&allocator->devices[i]);
    }
}

bool gmd_allocator_empty_pool(gmd_allocator *allocator, int device, const uint64_t id[2])
{
    device_allocator *d = device_at(allocator, device);
    return d && requests_empty_pool(d, id);
}

bool gmd_allocator_set_memory_fraction(gmd_allocator *allocator, double fraction, int device)
{
    device_allocator *d = device_at(allocator, device);
    uint64_t total_bytes = 0;
    if (!d || !(fraction >= 0 && fraction <= 1) || !device_total_bytes(device, &total_bytes)) {
        return false;
    }
    device_enter(d);
    device_set_limit(d, fraction < 1 ? (uint64_t)(fraction * (double)total_bytes) : UINT64_MAX);
    device_leave(d);
    return true;
}

uint64_t gmd_allocator_device_request(const gmd_allocator *allocator, size_t size)
{
    const settings *s = &allocator->settings->values;
    return settings_device_request(s, settings_block_size(s, size));
}

bool gmd_allocator_on_low_memory(gmd_allocator *allocator, gmd_free_memory_callback *release,
                                 void *context)
{
    for (int i = 0; i < allocator->device_count; i++) {
        device_allocator *d = &allocator->devices[i];
        memory_callback *c = malloc(sizeof *c);
        if (!c) {
            return false;
        }
        device_enter(d);
        *c = (memory_callback){.next = d->callbacks, .release = release, .context = context};
        d->callbacks = c;
        device_leave(d);
    }
    return true;
}

/* --- lending ----------------------------------------------------------------------------- */

static gmd_status on_device(gmd_allocator *allocator, int device,
                            gmd_status (*step)(device_allocator *, gmd_error *), gmd_error *error)
{
    device_allocator *d = device_at(allocator, device);
    if (!d) {
        return gmd_fail(error, GMD_BAD_INPUT, "there is no device %d", device);
    }
    device_enter(d);
    gmd_status status = step(d, error);
    device_leave(d);
    return status;
}

gmd_status gmd_allocator_yield_memory(gmd_allocator *allocator, int device, gmd_error *error)
{
    return on_device(allocator, device, loan_yield, error);
}

gmd_status gmd_allocator_restore_memory(gmd_allocator *allocator, int device, gmd_error *error)
{
    return on_device(allocator, device, loan_restore, error);
}

bool gmd_allocator_is_yielded(gmd_allocator *allocator, int device)
{
    const device_allocator *d = device_at(allocator, device);
    return d && atomic_load_explicit(&d->attention, memory_order_relaxed) & ATTEND_YIELDED;
}

/* --- private pools ----------------------------------------------------------------------- */

bool gmd_allocator_begin_pool(gmd_allocator *allocator, int device, const uint64_t id[2],
                              gmd_stream_filter *accepts, void *context)
{
    device_allocator *d = device_at(allocator, device);
    if (!d || (!id[0] && !id[1])) {
        return false;
    }
    device_enter(d);
    bool is_begun = private_pools_begin(d, id, accepts, context);
    device_leave(d);
    return is_begun;
}

bool gmd_allocator_end_pool(gmd_allocator *allocator, int device, const uint64_t id[2],
                            void **context)
{
    device_allocator *d = device_at(allocator, device);
    if (!d) {
        return false;
    }
    device_enter(d);
    bool is_ended = private_pools_end(d, id, context);
    device_leave(d);
    return is_ended;
}

bool gmd_allocator_release_pool(gmd_allocator *allocator, int device, const uint64_t id[2])
{
    device_allocator *d = device_at(allocator, device);
    if (!d) {
        return false;
    }
    device_enter(d);
    bool is_released = private_pools_let_go(d, id);
    device_leave(d);
    return is_released;
}

bool gmd_allocator_set_pool_memory(gmd_allocator *allocator, int device, const uint64_t id[2],
                                   const gmd_pool_memory *memory)
{
    device_allocator *d = device_at(allocator, device);
    if (!d) {
        return false;
    }
    device_enter(d);
    bool is_set = private_pools_set_memory(d, id, memory);
    device_leave(d);
    return is_set;
}

bool gmd_allocator_set_pool_option(gmd_allocator *allocator, int device, const uint64_t id[2],
                                   const char *name, bool is_on)
{
    device_allocator *d = device_at(allocator, device);
    if (!d) {
        return false;
    }
    device_enter(d);
    bool is_set = private_pools_set_option(d, id, name, is_on);
    device_leave(d);
    return is_set;
}

static gmd_status no_device(int device, gmd_error *error)
{
    return gmd_fail(error, GMD_FAILED, "there is no device %d", device);
}

gmd_status gmd_allocator_checkpoint_pool(gmd_allocator *allocator, int device, const uint64_t id[2],
                                         gmd_checkpoint **made, gmd_error *error)
{
    device_allocator *d = device_at(allocator, device);
    if (!d) {
        return no_device(device, error);
    }
    device_note_caller(d, GMD_STACKS_ALL); /* of frees that are found to be done */
    device_enter(d);
    gmd_status status = pool_checkpoint_make(d, id, made, error);
    device_leave(d);
    return status;
}

gmd_status gmd_allocator_restore_pool(gmd_allocator *allocator, int device,
                                      const gmd_checkpoint *checkpoint, gmd_restored_fn *tell,
                                      void *context, gmd_error *error)
{
    device_allocator *d = device_at(allocator, device);
    if (!d) {
        return no_device(device, error);
    }
    device_note_caller(d, GMD_STACKS_ALLOCATIONS);
    device_enter(d);
    gmd_status status = pool_checkpoint_restore(d, checkpoint, tell, context, error);
    device_leave(d);
    return status;
}

void gmd_allocator_drop_checkpoint(gmd_checkpoint *checkpoint)
{
    pool_checkpoint_destroy(checkpoint);
}

/* --- quirks ------------------------------------------------------------------------------ */

const char *gmd_quirk_name(gmd_quirk which)
{
    static const char *const names[GMD_QUIRK_COUNT] = {
        [GMD_QUIRK_SPURIOUS_OOM] = "spurious_oom",
        [GMD_QUIRK_EXPANDABLE_LIMIT] = "expandable_limit",
        [GMD_QUIRK_RESERVATION_LEFT] = "reservation_left",
        [GMD_QUIRK_OVERSIZE_EXPANDABLE] = "oversize_expandable",
        [GMD_QUIRK_HELD_POOL] = "held_pool"};
    return (unsigned)which < GMD_QUIRK_COUNT ? names[which] : NULL;
}

void gmd_allocator_set_quirk(gmd_allocator *allocator, gmd_quirk which, bool is_on)
{
    for (int i = 0; (unsigned)which < GMD_QUIRK_COUNT && i < allocator->device_count; i++) {
        device_allocator *d = &allocator->devices[i];
        device_enter(d);
        d->quirks = is_on ? d->quirks | 1u << which : d->quirks & ~(1u << which);
        device_leave(d);
    }
}

uint64_t gmd_allocator_quirk_count(gmd_allocator *allocator, gmd_quirk which)
{
    uint64_t count = 0;
    for (int i = 0; (unsigned)which < GMD_QUIRK_COUNT && i < allocator->device_count; i++) {
        device_allocator *d = &allocator->devices[i];
        device_enter(d);
        count += d->quirk_counts[which];
        device_leave(d);
    }
    return count;
}

/* --- figures ----------------------------------------------------------------------------- */

void gmd_allocator_reset_peak_stats(gmd_allocator *allocator, int device)
{
    device_allocator *d = device_at(allocator, device);
    if (d) {
        device_enter(d);
        statistics_reset_peaks(&d->stats);
        device_leave(d);
    }
}

bool gmd_allocator_order_segments(gmd_allocator *allocator, int device, const uint64_t *given,
                                  size_t count)
{
    device_allocator *d = device_at(allocator, device);
    if (!d) {
        return false;
    }
    device_enter(d);
    bool is_set =
        !statistics_reserved(&d->stats) && !d->segments && places_set(&d->places, given, count);
    device_leave(d);
    return is_set;
}

uint64_t gmd_allocator_place_of(gmd_allocator *allocator, int device, uint64_t address)
{
    device_allocator *d = device_at(allocator, device);
    if (!d) {
        return 0;
    }
    device_enter(d);
    uint64_t place = places_place(&d->places, address);
    device_leave(d);
    return place;
}

bool gmd_allocator_get_stats(gmd_allocator *allocator, int device, gmd_stats *out)
{
    device_allocator *d = device_at(allocator, device);
    if (!d || !out || out->struct_size != sizeof *out) {
        return false;
    }
    device_enter(d);
    statistics_summary(&d->stats, out);
    device_leave(d);
    return true;
}

bool gmd_allocator_memory_stats(gmd_allocator *allocator, int device, gmd_stat_fn *emit,
                                void *context)
{
    device_allocator *d = device_at(allocator, device);
    if (!d) {
        return false;
    }
    device_enter(d);
    statistics_emit(&d->stats, emit, context);
    device_leave(d);
    return true;
}

bool gmd_allocator_walk(gmd_allocator *allocator, int device, gmd_walk_fn *visit, void *context)
{
    device_allocator *d = device_at(allocator, device);
    if (!d) {
        return false;
    }
    device_enter(d);
    bool is_visited = walk_device(d, visit, context);
    device_leave(d);
    return is_visited;
}

/* --- history ------------------------------------------------------------------------------ */

static bool switch_history(gmd_allocator *a, uint64_t max_entries, gmd_stacks which)
{
    bool is_switched = true;
    for (int i = 0; i < a->device_count; i++) {
        device_allocator *d = &a->devices[i];
        device_enter(d);
        is_switched = history_switch(d, max_entries, which) && is_switched;
        device_leave(d);
    }
    return is_switched;
}

gmd_status gmd_allocator_record_history(gmd_allocator *allocator, uint64_t max_entries,
                                        gmd_stacks which, gmd_error *error)
{
    if (which > GMD_STACKS_ALL) {
        return gmd_fail(error, GMD_BAD_INPUT, "history: %d says nothing about stacks", (int)which);
    }
    if (which != GMD_STACKS_OFF) {
        stacks_prepare();
    }
    if (!switch_history(allocator, max_entries, which)) {
        switch_history(allocator, 0, GMD_STACKS_OFF);
        return gmd_fail(error, GMD_NO_MEMORY, "history: no host memory; it is off");
    }
    return GMD_OK;
}

gmd_status gmd_allocator_change_stacks(gmd_allocator *allocator, gmd_stacks which, gmd_error *error)
{
    bool is_recorded = true;
    if (which > GMD_STACKS_ALL) {
        return gmd_fail(error, GMD_BAD_INPUT, "history: %d says nothing about stacks", (int)which);
    }
    if (which != GMD_STACKS_OFF) {
        stacks_prepare();
    }
    for (int i = 0; i < allocator->device_count; i++) {
        device_allocator *d = &allocator->devices[i];
        device_enter(d);
        is_recorded = history_change_stacks(d, which) && is_recorded;
        device_leave(d);
    }
    return is_recorded ? GMD_OK
                       : gmd_fail(error, GMD_FAILED, "history: none is recorded that could go on");
}

/* Names with commas between, as a set of 1 << history_kind. */
static gmd_status event_set(uint32_t *kinds, const char *names, gmd_error *error)
{
    *kinds = 0;
    for (const char *at = names; *at;) {
        history_kind kind;
        size_t length = strcspn(at, ",");
        if (!snapshot_event_named(at, length, &kind)) {
            return gmd_fail(error, GMD_BAD_INPUT, "history: '%.*s' is no event of a snapshot",
                            (int)gmd_min(length, 100), at);
        }
        *kinds |= 1u << kind;
        at += length + (at[length] == ',');
    }
    return GMD_OK;
}

gmd_status gmd_allocator_skip_events(gmd_allocator *allocator, const char *names, gmd_error *error)
{
    uint32_t kinds = 0;
    gmd_status status = event_set(&kinds, names, error);
    for (int i = 0; status == GMD_OK && i < allocator->device_count; i++) {
        device_allocator *d = &allocator->devices[i];
        device_enter(d);
        d->skipped = kinds;
        device_leave(d);
    }
    return status;
}

void gmd_allocator_set_metadata(gmd_allocator *allocator, const char *text)
{
    stacks_set_note(allocator->stacks, text);
    for (int i = 0; *text && i < allocator->device_count; i++) {
        device_allocator *d = &allocator->devices[i];
        device_enter(d);
        history_carry_notes(d);
        device_leave(d);
    }
}

void gmd_allocator_set_stack_source(gmd_allocator *allocator, gmd_stack_source *source,
                                    void *context)
{
    stacks_set_source(allocator->stacks, source, context);
}

uint32_t gmd_allocator_keep_stack(gmd_allocator *allocator)
{
    return stacks_keep(allocator->stacks);
}

size_t gmd_allocator_stack_text(gmd_allocator *allocator, uint32_t stack, char *text, size_t size)
{
    return stacks_text(allocator->stacks, stack, text, size);
}

gmd_status gmd_allocator_dump_snapshot(gmd_allocator *allocator, const char *path, gmd_error *error)
{
    const settings_version *version = allocator->settings;
    const snapshot_source from = {.devices = allocator->devices,
                                  .device_count = allocator->device_count,
                                  .settings = &version->values,
                                  .conf = version->conf,
                                  .stacks = allocator->stacks};
    return snapshot_write(&from, path, error);
}
