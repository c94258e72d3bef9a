#include "gmd_conditions.h"
#include "gmd_test.h"

#include <stdlib.h>
#include <string.h>

static uint8_t choices[] = {1, 0, 2};

static gmd_conditions all_stated(void)
{
    return (gmd_conditions){
        .device_count = 2,
        .capacity_bytes = 1 << 20,
        .limit_bytes = 1 << 19,
        .conf = "max_split_size_mb:20",
        .placement = {.kind = GMD_PLACEMENT_SEEDED, .seed = 5},
        .reuses_handles = true,
        .moves_clock = true,
        .schedule = {.kind = GMD_SCHEDULE_EXPLICIT, .choices = choices, .choice_count = 3},
        .interleave = {.kind = GMD_SCHEDULE_SEEDED, .seed = 7}};
}

TEST(what_is_stated_wins_over_what_is_given)
{
    const gmd_conditions stated = all_stated();
    const gmd_conditions given = {.device_count = 1,
                                  .capacity_bytes = 1 << 30,
                                  .limit_bytes = 1 << 29,
                                  .conf = "expandable_segments:True",
                                  .placement = {.kind = GMD_PLACEMENT_RISING},
                                  .schedule = {.kind = GMD_SCHEDULE_LAZY},
                                  .interleave = stated.interleave};
    const gmd_conditions in_force = gmd_conditions_in_force(&stated, &given);
    assert_true(gmd_conditions_equal(&in_force, &stated));
}

TEST(what_is_not_stated_is_as_given)
{
    const gmd_conditions nothing = {0}, given = all_stated();
    const gmd_conditions in_force = gmd_conditions_in_force(&nothing, &given);
    assert_true(gmd_conditions_equal(&in_force, &given));
}

TEST(the_interleaving_in_force_is_the_given_one)
{
    const gmd_conditions stated = all_stated(), given = {0};
    const gmd_conditions in_force = gmd_conditions_in_force(&stated, &given);
    assert_int_equal(in_force.interleave.kind, GMD_SCHEDULE_UNSTATED);
    assert_false(gmd_conditions_equal(&in_force, &stated));
    assert_true(gmd_conditions_same_device(&in_force, &stated));
}

TEST(each_condition_tells_two_apart)
{
    const gmd_conditions one = all_stated();
    uint8_t others[] = {1, 0, 3};
    gmd_conditions changed[11];
    for (size_t i = 0; i < 11; i++) {
        changed[i] = one;
    }
    changed[0].device_count = 3;
    changed[1].capacity_bytes++;
    changed[2].limit_bytes++;
    changed[3].conf = "max_split_size_mb:21";
    changed[4].schedule.choices = others;
    changed[5].schedule.choice_count = 2;
    changed[6].schedule = (gmd_schedule){.kind = GMD_SCHEDULE_SEEDED, .seed = 1};
    changed[7].placement.seed++;
    changed[9].reuses_handles = false;
    changed[10].moves_clock = false;
    changed[8].placement = (gmd_placement){.kind = GMD_PLACEMENT_RISING};
    for (size_t i = 0; i < 11; i++) {
        assert_false(gmd_conditions_same_device(&one, &changed[i]));
        assert_false(gmd_conditions_equal(&one, &changed[i]));
    }
}

TEST(settings_that_are_not_stated_equal_empty_ones)
{
    const gmd_conditions unstated = {0}, empty = {.conf = ""};
    assert_true(gmd_conditions_equal(&unstated, &empty));
}

TEST(a_copy_owns_what_it_is_made_of)
{
    const gmd_conditions from = all_stated();
    gmd_conditions to = from;
    gmd_error error;
    assert_int_equal(gmd_conditions_copy(&to, &to, &error), GMD_OK);
    assert_true(gmd_conditions_equal(&to, &from));
    assert_ptr_not_equal(to.conf, from.conf);
    assert_ptr_not_equal(to.schedule.choices, from.schedule.choices);
    gmd_conditions_free(&to);
    const gmd_conditions nothing = {0};
    assert_true(gmd_conditions_equal(&to, &nothing));
    assert_null(to.conf);
}

TEST(settings_can_be_replaced_by_themselves_or_taken_away)
{
    gmd_conditions c = {0};
    gmd_error error;
    assert_int_equal(gmd_conditions_set_conf(&c, "a:1", &error), GMD_OK);
    assert_int_equal(gmd_conditions_set_conf(&c, c.conf, &error), GMD_OK);
    assert_string_equal(c.conf, "a:1");
    assert_int_equal(gmd_conditions_set_conf(&c, NULL, &error), GMD_OK);
    assert_null(c.conf);
}
