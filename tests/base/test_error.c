/* How failures carry their message. */
#include "gmd_error.h"
#include "gmd_test.h"

#include <string.h>

TEST(a_failure_returns_its_status_and_the_formatted_message)
{
    gmd_error error;
    assert_int_equal(gmd_fail(&error, GMD_BAD_INPUT, "%s: byte %d", "x.gmd", 7), GMD_BAD_INPUT);
    assert_string_equal(error.text, "x.gmd: byte 7");
}

TEST(a_caller_may_want_no_message)
{
    assert_int_equal(gmd_fail(NULL, GMD_NO_MEMORY, "no host memory"), GMD_NO_MEMORY);
    gmd_error_prefix(NULL, "x");
}

TEST(a_long_message_is_cut_and_terminated)
{
    gmd_error error;
    memset(&error, 'x', sizeof error);
    gmd_fail(&error, GMD_FAILED, "%1000s", "end");
    assert_int_equal(strlen(error.text), sizeof error.text - 1);
}

TEST(a_message_may_be_made_from_the_one_before)
{
    gmd_error error;
    gmd_fail(&error, GMD_FAILED, "disk full");
    gmd_fail(&error, GMD_FAILED, "cannot save: %s", error.text);
    assert_string_equal(error.text, "cannot save: disk full");
}

TEST(a_message_is_one_line_whatever_a_file_says)
{
    gmd_error error;
    gmd_fail(&error, GMD_BAD_INPUT, "%s", "no stream 'a\nb\x1b[2J'");
    assert_string_equal(error.text, "no stream 'a b [2J'");
}

TEST(a_prefix_says_where)
{
    gmd_error error;
    gmd_fail(&error, GMD_BAD_INPUT, "line 3: no such stream");
    gmd_error_prefix(&error, "a.gmd");
    assert_string_equal(error.text, "a.gmd: line 3: no such stream");
}

TEST(a_prefix_that_fills_the_message_is_cut_and_terminated)
{
    gmd_error error;
    char prefix[2 * sizeof error.text];
    for (size_t length = sizeof error.text - 4; length < sizeof error.text + 4; length++) {
        memset(prefix, 'p', length);
        prefix[length] = '\0';
        gmd_fail(&error, GMD_BAD_INPUT, "%1000s", "message");
        gmd_error_prefix(&error, prefix);
        assert_int_equal(strlen(error.text), sizeof error.text - 1);
    }
}
