/* The streaming JSON writer, judged by its exact text and by an independent parser. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gmd_json.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static char *text;
static size_t text_size;
static gmd_json json;

static void begin(void)
{
    gmd_json_start(&json, open_memstream(&text, &text_size));
}

/* What was written since begin(); valid until the next call of release(). */
static const char *written(void)
{
    gmd_json_finish(&json);
    fclose(json.out);
    return text;
}

static int release(void **state)
{
    (void)state;
    free(text);
    text = NULL;
    return 0;
}

static void members_stand_on_lines_of_their_own_in_the_order_of_the_calls(void **state)
{
    (void)state;
    begin();
    gmd_json_object(&json, NULL);
    gmd_json_u64(&json, "z", 1);
    gmd_json_array(&json, "a");
    gmd_json_bool(&json, NULL, true);
    gmd_json_null(&json, NULL);
    gmd_json_end(&json);
    gmd_json_end(&json);
    assert_string_equal(written(), "{\n  \"z\": 1,\n  \"a\": [\n    true,\n    null\n  ]\n}\n");
}

static void empty_objects_and_arrays_have_no_line_inside(void **state)
{
    (void)state;
    begin();
    gmd_json_object(&json, NULL);
    gmd_json_array(&json, "a");
    gmd_json_end(&json);
    gmd_json_object(&json, "o");
    gmd_json_end(&json);
    gmd_json_end(&json);
    assert_string_equal(written(), "{\n  \"a\": [],\n  \"o\": {}\n}\n");
}

static void a_row_and_all_inside_it_is_one_line(void **state)
{
    (void)state;
    begin();
    gmd_json_array(&json, NULL);
    gmd_json_row(&json, NULL);
    gmd_json_string(&json, "label", "x");
    gmd_json_array(&json, "list");
    gmd_json_u64(&json, NULL, 1);
    gmd_json_u64(&json, NULL, 2);
    gmd_json_end(&json);
    gmd_json_end(&json);
    gmd_json_end(&json);
    assert_string_equal(written(), "[\n  {\"label\": \"x\", \"list\": [1, 2]}\n]\n");
}

static void integers_are_exact_to_the_last_bit(void **state)
{
    (void)state;
    begin();
    gmd_json_u64(&json, NULL, UINT64_MAX);
    assert_string_equal(written(), "18446744073709551615\n");
}

static void doubles_have_six_decimals(void **state)
{
    (void)state;
    begin();
    gmd_json_double(&json, NULL, 0.25);
    assert_string_equal(written(), "0.250000\n");
}

static void what_json_has_no_number_for_is_null(void **state)
{
    (void)state;
    begin();
    gmd_json_array(&json, NULL);
    gmd_json_double(&json, NULL, (double)NAN);
    gmd_json_double(&json, NULL, (double)INFINITY);
    gmd_json_end(&json);
    assert_string_equal(written(), "[\n  null,\n  null\n]\n");
}

static void quotes_backslashes_and_control_characters_are_escaped(void **state)
{
    (void)state;
    begin();
    gmd_json_string(&json, NULL, "\"\\\n\t\r\x01\x1F\x7F/");
    assert_string_equal(written(), "\"\\\"\\\\\\n\\t\\u000d\\u0001\\u001f\\u007f/\"\n");
}

static void valid_utf8_stays_and_invalid_bytes_are_replaced(void **state)
{
    (void)state;
    begin();
    gmd_json_string(&json, NULL, "\xC3\xA9\xFF");
    assert_string_equal(written(), "\"\xC3\xA9\xEF\xBF\xBD\"\n");
}

static void a_missing_string_is_null(void **state)
{
    (void)state;
    begin();
    gmd_json_string(&json, NULL, NULL);
    assert_string_equal(written(), "null\n");
}

static void any_bytes_as_key_and_value_make_valid_json(void **state)
{
    (void)state;
    char every_byte[256];
    for (int i = 0; i < 255; i++) {
        every_byte[i] = (char)(i + 1);
    }
    every_byte[255] = '\0';
    begin();
    gmd_json_object(&json, NULL);
    gmd_json_string(&json, every_byte, every_byte);
    gmd_json_end(&json);
    json_error_t error;
    json_t *parsed = json_loads(written(), JSON_REJECT_DUPLICATES, &error);
    assert_non_null(parsed);
    json_decref(parsed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(members_stand_on_lines_of_their_own_in_the_order_of_the_calls,
                                  release),
        cmocka_unit_test_teardown(empty_objects_and_arrays_have_no_line_inside, release),
        cmocka_unit_test_teardown(a_row_and_all_inside_it_is_one_line, release),
        cmocka_unit_test_teardown(integers_are_exact_to_the_last_bit, release),
        cmocka_unit_test_teardown(doubles_have_six_decimals, release),
        cmocka_unit_test_teardown(what_json_has_no_number_for_is_null, release),
        cmocka_unit_test_teardown(quotes_backslashes_and_control_characters_are_escaped, release),
        cmocka_unit_test_teardown(valid_utf8_stays_and_invalid_bytes_are_replaced, release),
        cmocka_unit_test_teardown(a_missing_string_is_null, release),
        cmocka_unit_test_teardown(any_bytes_as_key_and_value_make_valid_json, release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
