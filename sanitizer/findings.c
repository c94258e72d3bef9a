#define _GNU_SOURCE
#include "guard_state.h"

#include "patterns.h"

#include <string.h>
#include <unistd.h>

enum { GATHERED = 32, SETTLE_US = 2000 };

static finding_kind kind_of(const watch *w, const sweep_find *find)
{
    uint64_t changed = find->first;
    if (w->moment == MOMENT_READ) {
        return find->word == PATTERN_FREED ? FINDING_READ_AFTER_FREE : FINDING_UNINITIALISED_READ;
    }
    return w->expected == PATTERN_FREED ? FINDING_WRITE_AFTER_FREE
           : changed < w->block.address ? FINDING_WRITE_BEFORE_START
                                        : FINDING_WRITE_PAST_END;
}

/* Who has the memory now: a live block, or one that was freed later. */
static void find_owner(guard *g, finding *f)
{
    pthread_mutex_lock(&g->lock);
    const guarded_block *owner = guard_find(g, f->changed.first);
    if (owner && owner->number != f->block.number) {
        f->owner = *owner;
    }
    pthread_mutex_unlock(&g->lock);
}

/* The block was live when its read was queued: by now its free may be known. */
static void find_freed(guard *g, guarded_block *block)
{
    pthread_mutex_lock(&g->lock);
    const guarded_block *held = guard_find(g, block->address);
    if (held && held->number == block->number) {
        *block = *held;
    }
    pthread_mutex_unlock(&g->lock);
}

/* FILE:LINE:FUNCTION of PyTorch itself, or of what watches it. */
static bool is_of_pytorch(const char *line, size_t length)
{
    static const char torch[] = "/torch/", helper[] = "/gmd_torch";
    return memmem(line, length, torch, sizeof torch - 1) ||
           memmem(line, length, helper, sizeof helper - 1);
}

/* Whether no frame is of the program: all are PyTorch's, or there is none. */
static bool is_all_of_pytorch(guard *g, uint32_t stack)
{
    char text[8192];
    size_t length = stack ? g->allocator.stack_text(stack, text, sizeof text) : 0;
    bool is = true;
    for (const char *line = text, *end; is && line < text + length; line = end + 1) {
        end = memchr(line, '\n', (size_t)(text + length - line));
        end = end ? end : text + length;
        is = is_of_pytorch(line, (size_t)(end - line));
    }
    return is;
}

/* Whether the innermost frame of the block's allocation has that text. */
static bool is_made_in(guard *g, const guarded_block *b, const char *place)
{
    char text[512];
    uint32_t stack = b->allocated_stack;
    size_t length = stack ? g->allocator.stack_text(stack, text, sizeof text) : 0;
    const char *end = memchr(text, '\n', length);
    return end && memmem(text, (size_t)(end - text), place, strlen(place));
}

/* torch.cuda.make_graphed_callables feeds backward passes with torch.empty_like, and throws the
 * results away. A torch.cuda.CUDAGraph makes two numbers for the random generator on the stream of
 * the capture, and frees them when it goes, while replays on another stream may still write them:
 * PyTorch 2.11's defect. Neither is the program's. */
static bool is_harmless(guard *g, const finding *f)
{
    if (f->kind == FINDING_UNINITIALISED_READ) {
        return is_made_in(g, &f->block, "/torch/cuda/graphs.py:") ||
               (f->current_stack && is_all_of_pytorch(g, f->current_stack));
    }
    return f->kind == FINDING_WRITE_AFTER_FREE && f->block.size == sizeof(int64_t) &&
           is_made_in(g, &f->block, "/torch/cuda/graphs.py:") &&
           is_made_in(g, &f->block, ":capture_begin");
}

static void report_change(guard *g, const sweep_find *find, uint32_t current_stack)
{
    watch *w = &g->watches[find->ticket % WATCHES];
    if (w->is_reported) {
        return;
    }
    w->is_reported = true;
    finding f = {.kind = kind_of(w, find),
                 .moment = w->moment,
                 .block = w->block,
                 .changed = *find,
                 .expected = w->expected,
                 .current_stack = w->moment == MOMENT_READ ? w->stack : current_stack,
                 .now_ns = guard_now_ns(),
                 .evidence = EVIDENCE_BYTES};
    if (w->moment == MOMENT_READ) {
        find_freed(g, &f.block);
    } else {
        find_owner(g, &f);
    }
    if (!is_harmless(g, &f)) {
        report_finding(g->report, &f);
    }
}

/* The parts of one change, which thread blocks found each. */
static void merge_find(sweep_find *all, const sweep_find *part)
{
    if (part->first < all->first) {
        all->first = part->first;
        all->word = part->word;
    }
    all->last = part->last > all->last ? part->last : all->last;
    all->changed += part->changed;
}

static size_t gather_finds(guard *g, int device, sweep_find gathered[GATHERED])
{
    size_t count = 0;
    sweep_find part;
    while (count < GATHERED && sweeps_next(g->sweeps, device, &part)) {
        size_t at = 0;
        while (at < count && gathered[at].ticket != part.ticket) {
            at++;
        }
        if (at < count) {
            merge_find(&gathered[at], &part);
        } else {
            gathered[count++] = part;
        }
    }
    return count;
}

/* The first find may come while the kernel still runs. */
static void read_finds(guard *g, int device, uint32_t current_stack)
{
    sweep_find gathered[GATHERED];
    size_t count;
    pthread_mutex_lock(&g->reporting);
    (void)usleep(SETTLE_US);
    while ((count = gather_finds(g, device, gathered)) > 0) {
        for (size_t i = 0; i < count; i++) {
            report_change(g, &gathered[i], current_stack);
        }
    }
    pthread_mutex_unlock(&g->reporting);
}

void guard_poll(guard *g, uint32_t current_stack)
{
    for (int device = 0; device < g->device_count; device++) {
        if (g->devices[device].is_ready && sweeps_have_news(g->sweeps, device)) {
            read_finds(g, device, current_stack);
        }
    }
}

void guard_report_bad_free(guard *g, const void *ptr, uint32_t stack)
{
    finding f = {.kind = FINDING_BAD_FREE,
                 .block = {.address = (uintptr_t)ptr},
                 .current_stack = stack,
                 .now_ns = guard_now_ns(),
                 .evidence = EVIDENCE_REQUEST};
    pthread_mutex_lock(&g->reporting);
    report_finding(g->report, &f);
    pthread_mutex_unlock(&g->reporting);
}

void guard_report_stale_read(guard *g, const guarded_block *b, uint64_t address, size_t size,
                             uint32_t stack)
{
    finding f = {.kind = FINDING_READ_AFTER_FREE,
                 .moment = MOMENT_READ,
                 .block = *b,
                 .changed = {.first = address,
                             .last = address + size - 1,
                             .changed = size,
                             .word = PATTERN_FREED},
                 .expected = PATTERN_FREED,
                 .current_stack = stack,
                 .now_ns = guard_now_ns(),
                 .evidence = EVIDENCE_BYTES};
    pthread_mutex_lock(&g->reporting);
    report_finding(g->report, &f);
    pthread_mutex_unlock(&g->reporting);
}
