/* What an allocator promises, in its user's words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gmd_abi.h"
#include "gmd_promises.h"

static void names_add_up(void **state)
{
    (void)state;
    unsigned promises = GMD_PROMISE_COALESCING;
    gmd_error error;
    assert_int_equal(gmd_promises_parse("misuse,determinism", &promises, &error), GMD_OK);
    assert_int_equal(promises,
                     GMD_PROMISE_COALESCING | GMD_PROMISE_MISUSE | GMD_PROMISE_DETERMINISM);
}

static void a_name_that_is_none_is_refused_and_adds_nothing(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", "misuse,", "misuse,,pytorch", "Misuse", "misus"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        unsigned promises = 0;
        gmd_error error;
        assert_int_equal(gmd_promises_parse(wrong[i], &promises, &error), GMD_BAD_INPUT);
        assert_int_equal(promises, 0);
    }
}

static void pytorchs_algorithm_merges_and_aligns(void **state)
{
    (void)state;
    unsigned all = gmd_promises_all(GMD_PROMISE_PYTORCH);
    assert_true(all & GMD_PROMISE_COALESCING);
    assert_int_equal(gmd_promised_alignment(all, 256), 512);
    assert_int_equal(gmd_promised_alignment(0, 256), 256);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_add_up),
        cmocka_unit_test(a_name_that_is_none_is_refused_and_adds_nothing),
        cmocka_unit_test(pytorchs_algorithm_merges_and_aligns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
