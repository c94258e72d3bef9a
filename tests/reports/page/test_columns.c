/* Columns of a page: LEB128, and differences of it. */
#include "columns.h"
#include "decoded.h"
#include "gmd_test.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t values[] = {0, 5, 4, 127, 128, 300, 0, 1ull << 32, 7, COLUMN_MOST, 1};
enum { COUNT = sizeof values / sizeof *values };

static void assert_column_comes_back(column_coding coding)
{
    column_set c = {0};
    uint64_t read[COUNT];
    size_t number = columns_new(&c, "h0.", "b.size", coding);
    for (size_t i = 0; i < COUNT; i++) {
        columns_put(&c, number, values[i]);
    }
    assert_false(c.has_failed);
    decode_column(c.items[number].bytes, c.items[number].size, coding == COLUMN_DELTA, read, COUNT);
    assert_memory_equal(read, values, sizeof values);
    columns_free(&c);
}

TEST(values_come_back)
{
    assert_column_comes_back(COLUMN_VARINT);
}

TEST(values_come_back_from_their_differences)
{
    assert_column_comes_back(COLUMN_DELTA);
}

TEST(a_value_that_a_double_could_not_hold_is_the_largest_that_it_can)
{
    column_set c = {0};
    uint64_t read;
    size_t number = columns_new(&c, "", "b.address", COLUMN_DELTA);
    columns_put(&c, number, UINT64_MAX);
    decode_column(c.items[0].bytes, c.items[0].size, 1, &read, 1);
    assert_int_equal(read, COLUMN_MOST);
    columns_free(&c);
}

static json_t *directory_of(const column_set *c)
{
    char *text = NULL;
    size_t size = 0;
    gmd_json json;
    FILE *out = open_memstream(&text, &size);
    gmd_json_start(&json, out);
    columns_json(c, &json, NULL);
    gmd_json_finish(&json);
    fclose(out);
    json_t *read = json_loads(text, 0, NULL);
    assert_non_null(read);
    free(text);
    return read;
}

static void assert_type(uint64_t value, const char *type)
{
    column_set c = {0};
    columns_put(&c, columns_new(&c, "h1.", "x", COLUMN_VARINT), value);
    json_t *directory = directory_of(&c);
    const json_t *entry = json_object_get(directory, "h1.x");
    assert_string_equal(json_string_value(json_object_get(entry, "type")), type);
    json_decref(directory);
    columns_free(&c);
}

TEST(a_column_has_the_smallest_type_that_holds_its_values)
{
    assert_type(255, "u8");
    assert_type(256, "u16");
    assert_type(65536, "u32");
    assert_type(UINT32_MAX, "u32");
    assert_type(1ull << 32, "f64");
}

TEST(the_directory_says_where_each_column_begins)
{
    column_set c = {0};
    size_t first = columns_new(&c, "", "first", COLUMN_VARINT),
           second = columns_new(&c, "", "second", COLUMN_DELTA);
    columns_put(&c, first, 1);
    columns_put(&c, second, 300);
    columns_put(&c, first, 200);
    json_t *directory = directory_of(&c);
    const json_t *entry = json_object_get(directory, "second");
    assert_int_equal(json_integer_value(json_object_get(entry, "offset")), 3);
    assert_int_equal(json_integer_value(json_object_get(entry, "bytes")), 2);
    assert_int_equal(json_integer_value(json_object_get(entry, "count")), 1);
    json_decref(directory);
    columns_free(&c);
}
