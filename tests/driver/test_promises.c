/* What an allocator promises, in its user's words. */
#include "gmd_abi.h"
#include "gmd_promises.h"
#include "gmd_test.h"

TEST(names_add_up)
{
    unsigned promises = GMD_PROMISE_COALESCING;
    gmd_error error;
    assert_int_equal(gmd_promises_parse("misuse,determinism", &promises, &error), GMD_OK);
    assert_int_equal(promises,
                     GMD_PROMISE_COALESCING | GMD_PROMISE_MISUSE | GMD_PROMISE_DETERMINISM);
}

TEST(a_name_that_is_none_is_refused_and_adds_nothing)
{
    static const char *const wrong[] = {"", "misuse,", "misuse,,pytorch", "Misuse", "misus"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        unsigned promises = 0;
        gmd_error error;
        assert_int_equal(gmd_promises_parse(wrong[i], &promises, &error), GMD_BAD_INPUT);
        assert_int_equal(promises, 0);
    }
}

TEST(pytorchs_algorithm_merges_and_aligns)
{
    unsigned all = promises_all(GMD_PROMISE_PYTORCH);
    assert_true(all & GMD_PROMISE_COALESCING);
    assert_int_equal(promised_alignment(all, 256), 512);
    assert_int_equal(promised_alignment(0, 256), 256);
}
