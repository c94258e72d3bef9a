/* Settings as they are searched through. */
#include "gmd_test.h"

#include "gmd_size.h"
#include "setting_choice.h"

static setting_values values;

static int free_values(void **state)
{
    (void)state;
    setting_values_free(&values);
    return 0;
}

FIXTURE(values, NULL, free_values);

static void make_values(job_step *items, size_t count, bool has_limit)
{
    const job_steps steps = {.items = items, .count = count};
    gmd_error error = {""};
    assert_int_equal(setting_values_make(&values, &steps, has_limit, &error), GMD_OK);
}

TEST(defaults_are_an_empty_text)
{
    char conf[TRIAL_CONF];
    setting_choice_text(&(setting_choice){{0}}, conf);
    assert_string_equal(conf, "");
}

TEST(options_are_joined_as_pytorch_reads_them)
{
    char conf[TRIAL_CONF];
    setting_choice_text(&(setting_choice){{[OPTION_MAX_SPLIT] = 128, [OPTION_GC] = 80}}, conf);
    assert_string_equal(conf, "max_split_size_mb:128,garbage_collection_threshold:0.80");
}

TEST(expandable_segments_go_with_no_option_that_does_not_concern_them)
{
    const setting_choice split = {{[OPTION_EXPANDABLE] = 1, [OPTION_MAX_SPLIT] = 64}};
    const setting_choice roundup = {{[OPTION_EXPANDABLE] = 1, [OPTION_ROUNDUP] = 4}};
    assert_false(setting_choice_is_sensible(&split));
    assert_true(setting_choice_is_sensible(&roundup));
}

TEST_F(values, sizes_to_split_at_are_those_of_the_job)
{
    job_step steps[] = {{.op = GMD_OP_ALLOC, .bytes = 300 * GMD_MIB},
                        {.op = GMD_OP_ALLOC, .bytes = 70 * GMD_MIB},
                        {.op = GMD_OP_ALLOC, .bytes = 70 * GMD_MIB}};
    make_values(steps, 3, false);
    assert_int_equal(values.size_count, 2);
    assert_int_equal(values.counts[OPTION_MAX_SPLIT], 3);
    assert_int_equal(values.items[OPTION_MAX_SPLIT][1], 70);
    assert_int_equal(values.items[OPTION_MAX_SPLIT][2], 300);
}

TEST_F(values, a_job_without_large_requests_has_none_to_split_at)
{
    job_step steps[] = {{.op = GMD_OP_ALLOC, .bytes = 20 * GMD_MIB}};
    make_values(steps, 1, false);
    assert_int_equal(values.counts[OPTION_MAX_SPLIT], 0);
}

TEST_F(values, garbage_is_collected_under_a_limit_only)
{
    job_step steps[] = {{.op = GMD_OP_ALLOC, .bytes = 512}};
    make_values(steps, 1, false);
    assert_int_equal(values.counts[OPTION_GC], 0);
    setting_values_free(&values);
    make_values(steps, 1, true);
    assert_int_not_equal(values.counts[OPTION_GC], 0);
}

TEST_F(values, segments_of_another_size_are_for_requests_of_1_to_10_MiB)
{
    job_step steps[] = {{.op = GMD_OP_ALLOC, .bytes = 512},
                        {.op = GMD_OP_ALLOC, .bytes = 5 * GMD_MIB}};
    make_values(steps, 1, false);
    assert_int_equal(values.counts[OPTION_LARGE_SEGMENT], 0);
    setting_values_free(&values);
    make_values(steps, 2, false);
    assert_int_not_equal(values.counts[OPTION_LARGE_SEGMENT], 0);
}
