#include "pprof.h"

#include "gmd_grow.h"
#include "gmd_min.h"
#include "gmd_pprof.h"
#include "gmd_trace.h"
#include "wire.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TYPES = 16, MOST_FRAMES = 1 << 16, NO_TYPE = -1 };
#define MOST_BLOCKS     ((uint64_t)1 << 22)
#define FRAMES_PER_BYTE 16                  /* of the file: what shared stacks can become at most */
#define MOST_BYTES      ((uint64_t)1 << 47) /* of a device */
#define SEGMENT_ADDRESS ((uint64_t)1 << 48) /* times the device and 1 */

typedef struct span {
    size_t first, count;
} span;

typedef struct value_type {
    uint64_t type, unit; /* strings */
} value_type;

typedef struct code_function {
    uint32_t name, file; /* texts of the origins */
} code_function;

typedef struct sample {
    uint64_t count, bytes;
    uint32_t origin;
    uint8_t device;
} sample;

typedef struct reader {
    gmd_snapshot *snapshot;
    const uint8_t *data;
    const char *name;
    gmd_error *error;
    gmd_status status;
    size_t at;           /* byte of the field that is being read */
    wire_field *strings; /* of the string table */
    value_type types[MOST_TYPES];
    gmd_interned function_ids, location_ids; /* their numbers: into the following */
    code_function *functions;
    span *locations; /* of frames_of_locations */
    uint32_t *frames_of_locations;
    uint32_t *stack; /* of one sample */
    sample *samples;
    size_t string_count, string_capacity, type_count, function_capacity, location_capacity,
        frame_count, frame_capacity, frames_left, stack_capacity, sample_count, sample_capacity;
    int bytes_type, count_type; /* index among a sample's values */
} reader;

/* --- failures -------------------------------------------------------------------------------- */

static bool refuse(reader *r, const char *what)
{
    if (r->status == GMD_OK) {
        r->status = gmd_fail(r->error, GMD_BAD_INPUT, "%s: byte %zu: %s", r->name, r->at, what);
    }
    return false;
}

static bool no_memory(reader *r)
{
    if (r->status == GMD_OK) {
        r->status = gmd_fail(r->error, GMD_NO_MEMORY, "%s: no host memory", r->name);
    }
    return false;
}

static bool is_whole(reader *r, const wire_message *m)
{
    return !m->is_damaged || refuse(r, "a damaged or truncated message of pprof");
}

/* --- strings --------------------------------------------------------------------------------- */

static bool string_is(const reader *r, uint64_t number, const char *text)
{
    const wire_field *s = number < r->string_count ? &r->strings[number] : NULL;
    return s && s->length == strlen(text) && memcmp(s->bytes, text, s->length) == 0;
}

static bool add_text(reader *r, uint64_t number, uint32_t *text)
{
    if (number >= r->string_count) {
        return refuse(r, "expected the number of a string, and there is no such string");
    }
    const wire_field *s = &r->strings[number];
    return gmd_origins_add_name(&r->snapshot->origins, (const char *)s->bytes, s->length, text) ||
           no_memory(r);
}

static bool read_string(reader *r, const wire_field *field)
{
    if (!GMD_GROW(&r->strings, &r->string_capacity, r->string_count + 1)) {
        return no_memory(r);
    }
    r->strings[r->string_count++] = *field;
    return true;
}

static bool read_type(reader *r, const wire_field *field)
{
    wire_message m = wire_inner(field);
    wire_field f;
    value_type type = {0};
    while (wire_next(&m, &f)) {
        type.type = f.number == PPROF_TYPE_TYPE ? f.value : type.type;
        type.unit = f.number == PPROF_TYPE_UNIT ? f.value : type.unit;
    }
    if (r->type_count == MOST_TYPES) {
        return refuse(r, "expected at most 16 sample types");
    }
    r->types[r->type_count++] = type;
    return is_whole(r, &m);
}

/* The last in bytes, and the last count before it: of several (allocated since the start, in use
 * now) the one that is in use comes last. */
static bool choose_types(reader *r)
{
    r->bytes_type = r->count_type = NO_TYPE;
    for (size_t i = 0; i < r->type_count; i++) {
        r->bytes_type = string_is(r, r->types[i].unit, "bytes") ? (int)i : r->bytes_type;
    }
    for (int i = 0; i < r->bytes_type; i++) {
        r->count_type = string_is(r, r->types[i].unit, "count") ? i : r->count_type;
    }
    return r->bytes_type != NO_TYPE ||
           refuse(r, "expected a heap profile: no sample type is in bytes");
}

/* --- functions and locations ----------------------------------------------------------------- */

static bool number_of(reader *r, gmd_interned *ids, uint64_t id, uint32_t *number)
{
    return gmd_interned_add(ids, &id, sizeof id, number) || no_memory(r);
}

static bool read_function(reader *r, const wire_field *field)
{
    wire_message m = wire_inner(field);
    wire_field f;
    uint64_t id = 0, name = 0, file = 0;
    uint32_t number, known = r->function_ids.count;
    while (wire_next(&m, &f)) {
        id = f.number == PPROF_FUNCTION_ID ? f.value : id;
        name = f.number == PPROF_FUNCTION_NAME ? f.value : name;
        file = f.number == PPROF_FUNCTION_FILE ? f.value : file;
    }
    if (!is_whole(r, &m) || !number_of(r, &r->function_ids, id, &number)) {
        return false;
    }
    if (number < known) {
        return refuse(r, "two functions have the same id");
    }
    if (!GMD_GROW(&r->functions, &r->function_capacity, (size_t)number + 1)) {
        return no_memory(r);
    }
    return add_text(r, name, &r->functions[number].name) &&
           add_text(r, file, &r->functions[number].file);
}

/* What gmd itself writes where nothing was recorded is no frame. */
static bool is_no_frame(const reader *r, const gmd_frame *frame)
{
    const char *name = gmd_origins_text(&r->snapshot->origins, frame->function, NULL);
    return !frame->file && !frame->line && strcmp(name, GMD_PPROF_NO_FRAMES) == 0;
}

static bool add_line(reader *r, const wire_field *field)
{
    wire_message m = wire_inner(field);
    wire_field f;
    uint64_t id = 0, line = 0;
    uint32_t number, frame_number, known = r->function_ids.count;
    while (wire_next(&m, &f)) {
        id = f.number == PPROF_LINE_FUNCTION_ID ? f.value : id;
        line = f.number == PPROF_LINE_LINE ? f.value : line;
    }
    if (!is_whole(r, &m) || !number_of(r, &r->function_ids, id, &number)) {
        return false;
    }
    if (number >= known) {
        return refuse(r, "a line of a function that is not there");
    }
    const gmd_frame frame = {.file = r->functions[number].file,
                             .function = r->functions[number].name,
                             .line = line <= UINT32_MAX ? (uint32_t)line : 0};
    if (is_no_frame(r, &frame)) {
        return true;
    }
    if (!gmd_origins_add_frame(&r->snapshot->origins, &frame, &frame_number) ||
        !GMD_GROW(&r->frames_of_locations, &r->frame_capacity, r->frame_count + 1)) {
        return no_memory(r);
    }
    r->frames_of_locations[r->frame_count++] = frame_number;
    return true;
}

/* Its lines are those of functions that were inlined, the innermost first. One without a line (an
 * address of machine code) is no frame. */
static bool read_location(reader *r, const wire_field *field)
{
    wire_message m = wire_inner(field);
    wire_field f;
    uint64_t id = 0;
    uint32_t number, known = r->location_ids.count;
    span frames = {.first = r->frame_count};
    while (wire_next(&m, &f)) {
        id = f.number == PPROF_LOCATION_ID ? f.value : id;
        if (f.number == PPROF_LOCATION_LINE && f.kind == WIRE_BYTES && !add_line(r, &f)) {
            return false;
        }
    }
    frames.count = r->frame_count - frames.first;
    if (!is_whole(r, &m) || !number_of(r, &r->location_ids, id, &number)) {
        return false;
    }
    if (number < known) {
        return refuse(r, "two locations have the same id");
    }
    if (!GMD_GROW(&r->locations, &r->location_capacity, (size_t)number + 1)) {
        return no_memory(r);
    }
    r->locations[number] = frames;
    return true;
}

/* --- samples --------------------------------------------------------------------------------- */

typedef struct sample_parts {
    size_t frame_count;
    uint64_t count, bytes;
    int value_count;
    uint32_t kind; /* a text */
    uint64_t device;
} sample_parts;

static bool add_location(reader *r, uint64_t id, sample_parts *parts)
{
    uint32_t number, known = r->location_ids.count;
    if (!number_of(r, &r->location_ids, id, &number)) {
        return false;
    }
    if (number >= known) {
        return refuse(r, "a sample of a location that is not there");
    }
    const span *frames = &r->locations[number];
    size_t needed = parts->frame_count + frames->count;
    if (needed > MOST_FRAMES || frames->count > r->frames_left) {
        return refuse(r, "expected at most 65536 frames in a stack, and fewer in all");
    }
    r->frames_left -= frames->count;
    if (!GMD_GROW(&r->stack, &r->stack_capacity, needed + 1)) {
        return no_memory(r);
    }
    for (size_t i = 0; i < frames->count; i++) {
        r->stack[parts->frame_count++] = r->frames_of_locations[frames->first + i];
    }
    return true;
}

static bool add_value(reader *r, uint64_t value, sample_parts *parts)
{
    int index = parts->value_count++;
    if (value > INT64_MAX && (index == r->bytes_type || index == r->count_type)) {
        return refuse(r, "a negative amount: is it the difference of two profiles?");
    }
    parts->bytes = index == r->bytes_type ? value : parts->bytes;
    parts->count = index == r->count_type ? value : parts->count;
    return true;
}

/* "cuda:1", "TFRT_CPU_0", "TPU_3(process=0,...)": the first number in it. */
static uint64_t device_in(const reader *r, uint64_t string)
{
    const wire_field *s = string < r->string_count ? &r->strings[string] : NULL;
    uint64_t device = 0;
    size_t i = 0;
    while (s && i < s->length && (s->bytes[i] < '0' || s->bytes[i] > '9')) {
        i++;
    }
    for (; s && i < s->length && s->bytes[i] >= '0' && s->bytes[i] <= '9' && device < 1000; i++) {
        device = device * 10 + (uint64_t)(s->bytes[i] - '0');
    }
    return device;
}

static bool read_label(reader *r, const wire_field *field, sample_parts *parts)
{
    wire_message m = wire_inner(field);
    wire_field f;
    uint64_t key = 0, text = 0, number = 0;
    while (wire_next(&m, &f)) {
        key = f.number == PPROF_LABEL_KEY ? f.value : key;
        text = f.number == PPROF_LABEL_TEXT ? f.value : text;
        number = f.number == PPROF_LABEL_NUMBER ? f.value : number;
    }
    if (string_is(r, key, "device")) {
        parts->device = text ? device_in(r, text) : number;
    }
    return is_whole(r, &m) && (!string_is(r, key, "kind") || add_text(r, text, &parts->kind));
}

typedef bool number_function(reader *r, uint64_t number, sample_parts *parts);

static bool read_numbers(reader *r, const wire_field *f, number_function *add, sample_parts *parts)
{
    uint64_t number;
    if (f->kind != WIRE_BYTES) {
        return add(r, f->value, parts);
    }
    wire_message packed = wire_inner(f);
    while (wire_next_number(&packed, &number)) {
        if (!add(r, number, parts)) {
            return false;
        }
    }
    return is_whole(r, &packed);
}

static bool add_sample(reader *r, const sample_parts *parts)
{
    gmd_origin origin = {.metadata = parts->kind};
    sample one = {.count = parts->count ? parts->count : 1,
                  .bytes = parts->bytes,
                  .device = (uint8_t)parts->device};
    if (parts->device >= GMD_MAX_DEVICES) {
        return refuse(r, "expected devices 0 to 15");
    }
    if (parts->bytes == 0) {
        return true;
    }
    if (!gmd_origins_add_stack(&r->snapshot->origins, r->stack, parts->frame_count,
                               &origin.stack) ||
        !gmd_origins_add(&r->snapshot->origins, &origin, &one.origin) ||
        !GMD_GROW(&r->samples, &r->sample_capacity, r->sample_count + 1)) {
        return no_memory(r);
    }
    one.count = gmd_min(one.count, one.bytes);
    r->samples[r->sample_count++] = one;
    return true;
}

static bool read_sample(reader *r, const wire_field *field)
{
    wire_message m = wire_inner(field);
    wire_field f;
    sample_parts parts = {0};
    bool ok = true;
    while (ok && wire_next(&m, &f)) {
        if (f.number == PPROF_SAMPLE_LOCATION_ID) {
            ok = read_numbers(r, &f, add_location, &parts);
        } else if (f.number == PPROF_SAMPLE_VALUE) {
            ok = read_numbers(r, &f, add_value, &parts);
        } else if (f.number == PPROF_SAMPLE_LABEL && f.kind == WIRE_BYTES) {
            ok = read_label(r, &f, &parts);
        }
    }
    return ok && is_whole(r, &m) && add_sample(r, &parts);
}

/* --- blocks ---------------------------------------------------------------------------------- */

static bool count_blocks(reader *r, size_t *total)
{
    uint64_t count = 0, bytes[GMD_MAX_DEVICES] = {0};
    for (size_t i = 0; i < r->sample_count; i++) {
        const sample *s = &r->samples[i];
        if (s->count > MOST_BLOCKS - count) {
            return refuse(r, "expected at most 4,194,304 blocks");
        }
        if (s->bytes > MOST_BYTES - bytes[s->device]) {
            return refuse(r, "expected at most 128 TiB on a device");
        }
        count += s->count;
        bytes[s->device] += s->bytes;
    }
    *total = (size_t)count;
    return true;
}

static void add_blocks(gmd_snapshot *s, gmd_snapshot_segment *to, const sample *from)
{
    uint64_t each = from->bytes / from->count;
    for (uint64_t i = 0; i < from->count; i++) {
        uint64_t size = i + 1 < from->count ? each : from->bytes - each * (from->count - 1);
        s->blocks[s->block_count++] = (gmd_snapshot_block){.address = to->address + to->total_size,
                                                           .size = size,
                                                           .requested_size = size,
                                                           .origin = from->origin,
                                                           .state = GMD_BLOCK_ALLOCATED};
        to->total_size += size;
        to->block_count++;
    }
}

static bool make_blocks(reader *r)
{
    gmd_snapshot *s = r->snapshot;
    size_t count;
    if (!count_blocks(r, &count)) {
        return false;
    }
    s->blocks = malloc((count + 1) * sizeof *s->blocks);
    s->segments = calloc(GMD_MAX_DEVICES, sizeof *s->segments);
    if (!s->blocks || !s->segments) {
        return no_memory(r);
    }
    for (uint8_t device = 0; device < GMD_MAX_DEVICES; device++) {
        gmd_snapshot_segment *segment = &s->segments[s->segment_count];
        *segment = (gmd_snapshot_segment){.address = SEGMENT_ADDRESS * (device + 1u),
                                          .first_block = s->block_count,
                                          .device = device,
                                          .is_large = true};
        for (size_t i = 0; i < r->sample_count; i++) {
            if (r->samples[i].device == device) {
                add_blocks(s, segment, &r->samples[i]);
            }
        }
        segment->allocated_size = segment->active_size = segment->requested_size =
            segment->total_size;
        s->segment_count += segment->block_count > 0;
        s->device_count = segment->block_count ? device + 1u : s->device_count;
    }
    return true;
}

/* --- the whole ------------------------------------------------------------------------------- */

typedef bool field_function(reader *r, const wire_field *field);

/* Calls `function` for each field of a number, in order. Others may be anything. */
static bool each_field(reader *r, size_t size, uint32_t number, field_function *function)
{
    wire_message m = {.data = r->data, .size = size};
    wire_field field;
    r->at = 0;
    while (wire_next(&m, &field)) {
        bool is_it = field.number == number && field.kind == WIRE_BYTES;
        if (is_it && !function(r, &field)) {
            return false;
        }
        r->at = m.at;
    }
    return is_whole(r, &m);
}

/* What is referred to may come after what refers to it. */
static bool read_profile(reader *r, size_t size)
{
    return each_field(r, size, PPROF_STRING_TABLE, read_string) &&
           each_field(r, size, PPROF_SAMPLE_TYPE, read_type) && choose_types(r) &&
           each_field(r, size, PPROF_FUNCTION, read_function) &&
           each_field(r, size, PPROF_LOCATION, read_location) &&
           each_field(r, size, PPROF_SAMPLE, read_sample) && make_blocks(r);
}

static void release(reader *r)
{
    gmd_interned_free(&r->function_ids);
    gmd_interned_free(&r->location_ids);
    free(r->strings);
    free(r->functions);
    free(r->locations);
    free(r->frames_of_locations);
    free(r->stack);
    free(r->samples);
}

bool pprof_is(const uint8_t *data, size_t size)
{
    wire_message m = {.data = data, .size = size};
    wire_field field;
    return size && data[0] == (PPROF_SAMPLE_TYPE << 3 | WIRE_BYTES) && wire_next(&m, &field) &&
           field.length < 64;
}

gmd_status pprof_parse(gmd_snapshot *snapshot, const uint8_t *data, size_t size, const char *name,
                       gmd_error *error)
{
    *snapshot = (gmd_snapshot){.recorder = GMD_RECORDER_PPROF};
    reader r = {.snapshot = snapshot,
                .data = data,
                .name = name,
                .error = error,
                .frames_left = size * FRAMES_PER_BYTE};
    read_profile(&r, size);
    release(&r);
    if (r.status != GMD_OK) {
        gmd_snapshot_free(snapshot);
    }
    return r.status;
}
