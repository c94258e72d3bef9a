/* A pool in RMM's design: each defect is found from a few lines on three streams, and nothing is
 * found without. */
#include "faulty_test.h"

static void expect_defect(const char *defect, const char *name, const char *oracle)
{
    gmd_outcome *o = run_case(GMD_TEST_STREAM_POOL, defect, name, NULL, 0);
    expect_found(o, oracle);
    free(o);
}

#define DEFECT_TEST(defect, name, oracle)                                                          \
    TEST(defect##_is_found_by_##oracle)                                                            \
    {                                                                                              \
        expect_defect(#defect, #name, #oracle);                                                    \
    }

DEFECT_TEST(rmm2489, rmm2489, stream_order)
DEFECT_TEST(rmm510, rmm510, stream_order)
DEFECT_TEST(ort12913, ort12913, stream_order)
DEFECT_TEST(dali2983, dali2983, stream_order)
DEFECT_TEST(current_device, eight_devices, backing)
DEFECT_TEST(leaves_device, eight_devices, device_state)

TEST(the_correct_pool_passes_every_case)
{
    static const char *const names[] = {"rmm2489",          "rmm510",        "ort12913",
                                        "dali2983",         "eight_devices", "default_stream",
                                        "destroyed_stream", "failed_wait"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        expect_nothing(run_case(GMD_TEST_STREAM_POOL, NULL, names[i], NULL, 0));
    }
}

TEST(eight_devices_at_once_are_no_trouble_in_any_interleaving)
{
    const gmd_schedule first = {.kind = GMD_SCHEDULE_SEEDED};
    expect_nothing(run_case(GMD_TEST_STREAM_POOL, NULL, "eight_devices", &first, seed_count(100)));
    expect_nothing(run_case("reference", NULL, "eight_devices", &first, seed_count(100)));
}
