/* The streaming JSON writer, judged by its exact text and by an independent parser. */
#include "gmd_json.h"
#include "gmd_test.h"

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

FIXTURE(json_writer, NULL, release);

TEST_F(json_writer, members_stand_on_lines_of_their_own_in_the_order_of_the_calls)
{
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

TEST_F(json_writer, empty_objects_and_arrays_have_no_line_inside)
{
    begin();
    gmd_json_object(&json, NULL);
    gmd_json_array(&json, "a");
    gmd_json_end(&json);
    gmd_json_object(&json, "o");
    gmd_json_end(&json);
    gmd_json_end(&json);
    assert_string_equal(written(), "{\n  \"a\": [],\n  \"o\": {}\n}\n");
}

TEST_F(json_writer, a_row_and_all_inside_it_is_one_line)
{
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

TEST_F(json_writer, integers_are_exact_to_the_last_bit)
{
    begin();
    gmd_json_u64(&json, NULL, UINT64_MAX);
    assert_string_equal(written(), "18446744073709551615\n");
}

TEST_F(json_writer, doubles_have_six_decimals)
{
    begin();
    gmd_json_double(&json, NULL, 0.25);
    assert_string_equal(written(), "0.250000\n");
}

TEST_F(json_writer, what_json_has_no_number_for_is_null)
{
    begin();
    gmd_json_array(&json, NULL);
    gmd_json_double(&json, NULL, (double)NAN);
    gmd_json_double(&json, NULL, (double)INFINITY);
    gmd_json_end(&json);
    assert_string_equal(written(), "[\n  null,\n  null\n]\n");
}

TEST_F(json_writer, quotes_backslashes_and_control_characters_are_escaped)
{
    begin();
    gmd_json_string(&json, NULL, "\"\\\n\t\r\x01\x1F\x7F/");
    assert_string_equal(written(), "\"\\\"\\\\\\n\\t\\u000d\\u0001\\u001f\\u007f/\"\n");
}

TEST_F(json_writer, valid_utf8_stays_and_invalid_bytes_are_replaced)
{
    begin();
    gmd_json_string(&json, NULL, "\xC3\xA9\xFF");
    assert_string_equal(written(), "\"\xC3\xA9\xEF\xBF\xBD\"\n");
}

TEST_F(json_writer, a_missing_string_is_null)
{
    begin();
    gmd_json_string(&json, NULL, NULL);
    assert_string_equal(written(), "null\n");
}

TEST_F(json_writer, any_bytes_as_key_and_value_make_valid_json)
{
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
