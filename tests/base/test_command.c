/* Command lines that are printed to be copied. */
#include "gmd_command.h"
#include "gmd_test.h"

static char text[64];

static gmd_command begin(void)
{
    return gmd_command_begin(text, sizeof text, "gmd run");
}

TEST(plain_words_stand_as_they_are)
{
    gmd_command c = begin();
    gmd_command_word(&c, "./a-b_c.gmd");
    gmd_command_end(&c);
    assert_string_equal(text, "gmd run ./a-b_c.gmd");
}

TEST(other_words_are_quoted)
{
    gmd_command c = begin();
    gmd_command_word(&c, "a b's");
    gmd_command_word(&c, "");
    gmd_command_end(&c);
    assert_string_equal(text, "gmd run 'a b'\\''s' ''");
}

TEST(an_option_without_a_value_is_left_out)
{
    gmd_command c = begin();
    gmd_command_option(&c, "--conf", NULL);
    gmd_command_option(&c, "--known", "f");
    gmd_command_end(&c);
    assert_string_equal(text, "gmd run --known f");
}

TEST(a_command_that_does_not_fit_is_no_command)
{
    gmd_command c = begin();
    for (int i = 0; i < 12; i++) {
        gmd_command_word(&c, "a word");
    }
    gmd_command_word(&c, "x");
    gmd_command_end(&c);
    assert_string_equal(text, "# the command is too long to be shown here");
}
