#include "job_plan.h"

#include "gmd_grow.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct maker {
    job_plan *plan;
    const gmd_facts *facts;
    const gmd_history *history;
    const job_change *change;
    const gmd_lifetime **early; /* of before the recording, by the moment of their free */
    size_t early_count, next_early;
    bool *is_left_out;     /* by block */
    uint64_t *fixed_sizes; /* of parameters, gradients and optimizer state, ascending */
    size_t fixed_count;
    const char *name;
    gmd_error *error;
} maker;

static gmd_status no_memory(const maker *m)
{
    return gmd_fail(m->error, GMD_NO_MEMORY, "%s: no host memory for its requests", m->name);
}

static gmd_status add_step(maker *m, const job_step *step)
{
    job_steps *steps = &m->plan->steps;
    if (!GMD_GROW(&steps->items, &steps->capacity, steps->count + 1)) {
        return no_memory(m);
    }
    steps->items[steps->count++] = *step;
    return GMD_OK;
}

/* --- what is changed about the job ------------------------------------------------------------ */

static bool is_of_line(const maker *m, uint32_t origin)
{
    if (!m->change->file) {
        return false;
    }
    uint32_t frame = gmd_places_frame(&m->facts->places, origin);
    const gmd_place place = gmd_places_get(&m->facts->places, frame);
    return frame != GMD_NO_PLACE && place.line == m->change->line &&
           gmd_is_path_end(place.file, m->change->file);
}

static int compare_sizes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool is_of_model(uint8_t category)
{
    return category == GMD_PARAMETER || category == GMD_GRADIENT ||
           category == GMD_OPTIMIZER_STATE || category == GMD_WORKSPACE;
}

/* What is as large as a tensor of the model does not grow with the batch. */
static gmd_status list_fixed_sizes(maker *m)
{
    const gmd_recording *r = &m->facts->recording;
    m->fixed_sizes = malloc((r->lifetime_count + 1) * sizeof *m->fixed_sizes);
    if (!m->fixed_sizes) {
        return no_memory(m);
    }
    for (size_t i = 0; i < r->lifetime_count; i++) {
        if (is_of_model(m->facts->categories.of_lifetime[i])) {
            m->fixed_sizes[m->fixed_count++] = r->lifetimes[i].requested;
        }
    }
    qsort(m->fixed_sizes, m->fixed_count, sizeof *m->fixed_sizes, compare_sizes);
    return GMD_OK;
}

static bool varies_with_batch(const maker *m, uint32_t lifetime, uint64_t bytes)
{
    uint8_t category = lifetime == GMD_NO_LIFETIME ? (uint8_t)GMD_CATEGORY_UNKNOWN
                                                   : m->facts->categories.of_lifetime[lifetime];
    return !is_of_model(category) &&
           !bsearch(&bytes, m->fixed_sizes, m->fixed_count, sizeof bytes, compare_sizes);
}

static uint64_t scaled_bytes(maker *m, uint32_t lifetime, uint64_t bytes)
{
    if (m->change->scale == 1 || !varies_with_batch(m, lifetime, bytes)) {
        return bytes;
    }
    m->plan->scaled++;
    return (uint64_t)fmin(ceil((double)bytes * m->change->scale), 0x1p62);
}

/* --- blocks from before the recording --------------------------------------------------------- */

static int compare_frees(const void *a, const void *b)
{
    const gmd_lifetime *x = *(const gmd_lifetime *const *)a, *y = *(const gmd_lifetime *const *)b;
    if (x->freed != y->freed) {
        return x->freed < y->freed ? -1 : 1;
    }
    return (x > y) - (x < y);
}

static uint32_t stream_of(const maker *m, uint64_t handle)
{
    const gmd_trace *t = &m->history->trace;
    for (uint32_t i = 0; t->stream_handles && i < t->streams.count; i++) {
        if (t->stream_handles[i] == handle) {
            return i;
        }
    }
    return 0;
}

static gmd_status add_early(maker *m)
{
    const gmd_recording *r = &m->facts->recording;
    gmd_status status = GMD_OK;
    for (size_t i = 0; i < r->lifetime_count && status == GMD_OK; i++) {
        const gmd_lifetime *l = &r->lifetimes[i];
        if (l->born != GMD_BEFORE) {
            continue;
        }
        if (is_of_line(m, l->origin)) {
            m->plan->left_out++;
            continue;
        }
        m->early[m->early_count++] = l;
    }
    qsort(m->early, m->early_count, sizeof(const gmd_lifetime *), compare_frees);
    for (size_t i = 0; i < m->early_count && status == GMD_OK; i++) {
        const gmd_lifetime *l = m->early[i];
        uint64_t bytes = scaled_bytes(m, (uint32_t)(l - r->lifetimes), l->requested);
        status = add_step(m, &(job_step){.op = GMD_OP_ALLOC,
                                         .block = m->history->trace.blocks.count + (uint32_t)i,
                                         .stream = stream_of(m, l->stream),
                                         .bytes = bytes});
    }
    m->plan->early_blocks = m->early_count;
    return status;
}

/* The frees of such blocks in the events before `event`. */
static gmd_status free_early(maker *m, uint64_t event)
{
    gmd_status status = GMD_OK;
    for (; m->next_early < m->early_count && status == GMD_OK; m->next_early++) {
        uint32_t freed = m->early[m->next_early]->freed;
        if (freed == GMD_NEVER || freed > event) {
            break;
        }
        status = add_step(
            m, &(job_step){.op = GMD_OP_FREE,
                           .block = m->history->trace.blocks.count + (uint32_t)m->next_early});
    }
    return status;
}

/* --- requests -----------------------------------------------------------------------------------
 */

static gmd_status add_alloc(maker *m, size_t i)
{
    const gmd_request *request = &m->history->trace.requests[i];
    const gmd_recorded *recorded = &m->history->recorded[i];
    const gmd_recording *r = &m->facts->recording;
    if (is_of_line(m, r->snapshot->events[recorded->event].origin)) {
        m->is_left_out[request->block] = true;
        m->plan->left_out++;
        return GMD_OK;
    }
    m->plan->refused += recorded->is_oom;
    uint64_t bytes = scaled_bytes(m, r->lifetime_of_event[recorded->event], request->bytes);
    return add_step(m, &(job_step){.op = GMD_OP_ALLOC,
                                   .was_refused = recorded->is_oom,
                                   .block = request->block,
                                   .stream = request->stream,
                                   .bytes = bytes});
}

static gmd_status add_request(maker *m, size_t i)
{
    const gmd_request *r = &m->history->trace.requests[i];
    gmd_status status = free_early(m, m->history->recorded[i].event);
    if (status != GMD_OK || r->op == GMD_OP_ALLOC) {
        return status == GMD_OK ? add_alloc(m, i) : status;
    }
    if (gmd_op_has_block(r->op) && m->is_left_out[r->block]) {
        return GMD_OK;
    }
    return add_step(
        m, &(job_step){
               .op = r->op, .block = r->block, .stream = r->stream, .duration_ns = r->duration_ns});
}

static gmd_status add_all(maker *m)
{
    gmd_status status = add_early(m);
    for (size_t i = 0; i < m->history->trace.count && status == GMD_OK; i++) {
        status = add_request(m, i);
    }
    return status == GMD_OK ? free_early(m, UINT32_MAX) : status;
}

/* --- the whole ----------------------------------------------------------------------------------
 */

static gmd_status make_steps(maker *m)
{
    const gmd_history *h = m->history;
    size_t lifetimes = m->facts->recording.lifetime_count;
    m->early = malloc((lifetimes + 1) * sizeof(const gmd_lifetime *));
    m->is_left_out = calloc(h->trace.blocks.count + (size_t)1, sizeof *m->is_left_out);
    gmd_status status = m->early && m->is_left_out ? GMD_OK : no_memory(m);
    if (status == GMD_OK && m->change->scale != 1) {
        status = list_fixed_sizes(m);
    }
    if (status == GMD_OK) {
        status = add_all(m);
    }
    m->plan->steps.block_count = h->trace.blocks.count + (uint32_t)m->early_count;
    free(m->early);
    free(m->is_left_out);
    free(m->fixed_sizes);
    return status;
}

static bool has_private_pools(const gmd_snapshot *s)
{
    for (size_t i = 0; i < s->segment_count; i++) {
        if (s->segments[i].pool_id[0] || s->segments[i].pool_id[1]) {
            return true;
        }
    }
    return false;
}

/* What must be so for there to be anything to replay. */
static gmd_status check(const maker *m)
{
    if (!m->history->trace.count) {
        return gmd_fail(m->error, GMD_BAD_INPUT,
                        "%s: holds no history (torch.cuda.memory._record_memory_history was off, "
                        "or kept the state only): there is nothing to replay",
                        m->name);
    }
    if (m->change->file && !m->plan->left_out) {
        return gmd_fail(m->error, GMD_BAD_INPUT,
                        "%s: no request is of %s:%" PRIu32
                        " (gmd diagnose --rows 1000 lists the lines that hold memory)",
                        m->name, m->change->file, m->change->line);
    }
    return GMD_OK;
}

gmd_status job_plan_make(job_plan *plan, const gmd_facts *facts, const gmd_truth *truth,
                         const job_change *change, const char *name, gmd_error *error)
{
    *plan = (job_plan){0};
    gmd_history_hints hints = {.limit_bytes =
                                   truth->cap_bytes ? truth->cap_bytes : truth->ops_cap_bytes,
                               .recorded_retries = GMD_RETRIES_UNKNOWN,
                               .waits_again = true,
                               .frees_refused = true,
                               .ops = truth->ops,
                               .op_count = truth->op_count};
    gmd_truth_stat(truth, "num_alloc_retries", &hints.recorded_retries);
    gmd_history history;
    gmd_status status = gmd_history_build(&history, facts->snapshot, &hints, name, error);
    if (status == GMD_BAD_INPUT) { /* it may be the frees that waited that have no explanation */
        hints.waits_again = false;
        status = gmd_history_build(&history, facts->snapshot, &hints, name, error);
    }
    if (status != GMD_OK) {
        return status;
    }
    maker m = {.plan = plan,
               .facts = facts,
               .history = &history,
               .change = change,
               .name = name,
               .error = error};
    plan->steps.stream_count = history.trace.streams.count;
    plan->limit_bytes = history.limit_bytes;
    plan->is_limit_inferred = history.limit_inferred;
    plan->has_private_pools = has_private_pools(facts->snapshot);
    status = make_steps(&m);
    status = status == GMD_OK ? check(&m) : status;
    status =
        status == GMD_OK ? gmd_recorded_places_make(&plan->places, &history, name, error) : status;
    status = status == GMD_OK ? lower_bound_find(&plan->bounds, &plan->steps, name, error) : status;
    gmd_history_free(&history);
    if (status != GMD_OK) {
        job_plan_free(plan);
    }
    return status;
}

void job_plan_free(job_plan *plan)
{
    gmd_recorded_places_free(&plan->places);
    free(plan->steps.items);
    *plan = (job_plan){0};
}
