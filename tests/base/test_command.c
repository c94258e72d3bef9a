/* Command lines that are printed to be copied. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gmd_command.h"

static char text[64];

static gmd_command begin(void)
{
    return gmd_command_begin(text, sizeof text, "gmd run");
}

static void plain_words_stand_as_they_are(void **state)
{
    (void)state;
    gmd_command c = begin();
    gmd_command_word(&c, "./a-b_c.gmd");
    gmd_command_end(&c);
    assert_string_equal(text, "gmd run ./a-b_c.gmd");
}

static void other_words_are_quoted(void **state)
{
    (void)state;
    gmd_command c = begin();
    gmd_command_word(&c, "a b's");
    gmd_command_word(&c, "");
    gmd_command_end(&c);
    assert_string_equal(text, "gmd run 'a b'\\''s' ''");
}

static void an_option_without_a_value_is_left_out(void **state)
{
    (void)state;
    gmd_command c = begin();
    gmd_command_option(&c, "--conf", NULL);
    gmd_command_option(&c, "--known", "f");
    gmd_command_end(&c);
    assert_string_equal(text, "gmd run --known f");
}

static void a_command_that_does_not_fit_is_no_command(void **state)
{
    (void)state;
    gmd_command c = begin();
    for (int i = 0; i < 12; i++) {
        gmd_command_word(&c, "a word");
    }
    gmd_command_word(&c, "x");
    gmd_command_end(&c);
    assert_string_equal(text, "# the command is too long to be shown here");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_words_stand_as_they_are),
        cmocka_unit_test(other_words_are_quoted),
        cmocka_unit_test(an_option_without_a_value_is_left_out),
        cmocka_unit_test(a_command_that_does_not_fit_is_no_command),
    };
    return cmocka_run_group_tests_name("command", tests, NULL, NULL);
}
