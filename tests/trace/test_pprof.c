/* Heap profiles of pprof as recordings: what jax.profiler.device_memory_profile() writes (XLA's
 * PyClient::HeapProfile), and what Go's runtime and gmd itself write. */
#include "gmd_memory_file.h"
#include "gmd_pprof.h"
#include "trace_test.h"

#include <string.h>

/* --- messages -------------------------------------------------------------------------------- */

typedef struct message {
    uint8_t data[4096];
    size_t size;
} message;

static void add_varint(message *m, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) {
        m->data[m->size++] = (uint8_t)(value | 0x80);
    }
    m->data[m->size++] = (uint8_t)value;
}

static void add_number(message *m, unsigned field, uint64_t value)
{
    add_varint(m, field << 3);
    add_varint(m, value);
}

static void add_bytes(message *m, unsigned field, const void *data, size_t size)
{
    add_varint(m, field << 3 | 2);
    add_varint(m, size);
    if (size) {
        memcpy(m->data + m->size, data, size);
    }
    m->size += size;
}

static void add_message(message *m, unsigned field, const message *inner)
{
    add_bytes(m, field, inner->data, inner->size);
}

/* --- a profile ------------------------------------------------------------------------------- */

static message profile;
static gmd_snapshot seen;

enum { EMPTY, ALLOCATIONS, COUNT, SPACE, BYTES_UNIT, KIND, BUFFER, DEVICE, TRAIN, FILE_NAME };

static void add_type(uint64_t type, uint64_t unit)
{
    message m = {.size = 0};
    add_number(&m, PPROF_TYPE_TYPE, type);
    add_number(&m, PPROF_TYPE_UNIT, unit);
    add_message(&profile, PPROF_SAMPLE_TYPE, &m);
}

static void add_strings(const char *device)
{
    const char *const strings[] = {"",     "allocations", "count",  "space", "bytes",
                                   "kind", "buffer",      "device", "train", "train.py"};
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        add_bytes(&profile, PPROF_STRING_TABLE, strings[i], strlen(strings[i]));
    }
    add_bytes(&profile, PPROF_STRING_TABLE, device, strlen(device));
}

static int start_profile(void **state)
{
    (void)state;
    profile.size = 0;
    add_type(ALLOCATIONS, COUNT);
    add_type(SPACE, BYTES_UNIT);
    return 0;
}

static int free_seen(void **state)
{
    (void)state;
    gmd_snapshot_free(&seen);
    return 0;
}

FIXTURE(pprof, start_profile, free_seen);

/* The function and the location of one number. */
static void add_place(uint64_t id, uint64_t line)
{
    message function = {.size = 0}, at = {.size = 0}, location = {.size = 0};
    add_number(&function, PPROF_FUNCTION_ID, id);
    add_number(&function, PPROF_FUNCTION_NAME, TRAIN);
    add_number(&function, PPROF_FUNCTION_FILE, FILE_NAME);
    add_message(&profile, PPROF_FUNCTION, &function);
    add_number(&at, PPROF_LINE_FUNCTION_ID, id);
    add_number(&at, PPROF_LINE_LINE, line);
    add_number(&location, PPROF_LOCATION_ID, id);
    add_message(&location, PPROF_LOCATION_LINE, &at);
    add_message(&profile, PPROF_LOCATION, &location);
}

static void add_label(message *sample, uint64_t key, uint64_t text)
{
    message m = {.size = 0};
    add_number(&m, PPROF_LABEL_KEY, key);
    add_number(&m, PPROF_LABEL_TEXT, text);
    add_message(sample, PPROF_SAMPLE_LABEL, &m);
}

static void add_sample(uint64_t location, uint64_t count, uint64_t in_all)
{
    message m = {.size = 0}, values = {.size = 0};
    add_number(&m, PPROF_SAMPLE_LOCATION_ID, location);
    add_varint(&values, count);
    add_varint(&values, in_all);
    add_message(&m, PPROF_SAMPLE_VALUE, &values); /* packed, as proto3 writes it */
    add_label(&m, KIND, BUFFER);
    add_label(&m, DEVICE, FILE_NAME + 1);
    add_message(&profile, PPROF_SAMPLE, &m);
}

static gmd_status parse(size_t size, gmd_error *error)
{
    return gmd_memory_file_parse(&seen, profile.data, size, "profile", error);
}

static void see(void)
{
    gmd_error error = {""};
    gmd_status status = parse(profile.size, &error);
    assert_string_equal(error.text, "");
    assert_int_equal(status, GMD_OK);
    assert_int_equal(seen.recorder, GMD_RECORDER_PPROF);
}

static void refuse(const char *message_part)
{
    gmd_error error = {""};
    assert_int_equal(parse(profile.size, &error), GMD_BAD_INPUT);
    assert_contains(error.text, message_part);
    assert_int_equal(seen.block_count, 0);
}

/* --- what is read ---------------------------------------------------------------------------- */

TEST_F(pprof, a_sample_is_as_many_blocks_as_it_counts)
{
    add_sample(1, 3, 3 * 4096);
    add_place(1, 37);
    add_strings("cuda:0");
    see();
    assert_int_equal(seen.block_count, 3);
    assert_int_equal(seen.blocks[2].size, 4096);
    assert_int_equal(seen.blocks[2].state, GMD_BLOCK_ALLOCATED);
    assert_int_equal(seen.blocks[1].address, seen.blocks[0].address + 4096);
    assert_int_equal(seen.segment_count, 1);
    assert_int_equal(seen.segments[0].total_size, 3 * 4096);
    assert_false(seen.has_events);
}

TEST_F(pprof, no_byte_is_lost_where_blocks_are_not_equal)
{
    add_sample(1, 3, 100);
    add_place(1, 37);
    add_strings("cuda:0");
    see();
    assert_int_equal(seen.blocks[0].size + seen.blocks[1].size + seen.blocks[2].size, 100);
}

TEST_F(pprof, a_block_has_the_stack_and_the_kind_of_its_sample)
{
    add_place(1, 37);
    add_sample(1, 1, 4096);
    add_strings("cuda:0");
    see();
    size_t count;
    gmd_origin origin = gmd_origins_get(&seen.origins, seen.blocks[0].origin);
    const uint32_t *frames = gmd_origins_stack(&seen.origins, origin.stack, &count);
    assert_int_equal(count, 1);
    gmd_frame frame = gmd_origins_frame(&seen.origins, frames[0]);
    assert_string_equal(gmd_origins_text(&seen.origins, frame.file, NULL), "train.py");
    assert_string_equal(gmd_origins_text(&seen.origins, frame.function, NULL), "train");
    assert_int_equal(frame.line, 37);
    assert_string_equal(gmd_origins_text(&seen.origins, origin.metadata, NULL), "buffer");
}

TEST_F(pprof, the_device_is_the_number_in_its_name)
{
    static const struct {
        const char *name;
        int device;
    } devices[] = {{"cuda:1", 1}, {"TFRT_CPU_0", 0}, {"TPU_3(process=0,(0,0,0,0))", 3}};
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        start_profile(NULL);
        add_place(1, 37);
        add_sample(1, 1, 4096);
        add_strings(devices[i].name);
        see();
        assert_int_equal(seen.segments[0].device, devices[i].device);
        gmd_snapshot_free(&seen);
    }
}

TEST_F(pprof, of_several_amounts_the_last_in_bytes_counts)
{
    message m = {.size = 0};
    add_type(ALLOCATIONS, COUNT);
    add_type(SPACE, BYTES_UNIT);
    add_place(1, 37);
    add_number(&m, PPROF_SAMPLE_LOCATION_ID, 1);
    for (uint64_t value = 10; value <= 40; value += 10) { /* one by one, as proto2 writes them */
        add_number(&m, PPROF_SAMPLE_VALUE, value);
    }
    add_message(&profile, PPROF_SAMPLE, &m);
    add_strings("cuda:0");
    see();
    assert_int_equal(seen.block_count, 30);
    assert_int_equal(seen.segments[0].total_size, 40);
}

/* --- what is refused ------------------------------------------------------------------------- */

TEST_F(pprof, what_is_referred_to_must_be_there)
{
    add_place(1, 37);
    add_sample(2, 1, 4096);
    add_strings("cuda:0");
    refuse("a sample of a location that is not there");
}

TEST_F(pprof, strings_must_be_there)
{
    add_place(1, 37);
    refuse("no sample type is in bytes");
}

TEST_F(pprof, a_difference_of_profiles_is_refused)
{
    add_place(1, 37);
    add_sample(1, 1, (uint64_t)-4096);
    add_strings("cuda:0");
    refuse("a negative amount");
}

TEST_F(pprof, a_device_that_cannot_be_is_refused)
{
    add_place(1, 37);
    add_sample(1, 1, 4096);
    add_strings("cuda:16");
    refuse("expected devices 0 to 15");
}

TEST_F(pprof, more_blocks_than_memory_has_room_for_are_refused)
{
    add_place(1, 37);
    add_sample(1, UINT64_C(1) << 40, UINT64_C(1) << 42);
    add_strings("cuda:0");
    refuse("expected at most 4,194,304 blocks");
}

TEST_F(pprof, a_profile_that_is_cut_is_refused_or_smaller)
{
    add_place(1, 37);
    add_sample(1, 1, 4096);
    add_strings("cuda:0");
    for (size_t size = 0; size < profile.size; size++) {
        gmd_error error = {""};
        gmd_status status = parse(size, &error);
        assert_true(status == GMD_OK || (status == GMD_BAD_INPUT && error.text[0]));
        gmd_snapshot_free(&seen);
    }
}
