/* The parts of a generated program are those that it needs, and no others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fragments.h"

#include <stdlib.h>

static const char library[] = "//: first\n"
                              "int first;\n"
                              "//=\n"
                              "//: second\n"
                              "int second = first + @NUMBER@;\n"
                              "int on; //?flag\n"
                              "int off; //?!flag\n"
                              "int either; //?other|flag\n"
                              "int both; //?flag&!other\n"
                              "//: third\n"
                              "int third;\n";

static char *text;

static int forget(void **state)
{
    (void)state;
    free(text);
    text = NULL;
    return 0;
}

static const char *parts_for(const char *body, const char *flag)
{
    size_t size;
    fragment_choice choice = {.flag_count = 0};
    fragment_flag(&choice, flag, true);
    fragment_key(&choice, "NUMBER", "7");
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_true(fragments_write(library, "//", &choice, body, out));
    fclose(out);
    return text;
}

static void a_part_comes_with_what_it_needs_itself(void **state)
{
    (void)state;
    assert_string_equal(parts_for("return second;", "none"),
                        "int first;\n\nint second = first + 7;\nint off;\n");
}

static void a_part_that_nobody_names_is_left_out(void **state)
{
    (void)state;
    assert_string_equal(parts_for("return third + seconds;", "none"), "\nint third;\n");
}

static void names_in_comments_and_strings_need_nothing(void **state)
{
    (void)state;
    assert_string_equal(parts_for("/* first */ puts(\"second \\\" third\");", "none"), "");
}

static void lines_are_there_where_their_flags_hold(void **state)
{
    (void)state;
    assert_string_equal(parts_for("second", "flag"),
                        "int first;\n\nint second = first + 7;\nint on;\nint either;\nint both;\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_part_comes_with_what_it_needs_itself, forget),
        cmocka_unit_test_teardown(a_part_that_nobody_names_is_left_out, forget),
        cmocka_unit_test_teardown(names_in_comments_and_strings_need_nothing, forget),
        cmocka_unit_test_teardown(lines_are_there_where_their_flags_hold, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
