/* libgmd_allocator.so as a program meets it: found by name, one allocator for the process. */
#define _GNU_SOURCE /* memmem */
#include "gmd_abi.h"
#include "gmd_cuda.h"
#include "gmd_sim.h"
#include "gmd_size.h"
#include "gmd_test.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef bool filter(void *context, cudaStream_t stream);

static struct {
    int (*configure)(const char *conf, char *message, size_t size);
    void *(*malloc)(size_t size, int device, cudaStream_t stream);
    void (*free)(void *ptr, size_t size, int device, cudaStream_t stream);
    void (*set_memory_fraction)(double fraction, int device);
    uint64_t (*device_request)(size_t size);
    void (*reset_peak_stats)(int device);
    int (*order_segments)(int device, const uint64_t *given, size_t count);
    uint64_t (*place_of)(int device, uint64_t address);
    int (*get_stats)(int device, gmd_stats *out);
    int (*memory_stats)(int device, gmd_stat_fn *emit, void *context);
    int (*walk)(int device, gmd_walk_fn *visit, void *context);
    int (*begin_pool)(int device, const uint64_t id[2], filter *accepts, void *context);
    int (*end_pool)(int device, const uint64_t id[2], void **context);
    int (*release_pool)(int device, const uint64_t id[2]);
    int (*record_history)(uint64_t max_entries, int stacks, char *message, size_t size);
    int (*dump_snapshot)(const char *path, char *message, size_t size);
    int (*yield_memory)(int device, char *message, size_t size);
    int (*restore_memory)(int device, char *message, size_t size);
    const char *(*last_error)(void);
    int (*set_quirk)(const char *name, int is_on);
    int64_t (*quirk_count)(const char *name);
} plugin;

static char message[256];

static bool bind(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found;
}

#define BIND(name) bind(library, "gmd_" #name, &plugin.name)

/* GMD_TEST_ALLOCATOR in the environment: another build of it (ci/mutants). */
static int open_plugin(void **state)
{
    (void)state;
    gmd_sim_config config;
    gmd_sim_default_config(&config);
    config.capacity_bytes = GMD_GIB;
    const char *path = getenv("GMD_TEST_ALLOCATOR");
    void *library = gmd_sim_reset(&config) == 0
                        ? dlopen(path ? path : GMD_TEST_ALLOCATOR, RTLD_NOW | RTLD_LOCAL)
                        : NULL;
    bool is_whole =
        library && BIND(configure) && BIND(malloc) && BIND(free) && BIND(set_memory_fraction) &&
        BIND(device_request) && BIND(reset_peak_stats) && BIND(order_segments) && BIND(place_of) &&
        BIND(get_stats) && BIND(memory_stats) && BIND(walk) && BIND(begin_pool) && BIND(end_pool) &&
        BIND(release_pool) && BIND(record_history) && BIND(dump_snapshot) && BIND(yield_memory) &&
        BIND(restore_memory) && BIND(last_error) && BIND(set_quirk) && BIND(quirk_count);
    return is_whole ? 0 : -1;
}

static gmd_stats stats(void)
{
    gmd_stats s = {.struct_size = sizeof s};
    assert_int_equal(plugin.get_stats(0, &s), 0);
    return s;
}

/* --- settings ------------------------------------------------------------------------------ */

TEST(settings_that_are_not_known_are_refused_with_their_place)
{
    assert_int_equal(plugin.configure("colour:red", message, sizeof message), -1);
    assert_non_null(strstr(message, "colour"));
    assert_int_equal(plugin.configure("", message, sizeof message), 0);
}

TEST(settings_that_are_too_long_are_refused)
{
    static char text[8192];
    memset(text, ' ', sizeof text - 1);
    assert_int_equal(plugin.configure(text, message, sizeof message), -1);
    assert_non_null(strstr(message, "too long"));
}

/* --- requests ------------------------------------------------------------------------------ */

TEST(what_does_not_fit_is_refused_without_another_error)
{
    assert_null(plugin.malloc(2 * GMD_GIB, 0, NULL));
    assert_null(plugin.last_error());
}

TEST(a_foreign_pointer_is_not_freed)
{
    void *p = plugin.malloc(100, 0, NULL);
    plugin.free((char *)p + 8, 100, 0, NULL);
    assert_int_equal(stats().allocation_count, 1);
    plugin.free(p, 100, 0, NULL);
    assert_int_equal(stats().allocation_count, 0);
}

TEST(a_fraction_limits_what_is_reserved)
{
    plugin.set_memory_fraction(0.25, 0);
    assert_null(plugin.malloc(300 * GMD_MIB, 0, NULL));
    plugin.set_memory_fraction(1, 0);
    void *p = plugin.malloc(300 * GMD_MIB, 0, NULL);
    assert_non_null(p);
    plugin.free(p, 0, 0, NULL);
}

TEST(peaks_begin_anew_where_they_are_reset)
{
    plugin.free(plugin.malloc(GMD_MIB, 0, NULL), 0, 0, NULL);
    assert_int_not_equal(stats().allocated_bytes_peak, 0);
    plugin.reset_peak_stats(0);
    assert_int_equal(stats().allocated_bytes_peak, 0);
}

TEST(it_tells_what_it_would_ask_the_device_for)
{
    assert_int_equal(plugin.device_request(1), 2 * GMD_MIB);
    assert_int_equal(plugin.device_request(11 * GMD_MIB), 12 * GMD_MIB);
}

/* --- devices, pools, quirks ---------------------------------------------------------------- */

TEST(a_device_that_is_not_there_is_refused)
{
    const uint64_t id[2] = {0, 1};
    gmd_stats s = {.struct_size = sizeof s};
    void *context;
    assert_null(plugin.malloc(100, 1, NULL));
    assert_int_equal(plugin.get_stats(1, &s), -1);
    assert_int_equal(plugin.memory_stats(1, NULL, NULL), -1);
    assert_int_equal(plugin.walk(1, NULL, NULL), -1);
    assert_int_equal(plugin.order_segments(1, NULL, 0), -1);
    assert_int_equal(plugin.place_of(1, 512), 0);
    assert_int_equal(plugin.begin_pool(1, id, NULL, NULL), -1);
    assert_int_equal(plugin.end_pool(1, id, &context), -1);
    assert_int_equal(plugin.release_pool(1, id), -1);
    assert_int_equal(plugin.yield_memory(1, message, sizeof message), -1);
}

TEST(a_pool_is_begun_ended_and_released_once)
{
    const uint64_t id[2] = {0, 1};
    void *context = NULL;
    assert_int_equal(plugin.begin_pool(0, id, NULL, &plugin), 0);
    assert_int_equal(plugin.begin_pool(0, id, NULL, &plugin), -1);
    assert_int_equal(plugin.end_pool(0, id, &context), 0);
    assert_ptr_equal(context, &plugin);
    assert_int_equal(plugin.end_pool(0, id, &context), -1);
    assert_int_equal(plugin.release_pool(0, id), 0);
    assert_int_equal(plugin.release_pool(0, id), -1);
}

TEST(an_order_of_segments_comes_too_late_when_there_are_some)
{
    void *p = plugin.malloc(100, 0, NULL);
    assert_int_equal(plugin.order_segments(0, NULL, 0), -1);
    plugin.free(p, 100, 0, NULL);
}

TEST(quirks_are_known_by_name)
{
    static const char *const names[] = {"spurious_oom", "expandable_limit", "reservation_left",
                                        "oversize_expandable", "held_pool"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(plugin.set_quirk(names[i], 0), 0);
        assert_int_equal(plugin.quirk_count(names[i]), 0);
    }
    assert_int_equal(plugin.set_quirk("no such quirk", 0), -1);
    assert_int_equal(plugin.quirk_count("no such quirk"), -1);
}

/* --- history ------------------------------------------------------------------------------- */

TEST(native_stacks_begin_with_the_caller)
{
    static char bytes[1 << 20];
    char path[64];
    snprintf(path, sizeof path, "plugin-%ld.pickle", (long)getpid());
    assert_int_equal(plugin.record_history(100, GMD_STACKS_ALL, message, sizeof message), 0);
    plugin.free(plugin.malloc(100, 0, NULL), 100, 0, NULL);
    assert_int_equal(plugin.dump_snapshot(path, message, sizeof message), 0);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    unlink(path);
    plugin.record_history(0, GMD_STACKS_OFF, message, sizeof message);
    assert_non_null(memmem(bytes, size, "test_allocator_plugin", 21));
    assert_null(memmem(bytes, size, "libgmd_allocator", 16));
}

TEST(a_choice_of_stacks_that_is_none_is_refused)
{
    assert_int_equal(plugin.record_history(100, 17, message, sizeof message), -1);
    assert_non_null(strstr(message, "17"));
}

TEST(a_snapshot_that_cannot_be_written_says_why)
{
    assert_int_equal(plugin.dump_snapshot("no/such/folder/file", message, sizeof message), -1);
    assert_non_null(strstr(message, "no/such/folder"));
}

TEST(a_message_is_no_format)
{
    assert_int_equal(plugin.dump_snapshot("no/such/100%%/file", message, sizeof message), -1);
    assert_non_null(strstr(message, "no/such/100%%/file"));
}

TEST(only_what_goes_wrong_has_a_message)
{
    memcpy(message, "before", sizeof "before");
    assert_int_equal(plugin.record_history(0, GMD_STACKS_OFF, message, sizeof message), 0);
    assert_string_equal(message, "before");
    assert_int_equal(plugin.record_history(100, 17, NULL, 0), -1);
}

TEST(settings_come_too_late_once_it_is_in_use)
{
    plugin.free(plugin.malloc(512, 0, NULL), 512, 0, NULL);
    assert_int_equal(plugin.configure("", message, sizeof message), -1);
    assert_string_equal(message, "the settings come too late: the allocator is in use");
}

TEST(memory_that_was_not_lent_is_not_restored)
{
    assert_int_equal(plugin.restore_memory(0, message, sizeof message), -1);
    assert_string_equal(message, "restore_memory: the memory is not lent");
}

TEST(memory_of_cudamalloc_is_not_lent_and_the_message_says_why)
{
    assert_int_equal(plugin.yield_memory(0, message, sizeof message), -1);
    assert_non_null(strstr(message, "expandable_segments"));
}

TEST_GROUP(open_plugin, NULL);
