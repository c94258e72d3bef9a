/* What a case says of itself in its comments: the verdict with its kind and parties. */
#include "gmd_test.h"

#include "gmd_reproducer.h"

#include <string.h>

static char text[400];

static gmd_reproducer read_case(const char *comments)
{
    gmd_reproducer r = {.trace = NULL};
    snprintf(text, sizeof text, "gmd-trace 1\n%s", comments);
    gmd_reproducer_read_comments(&r, text);
    return r;
}

TEST(a_verdict_is_read_with_its_parties)
{
    gmd_reproducer r = read_case("# accounting.wrong figure=a truth=\"b: c\": a = 1: too much\n"
                                 "# gmd fuzz --seed 7 --allocator ./x.so\n");
    assert_string_equal(r.verdict, "accounting.wrong figure=a truth=\"b: c\"");
    assert_string_equal(r.message, "a = 1: too much");
    assert_string_equal(r.origin, "gmd fuzz --seed 7");
    assert_string_equal(r.allocator, "./x.so");
}

TEST(a_case_of_an_older_gmd_names_the_oracle_alone)
{
    assert_string_equal(read_case("# leak: 4096 B are left\n").verdict, "leak");
}

TEST(a_comment_of_another_kind_is_no_verdict)
{
    assert_null(read_case("# Only the first page can be used.\n").verdict);
    assert_null(read_case("# leak of memory\n").verdict);
    assert_null(read_case("# leak a=\"b\n").verdict);
    assert_null(read_case("#\n").verdict);
}
