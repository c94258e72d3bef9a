/* A page as a whole: the template with the data in it, whatever texts they hold. */
#include "decoded.h"
#include "document.h"
#include "gmd_test.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static char *written(document *d, const char *title)
{
    gmd_error error = {""};
    FILE *out = tmpfile();
    assert_non_null(out);
    assert_int_equal(document_write(d, "1.2.3", title, out, &error), GMD_OK);
    size_t size = (size_t)ftell(out);
    char *text = calloc(size + 1, 1);
    rewind(out);
    assert_int_equal(fread(text, 1, size, out), size);
    fclose(out);
    return text;
}

/* The JSON of a page, and where its sections begin. */
static json_t *read_page(const char *page, uint8_t **bytes, size_t *sections)
{
    size_t length, size;
    const char *payload = find_payload(page, &length);
    *bytes = decode_payload(payload, length, &size);
    assert_memory_equal(*bytes, "GMDPAGE1", 8);
    uint32_t json_size = (uint32_t)(*bytes)[8] | (uint32_t)(*bytes)[9] << 8 |
                         (uint32_t)(*bytes)[10] << 16 | (uint32_t)(*bytes)[11] << 24;
    *sections = ((size_t)12 + json_size + 7) / 8 * 8;
    assert_true(*sections <= size);
    json_t *json = json_loadb((const char *)*bytes + 12, json_size, 0, NULL);
    assert_non_null(json);
    return json;
}

TEST(what_was_added_is_in_the_page)
{
    document d;
    uint8_t *bytes;
    size_t sections;
    uint64_t read[2];
    assert_int_equal(document_begin(&d, NULL), GMD_OK);
    gmd_json *input = document_add(&d, DOCUMENT_INPUTS, NULL);
    gmd_json_string(input, "name", "job");
    gmd_json_end(input);
    size_t kind = columns_new(&d.columns, "h0.", "e.kind", COLUMN_VARINT);
    columns_put(&d.columns, kind, 8);
    columns_put(&d.columns, kind, 3);
    char *page = written(&d, "title");
    json_t *json = read_page(page, &bytes, &sections);
    assert_int_equal(json_integer_value(json_object_get(json, "format")), 1);
    assert_string_equal(json_string_value(json_object_get(json, "gmd")), "1.2.3");
    const json_t *first = json_array_get(json_object_get(json, "inputs"), 0);
    assert_string_equal(json_string_value(json_object_get(first, "name")), "job");
    decode_column(bytes + sections, 2, 0, read, 2);
    assert_int_equal(read[0], 8);
    assert_int_equal(read[1], 3);
    json_decref(json);
    free(bytes);
    free(page);
    document_free(&d);
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part)) {
        count++;
    }
    return count;
}

static void assert_text_is_harmless(const char *text)
{
    document d, empty;
    uint8_t *bytes;
    size_t sections;
    assert_int_equal(document_begin(&d, NULL), GMD_OK);
    assert_int_equal(document_begin(&empty, NULL), GMD_OK);
    document_string(&d, text, strlen(text));
    char *page = written(&d, text), *plain = written(&empty, "plain");
    assert_int_equal(count_of(page, "<"), count_of(plain, "<"));
    json_t *json = read_page(page, &bytes, &sections);
    assert_string_equal(json_string_value(json_array_get(json_object_get(json, "strings"), 0)),
                        text);
    assert_string_equal(json_string_value(json_object_get(json, "title")), text);
    json_decref(json);
    free(bytes);
    free(page);
    free(plain);
    document_free(&d);
    document_free(&empty);
}

TEST(no_text_can_add_an_element_to_the_page)
{
    assert_text_is_harmless("</title></script><script>alert(1)</script><!--");
    assert_text_is_harmless("\"><img src=x onerror=alert(1)> & ' \\ \n \t \x01");
    const char right_to_left[] = {'\xE2', '\x80', '\xAE', '!', '\0'};
    assert_text_is_harmless(right_to_left);
    assert_text_is_harmless("<!-- gmd:data --><!-- gmd:title -->");
}

TEST(a_text_of_a_megabyte_comes_back)
{
    enum { SIZE = 1 << 20 };
    char *text = malloc(SIZE + 1);
    memset(text, '<', SIZE);
    text[SIZE] = '\0';
    assert_text_is_harmless(text);
    free(text);
}

TEST(a_text_is_kept_once)
{
    document d;
    assert_int_equal(document_begin(&d, NULL), GMD_OK);
    uint32_t first = document_string(&d, "train.py", 8);
    assert_int_not_equal(document_string(&d, "loss.py", 7), first);
    assert_int_equal(document_string(&d, "train.py", 8), first);
    document_free(&d);
}
