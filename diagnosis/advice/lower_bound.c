#include "lower_bound.h"

#include "gmd_min.h"
#include "gmd_size.h"

#include <stdlib.h>

#define BLOCK_BYTES         UINT64_C(512)
#define SMALL_REQUEST_BYTES (1 * GMD_MIB)
#define PAGE_BYTES          (2 * GMD_MIB)

typedef struct placed {
    uint64_t bytes; /* 0: not live */
    uint32_t group; /* of a stream, small or large */
} placed;

typedef struct account {
    placed *blocks;
    uint64_t *groups; /* live bytes of each */
    uint64_t live, paged;
} account;

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static void change_group(account *a, uint32_t group, uint64_t bytes)
{
    a->paged -= round_up(a->groups[group], PAGE_BYTES);
    a->groups[group] = bytes;
    a->paged += round_up(bytes, PAGE_BYTES);
}

static void take(account *a, const job_step *step)
{
    uint64_t bytes = round_up(gmd_min(step->bytes, UINT64_C(1) << 62), BLOCK_BYTES);
    placed *b = &a->blocks[step->block];
    *b = (placed){.bytes = bytes, .group = step->stream * 2 + (step->bytes > SMALL_REQUEST_BYTES)};
    a->live += bytes;
    change_group(a, b->group, a->groups[b->group] + bytes);
}

static void give(account *a, uint32_t block)
{
    placed *b = &a->blocks[block];
    a->live -= b->bytes;
    change_group(a, b->group, a->groups[b->group] - b->bytes);
    b->bytes = 0;
}

static void go_through(lower_bounds *bounds, const job_steps *steps, account *a)
{
    for (size_t i = 0; i < steps->count; i++) {
        const job_step *step = &steps->items[i];
        if (step->op == GMD_OP_ALLOC) {
            take(a, step);
        } else if (step->op == GMD_OP_FREE) {
            give(a, step->block);
        }
        bounds->live = gmd_max(bounds->live, a->live);
        bounds->reserved = gmd_max(bounds->reserved, a->paged);
    }
}

gmd_status lower_bound_find(lower_bounds *bounds, const job_steps *steps, const char *name,
                            gmd_error *error)
{
    account a = {.blocks = calloc(steps->block_count + (size_t)1, sizeof *a.blocks),
                 .groups = calloc(steps->stream_count * (size_t)2, sizeof *a.groups)};
    bool has_memory = a.blocks && a.groups;
    *bounds = (lower_bounds){0};
    if (has_memory) {
        go_through(bounds, steps, &a);
    }
    free(a.blocks);
    free(a.groups);
    return has_memory ? GMD_OK : gmd_fail(error, GMD_NO_MEMORY, "%s: no host memory", name);
}
