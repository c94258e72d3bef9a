/* Settings in PYTORCH_CUDA_ALLOC_CONF syntax: what each does to a request's sizes, and what is
 * refused, by name and place. */
#include "allocator_test.h"

#include "settings.h"

#include <stdio.h>
#include <string.h>

static settings parsed(const char *conf)
{
    settings s;
    gmd_error error = {""};
    assert_int_equal(settings_parse(&s, conf, &error), GMD_OK);
    assert_string_equal(error.text, "");
    return s;
}

static void expect_refused(const char *conf, const char *part)
{
    settings s;
    gmd_error error = {""};
    assert_int_equal(settings_parse(&s, conf, &error), GMD_BAD_INPUT);
    assert_non_null(strstr(error.text, part));
}

TEST(without_settings_sizes_are_multiples_of_512)
{
    settings s = parsed("");
    assert_int_equal(settings_block_size(&s, 1), 512);
    assert_int_equal(settings_block_size(&s, 513), 1024);
}

TEST(divisions_cut_the_range_between_powers_of_two)
{
    settings s = parsed("roundup_power2_divisions:4");
    assert_int_equal(settings_block_size(&s, 1200 * GMD_KIB), 1280 * GMD_KIB);
    assert_int_equal(settings_block_size(&s, 1024 * GMD_KIB), 1024 * GMD_KIB);
}

TEST(divisions_leave_small_requests_alone)
{
    settings s = parsed("roundup_power2_divisions:4");
    assert_int_equal(settings_block_size(&s, 2048), 2048);
    assert_int_equal(settings_block_size(&s, 2049), 2560);
}

TEST(a_list_gives_each_range_its_divisions)
{
    settings s = parsed("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]");
    assert_int_equal(settings_block_size(&s, 300 * GMD_MIB + 1), 300 * GMD_MIB + 512);
    assert_int_equal(settings_block_size(&s, 600 * GMD_MIB), 768 * GMD_MIB);
    assert_int_equal(settings_block_size(&s, 1100 * GMD_MIB), 1280 * GMD_MIB);
    assert_int_equal(settings_block_size(&s, 2100 * GMD_MIB), 2304 * GMD_MIB);
}

TEST(sizes_saturate_where_no_device_serves)
{
    settings s = parsed("roundup_power2_divisions:2");
    assert_true(settings_block_size(&s, UINT64_MAX) > UINT64_MAX / 4 * 3);
    assert_true(settings_segment_size(&s, UINT64_MAX - 100) > UINT64_MAX / 4 * 3);
}

TEST(the_large_segment_size_is_of_requests_below_10_mib)
{
    settings s = parsed("large_segment_size_mb:64");
    assert_int_equal(settings_segment_size(&s, 2 * GMD_MIB), 64 * GMD_MIB);
    assert_int_equal(settings_segment_size(&s, 10 * GMD_MIB), 10 * GMD_MIB);
}

TEST(pages_are_what_expandable_segments_ask_for)
{
    settings s = parsed("expandable_segments:True");
    assert_int_equal(settings_device_request(&s, 512), 2 * GMD_MIB);
    assert_int_equal(settings_device_request(&s, 21 * GMD_MIB), 40 * GMD_MIB);
}

TEST(blanks_and_settings_of_host_memory_are_read_over)
{
    settings s = parsed(" pinned_num_register_threads : 4 , max_split_size_mb : 20 ");
    assert_int_equal(s.max_split_bytes, 20 * GMD_MIB);
}

TEST(what_is_not_known_is_named_with_its_place)
{
    expect_refused("max_split_size:20", "instead of 'max_split_size' at character 1");
    expect_refused("expandable_segments:True,x:1", "instead of 'x' at character 26");
}

TEST(reuse_within_a_capture_can_be_switched_off_but_not_on)
{
    parsed("graph_capture_record_stream_reuse:False");
    settings s = parsed("graph_capture_record_stream_reuse:True");
    assert_true(s.reuses_in_captures);
}

TEST(values_without_effect_are_checked_all_the_same)
{
    parsed("release_lock_on_cudamalloc:True,release_lock_on_hipmalloc:False");
    parsed("pinned_use_cuda_host_register:True,pinned_reserve_segment_size_mb:64");
    expect_refused("pinned_use_background_threads:1", "instead of '1'");
    expect_refused("pinned_num_register_threads:3", "power of two up to 128");
    expect_refused("pinned_num_register_threads:256", "power of two up to 128");
    expect_refused("pinned_reserve_segment_size_mb:0", "at least 1");
}

TEST(malformed_values_are_refused)
{
    expect_refused("max_split_size_mb", "':' expected instead of 'the end'");
    expect_refused("max_split_size_mb:19", "at least 20");
    expect_refused("max_split_size_mb:x", "instead of 'x'");
    expect_refused("max_split_size_mb:-1", "instead of '-1'");
    expect_refused("large_segment_size_mb:10", "above 10");
    expect_refused("garbage_collection_threshold:1", "between 0 and 1");
    expect_refused("garbage_collection_threshold:nan", "between 0 and 1");
    expect_refused("per_process_memory_fraction:1.1", "from 0 to 1");
    expect_refused("expandable_segments:yes", "'True' or 'False'");
    expect_refused("roundup_power2_divisions:3", "power of two");
    expect_refused("roundup_power2_divisions:[3:4]", "not a power of two");
    expect_refused("roundup_power2_divisions:[1:4", "expected");
    expect_refused("roundup_power2_divisions:[1:4;2:2]", "expected");
    expect_refused("backend:cudaMallocAsync", "native");
    expect_refused(",", "the name of a setting");
    expect_refused("max_split_size_mb:99999999999999999999999", "instead of");
}

TEST(the_ends_of_a_range_belong_to_it)
{
    assert_true(parsed("per_process_memory_fraction:0").memory_fraction == 0);
    assert_true(parsed("per_process_memory_fraction:1").memory_fraction == 1);
    assert_int_equal(parsed("max_split_size_mb:20").max_split_bytes, 20 * GMD_MIB);
    assert_int_equal(parsed("max_non_split_rounding_mb:20").max_non_split_rounding_bytes,
                     20 * GMD_MIB);
    assert_int_equal(parsed("large_segment_size_mb:11").large_segment_bytes, 11 * GMD_MIB);
    parsed("pinned_num_register_threads:1,pinned_reserve_segment_size_mb:1");
    parsed("pinned_num_register_threads:128");
}

TEST(what_is_outside_by_one_does_not)
{
    expect_refused("garbage_collection_threshold:0", "between 0 and 1");
    expect_refused("max_non_split_rounding_mb:19", "at least 20");
    expect_refused("pinned_num_register_threads:0", "power of two up to 128");
}

TEST(a_bound_beyond_the_last_interval_is_of_the_last)
{
    settings s = parsed("roundup_power2_divisions:[16384:2,65536:4]");
    assert_int_equal(s.roundup_divisions[ROUNDUP_INTERVALS - 2], 2);
    assert_int_equal(s.roundup_divisions[ROUNDUP_INTERVALS - 1], 4);
}

TEST(a_setting_may_stand_before_a_comma_at_the_end)
{
    assert_true(parsed("expandable_segments:True,").expandable_segments);
}
static settings later(const settings *before, const char *conf)
{
    settings s;
    gmd_error error = {""};
    assert_int_equal(settings_parse_later(&s, before, conf, &error), GMD_OK);
    return s;
}

TEST(later_settings_fall_back_to_their_defaults_as_in_torch)
{
    settings before =
        parsed("max_split_size_mb:20,garbage_collection_threshold:0.5,roundup_power2_divisions:4");
    settings s = later(&before, "");
    assert_true(s.max_split_bytes == UINT64_MAX);
    assert_true(!(s.gc_threshold > 0));
    assert_int_equal(settings_block_size(&s, 1200 * GMD_KIB), 1200 * GMD_KIB);
}

TEST(later_settings_keep_the_others_as_in_torch)
{
    settings before = parsed("expandable_segments:True,large_segment_size_mb:64,"
                             "max_non_split_rounding_mb:40,per_process_memory_fraction:0.5");
    settings s = later(&before, "roundup_power2_divisions:4");
    assert_true(s.expandable_segments);
    assert_int_equal(s.large_segment_bytes, 64 * GMD_MIB);
    assert_int_equal(s.max_non_split_rounding_bytes, 40 * GMD_MIB);
    assert_true(s.memory_fraction < 1);
    assert_int_equal(settings_block_size(&s, 1200 * GMD_KIB), 1280 * GMD_KIB);
}

static void expect_change(const bench *b, const char *conf, gmd_status expected, const char *part)
{
    gmd_error error = {""};
    assert_int_equal(gmd_allocator_change_settings(b->a, conf, &error), expected);
    assert_non_null(strstr(error.text, part));
}

TEST_F(bench, sizes_follow_changed_settings)
{
    bench b = open_bench(GMD_GIB, "");
    take(&b, 1200 * GMD_KIB);
    expect_change(&b, "roundup_power2_divisions:4", GMD_OK, "");
    take(&b, 1200 * GMD_KIB);
    assert_int_equal(stats_of(&b).allocated_bytes, (1200 + 1280) * GMD_KIB);
}

TEST_F(bench, settings_that_are_refused_change_nothing)
{
    bench b = open_bench(GMD_GIB, "expandable_segments:True");
    take(&b, 512);
    expect_change(&b, "roundup_power2_divisions:4,large_segment_size_mb:64", GMD_FAILED,
                  "large_segment_size_mb cannot change while memory of device 0 is reserved");
    take(&b, 1200 * GMD_KIB);
    assert_int_equal(stats_of(&b).allocated_bytes, 1200 * GMD_KIB + 512);
}

/* Blocks that are there stay as they are; what may be split or kept follows the new size. */
TEST_F(bench, blocks_are_split_by_the_size_that_is_set_now)
{
    bench b = open_bench(GMD_GIB, "");
    uint64_t whole = take(&b, 60 * GMD_MIB);
    give(&b, whole);
    expect_change(&b, "max_split_size_mb:40", GMD_OK, "");
    assert_int_not_equal(take(&b, 30 * GMD_MIB), whole); /* it is kept for requests of its like */
    expect_change(&b, "", GMD_OK, "");                   /* as in torch: back to the default */
    assert_int_equal(take(&b, 30 * GMD_MIB), whole);
    assert_int_equal(take(&b, 30 * GMD_MIB), whole + 30 * GMD_MIB);
}

static void see_figure(void *context, const char *name, uint64_t value)
{
    uint64_t *seen = context;
    if (strcmp(name, "oversize_allocations.current") == 0) {
        seen[0] = value;
    } else if (strcmp(name, "oversize_segments.current") == 0) {
        seen[1] = value;
    }
}

TEST_F(bench, oversize_is_what_the_size_that_is_set_now_says)
{
    bench b = open_bench(GMD_GIB, "");
    uint64_t large = take(&b, 60 * GMD_MIB), seen[2] = {99, 99};
    give(&b, take(&b, 50 * GMD_MIB));
    expect_change(&b, "max_split_size_mb:40", GMD_OK, "");
    gmd_allocator_memory_stats(b.a, 0, see_figure, seen);
    assert_int_equal(seen[0], 1);
    assert_int_equal(seen[1], 2);
    give(&b, large);
    gmd_allocator_empty_cache(b.a);
    gmd_allocator_memory_stats(b.a, 0, see_figure, seen);
    assert_int_equal(seen[0] + seen[1], 0);
}

TEST_F(bench, any_setting_changes_while_nothing_is_reserved)
{
    bench b = open_bench(GMD_GIB, "");
    expect_change(&b, "expandable_segments:True", GMD_OK, "");
    take(&b, 512);
    assert_int_equal(device_state().reservation_count, 1);
}

TEST_F(bench, segments_are_expandable_from_the_change_on_and_cached_ones_serve_on)
{
    bench b = open_bench(GMD_GIB, "");
    uint64_t plain = take(&b, 40 * GMD_MIB);
    expect_change(&b, "expandable_segments:True", GMD_OK, "");
    uint64_t expandable = take(&b, 40 * GMD_MIB);
    assert_int_equal(device_state().reservation_count, 1);
    give(&b, plain);
    assert_int_equal(take(&b, 40 * GMD_MIB), plain);
    give(&b, plain);
    give(&b, expandable);
    gmd_allocator_empty_cache(b.a);
    assert_int_equal(stats_of(&b).reserved_bytes, 0);
    assert_int_equal(device_state().physical_bytes, 0);
}

/* As in PyTorch: whoever switches them off wants memory that can be shared. */
TEST_F(bench, no_request_goes_to_expandable_segments_that_were_switched_off)
{
    bench b = open_bench(GMD_GIB, "expandable_segments:True");
    uint64_t expandable = take(&b, 40 * GMD_MIB);
    uint64_t mapped = device_state().mapped_bytes;
    give(&b, expandable);
    expect_change(&b, "expandable_segments:False", GMD_OK, "");
    uint64_t plain = take(&b, 40 * GMD_MIB);
    assert_int_not_equal(plain, expandable);
    assert_int_equal(device_state().mapped_bytes, mapped);
    give(&b, plain);
    gmd_allocator_empty_cache(b.a);
    assert_int_equal(stats_of(&b).reserved_bytes, 0);
}

TEST_F(bench, a_request_that_is_short_of_memory_gets_that_of_either_kind_of_segments)
{
    bench b = open_bench(100 * GMD_MIB, "expandable_segments:True");
    give(&b, take(&b, 40 * GMD_MIB));
    expect_change(&b, "expandable_segments:False", GMD_OK, "");
    give(&b, take(&b, 40 * GMD_MIB));
    uint64_t all = take(&b, 90 * GMD_MIB);
    assert_int_not_equal(all, 0);
    give(&b, all);
    expect_change(&b, "expandable_segments:True", GMD_OK, "");
    assert_int_not_equal(take(&b, 96 * GMD_MIB), 0);
}

TEST_F(bench, a_limit_that_was_resolved_is_changed_by_its_function_only)
{
    bench b = open_bench(GMD_GIB, "");
    gmd_allocator_set_memory_fraction(b.a, 0.5, 0);
    expect_change(&b, "per_process_memory_fraction:0.25", GMD_FAILED,
                  "set_per_process_memory_fraction");
}

TEST_F(bench, an_unknown_setting_is_named)
{
    bench b = open_bench(GMD_GIB, "");
    expect_change(&b, "no_such:1", GMD_BAD_INPUT, "no_such");
}

TEST_F(bench, garbage_is_collected_from_the_change_on)
{
    bench b = open_bench(GMD_GIB, "");
    gmd_allocator_set_memory_fraction(b.a, 0.5, 0);
    give(&b, take(&b, 300 * GMD_MIB));
    expect_change(&b, "garbage_collection_threshold:0.5", GMD_OK, "");
    take(&b, 310 * GMD_MIB); /* both do not fit: without it the limit refuses first */
    assert_int_equal(stats_of(&b).num_alloc_retries, 0);
}

static bool contains(const char *bytes, size_t length, const char *text)
{
    size_t wanted = strlen(text), at = 0;
    while (at + wanted <= length && memcmp(bytes + at, text, wanted) != 0) {
        at++;
    }
    return at + wanted <= length;
}

TEST_F(bench, a_snapshot_tells_the_changed_settings)
{
    bench b = open_bench(GMD_GIB, "");
    gmd_error error;
    expect_change(&b, "roundup_power2_divisions:4", GMD_OK, "");
    assert_int_equal(gmd_allocator_dump_snapshot(b.a, "changed-settings.pickle", &error), GMD_OK);
    FILE *file = fopen("changed-settings.pickle", "rb");
    assert_non_null(file);
    char text[4096];
    size_t length = fread(text, 1, sizeof text, file);
    fclose(file);
    remove("changed-settings.pickle");
    assert_true(contains(text, length, "roundup_power2_divisions:4"));
}
