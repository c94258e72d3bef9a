/* input_encode.c - from a trace to bytes, and files of either form. */
#include "gmd_faults.h"
#include "gmd_grow.h"
#include "gmd_input_format.h"
#include "gmd_input_pools.h"
#include "gmd_min.h"
#include "input_live.h"

#include <stdlib.h>
#include <string.h>

#define NO_BLOCK UINT32_MAX

typedef struct encoder {
    const gmd_trace *trace;
    uint8_t *data;
    size_t size, room;
    input_live live;
    uint32_t *index; /* of each of the trace's blocks: which allocation it is; NO_BLOCK: not live */
    gmd_pool_state pools;
    uint32_t fault_count;
    gmd_status status;
    gmd_error *error;
} encoder;

/* --- records ----------------------------------------------------------------------------- */

/* Room for one more record, cleared; NULL: no host memory. */
static uint8_t *new_record(encoder *e)
{
    if (!GMD_GROW(&e->data, &e->room, e->size + GMD_INPUT_RECORD)) {
        e->status = gmd_fail(e->error, GMD_NO_MEMORY, "no host memory for an input");
        return NULL;
    }
    uint8_t *record = e->data + e->size;
    memset(record, 0, GMD_INPUT_RECORD);
    e->size += GMD_INPUT_RECORD;
    return record;
}

static void put_wide(encoder *e, gmd_input_wide what, uint32_t narrow, uint32_t value)
{
    uint8_t *record = new_record(e);
    if (record) {
        record[0] = GMD_RECORD_WIDE;
        record[1] = (uint8_t)what;
        gmd_input_put16(record + 2, narrow);
        gmd_input_put32(record + 4, value);
    }
}

static void put_part(encoder *e, gmd_input_header_part part, uint32_t high, uint64_t number)
{
    uint8_t *record = new_record(e);
    if (record) {
        record[0] = GMD_RECORD_HEADER;
        record[1] = (uint8_t)((uint32_t)part | high << 4);
        gmd_input_put48(record + 2, number);
    }
}

static void put_number(encoder *e, gmd_input_header_part part, uint64_t number)
{
    put_part(e, part, 0, number & GMD_INPUT_NUMBER_LOW);
    if (number > GMD_INPUT_NUMBER_LOW) {
        put_part(e, part, 1, number >> 48);
    }
}

static void put_text(encoder *e, gmd_input_header_part part, const uint8_t *text, size_t length)
{
    for (size_t at = 0; at < length; at += GMD_INPUT_TEXT_BYTES) {
        size_t left = length - at, count = gmd_min(left, GMD_INPUT_TEXT_BYTES);
        uint8_t *record = new_record(e);
        if (record) {
            record[0] = GMD_RECORD_HEADER;
            record[1] = (uint8_t)((uint32_t)part | (uint32_t)count << 4);
            memcpy(record + 2, text + at, count);
        }
    }
}

/* --- header ------------------------------------------------------------------------------ */

/* The part of a seed that the header holds; the rest is for a record. */
static uint32_t narrow_seed(const gmd_schedule *schedule)
{
    return gmd_schedule_is_seeded(schedule) ? (uint32_t)schedule->seed : 0;
}

static uint8_t code_of_capacity(uint64_t bytes)
{
    uint32_t code = 0;
    while (code < gmd_input_capacity_count && gmd_input_capacities[code] != bytes) {
        code++;
    }
    return code < gmd_input_capacity_count ? (uint8_t)code : 0;
}

static uint8_t code_of_conf(const char *conf)
{
    uint32_t code = 1;
    while (code < gmd_input_conf_count && strcmp(gmd_input_confs[code], conf) != 0) {
        code++;
    }
    return code < gmd_input_conf_count ? (uint8_t)code : 0;
}

static void put_schedule(encoder *e, const gmd_schedule *schedule, gmd_input_header_part seed,
                         gmd_input_header_part choices)
{
    if (schedule->kind == GMD_SCHEDULE_SEEDED && schedule->seed > UINT32_MAX) {
        put_number(e, seed, schedule->seed);
    }
    if (schedule->kind == GMD_SCHEDULE_EXPLICIT) {
        put_text(e, choices, schedule->choices, schedule->choice_count);
    }
}

static void put_header(encoder *e)
{
    const gmd_trace *t = e->trace;
    uint8_t *h = calloc(1, GMD_INPUT_HEADER);
    if (!h) {
        e->status = gmd_fail(e->error, GMD_NO_MEMORY, "no host memory for an input");
        return;
    }
    const char *conf = t->conditions.conf ? t->conditions.conf : "";
    uint32_t streams = t->streams.count, threads = t->threads.count;
    h[GMD_INPUT_AT_DEVICES] = (uint8_t)t->conditions.device_count;
    h[GMD_INPUT_AT_CAPACITY] = code_of_capacity(t->conditions.capacity_bytes);
    h[GMD_INPUT_AT_SCHEDULE] = (uint8_t)t->conditions.schedule.kind;
    h[GMD_INPUT_AT_INTERLEAVE] = gmd_schedule_is_seeded(&t->conditions.interleave)        ? 1
                                 : t->conditions.interleave.kind == GMD_SCHEDULE_EXPLICIT ? 2
                                                                                          : 0;
    if (t->conditions.reuses_handles) {
        h[GMD_INPUT_AT_INTERLEAVE] |= GMD_INPUT_REUSES_HANDLES;
    }
    if (t->conditions.moves_clock) {
        h[GMD_INPUT_AT_INTERLEAVE] |= GMD_INPUT_MOVES_CLOCK;
    }
    gmd_input_put32(h + GMD_INPUT_AT_SCHEDULE_SEED, narrow_seed(&t->conditions.schedule));
    gmd_input_put32(h + GMD_INPUT_AT_INTERLEAVE_SEED, narrow_seed(&t->conditions.interleave));
    h[GMD_INPUT_AT_CONF] = code_of_conf(conf);
    h[GMD_INPUT_AT_POOLS] = (uint8_t)t->pools.count;
    h[GMD_INPUT_AT_STREAMS] = streams <= GMD_INPUT_STREAMS_NARROW ? (uint8_t)streams : 1;
    h[GMD_INPUT_AT_THREADS] = threads <= GMD_INPUT_THREADS_NARROW ? (uint8_t)threads : 1;
    e->data = h;
    e->size = e->room = GMD_INPUT_HEADER;
    if (t->conditions.capacity_bytes && !h[GMD_INPUT_AT_CAPACITY]) {
        put_number(e, GMD_PART_CAPACITY, t->conditions.capacity_bytes);
    }
    put_schedule(e, &t->conditions.schedule, GMD_PART_SCHEDULE_SEED, GMD_PART_SCHEDULE_CHOICES);
    put_schedule(e, &t->conditions.interleave, GMD_PART_INTERLEAVE_SEED,
                 GMD_PART_INTERLEAVE_CHOICES);
    if (streams > GMD_INPUT_STREAMS_NARROW) {
        put_number(e, GMD_PART_STREAMS, streams);
    }
    if (threads > GMD_INPUT_THREADS_NARROW) {
        put_number(e, GMD_PART_THREADS, threads);
    }
    if (*conf && !e->data[GMD_INPUT_AT_CONF]) {
        put_text(e, GMD_PART_CONF, (const uint8_t *)conf, strlen(conf));
    }
}

static gmd_status check_header(const gmd_trace *t, gmd_error *error)
{
    if (t->conditions.device_count > GMD_MAX_DEVICES || t->streams.count > GMD_MAX_STREAMS ||
        t->threads.count > GMD_MAX_THREADS || t->pools.count > GMD_MAX_POOLS || !t->streams.count ||
        !t->threads.count) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "a trace with %u devices, %u streams, %u threads and %u pools is no input: "
                        "expected at most %u, %u, %u and %u",
                        t->conditions.device_count, t->streams.count, t->threads.count,
                        t->pools.count, GMD_MAX_DEVICES, GMD_MAX_STREAMS, GMD_MAX_THREADS,
                        GMD_MAX_POOLS);
    }
    if (t->conditions.conf && strlen(t->conditions.conf) > GMD_INPUT_CONF_MAX) {
        return gmd_fail(error, GMD_BAD_INPUT, "settings of more than %d bytes are no input",
                        GMD_INPUT_CONF_MAX);
    }
    return GMD_OK;
}

/* --- requests ---------------------------------------------------------------------------- */

typedef struct fields {
    uint32_t stream, target;
    uint8_t device;
    uint64_t value;
    bool is_wide; /* the value */
} fields;

static bool is_narrow_device(const encoder *e, uint8_t op, uint8_t device)
{
    uint32_t narrow =
        op < GMD_INPUT_OPS_FURTHER ? GMD_INPUT_DEVICES_NARROW : GMD_INPUT_FURTHER_NARROW;
    return e->trace->conditions.device_count ? device < narrow : device == 0;
}

static bool is_narrow_stream(uint8_t op, uint32_t stream)
{
    return stream <
           (op < GMD_INPUT_OPS_FURTHER ? GMD_INPUT_STREAMS_NARROW : GMD_INPUT_FURTHER_NARROW);
}

static bool is_there(encoder *e, size_t i, bool is_so)
{
    if (!is_so) {
        e->status = gmd_fail(e->error, GMD_BAD_INPUT,
                             "request %zu refers to what its trace does not have there", i);
    }
    return is_so;
}

static void find_block(encoder *e, size_t i, const gmd_request *r, fields *f)
{
    bool is_live = r->block < e->trace->blocks.count && e->index[r->block] != NO_BLOCK;
    if (is_there(e, i, is_live)) {
        f->target = input_live_age(&e->live, e->index[r->block]);
    }
}

static void put_bytes(fields *f, uint64_t bytes)
{
    f->value = bytes;
    f->is_wide = bytes >= GMD_INPUT_TOP_BIT;
}

static void put_duration(fields *f, uint64_t ns)
{
    f->value = ns;
    if (ns >= GMD_INPUT_TOP_BIT && ns % 1000 == 0 && ns / 1000 < GMD_INPUT_TOP_BIT) {
        f->value = GMD_INPUT_TOP_BIT | ns / 1000;
    } else {
        f->is_wide = ns >= GMD_INPUT_TOP_BIT;
    }
}

static void put_fraction(fields *f, double fraction)
{
    bool is_usual = fraction >= 0 && fraction <= 1;
    uint32_t billionths = is_usual ? (uint32_t)(fraction * GMD_INPUT_BILLION + 0.5) : 0;
    f->value = billionths;
    if (!is_usual || (double)billionths / GMD_INPUT_BILLION != fraction) {
        memcpy(&f->value, &fraction, sizeof fraction);
        f->is_wide = true;
    }
}

static void put_fault(encoder *e, size_t i, const gmd_request *r, fields *f)
{
    const gmd_names *list = &e->trace->functions;
    const char *name = r->function < list->count ? list->items[r->function] : NULL;
    f->target = 0;
    while (name && f->target < gmd_input_function_count &&
           strcmp(gmd_input_functions[f->target], name) != 0) {
        f->target++;
    }
    if (!name || f->target == gmd_input_function_count) {
        e->status =
            gmd_fail(e->error, GMD_BAD_INPUT,
                     "request %zu: the simulated device has no function '%s'", i, name ? name : "");
        return;
    }
    if (e->fault_count++ >= GMD_INPUT_FAULT_MAX) {
        e->status = gmd_fail(e->error, GMD_BAD_INPUT, "request %zu: an input has at most %d faults",
                             i, GMD_INPUT_FAULT_MAX);
    }
    f->is_wide = !r->count || r->count > UINT16_MAX || r->error > UINT16_MAX ||
                 gmd_fault_check(r, name, NULL) != GMD_OK;
    f->value = f->is_wide ? (uint64_t)r->error << 32 | r->count : r->error << 16 | r->count;
    f->stream = r->every_later;
}

static void add_block(encoder *e, size_t i, const gmd_request *r)
{
    if (is_there(e, i, r->block < e->trace->blocks.count)) {
        e->index[r->block] = input_live_add(&e->live, i);
    }
}

static void forget_block(encoder *e, const gmd_request *r)
{
    input_live_remove(&e->live, e->index[r->block]);
    e->index[r->block] = NO_BLOCK;
}

static void put_value(const gmd_request *r, fields *f)
{
    if (gmd_op_has(r->op, GMD_FIELD_BYTES_OR_NONE) && r->bytes == GMD_NO_BUDGET) {
        f->value = GMD_INPUT_NO_BUDGET;
    } else if (gmd_op_has_any(r->op, GMD_BYTES_FIELDS)) {
        put_bytes(f, r->bytes);
    } else if (gmd_op_has_any(r->op, GMD_DURATION_FIELDS)) {
        put_duration(f, r->duration_ns);
    } else if (gmd_op_has(r->op, GMD_FIELD_FRACTION)) {
        put_fraction(f, r->fraction);
    }
}

static void put_on_pool(encoder *e, size_t i, const gmd_request *r, fields *f)
{
    f->target = r->pool;
    f->value = gmd_input_pool_value(gmd_input_pool_act_of(r));
    is_there(e, i, r->pool < e->trace->pools.count && !gmd_pool_state_note(&e->pools, r));
}

/* What the other fields say; stream and device are those of the request. */
static void put_request(encoder *e, size_t i, const gmd_request *r, fields *f)
{
    uint32_t named = gmd_request_rows[r->op].field_set;
    put_value(r, f);
    if (named & GMD_FIELD_BIT(GMD_FIELD_NEW_BLOCK)) {
        add_block(e, i, r);
    } else if (named & GMD_FIELD_BIT(GMD_FIELD_BLOCK)) {
        find_block(e, i, r, f);
    } else if (named & GMD_FIELD_BIT(GMD_FIELD_POOL)) {
        put_on_pool(e, i, r, f);
    } else if (named & GMD_FIELD_BIT(GMD_FIELD_FUNCTION)) {
        put_fault(e, i, r, f);
    } else if (named & GMD_FIELD_BIT(GMD_FIELD_OTHER_STREAM)) {
        f->target = r->other_stream;
        is_there(e, i, r->other_stream < e->trace->streams.count);
    } else if (named & GMD_FIELD_BIT(GMD_FIELD_STREAM_OR_ALL)) {
        f->target = r->stream == GMD_ALL_STREAMS;
    }
    if (gmd_op_is(r->op, GMD_IS_FREE) && e->status == GMD_OK) {
        forget_block(e, r);
    }
}

static void put_fields(encoder *e, const gmd_request *r, const fields *f)
{
    if (f->is_wide) {
        put_wide(e, GMD_WIDE_VALUE, 0, (uint32_t)(f->value >> 32));
    }
    if (!is_narrow_stream(r->op, f->stream)) {
        put_wide(e, GMD_WIDE_STREAM, f->stream, 0);
    }
    if (!is_narrow_device(e, r->op, f->device) || r->thread >= GMD_INPUT_THREADS_NARROW) {
        put_wide(e, GMD_WIDE_PLACE, f->device | (uint32_t)r->thread << 8, 0);
    }
    if (f->target > UINT16_MAX) {
        put_wide(e, GMD_WIDE_TARGET, 0, f->target);
    }
    uint8_t *record = new_record(e);
    if (record) {
        uint8_t kind = gmd_op_is_on_pool(r->op) ? GMD_RECORD_POOL : r->op;
        gmd_input_put_op(record, kind, r->thread, f->stream, f->device);
        gmd_input_put16(record + 2, f->target);
        gmd_input_put32(record + 4, (uint32_t)f->value);
    }
}

static void encode_request(encoder *e, size_t i)
{
    const gmd_request *r = &e->trace->requests[i];
    fields f = {.stream = gmd_request_names_stream(r) ? r->stream : 0,
                .device = gmd_op_has_any(r->op, GMD_DEVICE_FIELDS) ? r->device : 0};
    uint32_t devices =
        e->trace->conditions.device_count ? e->trace->conditions.device_count : GMD_MAX_DEVICES;
    if (!is_there(e, i,
                  r->op < GMD_OP_COUNT && r->thread < e->trace->threads.count &&
                      f.device < devices && f.stream < e->trace->streams.count)) {
        return;
    }
    put_request(e, i, r, &f);
    if (e->status == GMD_OK) {
        put_fields(e, r, &f);
    }
}

/* --- the whole trace --------------------------------------------------------------------- */

static gmd_status open_encoder(encoder *e)
{
    gmd_status status = check_header(e->trace, e->error);
    if (status != GMD_OK) {
        return status;
    }
    size_t blocks = e->trace->blocks.count;
    e->index = malloc((blocks + 1) * sizeof *e->index);
    if (!e->index || !input_live_open(&e->live, e->trace->count)) {
        free(e->index);
        e->index = NULL;
        return gmd_fail(e->error, GMD_NO_MEMORY, "no host memory for an input");
    }
    memset(e->index, 0xff, (blocks + 1) * sizeof *e->index); /* NO_BLOCK */
    return GMD_OK;
}

gmd_status gmd_input_encode(const gmd_trace *trace, uint8_t **data, size_t *size, gmd_error *error)
{
    encoder e = {.trace = trace, .error = error};
    *data = NULL;
    *size = 0;
    gmd_status status = open_encoder(&e);
    if (status != GMD_OK) {
        return status;
    }
    put_header(&e);
    for (size_t i = 0; i < trace->count && e.status == GMD_OK; i++) {
        encode_request(&e, i);
    }
    input_live_close(&e.live);
    free(e.index);
    if (e.status != GMD_OK) {
        free(e.data);
        return e.status;
    }
    *data = e.data;
    *size = e.size;
    return GMD_OK;
}

bool gmd_input_is_text(const uint8_t *contents, size_t size)
{
    static const char first[] = "gmd-trace";
    return size >= sizeof first - 1 && memcmp(contents, first, sizeof first - 1) == 0;
}

gmd_status gmd_input_read(const uint8_t *contents, size_t size, const char *name, gmd_trace *trace,
                          gmd_error *error)
{
    if (gmd_input_is_text(contents, size)) {
        return gmd_trace_parse(trace, (const char *)contents, size, name, error);
    }
    gmd_trace_init(trace);
    gmd_status status = gmd_input_decode(contents, size, trace, error);
    if (status != GMD_OK) {
        gmd_trace_free(trace);
    }
    return status;
}
