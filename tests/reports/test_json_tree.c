/* JSON as a tree: what RFC 8259 allows is taken, anything else refused at its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "json_tree.h"

#include <stdlib.h>
#include <string.h>

static gmd_json_tree *tree;
static gmd_error error;

static int release(void **state)
{
    (void)state;
    gmd_json_tree_free(tree);
    tree = NULL;
    return 0;
}

static gmd_status parse(const char *text, size_t size)
{
    char *copy = malloc(size + 1);
    assert_non_null(copy);
    memcpy(copy, text, size);
    copy[size] = '\0';
    gmd_json_tree_free(tree);
    return gmd_json_tree_parse(&tree, copy, size, "f", &error);
}

static const gmd_json_value *root_of(const char *text)
{
    assert_int_equal(parse(text, strlen(text)), GMD_OK);
    return gmd_json_root(tree);
}

static void assert_refused(const char *text, const char *message)
{
    assert_int_equal(parse(text, strlen(text)), GMD_BAD_INPUT);
    assert_string_equal(error.text, message);
    assert_null(tree);
}

static void members_are_found_by_their_keys(void **state)
{
    (void)state;
    const gmd_json_value *root = root_of("{\"a\": [true, {\"b\": 0}], \"b\": \"c\"}");
    assert_string_equal(gmd_json_member(tree, root, "b", NULL)->text, "c");
    assert_null(gmd_json_member(tree, root, "c", NULL));
}

static void values_of_an_array_follow_each_other(void **state)
{
    (void)state;
    const gmd_json_value *root = root_of("[[1, 2], 3]");
    const gmd_json_value *second = gmd_json_next(tree, gmd_json_first(tree, root));
    assert_int_equal(second->text[0], '3');
    assert_null(gmd_json_next(tree, second));
}

static void a_key_that_is_there_twice_is_told(void **state)
{
    (void)state;
    bool is_twice = false;
    const gmd_json_value *root = root_of("{\"a\": 1, \"a\": 2}");
    gmd_json_member(tree, root, "a", &is_twice);
    assert_true(is_twice);
}

static void escapes_stand_for_their_characters(void **state)
{
    (void)state;
    assert_string_equal(
        root_of("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"")->text,
        "\"\\/\b\f\n\r\tA\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
}

static void whole_numbers_are_exact_up_to_64_bits(void **state)
{
    (void)state;
    uint64_t number = 0;
    assert_true(gmd_json_to_u64(root_of("18446744073709551615"), &number));
    assert_int_equal(number, UINT64_MAX);
}

static void what_is_no_whole_number_of_64_bits_is_told(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "18446744073709551616", "-1", "1.0", "1e3", "\"1\"", "null"};
    uint64_t number;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_false(gmd_json_to_u64(root_of(texts[i]), &number));
    }
}

static void a_number_beyond_a_double_is_told(void **state)
{
    (void)state;
    double number;
    assert_false(gmd_json_to_double(root_of("1e400"), &number));
    assert_true(gmd_json_to_double(root_of("-2.5e-3"), &number));
    assert_true(number == -2.5e-3);
}

static void the_place_of_what_is_wrong_is_its_line_and_byte(void **state)
{
    (void)state;
    assert_refused("{\"a\": \"x\\ny\",\n  \"b\": nul}", "f:2:8: expected a value, found 'n'");
}

static void the_grammar_is_that_of_the_rfc(void **state)
{
    (void)state;
    assert_refused("", "f:1:1: expected a value, found the end of the file");
    assert_refused("[1,]", "f:1:4: expected a value, found ']'");
    assert_refused("[01]", "f:1:3: expected ',' or ']', found '1'");
    assert_refused("[1.]", "f:1:4: expected a digit after the point, found ']'");
    assert_refused("[-]", "f:1:3: expected a digit, found ']'");
    assert_refused("[1e+]", "f:1:5: expected a digit of the exponent, found ']'");
    assert_refused("{\"a\" 1}", "f:1:6: expected ':', found '1'");
    assert_refused("{a: 1}", "f:1:2: expected a string, found 'a'");
    assert_refused("[1] 2", "f:1:5: expected the end of the file, found '2'");
    assert_refused(
        "\"a", "f:1:3: expected a character of a string, or its end, found the end of the file");
    assert_refused("\"\n\"",
                   "f:1:2: expected a character of a string, or its end, found the byte 0x0A");
    assert_refused("\"\\x\"", "f:1:3: expected one of \"\\/bfnrtu after a backslash, found 'x'");
    assert_refused("\"\\u12g4\"", "f:1:6: expected four hexadecimal digits after \\u, found 'g'");
}

static void characters_that_no_text_can_have_are_refused(void **state)
{
    (void)state;
    assert_refused("\"\\u0000\"", "f:1:8: \\u stands for no character that a text can have");
    assert_refused("\"\\udc00\"", "f:1:8: \\u stands for no character that a text can have");
    assert_refused("\"\\ud800\\u0041\"",
                   "f:1:14: \\u stands for no character that a text can have");
}

static void a_zero_byte_is_no_end(void **state)
{
    (void)state;
    assert_int_equal(parse("1\0 2", 4), GMD_BAD_INPUT);
    assert_string_equal(error.text, "f:1:2: expected the end of the file, found the byte 0x00");
}

static void nesting_has_a_bound(void **state)
{
    (void)state;
    enum { DEEP = 100000 };
    char *text = malloc(DEEP);
    assert_non_null(text);
    memset(text, '[', DEEP);
    assert_int_equal(parse(text, DEEP), GMD_BAD_INPUT);
    assert_string_equal(error.text, "f:1:33: brackets more than 32 deep");
    free(text);
}

#define CLAIM(name) cmocka_unit_test_teardown(name, release)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(members_are_found_by_their_keys),
        CLAIM(values_of_an_array_follow_each_other),
        CLAIM(a_key_that_is_there_twice_is_told),
        CLAIM(escapes_stand_for_their_characters),
        CLAIM(whole_numbers_are_exact_up_to_64_bits),
        CLAIM(what_is_no_whole_number_of_64_bits_is_told),
        CLAIM(a_number_beyond_a_double_is_told),
        CLAIM(the_place_of_what_is_wrong_is_its_line_and_byte),
        CLAIM(the_grammar_is_that_of_the_rfc),
        CLAIM(characters_that_no_text_can_have_are_refused),
        CLAIM(a_zero_byte_is_no_end),
        CLAIM(nesting_has_a_bound),
    };
    return cmocka_run_group_tests_name("json_tree", tests, NULL, NULL);
}
