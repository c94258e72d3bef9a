/* input_decode.c - from bytes to a trace. It is on the path of every input that an engine tries:
 * one pass, and no memory is asked for once the trace's arrays are large enough. */
#include "gmd_assert.h"
#include "gmd_fault_error.h"
#include "gmd_faults.h"
#include "gmd_grow.h"
#include "gmd_input_format.h"
#include "gmd_input_pools.h"
#include "gmd_min.h"
#include "gmd_names.h"
#include "gmd_text.h"
#include "gmd_trace_validity.h"
#include "input_live.h"

#include <stdlib.h>
#include <string.h>

enum { FUNCTION_BYTES = 64, FUNCTIONS_KNOWN = 512, NOT_LISTED = 255 };

/* What the wide records before a record have said. */
typedef struct wide_fields {
    bool has_value, has_stream, has_place, has_target;
    uint32_t value, stream, target;
    uint8_t device, thread;
} wide_fields;

typedef struct decoder {
    gmd_trace *trace;
    gmd_error *error;
    wide_fields wide;
    uint32_t turn; /* of the repeat that is read */
    uint8_t turn_steps;
    size_t repeated; /* records, in all turns so far */
    bool has_begun;  /* a request has been read: the header is complete */
    uint32_t stream_count, thread_count, conf_code, fault_count, listed, threads_used;
    uint64_t limit[GMD_MAX_DEVICES], live_bytes[GMD_MAX_DEVICES];
    uint8_t function_index[FUNCTIONS_KNOWN]; /* in the trace's list */
    uint8_t thread_index[GMD_MAX_THREADS];
    size_t schedule_room, interleave_room; /* for choices */
    size_t conf_length;
    char conf[GMD_INPUT_CONF_MAX + 1];
    input_live live;
    gmd_input_pools pools;
} decoder;

/* --- room -------------------------------------------------------------------------------- */

static gmd_status no_memory(gmd_error *error)
{
    return gmd_fail(error, GMD_NO_MEMORY, "no host memory for an input");
}

static gmd_status reserve_requests(gmd_trace *trace, size_t count, gmd_error *error)
{
    return GMD_GROW(&trace->requests, &trace->capacity, count) ? GMD_OK : no_memory(error);
}

/* A list of `count` entries, all without a name but those that it has already. */
static gmd_status set_nameless(gmd_names *names, uint32_t count, gmd_error *error)
{
    if (!GMD_GROW(&names->items, &names->capacity, count)) {
        return no_memory(error);
    }
    for (uint32_t i = names->count; i < count; i++) {
        names->items[i] = NULL;
    }
    names->count = count;
    return GMD_OK;
}

/* --- header ------------------------------------------------------------------------------ */

static void read_header(decoder *d, const uint8_t *h)
{
    gmd_trace *t = d->trace;
    uint8_t devices = h[GMD_INPUT_AT_DEVICES], streams = h[GMD_INPUT_AT_STREAMS],
            threads = h[GMD_INPUT_AT_THREADS];
    static const gmd_schedule_kind interleavings[] = {GMD_SCHEDULE_UNSTATED, GMD_SCHEDULE_SEEDED,
                                                      GMD_SCHEDULE_EXPLICIT};
    t->conditions.device_count = devices <= GMD_MAX_DEVICES ? devices : 1 + devices % 2;
    t->conditions.capacity_bytes =
        gmd_input_capacities[h[GMD_INPUT_AT_CAPACITY] % gmd_input_capacity_count];
    t->conditions.schedule.kind =
        (gmd_schedule_kind)(h[GMD_INPUT_AT_SCHEDULE] % (GMD_SCHEDULE_EXPLICIT + 1));
    t->conditions.schedule.seed = gmd_input_get32(h + GMD_INPUT_AT_SCHEDULE_SEED);
    t->conditions.schedule.choice_count = 0;
    uint8_t interleaving = h[GMD_INPUT_AT_INTERLEAVE];
    t->conditions.reuses_handles = (interleaving & GMD_INPUT_REUSES_HANDLES) != 0;
    t->conditions.moves_clock = (interleaving & GMD_INPUT_MOVES_CLOCK) != 0;
    interleaving &= (uint8_t) ~(GMD_INPUT_REUSES_HANDLES | GMD_INPUT_MOVES_CLOCK);
    t->conditions.interleave.kind = interleavings[interleaving % 3];
    t->conditions.interleave.seed = gmd_input_get32(h + GMD_INPUT_AT_INTERLEAVE_SEED);
    t->conditions.interleave.choice_count = 0;
    d->conf_code = h[GMD_INPUT_AT_CONF] % gmd_input_conf_count;
    d->stream_count = !streams                              ? GMD_INPUT_STREAMS_USUAL
                      : streams <= GMD_INPUT_STREAMS_NARROW ? streams
                                                            : 1 + streams % 8U;
    uint8_t pools = h[GMD_INPUT_AT_POOLS];
    gmd_input_pools_open(&d->pools, pools <= GMD_MAX_POOLS ? pools : 1 + pools % 4U);
    d->thread_count = threads && threads <= GMD_INPUT_THREADS_NARROW ? threads : 1;
}

static gmd_status add_choice(gmd_schedule *schedule, size_t *capacity, uint8_t choice,
                             gmd_error *error)
{
    if (!GMD_GROW(&schedule->choices, capacity, schedule->choice_count + 1)) {
        return no_memory(error);
    }
    schedule->choices[schedule->choice_count++] = choice;
    return GMD_OK;
}

static gmd_status read_text(decoder *d, const uint8_t *record, gmd_input_header_part part)
{
    gmd_conditions *conditions = &d->trace->conditions;
    uint32_t count = (uint32_t)(record[1] >> 4) % (GMD_INPUT_TEXT_BYTES + 1);
    gmd_status status = GMD_OK;
    for (uint32_t i = 0; i < count && status == GMD_OK; i++) {
        uint8_t byte = record[2 + i];
        if (part == GMD_PART_CONF) {
            if (d->conf_length < GMD_INPUT_CONF_MAX) {
                d->conf[d->conf_length++] = (char)byte;
            }
        } else if (part == GMD_PART_SCHEDULE_CHOICES) {
            status = add_choice(&conditions->schedule, &d->schedule_room, byte, d->error);
        } else {
            status = add_choice(&conditions->interleave, &d->interleave_room, byte, d->error);
        }
    }
    return status;
}

static uint64_t with_number(uint64_t before, const uint8_t *record)
{
    uint64_t number = gmd_input_get48(record + 2);
    return before | (record[1] >> 4 ? number << 48 : number);
}

static uint32_t count_of(const uint8_t *record, uint32_t most)
{
    uint64_t count = gmd_input_get48(record + 2) % most;
    return count ? (uint32_t)count : most;
}

static gmd_status read_header_record(decoder *d, const uint8_t *record)
{
    gmd_input_header_part part = (gmd_input_header_part)(record[1] & 15);
    gmd_trace *t = d->trace;
    switch (part) {
    case GMD_PART_CAPACITY:
        t->conditions.capacity_bytes = with_number(t->conditions.capacity_bytes, record);
        return GMD_OK;
    case GMD_PART_SCHEDULE_SEED:
        t->conditions.schedule.seed = with_number(t->conditions.schedule.seed, record);
        return GMD_OK;
    case GMD_PART_INTERLEAVE_SEED:
        t->conditions.interleave.seed = with_number(t->conditions.interleave.seed, record);
        return GMD_OK;
    case GMD_PART_STREAMS:
        d->stream_count = count_of(record, GMD_MAX_STREAMS);
        return GMD_OK;
    case GMD_PART_THREADS:
        d->thread_count = count_of(record, GMD_MAX_THREADS);
        return GMD_OK;
    case GMD_PART_CONF:
    case GMD_PART_SCHEDULE_CHOICES:
    case GMD_PART_INTERLEAVE_CHOICES:
        return read_text(d, record, part);
    default:
        return GMD_OK;
    }
}

/* Choices only with the kind that has them, and that kind never without. */
static gmd_status settle_schedule(gmd_schedule *schedule, size_t *capacity, gmd_error *error)
{
    if (schedule->kind != GMD_SCHEDULE_SEEDED) {
        schedule->seed = 0;
    }
    if (schedule->kind != GMD_SCHEDULE_EXPLICIT) {
        schedule->choice_count = 0;
        return GMD_OK;
    }
    return schedule->choice_count ? GMD_OK : add_choice(schedule, capacity, 0, error);
}

/* Kept as it is where it says the same already: settings seldom change from input to input. */
static gmd_status settle_conf(decoder *d)
{
    const char *conf = gmd_input_confs[d->conf_code];
    if (d->conf_length) {
        conf = gmd_conf_is_valid(d->conf, d->conf_length) ? d->conf : NULL;
        d->conf[d->conf_length] = '\0';
    }
    gmd_conditions *c = &d->trace->conditions;
    bool is_same = c->conf && conf ? strcmp(c->conf, conf) == 0 : c->conf == conf;
    return is_same ? GMD_OK : gmd_conditions_set_conf(c, conf, d->error);
}

static gmd_status settle_header(decoder *d)
{
    gmd_trace *t = d->trace;
    d->has_begun = true;
    for (uint32_t i = 0; i < GMD_MAX_DEVICES; i++) {
        d->limit[i] =
            t->conditions.capacity_bytes ? t->conditions.capacity_bytes : GMD_INPUT_CAPACITY;
    }
    gmd_status status = settle_schedule(&t->conditions.schedule, &d->schedule_room, d->error);
    if (status == GMD_OK) {
        status = settle_schedule(&t->conditions.interleave, &d->interleave_room, d->error);
    }
    if (status == GMD_OK) {
        status = settle_conf(d);
    }
    return status == GMD_OK ? set_nameless(&t->streams, d->stream_count, d->error) : status;
}

/* --- sizes ------------------------------------------------------------------------------- */

static uint64_t stepped(uint64_t base, uint32_t code)
{
    int64_t step = gmd_input_steps[code >> 3 & 15];
    return step < 0 && base < (uint64_t)-step ? base : base + (uint64_t)step;
}

static uint64_t usual_size(uint32_t pick)
{
    return gmd_input_usual_sizes[pick % gmd_input_usual_size_count];
}

static uint64_t left_of(const decoder *d, uint8_t device)
{
    uint64_t limit = d->limit[device], used = d->live_bytes[device];
    return used < limit ? limit - used : limit;
}

static uint64_t alike(const decoder *d, uint32_t pick)
{
    if (!d->live.count) {
        return usual_size(pick);
    }
    uint32_t block = input_live_at(&d->live, pick % d->live.count);
    return d->trace->requests[d->live.request[block]].bytes;
}

static uint64_t boundary_size(const decoder *d, uint32_t code, uint8_t device)
{
    uint32_t pick = code >> 7 & 0xffffff;
    uint64_t limit = d->limit[device];
    switch ((gmd_input_boundary)(code & 7)) {
    case GMD_BOUNDARY_MIB:
        return stepped((1 + pick % 64) * GMD_MIB, code);
    case GMD_BOUNDARY_PART:
        return stepped(limit / (1 + pick % 16), code);
    case GMD_BOUNDARY_SHARE:
        return stepped(limit / 64 * (1 + pick % 64), code);
    case GMD_BOUNDARY_LEFT:
        return stepped(left_of(d, device), code);
    case GMD_BOUNDARY_ALIKE:
        return stepped(alike(d, pick), code);
    case GMD_BOUNDARY_ROUNDS:
        return stepped((uint64_t)512 * (1 + pick % 64), code);
    case GMD_BOUNDARY_HUGE:
        return gmd_input_huge_sizes[pick % gmd_input_huge_size_count];
    default:
        return stepped(usual_size(pick), code);
    }
}

static uint64_t size_of(const decoder *d, uint32_t value, uint8_t device)
{
    if (d->wide.has_value) {
        return (uint64_t)d->wide.value << 32 | value;
    }
    return value & GMD_INPUT_TOP_BIT ? boundary_size(d, value, device) : value;
}

static uint64_t duration_of(const decoder *d, uint32_t value)
{
    if (d->wide.has_value) {
        return (uint64_t)d->wide.value << 32 | value;
    }
    return value & GMD_INPUT_TOP_BIT ? (uint64_t)(value & ~GMD_INPUT_TOP_BIT) * 1000 : value;
}

/* --- requests ---------------------------------------------------------------------------- */

/* What the turn adds to a number that has this step. */
static uint32_t turned(const decoder *d, gmd_input_turn step)
{
    return d->turn_steps & step ? d->turn : 0;
}

static uint32_t stream_of(const decoder *d, const uint8_t *record)
{
    uint32_t stream = d->wide.has_stream ? d->wide.stream : record[1] & 31U;
    return (stream + turned(d, GMD_TURN_STREAM)) % d->stream_count;
}

/* Where their number is not stated, others than the first come only by a wide record: to name one
 * that is not there ends a run. */
static uint8_t device_of(const decoder *d, const uint8_t *record)
{
    uint32_t count = d->trace->conditions.device_count;
    if (d->wide.has_place) {
        return (uint8_t)((d->wide.device + turned(d, GMD_TURN_DEVICE)) %
                         (count ? count : GMD_MAX_DEVICES));
    }
    uint32_t which = (record[1] >> 5) + turned(d, GMD_TURN_DEVICE);
    if (!count) {
        return 0;
    }
    which %= count;
    return (uint8_t)which;
}

/* Threads are numbered by their first request, as a text does it. */
static uint8_t thread_of(decoder *d, const uint8_t *record)
{
    uint32_t named = d->wide.has_place ? d->wide.thread : record[0] >> 4;
    uint32_t thread = (named + turned(d, GMD_TURN_THREAD)) % d->thread_count;
    if (d->thread_index[thread] == NOT_LISTED) {
        d->thread_index[thread] = (uint8_t)d->threads_used++;
    }
    return d->thread_index[thread];
}

static uint32_t target_of(const decoder *d, const uint8_t *record)
{
    return d->wide.has_target ? d->wide.target : gmd_input_get16(record + 2);
}

static void add_block(decoder *d, gmd_request *r)
{
    r->block = input_live_add(&d->live, d->trace->count);
    d->live_bytes[r->device] += r->bytes <= d->limit[r->device] ? r->bytes : 0;
}

/* False: no block is live. */
static bool find_block(const decoder *d, gmd_request *r, const uint8_t *record)
{
    if (!d->live.count) {
        return false;
    }
    uint32_t younger = turned(d, GMD_TURN_YOUNGER);
    uint32_t age = target_of(d, record) + turned(d, GMD_TURN_OLDER);
    age = age > younger ? age - younger : 0;
    r->block = input_live_at(&d->live, age % d->live.count);
    r->device = d->trace->requests[d->live.request[r->block]].device;
    return true;
}

static void forget_block(decoder *d, const gmd_request *r)
{
    uint64_t bytes = d->trace->requests[d->live.request[r->block]].bytes;
    uint64_t *held = &d->live_bytes[r->device];
    *held -= gmd_min(bytes, *held);
    input_live_remove(&d->live, r->block);
}

static bool make_fraction(decoder *d, gmd_request *r, uint32_t value)
{
    r->fraction = (double)(value % (GMD_INPUT_BILLION + 1)) / GMD_INPUT_BILLION;
    if (d->wide.has_value) {
        uint64_t bits = (uint64_t)d->wide.value << 32 | value;
        memcpy(&r->fraction, &bits, sizeof bits);
    }
    if (!(r->fraction >= 0 && r->fraction <= 1)) {
        return false;
    }
    r->fraction = r->fraction > 0 ? r->fraction : 0; /* not -0, which no text has */
    uint64_t capacity = d->trace->conditions.capacity_bytes ? d->trace->conditions.capacity_bytes
                                                            : GMD_INPUT_CAPACITY;
    uint64_t half = capacity / 2; /* of 2^64 bytes the product may be one more than fits */
    d->limit[r->device] = r->fraction < 1 ? (uint64_t)(r->fraction * (double)half) * 2 : capacity;
    return true;
}

/* The function's place in the trace's list. Its entries lie in buffers that all names fit into, so
 * that the next input's functions can take their place. */
static gmd_status list_function(decoder *d, uint32_t known, uint32_t *index)
{
    gmd_names *list = &d->trace->functions;
    if (d->function_index[known] != NOT_LISTED) {
        *index = d->function_index[known];
        return GMD_OK;
    }
    if (d->listed == list->count) {
        gmd_status status = set_nameless(list, list->count + 1, d->error);
        if (status != GMD_OK) {
            return status;
        }
    }
    char **slot = &list->items[d->listed];
    if (!*slot && !(*slot = malloc(FUNCTION_BYTES))) {
        return no_memory(d->error);
    }
    size_t length = strlen(gmd_input_functions[known]);
    memcpy(*slot, gmd_input_functions[known], length + 1);
    d->function_index[known] = (uint8_t)d->listed;
    *index = d->listed++;
    return GMD_OK;
}

static bool make_fault(decoder *d, gmd_request *r, const uint8_t *record, gmd_status *status)
{
    uint32_t known = target_of(d, record) % gmd_input_function_count;
    const char *function = gmd_input_functions[known];
    uint32_t value = gmd_input_get32(record + 4);
    if (d->fault_count >= GMD_INPUT_FAULT_MAX) {
        return false;
    }
    if (!d->fault_count++) {
        memset(d->function_index, NOT_LISTED, sizeof d->function_index);
    }
    r->every_later = record[1] & 1;
    r->count = d->wide.has_value ? value : value & 0xffff;
    r->count += !r->count;
    r->error = d->wide.has_value ? d->wide.value : value >> 16;
    bool is_taken = r->error && (d->wide.has_value || gmd_fault_check(r, function, NULL) == GMD_OK);
    if (!is_taken) {
        int usual = gmd_fault_error_of(function, false);
        r->error =
            usual ? (uint32_t)usual : 1; /* cudaErrorInvalidValue, CUDA_ERROR_INVALID_VALUE */
    }
    *status = list_function(d, known, &r->function);
    return *status == GMD_OK;
}

/* What byte 4 and those after it say. False: no such value. */
static bool read_value(decoder *d, gmd_request *r, const uint8_t *record)
{
    uint32_t value = gmd_input_get32(record + 4);
    if (gmd_op_has(r->op, GMD_FIELD_BYTES_OR_NONE) && !d->wide.has_value &&
        value == GMD_INPUT_NO_BUDGET) {
        r->bytes = GMD_NO_BUDGET;
    } else if (gmd_op_has_any(r->op, GMD_BYTES_FIELDS)) {
        r->bytes = size_of(d, value, r->device);
    } else if (gmd_op_has_any(r->op, GMD_DURATION_FIELDS)) {
        r->duration_ns = duration_of(d, value);
    } else if (gmd_op_has(r->op, GMD_FIELD_FRACTION)) {
        return make_fraction(d, r, value);
    }
    return true;
}

/* False: left out, or `status` says what failed. `r` has its op, and the device and the stream of
 * the record, which it keeps where it has such fields. */
static bool make_request(decoder *d, gmd_request *r, const uint8_t *record, gmd_status *status)
{
    uint32_t fields = gmd_request_rows[r->op].field_set;
    if (fields & GMD_FIELD_BIT(GMD_FIELD_BLOCK) && !find_block(d, r, record)) {
        return false;
    }
    r->device = fields & (GMD_DEVICE_FIELDS | GMD_BLOCK_FIELDS) ? r->device : 0;
    if (!(fields & GMD_STREAM_FIELDS)) {
        r->stream = 0;
    } else if (fields & GMD_FIELD_BIT(GMD_FIELD_STREAM_OR_ALL) && record[2] & 1) {
        r->stream = GMD_ALL_STREAMS;
    } else if (fields & GMD_FIELD_BIT(GMD_FIELD_OWN_STREAM) && !r->stream) {
        return false;
    }
    if (fields & GMD_FIELD_BIT(GMD_FIELD_OTHER_STREAM)) {
        uint32_t other = gmd_input_get16(record + 2) + turned(d, GMD_TURN_OTHER);
        r->other_stream = other % d->stream_count;
    }
    if (fields & GMD_FIELD_BIT(GMD_FIELD_FUNCTION)) {
        return make_fault(d, r, record, status);
    }
    if (!read_value(d, r, record)) {
        return false;
    }
    if (fields & GMD_FIELD_BIT(GMD_FIELD_NEW_BLOCK)) {
        add_block(d, r);
    } else if (gmd_op_is(r->op, GMD_IS_FREE)) {
        forget_block(d, r);
    }
    return true;
}

static bool make_on_pool(decoder *d, gmd_request *r, const uint8_t *record)
{
    gmd_input_pool_act act = gmd_input_pool_act_from(gmd_input_get32(record + 4));
    uint32_t target = target_of(d, record) + turned(d, GMD_TURN_OTHER);
    return gmd_input_pools_make(&d->pools, r, target, act);
}

/* `kind`: an op, or GMD_RECORD_POOL. */
static gmd_status read_request(decoder *d, const uint8_t *record, uint8_t kind)
{
    bool is_on_pool = kind == GMD_RECORD_POOL && d->pools.count;
    gmd_status status = d->has_begun ? GMD_OK : settle_header(d);
    if (status != GMD_OK || d->trace->count >= GMD_MAX_TRACE_LEN) {
        return status;
    }
    gmd_request r = {.op = kind == GMD_RECORD_POOL ? GMD_OP_ALLOC : kind};
    r.device = device_of(d, record);
    r.stream = stream_of(d, record);
    if (is_on_pool ? make_on_pool(d, &r, record) : make_request(d, &r, record, &status)) {
        r.thread = thread_of(d, record);
        d->trace->requests[d->trace->count++] = r;
    }
    if (d->wide.has_value || d->wide.has_stream || d->wide.has_place || d->wide.has_target) {
        d->wide = (wide_fields){0};
    }
    return status;
}

static void read_wide(wide_fields *w, const uint8_t *record)
{
    switch ((gmd_input_wide)(record[1] % GMD_WIDE_COUNT)) {
    case GMD_WIDE_VALUE:
        w->has_value = true;
        w->value = gmd_input_get32(record + 4);
        break;
    case GMD_WIDE_STREAM:
        w->has_stream = true;
        w->stream = gmd_input_get16(record + 2);
        break;
    case GMD_WIDE_PLACE:
        w->has_place = true;
        w->device = record[2];
        w->thread = record[3];
        break;
    case GMD_WIDE_TARGET:
    case GMD_WIDE_COUNT:
        w->has_target = true;
        w->target = gmd_input_get32(record + 4);
        break;
    }
}

/* Stream and device go to where other records have them. */
static gmd_status read_further(decoder *d, const uint8_t *record)
{
    uint8_t usual[GMD_INPUT_RECORD];
    memcpy(usual, record, sizeof usual);
    usual[1] = (uint8_t)((record[1] >> 4 & 3) | (record[1] >> 6) << 5);
    return read_request(d, usual, gmd_input_further_op(record));
}

static gmd_status read_record(decoder *d, const uint8_t *record)
{
    switch (record[0] & 15) {
    case GMD_RECORD_WIDE:
        read_wide(&d->wide, record);
        return GMD_OK;
    case GMD_RECORD_HEADER:
        if (gmd_input_further_op(record) < GMD_OP_COUNT) {
            return read_further(d, record);
        }
        return d->has_begun ? GMD_OK : read_header_record(d, record);
    default:
        return read_request(d, record, record[0] & 15);
    }
}

/* --- the whole input --------------------------------------------------------------------- */

/* How many of the `left` records after a repeat it repeats; and how often, as far as there is room
 * for it: `repeated` are there already. */
static size_t measure_repeat(const uint8_t *data, size_t at, size_t left, size_t repeated,
                             size_t *turns)
{
    const uint8_t *record = data + at, *before = record - GMD_INPUT_RECORD;
    bool is_stated = at > GMD_INPUT_HEADER && (before[0] & 15) == GMD_RECORD_WIDE &&
                     before[1] % GMD_WIDE_COUNT == GMD_WIDE_TARGET;
    size_t length = gmd_min(gmd_input_turn_length(record), left);
    size_t wanted = is_stated ? gmd_input_get32(before + 4) : gmd_input_turns(record);
    size_t most = length ? (GMD_INPUT_REPEATED_MAX - repeated) / length : 0;
    *turns = gmd_min(wanted, most);
    return length;
}

/* The records after it are read; how many of them it repeats. */
static gmd_status read_repeat(decoder *d, const uint8_t *data, size_t at, size_t left,
                              size_t *length)
{
    const uint8_t *record = data + at;
    gmd_status status = GMD_OK;
    size_t turns;
    *length = measure_repeat(data, at, left, d->repeated, &turns);
    d->repeated += turns * *length;
    d->wide = (wide_fields){0};
    d->turn_steps = record[4];
    for (d->turn = 0; d->turn < turns && status == GMD_OK; d->turn++) {
        for (size_t i = 1; i <= *length && status == GMD_OK; i++) {
            status = read_record(d, record + i * GMD_INPUT_RECORD);
        }
    }
    d->turn = 0;
    d->turn_steps = 0;
    return status;
}

/* As many requests as the records can be. */
static size_t most_requests(const uint8_t *data, size_t records)
{
    size_t repeated = 0;
    for (size_t i = 0; i < records; i++) {
        size_t turns, at = GMD_INPUT_HEADER + i * GMD_INPUT_RECORD;
        if (gmd_input_is_repeat(data + at)) {
            size_t length = measure_repeat(data, at, records - i - 1, repeated, &turns);
            repeated += turns * length;
            i += length;
        }
    }
    return records + repeated;
}

static gmd_status decode_records(decoder *d, const uint8_t *data, size_t size)
{
    gmd_status status = GMD_OK;
    for (size_t at = GMD_INPUT_HEADER; at + GMD_INPUT_RECORD <= size && status == GMD_OK;
         at += GMD_INPUT_RECORD) {
        if (gmd_input_is_repeat(data + at)) {
            size_t length, left = (size - at) / GMD_INPUT_RECORD - 1;
            status = read_repeat(d, data, at, left, &length);
            at += length * GMD_INPUT_RECORD;
        } else {
            status = read_record(d, data + at);
        }
    }
    if (status == GMD_OK && !d->has_begun) {
        status = settle_header(d);
    }
    if (status == GMD_OK) {
        status = set_nameless(&d->trace->blocks, d->live.made, d->error);
    }
    if (status == GMD_OK) {
        status = set_nameless(&d->trace->pools, d->pools.used, d->error);
    }
    return status == GMD_OK ? set_nameless(&d->trace->threads, d->threads_used, d->error) : status;
}

gmd_status gmd_input_decode(const uint8_t *data, size_t size, gmd_trace *trace, gmd_error *error)
{
    uint8_t header[GMD_INPUT_HEADER] = {0};
    size_t records = size > GMD_INPUT_HEADER ? (size - GMD_INPUT_HEADER) / GMD_INPUT_RECORD : 0;
    size_t most = gmd_min(most_requests(data, records), GMD_MAX_TRACE_LEN);
    decoder d; /* not cleared as a whole: its tables are larger than most inputs */
    d.trace = trace;
    d.error = error;
    d.wide = (wide_fields){0};
    d.has_begun = false;
    d.fault_count = d.listed = 0;
    d.turn = d.turn_steps = 0;
    d.repeated = 0;
    d.schedule_room = d.interleave_room = 0;
    d.conf_length = 0;
    memset(d.live_bytes, 0, sizeof d.live_bytes);
    memset(d.thread_index, NOT_LISTED, sizeof d.thread_index);
    d.thread_index[0] = 0;
    d.threads_used = 1;
    if (size) {
        memcpy(header, data, gmd_min(size, sizeof header));
    }
    trace->count = 0;
    gmd_status status = reserve_requests(trace, most, error);
    if (status != GMD_OK || !input_live_open(&d.live, most)) {
        return status != GMD_OK ? status : no_memory(error);
    }
    read_header(&d, header);
    status = decode_records(&d, data, size);
    input_live_close(&d.live);
    GMD_ASSERT_VALID(status == GMD_OK ? gmd_trace_violation(trace) : NULL);
    return status;
}
