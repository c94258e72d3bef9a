/* What pickle_writer writes, gmd's own reader of pickles reads. */
#include "gmd_test.h"
#include "pickle.h"
#include "pickle_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct fixture {
    char path[64];
    new_file file;
    pickle_writer w;
    uint8_t *data;
    pickle_document seen;
} fixture;

static int open_fixture(void **state)
{
    static fixture f;
    f = (fixture){.data = NULL};
    snprintf(f.path, sizeof f.path, "writer-%ld.pickle", (long)getpid());
    if (new_file_open(&f.file, f.path, NULL) != GMD_OK) {
        return -1;
    }
    pickle_begin(&f.w, &f.file);
    *state = &f;
    return 0;
}

static int close_fixture(void **state)
{
    fixture *f = *state;
    if (f->data) {
        pickle_free(&f->seen);
        free(f->data);
    }
    unlink(f->path);
    return 0;
}

FIXTURE(pickle_writer, open_fixture, close_fixture);

static const pickle_value *finish(fixture *f)
{
    enum { MOST = 1 << 20 };
    gmd_error error = {""};
    pickle_end(&f->w);
    assert_int_equal(new_file_finish(&f->file, &error), GMD_OK);
    FILE *file = fopen(f->path, "rb");
    assert_non_null(file);
    f->data = malloc(MOST);
    size_t size = fread(f->data, 1, MOST, file);
    fclose(file);
    if (pickle_read(&f->seen, f->data, size, f->path, &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
    return &f->seen.root;
}

TEST_F(pickle_writer, numbers_of_every_length_come_back)
{
    fixture *f = *state;
    const uint64_t numbers[] = {0,          1,
                                255,        256,
                                65535,      65536,
                                INT32_MAX,  1u << 31,
                                UINT32_MAX, (uint64_t)1 << 39,
                                1ull << 40, INT64_MAX,
                                1ull << 63, UINT64_MAX - 1,
                                UINT64_MAX};
    enum { COUNT = sizeof numbers / sizeof *numbers };
    pickle_list list;
    pickle_begin_list(&f->w, &list);
    for (int i = 0; i < COUNT; i++) {
        pickle_next(&f->w, &list);
        pickle_natural(&f->w, numbers[i]);
    }
    pickle_end_list(&f->w, &list);
    const pickle_value *root = finish(f);
    assert_int_equal(root->items->count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(root->items->values[i].kind, PICKLE_NATURAL);
        assert_int_equal(root->items->values[i].number, numbers[i]);
    }
}

TEST_F(pickle_writer, a_negative_number_comes_back)
{
    fixture *f = *state;
    pickle_integer(&f->w, -1);
    const pickle_value *root = finish(f);
    assert_int_equal(root->kind, PICKLE_NEGATIVE);
    assert_int_equal(root->negative, -1);
}

TEST_F(pickle_writer, a_real_number_comes_back)
{
    fixture *f = *state;
    pickle_real(&f->w, 0.6);
    assert_true(finish(f)->real == 0.6);
}

TEST_F(pickle_writer, a_list_longer_than_a_batch_is_whole)
{
    fixture *f = *state;
    enum { COUNT = 2500 };
    pickle_list list;
    pickle_begin_list(&f->w, &list);
    for (int i = 0; i < COUNT; i++) {
        pickle_next(&f->w, &list);
        pickle_natural(&f->w, (uint64_t)i);
    }
    pickle_end_list(&f->w, &list);
    const pickle_value *root = finish(f);
    assert_int_equal(root->items->count, COUNT);
    assert_int_equal(root->items->values[COUNT - 1].number, COUNT - 1);
}

TEST_F(pickle_writer, an_empty_list_is_one)
{
    fixture *f = *state;
    pickle_list list;
    pickle_begin_list(&f->w, &list);
    pickle_end_list(&f->w, &list);
    const pickle_value *root = finish(f);
    assert_int_equal(root->kind, PICKLE_LIST);
    assert_int_equal(root->items->count, 0);
}

TEST_F(pickle_writer, what_is_remembered_comes_again)
{
    fixture *f = *state;
    enum { COUNT = 300 }; /* numbers of one byte and of four */
    pickle_list list;
    pickle_begin_list(&f->w, &list);
    for (int i = 0; i < COUNT; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", i);
        pickle_next(&f->w, &list);
        pickle_text(&f->w, text, strlen(text));
        assert_int_equal(pickle_remember(&f->w), i);
    }
    pickle_next(&f->w, &list);
    pickle_again(&f->w, 7);
    pickle_next(&f->w, &list);
    pickle_again(&f->w, 299);
    pickle_end_list(&f->w, &list);
    const pickle_value *values = finish(f)->items->values;
    assert_memory_equal(values[COUNT].text, "7", 1);
    assert_memory_equal(values[COUNT + 1].text, "299", 3);
}

TEST_F(pickle_writer, long_text_comes_back)
{
    fixture *f = *state;
    enum { LENGTH = 200000 }; /* more than the file's buffer */
    char *text = malloc(LENGTH);
    memset(text, 'x', LENGTH);
    pickle_text(&f->w, text, LENGTH);
    const pickle_value *root = finish(f);
    assert_int_equal(root->length, LENGTH);
    assert_memory_equal(root->text, text, LENGTH);
    free(text);
}

/* Python refuses a file with text that is not UTF-8. */
TEST_F(pickle_writer, what_is_not_utf8_is_written_as_question_marks)
{
    fixture *f = *state;
    const char text[] = "\xc3\xa4 \xff \xc3( \xed\xa0\x80 \xf0\x9f\x98\x80 \xe2\x82";
    const char expected[] = "\xc3\xa4 ? ?( ??? \xf0\x9f\x98\x80 ??";
    pickle_text(&f->w, text, sizeof text - 1);
    const pickle_value *root = finish(f);
    assert_int_equal(root->length, sizeof expected - 1);
    assert_memory_equal(root->text, expected, sizeof expected - 1);
}
