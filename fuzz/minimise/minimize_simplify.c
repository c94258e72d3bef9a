/* minimize_simplify.c - what is left after dropping, made easier to read. */
#include "minimizer.h"

#include "gmd_pool_state.h"
#include "gmd_size.h"
#include "gmd_text.h"

#include <stdlib.h>
#include <string.h>

/* --- the header -------------------------------------------------------------------------- */

static bool try_header(minimizer *m, const gmd_conditions *header)
{
    minimizer_begin(m);
    return minimizer_try(m, m->best->count, header);
}

/* Without the `index`-th of the settings that commas separate; false: there are not so many. */
static bool cut_setting(const char *conf, size_t index, char *out, size_t size)
{
    const char *start = conf;
    for (size_t i = 0; i < index; i++) {
        start = strchr(start, ',');
        if (!start) {
            return false;
        }
        start++;
    }
    const char *end = strchr(start, ',');
    size_t before = (size_t)(start - conf);
    const char *after = end ? end + 1 : "";
    before -= !end && before; /* the comma before the last one */
    if (before + strlen(after) >= size) {
        return false;
    }
    memcpy(out, conf, before);
    memcpy(out + before, after, strlen(after) + 1);
    return true;
}

static bool simplify_conf(minimizer *m)
{
    char text[4200];
    bool has_changed = false;
    for (size_t i = 0;
         m->best->conditions.conf && cut_setting(m->best->conditions.conf, i, text, sizeof text);) {
        gmd_conditions header = m->best->conditions;
        header.conf = text[0] ? text : NULL;
        if (try_header(m, &header)) {
            has_changed = true;
        } else {
            i++;
        }
        if (m->is_over) {
            break;
        }
    }
    return has_changed;
}

static bool simplify_schedule(minimizer *m)
{
    static const gmd_schedule_kind simpler[] = {GMD_SCHEDULE_UNSTATED, GMD_SCHEDULE_LAZY,
                                                GMD_SCHEDULE_EAGER};
    bool is_stated = m->best->conditions.schedule.kind != GMD_SCHEDULE_UNSTATED;
    for (size_t i = 0; is_stated && i < sizeof simpler / sizeof *simpler; i++) {
        gmd_conditions header = m->best->conditions;
        header.schedule = (gmd_schedule){.kind = simpler[i]};
        if (m->best->conditions.schedule.kind == simpler[i]) {
            return false;
        }
        if (try_header(m, &header)) {
            return true;
        }
    }
    return false;
}

static bool simplify_handles(minimizer *m)
{
    gmd_conditions header = m->best->conditions;
    header.reuses_handles = false;
    return m->best->conditions.reuses_handles && try_header(m, &header);
}

static bool simplify_clock(minimizer *m)
{
    gmd_conditions header = m->best->conditions;
    header.moves_clock = false;
    return m->best->conditions.moves_clock && try_header(m, &header);
}

#define SEED_MAX 64 /* interleavings that are tried for a small seed */

/* What `spare` holds, under interleavings by small seeds. */
static bool try_seeds(minimizer *m)
{
    gmd_request *wanted = malloc((m->best->count + 1) * sizeof *wanted);
    bool has_changed = false;
    for (uint64_t seed = 0; wanted && seed < SEED_MAX && !has_changed && !m->is_over; seed++) {
        gmd_conditions header = m->best->conditions;
        header.interleave = (gmd_schedule){.kind = GMD_SCHEDULE_SEEDED, .seed = seed};
        if (seed == 0) {
            memcpy(wanted, m->spare, m->best->count * sizeof *wanted);
        }
        memcpy(m->spare, wanted, m->best->count * sizeof *wanted);
        has_changed = minimizer_try(m, m->best->count, &header);
    }
    free(wanted);
    return has_changed;
}

/* Threads in the order in which they are named, as a reader of the text numbers them. */
static bool order_threads(minimizer *m)
{
    uint8_t as[GMD_MAX_THREADS] = {0}, next = 1;
    bool is_in_order = true;
    minimizer_begin(m);
    for (size_t i = 0; i < m->best->count; i++) {
        uint8_t *thread = &m->spare[i].thread;
        if (*thread && !as[*thread]) {
            as[*thread] = next++;
        }
        is_in_order = is_in_order && as[*thread] == *thread;
        *thread = as[*thread];
    }
    return !is_in_order && (minimizer_try(m, m->best->count, NULL) ||
                            (m->best->conditions.interleave.kind && try_seeds(m)));
}

/* One or two switches say which matter: the run names where the threads stood at each. Each try
 * is one of many seeds (minimizer_try). */
static bool try_few_switches(minimizer *m)
{
    static const uint32_t steps[] = {32, 128, 512};
    bool has_changed = false;
    for (uint32_t depth = 1; depth <= 2 && !has_changed; depth++) {
        for (size_t i = 0; i < sizeof steps / sizeof *steps && !has_changed && !m->is_over; i++) {
            gmd_conditions header = m->best->conditions;
            header.interleave =
                (gmd_schedule){.kind = GMD_SCHEDULE_BOUNDED, .depth = depth, .steps = steps[i]};
            has_changed = try_header(m, &header);
        }
    }
    return has_changed;
}

static bool has_few_switches(const gmd_schedule *interleave)
{
    return interleave->kind == GMD_SCHEDULE_BOUNDED && interleave->depth <= 2;
}

static bool simplify_interleave(minimizer *m)
{
    const gmd_schedule *now = &m->best->conditions.interleave;
    if (now->kind == GMD_SCHEDULE_UNSTATED) {
        return false;
    }
    gmd_conditions header = m->best->conditions;
    header.interleave = (gmd_schedule){.kind = GMD_SCHEDULE_UNSTATED};
    if (try_header(m, &header)) {
        return true;
    }
    if (has_few_switches(now)) {
        return false;
    }
    if (try_few_switches(m)) {
        return true;
    }
    bool is_simple = now->kind == GMD_SCHEDULE_SEEDED && now->seed < SEED_MAX;
    minimizer_begin(m);
    return !is_simple && try_seeds(m);
}

static bool simplify_devices(minimizer *m)
{
    uint32_t count = 1;
    for (size_t i = 0; i < m->best->count; i++) {
        uint32_t device = m->best->requests[i].device;
        count = device >= count ? device + 1 : count;
    }
    if (count >= m->best->conditions.device_count) {
        return false;
    }
    gmd_conditions header = m->best->conditions;
    header.device_count = count;
    return try_header(m, &header);
}

static bool simplify_capacity(minimizer *m)
{
    static const uint64_t sizes[] = {16, 20, 32, 40, 64, 100, 128, 256, 512, 1024};
    uint64_t now = m->best->conditions.capacity_bytes;
    char text[24], other[24];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && !m->is_over; i++) {
        uint64_t size = sizes[i] * GMD_MIB;
        gmd_conditions header = m->best->conditions;
        header.capacity_bytes = size;
        size_t length = strlen(gmd_format_exact_size(size, text));
        size_t before = strlen(gmd_format_exact_size(now, other));
        bool is_simpler = length < before || (length == before && size < now);
        if (now && is_simpler && try_header(m, &header)) {
            return true;
        }
    }
    return false;
}

/* --- streams, threads, devices ----------------------------------------------------------- */

/* Stream `from` becomes `to`, and `to` becomes `from` where `swaps`. */
static bool try_stream(minimizer *m, uint32_t from, uint32_t to, bool swaps)
{
    bool has_any = false;
    minimizer_begin(m);
    for (size_t i = 0; i < m->best->count; i++) {
        gmd_request *r = &m->spare[i];
        uint32_t *streams[2];
        size_t count = gmd_request_streams(r, streams);
        for (size_t k = 0; k < count; k++) {
            if (*streams[k] == from) {
                *streams[k] = to;
                has_any = true;
            } else if (*streams[k] == to && swaps) {
                *streams[k] = from;
            }
        }
        if (gmd_op_has(r->op, GMD_FIELD_OWN_STREAM) && r->stream == 0) {
            return false;
        }
    }
    return has_any && minimizer_try(m, m->best->count, NULL);
}

#define STREAMS_TO_JOIN 4 /* where there are many, each is tried as one of so many */

/* Fewer, and the lowest: s1 before s2, and s0, which waits for all others, last. */
static bool merge_streams(minimizer *m)
{
    bool has_changed = false;
    uint32_t count = m->best->streams.count;
    for (uint32_t from = 0; from < count && !m->is_over; from++) {
        for (uint32_t to = 1; to < count && !m->is_over; to++) {
            bool is_tried = count <= 4 * STREAMS_TO_JOIN || to <= STREAMS_TO_JOIN;
            if (is_tried && (to < from || from == 0)) {
                has_changed = try_stream(m, from, to, false) || has_changed;
            }
        }
    }
    return has_changed;
}

static void find_streams(const gmd_trace *t, bool used[GMD_MAX_STREAMS])
{
    memset(used, 0, GMD_MAX_STREAMS * sizeof *used);
    for (size_t i = 0; i < t->count; i++) {
        uint32_t *streams[2];
        size_t count = gmd_request_streams(&t->requests[i], streams);
        for (size_t k = 0; k < count; k++) {
            used[*streams[k]] = true;
        }
    }
}

/* s1, s2, s3 without gaps. */
static bool close_gaps(minimizer *m)
{
    bool used[GMD_MAX_STREAMS], has_changed = false;
    find_streams(m->best, used);
    uint32_t next = 1;
    for (uint32_t i = 1; i < m->best->streams.count && !m->is_over; i++) {
        if (used[i] && i != next) {
            has_changed = try_stream(m, i, next, false) || has_changed;
        }
        next += used[i];
    }
    return has_changed;
}

/* The first stream that is named is s1. */
static bool put_in_order(minimizer *m)
{
    bool seen[GMD_MAX_STREAMS] = {true}, has_changed = false;
    uint32_t next = 1;
    for (size_t i = 0; i < m->best->count && !m->is_over; i++) {
        gmd_request r = m->best->requests[i];
        uint32_t *streams[2];
        size_t count = gmd_request_streams(&r, streams);
        for (size_t k = 0; k < count; k++) {
            uint32_t s = *streams[k];
            if (!seen[s] && s != next) {
                if (!try_stream(m, s, next, true)) {
                    return has_changed;
                }
                has_changed = true;
                s = next;
            }
            next += !seen[s];
            seen[s] = true;
        }
    }
    return has_changed;
}

static bool merge_threads(minimizer *m)
{
    bool has_changed = false;
    for (uint32_t from = m->best->threads.count; from-- > 1 && !m->is_over;) {
        bool has_any = false;
        minimizer_begin(m);
        for (size_t i = 0; i < m->best->count; i++) {
            has_any = has_any || m->spare[i].thread == from;
            m->spare[i].thread = m->spare[i].thread == from ? 0 : m->spare[i].thread;
        }
        if (has_any) {
            has_changed = minimizer_try(m, m->best->count, NULL) || has_changed;
        }
    }
    return has_changed;
}

static bool merge_devices(minimizer *m)
{
    bool has_changed = false;
    for (uint32_t from = GMD_MAX_DEVICES; from-- > 1 && !m->is_over;) {
        for (uint32_t to = 0; to < from; to++) {
            bool has_any = false;
            minimizer_begin(m);
            for (size_t i = 0; i < m->best->count; i++) {
                has_any = has_any || m->spare[i].device == from;
                m->spare[i].device = m->spare[i].device == from ? (uint8_t)to : m->spare[i].device;
            }
            if (has_any && minimizer_try(m, m->best->count, NULL)) {
                has_changed = true;
                break;
            }
        }
    }
    return has_changed;
}

/* --- numbers ----------------------------------------------------------------------------- */

static bool is_simpler_size(uint64_t a, uint64_t b)
{
    char text[24], other[24];
    size_t length = strlen(gmd_format_exact_size(a, text));
    size_t before = strlen(gmd_format_exact_size(b, other));
    return length < before || (length == before && a < b);
}

/* Allocations of `from` bytes, or only request `single` (SIZE_MAX: all), become `to` bytes. */
static bool try_size(minimizer *m, uint64_t from, uint64_t to, size_t single)
{
    minimizer_begin(m);
    for (size_t i = 0; i < m->best->count; i++) {
        gmd_request *r = &m->spare[i];
        if (gmd_op_has(r->op, GMD_FIELD_BYTES) && r->bytes == from &&
            (single == SIZE_MAX || i == single)) {
            r->bytes = to;
        }
    }
    return minimizer_try(m, m->best->count, NULL);
}

static bool simplify_size(minimizer *m, size_t index, bool is_alone)
{
    static const uint64_t grains[] = {32 * GMD_MIB, 10 * GMD_MIB, 2 * GMD_MIB, GMD_MIB,
                                      GMD_MIB / 16, 4096,         512};
    uint64_t from = m->best->requests[index].bytes;
    uint64_t candidates[2 * sizeof grains / sizeof *grains + 6] = {
        1, 512, GMD_MIB, 2 * GMD_MIB, 10 * GMD_MIB, 20 * GMD_MIB};
    size_t count = 6;
    for (size_t i = 0; i < sizeof grains / sizeof *grains; i++) {
        candidates[count++] = from / grains[i] * grains[i];
        candidates[count++] = from / grains[i] * grains[i] + grains[i];
    }
    for (size_t i = 0; i < count && !m->is_over; i++) {
        if (candidates[i] && is_simpler_size(candidates[i], from) &&
            try_size(m, from, candidates[i], is_alone ? index : SIZE_MAX)) {
            return true;
        }
    }
    return false;
}

/* Room for a mark of each request; NULL: no host memory, which ends the minimising. */
static bool *mark_counted(minimizer *m)
{
    bool *is_counted = malloc(m->best->count + 1);
    if (is_counted) {
        minimizer_mark_counted(m, is_counted);
    } else {
        m->is_over = true;
        m->status = gmd_fail(m->error, GMD_NO_MEMORY, "no host memory for a trace");
    }
    return is_counted;
}

/* In long runs only all of the same size at once. */
static bool simplify_sizes(minimizer *m)
{
    bool has_changed = false;
    bool *is_counted = mark_counted(m);
    for (int is_alone = 0; is_counted && is_alone < 2; is_alone++) {
        uint64_t before = 0;
        for (size_t i = 0; i < m->best->count && !m->is_over; i++) {
            const gmd_request *r = &m->best->requests[i];
            bool is_next = is_counted[i] && (is_alone || r->bytes == before);
            if (gmd_op_has(r->op, GMD_FIELD_BYTES) && !is_next) {
                has_changed = simplify_size(m, i, is_alone) || has_changed;
                before = m->best->requests[i].bytes;
            }
        }
    }
    free(is_counted);
    return has_changed;
}

/* One request becomes `changed`. */
static bool try_request(minimizer *m, size_t index, const gmd_request *changed)
{
    minimizer_begin(m);
    m->spare[index] = *changed;
    return minimizer_try(m, m->best->count, NULL);
}

static bool simplify_duration(minimizer *m, size_t index)
{
    static const uint64_t durations[] = {10000, 1000000, 1000000000};
    gmd_request r = m->best->requests[index];
    for (size_t i = 0; i < 3 && r.duration_ns != durations[i]; i++) {
        gmd_request changed = r;
        changed.duration_ns = durations[i];
        if (try_request(m, index, &changed)) {
            return true;
        }
    }
    return false;
}

static bool simplify_count(minimizer *m, size_t index)
{
    gmd_request r = m->best->requests[index];
    uint32_t counts[] = {1, r.count / 2, r.count - 1};
    for (size_t i = 0; i < 3; i++) {
        gmd_request changed = r;
        changed.count = counts[i];
        if (counts[i] && counts[i] < r.count && try_request(m, index, &changed)) {
            return true;
        }
    }
    return false;
}

static bool simplify_every(minimizer *m, size_t index)
{
    gmd_request once = m->best->requests[index];
    bool is_every = once.every_later;
    once.every_later = 0;
    return is_every && try_request(m, index, &once);
}

static bool simplify_pool_options(minimizer *m, size_t index)
{
    gmd_request r = m->best->requests[index];
    for (int i = 0; i < GMD_POOL_OPTION_COUNT; i++) {
        gmd_request changed = r;
        changed.pool_options &= (uint8_t) ~(1U << i);
        if (changed.pool_options != r.pool_options && try_request(m, index, &changed)) {
            return true;
        }
    }
    return false;
}

static bool simplify_fraction(minimizer *m, size_t index)
{
    static const double fractions[] = {0.5, 0.25, 0.75, 0.1};
    gmd_request r = m->best->requests[index];
    for (size_t i = 0; i < 4 && r.fraction != fractions[i]; i++) {
        gmd_request changed = r;
        changed.fraction = fractions[i];
        if (try_request(m, index, &changed)) {
            return true;
        }
    }
    return false;
}

static bool simplify_expectation(minimizer *m, size_t index)
{
    gmd_request changed = m->best->requests[index];
    bool has_one = changed.expect != GMD_EXPECT_ANY;
    changed.expect = GMD_EXPECT_ANY;
    return has_one && try_request(m, index, &changed);
}

/* A pool for all streams is simpler than one for some. */
static bool simplify_begin(minimizer *m, size_t index)
{
    gmd_request changed = m->best->requests[index];
    bool is_for_one = changed.stream != GMD_ALL_STREAMS;
    changed.stream = GMD_ALL_STREAMS;
    return is_for_one && try_request(m, index, &changed);
}

/* A pool by itself is simpler than one that a stream is captured into: its launches go. */
static bool simplify_capture(minimizer *m, size_t index)
{
    gmd_pool_state pools;
    memset(&pools, 0, sizeof pools);
    size_t kept = 0;
    bool is_open = false;
    for (size_t i = 0; i < m->best->count; i++) {
        gmd_request r = m->best->requests[i];
        if (i == index) {
            r.op = GMD_OP_BEGIN_POOL;
            is_open = true;
        } else if (is_open && r.op == GMD_OP_END_CAPTURE) {
            r.op = GMD_OP_END_POOL;
            is_open = false;
        }
        if (!gmd_op_is_on_pool(r.op) || !gmd_pool_state_note(&pools, &r)) {
            m->spare[kept++] = r;
        }
    }
    return minimizer_try(m, kept, NULL);
}

static bool simplify_field(minimizer *m, size_t index, gmd_field field)
{
    switch (field) {
    case GMD_FIELD_EXPECT:
        return simplify_expectation(m, index);
    case GMD_FIELD_DURATION:
    case GMD_FIELD_WORK_DURATION:
        return simplify_duration(m, index);
    case GMD_FIELD_COUNT:
        return simplify_count(m, index);
    case GMD_FIELD_EVERY:
        return simplify_every(m, index);
    case GMD_FIELD_FRACTION:
        return simplify_fraction(m, index);
    case GMD_FIELD_POOL_OPTIONS:
        return simplify_pool_options(m, index);
    default:
        return false;
    }
}

static bool simplify_pool_begin(minimizer *m, size_t index)
{
    uint8_t op = m->best->requests[index].op;
    if (gmd_request_rows[op].pool_step != GMD_POOL_STEP_BEGIN) {
        return false;
    }
    return gmd_op_is_of_capture(op) ? simplify_capture(m, index) : simplify_begin(m, index);
}

static bool simplify_request(minimizer *m, size_t index)
{
    const gmd_request_row *row = &gmd_request_rows[m->best->requests[index].op];
    for (size_t i = 0; i < GMD_REQUEST_FIELDS; i++) {
        if (simplify_field(m, index, (gmd_field)row->fields[i])) {
            return true; /* there may be fewer requests now */
        }
    }
    return simplify_pool_begin(m, index);
}

static bool simplify_requests(minimizer *m)
{
    bool has_changed = false;
    bool *is_counted = mark_counted(m);
    for (size_t i = 0; is_counted && i < m->best->count && !m->is_over; i++) {
        has_changed = (!is_counted[i] && simplify_request(m, i)) || has_changed;
    }
    free(is_counted);
    return has_changed;
}

bool minimizer_simplify(minimizer *m)
{
    static bool (*const steps[])(minimizer *) = {
        simplify_conf,     simplify_schedule, simplify_interleave, merge_threads,    order_threads,
        merge_devices,     simplify_devices,  merge_streams,       close_gaps,       put_in_order,
        simplify_requests, simplify_sizes,    simplify_capacity,   simplify_handles, simplify_clock,
    };
    bool has_changed = false;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && !m->is_over; i++) {
        has_changed = steps[i](m) || has_changed;
    }
    return has_changed;
}
