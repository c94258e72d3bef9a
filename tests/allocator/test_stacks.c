/* Whose stacks a history keeps and how a snapshot tells them. */
#define _GNU_SOURCE /* memmem */
#include "pickle_test.h"

#include "gmd_sim.h"
#include "gmd_size.h"
#include "last_slot.h"
#include "stacks.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <unistd.h>

typedef struct fixture {
    gmd_allocator *a;
    char path[64];
    pickle_file file;
    const char *stack; /* what the source tells next */
    unsigned asked;    /* how often it was */
    bool allocates;    /* when it is asked */
} fixture;

static int open_fixture(void **state)
{
    static fixture f;
    gmd_sim_config config;
    gmd_sim_default_config(&config);
    config.capacity_bytes = GMD_GIB;
    gmd_sim_reset(&config);
    f = (fixture){.stack = ""};
    snprintf(f.path, sizeof f.path, "stacks-%ld.pickle", (long)getpid());
    *state = &f;
    return gmd_allocator_create(&f.a, 1, NULL, NULL) == GMD_OK ? 0 : -1;
}

static int close_fixture(void **state)
{
    fixture *f = *state;
    forget_pickle(&f->file);
    unlink(f->path);
    gmd_allocator_destroy(f->a);
    return 0;
}

FIXTURE(stacks, open_fixture, close_fixture);

static void *take(fixture *f, uint64_t size)
{
    return gmd_allocator_malloc(f->a, size, 0, NULL);
}

static void give(fixture *f, void *block)
{
    assert_true(gmd_allocator_free(f->a, block, 0, NULL));
}

static size_t tell(void *context, char *text, size_t size)
{
    fixture *f = context;
    f->asked++;
    if (f->allocates) {
        give(f, take(f, 3 * GMD_MIB)); /* a garbage collector's turn, say */
    }
    size_t length = strlen(f->stack);
    assert_true(length <= size);
    memcpy(text, f->stack, length);
    return length;
}

static void record(fixture *f, gmd_stacks which)
{
    assert_int_equal(gmd_allocator_record_history(f->a, 1000, which, NULL), GMD_OK);
}

static void record_told(fixture *f, gmd_stacks which)
{
    gmd_allocator_set_stack_source(f->a, tell, f);
    record(f, which);
}

/* --- reading ------------------------------------------------------------------------------ */

static const value *dump(fixture *f)
{
    return dump_pickle(&f->file, f->a, f->path);
}

static const value *event(const value *snapshot, size_t index)
{
    return item(item(key(snapshot, "device_traces"), 0), index);
}

static const value *segment(const value *snapshot, size_t index)
{
    return item(key(snapshot, "segments"), index);
}

static const value *block(const value *snapshot, size_t in, size_t index)
{
    return item(key(segment(snapshot, in), "blocks"), index);
}

/* Frames as text, "NAME in FILE:LINE" each; "-": none. */
static const char *frames(const value *of)
{
    static char text[1024];
    size_t used = 0;
    const value *list = key(of, "frames");
    if (!list || !list->items->count) {
        return "-";
    }
    for (size_t i = 0; i < list->items->count; i++) {
        const value *name = key(item(list, i), "name"), *file = key(item(list, i), "filename");
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s in %.*s:%d",
                                 i ? "; " : "", (int)name->length, name->text, (int)file->length,
                                 file->text, (int)key(item(list, i), "line")->number);
        assert_true(used < sizeof text);
    }
    return text;
}

/* --- a caller's own stacks ---------------------------------------------------------------- */

TEST_F(stacks, a_block_its_segment_and_its_events_have_the_frames_that_were_told)
{
    fixture *f = *state;
    record_told(f, GMD_STACKS_ALL);
    f->stack = "model.py:12:forward\ntrain.py:3:<module>\n";
    take(f, 100);
    const value *s = dump(f);
    const char *expected = "forward in model.py:12; <module> in train.py:3";
    assert_string_equal(frames(event(s, 0)), expected);
    assert_string_equal(frames(event(s, 1)), expected);
    assert_string_equal(frames(segment(s, 0)), expected);
    assert_string_equal(frames(block(s, 0, 0)), expected);
    assert_string_equal(frames(block(s, 0, 1)), "-"); /* what is free is nobody's */
}

TEST_F(stacks, a_segment_keeps_its_first_request_s_frames)
{
    fixture *f = *state;
    record_told(f, GMD_STACKS_ALL);
    f->stack = "a.py:1:first";
    give(f, take(f, 100));
    f->stack = "a.py:2:second";
    take(f, 100);
    const value *s = dump(f);
    assert_string_equal(frames(segment(s, 0)), "first in a.py:1");
    assert_string_equal(frames(block(s, 0, 0)), "second in a.py:2");
}

TEST_F(stacks, each_of_several_segments_has_its_own_request_s_frames)
{
    fixture *f = *state;
    record_told(f, GMD_STACKS_ALL);
    f->stack = "a.py:1:first";
    take(f, 12 * GMD_MIB);
    f->stack = "a.py:2:second";
    take(f, 12 * GMD_MIB);
    const value *s = dump(f);
    assert_string_equal(frames(segment(s, 0)), "first in a.py:1");
    assert_string_equal(frames(segment(s, 1)), "second in a.py:2");
}

TEST_F(stacks, a_segment_at_the_place_of_another_has_its_own_frames)
{
    fixture *f = *state;
    record_told(f, GMD_STACKS_ALL);
    f->stack = "a.py:1:first";
    void *before = take(f, 100);
    give(f, before);
    gmd_allocator_empty_cache(f->a);
    f->stack = "a.py:2:second";
    take(f, 100);
    assert_string_equal(frames(segment(dump(f), 0)), "second in a.py:2");
}

TEST_F(stacks, a_segment_keeps_its_frames_when_one_below_it_is_gone)
{
    fixture *f = *state;
    record_told(f, GMD_STACKS_ALL);
    f->stack = "a.py:1:first";
    void *first = take(f, 12 * GMD_MIB);
    f->stack = "a.py:2:second";
    take(f, 12 * GMD_MIB);
    give(f, first);
    gmd_allocator_empty_cache(f->a);
    assert_string_equal(frames(segment(dump(f), 0)), "second in a.py:2");
}

TEST_F(stacks, a_free_has_its_own_frames)
{
    fixture *f = *state;
    record_told(f, GMD_STACKS_ALL);
    f->stack = "a.py:1:take";
    void *p = take(f, 100);
    f->stack = "a.py:2:give";
    give(f, p);
    const value *s = dump(f);
    assert_string_equal(frames(event(s, 2)), "give in a.py:2");
    assert_string_equal(frames(event(s, 3)), "give in a.py:2");
}

TEST_F(stacks, of_allocations_only_a_free_is_told_with_its_block_s_frames)
{
    fixture *f = *state;
    record_told(f, GMD_STACKS_ALLOCATIONS);
    f->stack = "a.py:1:take";
    void *p = take(f, 100);
    f->stack = "a.py:2:give";
    give(f, p);
    assert_string_equal(frames(event(dump(f), 2)), "take in a.py:1");
    assert_int_equal(f->asked, 1);
}

TEST_F(stacks, a_snapshot_s_event_is_of_no_request)
{
    fixture *f = *state;
    record_told(f, GMD_STACKS_ALL);
    f->stack = "a.py:1:take";
    take(f, 100);
    dump(f);
    assert_string_equal(frames(event(dump(f), 2)), "-");
}

TEST_F(stacks, without_stacks_nobody_is_asked)
{
    fixture *f = *state;
    record_told(f, GMD_STACKS_OFF);
    give(f, take(f, 100));
    assert_null(key(event(dump(f), 0), "frames"));
    assert_int_equal(f->asked, 0);
}

TEST_F(stacks, equal_stacks_are_one_in_the_file)
{
    fixture *f = *state;
    record_told(f, GMD_STACKS_ALL);
    f->stack = "a.py:1:take";
    take(f, 100);
    take(f, 100);
    const value *s = dump(f);
    assert_ptr_equal(key(event(s, 1), "frames")->items, key(event(s, 2), "frames")->items);
}

TEST_F(stacks, a_block_from_before_has_no_frames)
{
    fixture *f = *state;
    f->stack = "a.py:1:take";
    record_told(f, GMD_STACKS_ALL);
    take(f, 100);
    record(f, GMD_STACKS_ALL);
    assert_string_equal(frames(block(dump(f), 0, 0)), "-");
}

TEST_F(stacks, stacks_are_switched_off_and_on_while_the_recording_goes_on)
{
    fixture *f = *state;
    f->stack = "a.py:1:take";
    record_told(f, GMD_STACKS_ALL);
    take(f, 100);
    assert_int_equal(gmd_allocator_change_stacks(f->a, GMD_STACKS_OFF, NULL), GMD_OK);
    take(f, 200);
    assert_int_equal(gmd_allocator_change_stacks(f->a, GMD_STACKS_ALLOCATIONS, NULL), GMD_OK);
    take(f, 300);
    const value *s = dump(f);
    assert_string_equal(frames(block(s, 0, 0)), "take in a.py:1");
    assert_string_equal(frames(block(s, 0, 1)), "-");
    assert_string_equal(frames(block(s, 0, 2)), "take in a.py:1");
}

TEST_F(stacks, a_told_frame_may_be_a_return_address)
{
    fixture *f = *state;
    char text[64];
    snprintf(text, sizeof text, "@%zx\na.py:1:take\n@12g\n@", (size_t)(uintptr_t)cudaMalloc + 1);
    f->stack = text;
    record_told(f, GMD_STACKS_ALL);
    take(f, 100);
    const char *seen = frames(block(dump(f), 0, 0));
    assert_memory_equal(seen, "cudaMalloc in ", strlen("cudaMalloc in "));
    assert_non_null(strstr(seen, "; take in a.py:1; @12g in :0; @ in :0"));
}

TEST_F(stacks, nor_has_one_in_the_last_slot)
{
    fixture *f = *state;
    f->stack = "a.py:1:take";
    record_told(f, GMD_STACKS_ALL);
    take_in_last_slot(f->a, NULL);
    record(f, GMD_STACKS_ALL);
    const value *blocks = key(segment(dump(f), 0), "blocks");
    for (size_t i = 0; i < blocks->items->count; i++) {
        assert_string_equal(frames(item(blocks, i)), "-");
    }
}

TEST_F(stacks, a_source_may_allocate_and_free)
{
    fixture *f = *state;
    record_told(f, GMD_STACKS_ALL);
    f->stack = "a.py:1:take";
    f->allocates = true;
    take(f, 100);
    const value *s = dump(f);
    assert_string_equal(frames(event(s, 1)), "-"); /* segment, alloc, two of a free: its own */
    assert_string_equal(frames(event(s, 5)), "take in a.py:1");
    assert_int_equal(f->asked, 1);
}

TEST_F(stacks, a_source_that_tells_nothing_leaves_no_frames)
{
    fixture *f = *state;
    record_told(f, GMD_STACKS_ALL);
    take(f, 100);
    assert_null(key(event(dump(f), 0), "frames"));
}

TEST_F(stacks, many_stacks_are_told_apart)
{
    fixture *f = *state;
    record_told(f, GMD_STACKS_ALL);
    enum { STACKS = 700 };
    char text[STACKS][32];
    for (int i = 0; i < STACKS; i++) {
        snprintf(text[i], sizeof text[i], "a.py:%d:f", i);
        f->stack = text[i];
        take(f, 512);
    }
    const value *s = dump(f);
    for (int i = 0; i < STACKS; i++) {
        char expected[32];
        snprintf(expected, sizeof expected, "f in a.py:%d", i);
        assert_string_equal(frames(block(s, 0, (size_t)i)), expected);
    }
}

/* The hash of 16 bytes that begin with `word` is that of the single `word`: from the one the last
 * step of the other is calculated (stacks.c has the steps). False: they are no text. */
static bool make_longer_of_one_hash(uint64_t word, char longer[17])
{
    uint64_t mixed = (word ^ (16 * 2 + 1)) * 0x9e3779b97f4a7c15u;
    uint64_t last = (mixed ^ mixed >> 29) ^ word ^ (8 * 2 + 1);
    memcpy(longer, &word, sizeof word);
    memcpy(longer + sizeof word, &last, sizeof last);
    longer[16] = '\0';
    return strlen(longer) == 16 && !strpbrk(longer, "\n:");
}

TEST_F(stacks, stacks_with_one_hash_are_told_apart)
{
    fixture *f = *state;
    char shorter[] = "aaaaaaaa", longer[17], expected[24];
    uint64_t word;
    do {
        shorter[7]++;
        memcpy(&word, shorter, sizeof word);
    } while (!make_longer_of_one_hash(word, longer));
    record_told(f, GMD_STACKS_ALL);
    f->stack = longer;
    take(f, 100);
    f->stack = shorter;
    take(f, 100);
    snprintf(expected, sizeof expected, "%s in :0", shorter);
    assert_string_equal(frames(event(dump(f), 2)), expected);
}

static size_t tell_long(void *context, char *text, size_t size)
{
    fixture *f = context;
    memset(text, 'x', size);
    memcpy(text, &f->asked, sizeof f->asked); /* a different one each time */
    f->asked++;
    return size;
}

TEST_F(stacks, a_stack_that_there_is_no_room_for_says_so)
{
    fixture *f = *state;
    gmd_allocator_set_stack_source(f->a, tell_long, f);
    assert_int_equal(gmd_allocator_record_history(f->a, 3, GMD_STACKS_ALL, NULL), GMD_OK);
    for (int i = 0; i < 2500; i++) { /* of 16 KiB, twice each: more than 64 MiB */
        give(f, take(f, 512));
    }
    assert_string_equal(frames(event(dump(f), 0)),
                        "(a stack beyond those that there is room for) in :0");
}

/* --- native frames ------------------------------------------------------------------------ */

TEST_F(stacks, native_frames_name_the_library_that_they_are_in)
{
    fixture *f = *state;
    record(f, GMD_STACKS_ALL);
    take(f, 100);
    const value *list = key(event(dump(f), 0), "frames");
    assert_true(list->items->count > 2);
    const value *file = key(item(list, 0), "filename");
    assert_non_null(memmem(file->text, file->length, "test_allocator_stacks", 21));
}

static void *take_by_address(fixture *f) /* kept apart: its return address shows */
{
    return take(f, 100);
}

TEST_F(stacks, native_stacks_differ_by_their_callers)
{
    fixture *f = *state;
    record(f, GMD_STACKS_ALL);
    void *(*volatile call)(fixture *) = take_by_address;
    call(f);
    call(f);
    const value *s = dump(f);
    assert_ptr_not_equal(key(event(s, 1), "frames")->items, key(event(s, 2), "frames")->items);
}

/* Return addresses in place of the thread's own; the first one is left out, as the caller's. */
static struct {
    void *const *addresses;
    int count; /* 0: its own */
} planted;

int __real_backtrace(void **addresses, int size);
__attribute__((visibility("default"))) int __wrap_backtrace(void **addresses, int size);

int __wrap_backtrace(void **addresses, int size)
{
    if (!planted.count) {
        return __real_backtrace(addresses, size);
    }
    memcpy(addresses, planted.addresses, (size_t)planted.count * sizeof *addresses);
    return planted.count;
}

enum { FRAMES = 100, STACKS_OF_CODE = 7 };

/* Addresses in no library that differ in their highest bits only: any table of them by a hash has
 * many at one place. */
static void take_with_addresses_from(fixture *f, uint64_t first)
{
    void *addresses[FRAMES + 1] = {NULL};
    for (uint64_t i = 0; i < FRAMES; i++) {
        addresses[i + 1] = (void *)(uintptr_t)(0x1000 + ((first + i) << 44));
    }
    planted.addresses = addresses;
    planted.count = FRAMES + 1;
    take(f, 100);
    planted.count = 0;
}

TEST_F(stacks, return_addresses_are_told_apart_and_written_once)
{
    fixture *f = *state;
    record(f, GMD_STACKS_ALL);
    for (uint64_t i = 0; i < STACKS_OF_CODE; i++) { /* half of each is new */
        take_with_addresses_from(f, i * FRAMES);
        take_with_addresses_from(f, i * FRAMES + FRAMES / 2);
    }
    const value *s = dump(f);
    for (uint64_t i = 0; i < STACKS_OF_CODE; i++) {
        const value *one = key(event(s, 1 + 2 * i), "frames");
        const value *next = key(event(s, 2 + 2 * i), "frames");
        for (uint64_t frame = 0; frame < FRAMES; frame++) {
            char name[32];
            snprintf(name, sizeof name, "0x%" PRIx64, 0x1000 + ((i * FRAMES + frame) << 44));
            assert_true(is_text(key(item(one, frame), "name"), name));
        }
        for (uint64_t frame = 0; frame < FRAMES / 2; frame++) {
            assert_ptr_equal(item(next, frame)->items, item(one, FRAMES / 2 + frame)->items);
        }
    }
}

TEST_F(stacks, the_return_address_that_makes_room_for_others_is_written_once)
{
    fixture *f = *state;
    void *addresses[] = {NULL, (void *)0x1000, (void *)0x2000, (void *)0x1000}; /* recursion */
    record(f, GMD_STACKS_ALL);
    planted.addresses = addresses;
    planted.count = 4;
    take(f, 100);
    planted.count = 0;
    const value *list = key(event(dump(f), 1), "frames");
    assert_ptr_equal(item(list, 2)->items, item(list, 0)->items);
}

static void keep_name(void *context, const stack_frame *frame)
{
    snprintf(context, 64, "%.*s", (int)frame->name_length, frame->name);
}

TEST(names_of_cpp_are_put_into_words)
{
    char name[64];
    void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
    char *code = library ? dlsym(library, "_ZSt9terminatev") : NULL;
    if (!code) {
        skip();
    }
    stacks_name_code(code + 1, keep_name, name);
    assert_string_equal(name, "std::terminate()");
}

/* --- text --------------------------------------------------------------------------------- */

static void collect(void *context, const stack_frame *frame)
{
    char *text = context;
    size_t used = strlen(text);
    snprintf(text + used, 256 - used, "[%.*s|%d|%.*s]", (int)frame->file_length, frame->file,
             (int)frame->line, (int)frame->name_length, frame->name);
}

static const char *read_text(const char *stack)
{
    static char text[256];
    text[0] = '\0';
    stacks_frames_of_text(stack, strlen(stack), collect, text);
    return text;
}

TEST(names_may_have_colons)
{
    assert_string_equal(read_text("C:/a.py:12:f"), "[C:/a.py|12|f]");
    assert_string_equal(read_text("a.cc:7:std::sort<int>"), "[a.cc|7|std::sort<int>]");
}

TEST(a_line_of_another_form_is_a_function_s_name)
{
    assert_string_equal(read_text("somewhere"), "[|0|somewhere]");
    assert_string_equal(read_text("a.py:x:f"), "[|0|a.py:x:f]");
    assert_string_equal(read_text("a.py:99999999999999999999999:f"),
                        "[|0|a.py:99999999999999999999999:f]"); /* no number of a line */
}

TEST(empty_lines_are_no_frames)
{
    assert_string_equal(read_text("\na.py:1:f\n\nb.py:2:g"), "[a.py|1|f][b.py|2|g]");
}

/* --- stacks without a history ------------------------------------------------------------- */

TEST_F(stacks, a_stack_that_is_kept_can_be_read)
{
    fixture *f = *state;
    char text[100] = "";
    gmd_allocator_set_stack_source(f->a, tell, f);
    f->stack = "a.py:1:inner\nb:c.py:20:outer\n";
    uint32_t stack = gmd_allocator_keep_stack(f->a);
    assert_int_equal(gmd_allocator_stack_text(f->a, stack, text, sizeof text), strlen(f->stack));
    assert_memory_equal(text, f->stack, strlen(f->stack));
}

TEST_F(stacks, a_stack_that_is_kept_twice_is_one)
{
    fixture *f = *state;
    gmd_allocator_set_stack_source(f->a, tell, f);
    f->stack = "a.py:1:inner\n";
    uint32_t stack = gmd_allocator_keep_stack(f->a);
    assert_int_equal(gmd_allocator_keep_stack(f->a), stack);
}

TEST_F(stacks, outer_frames_that_do_not_fit_are_left_out_of_the_text)
{
    fixture *f = *state;
    char text[16];
    gmd_allocator_set_stack_source(f->a, tell, f);
    f->stack = "a.py:1:inner\nb.py:2:outer\n";
    uint32_t stack = gmd_allocator_keep_stack(f->a);
    assert_int_equal(gmd_allocator_stack_text(f->a, stack, text, sizeof text), 13);
}

TEST_F(stacks, a_stack_that_there_is_not_has_no_text)
{
    fixture *f = *state;
    char text[16];
    assert_int_equal(gmd_allocator_stack_text(f->a, 0, text, sizeof text), 0);
    assert_int_equal(gmd_allocator_stack_text(f->a, 1000, text, sizeof text), 0);
}
