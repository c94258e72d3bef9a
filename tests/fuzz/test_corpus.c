/* The corpus of a campaign: what is taken in, found again, and asked for. */
#include "fuzz_test.h"

#include "gmd_corpus.h"

#include <dirent.h>
#include <unistd.h>

static char folder[] = "/tmp/gmd-test-corpus-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/gmd-test-corpus-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        unlinkat(dirfd(d), e->d_name, 0);
    }
    if (d) {
        closedir(d);
    }
    return rmdir(folder);
}

FIXTURE(folder, make_folder, remove_folder);

static void add(gmd_corpus *c, const char *text, uint32_t fresh)
{
    gmd_error error = {""};
    gmd_trace trace = parse_or_fail(text);
    demand_ok(gmd_corpus_add(c, &trace, fresh, &error), &error);
    gmd_trace_free(&trace);
}

typedef struct seen {
    unsigned count;
    char text[500]; /* of the last */
} seen;

static gmd_status look(void *context, gmd_trace *trace)
{
    seen *s = context;
    char *text = text_of(trace);
    s->count++;
    snprintf(s->text, sizeof s->text, "%s", text);
    free(text);
    gmd_trace_free(trace);
    return GMD_OK;
}

static seen read_folder(gmd_corpus *c, size_t *unreadable, gmd_error *error)
{
    seen s = {0};
    demand_ok(gmd_corpus_read(c, look, &s, unreadable, error), error);
    return s;
}

TEST_F(folder, what_one_process_takes_in_another_one_reads_once)
{
    gmd_corpus first = {.folder = folder}, second = {.folder = folder};
    size_t unreadable;
    gmd_error error = {""};
    add(&first, "gmd-trace 1\ncapacity 64MiB\nalloc a 1MiB s1\nfree a\n", 3);
    seen once = read_folder(&second, &unreadable, &error);
    seen again = read_folder(&second, &unreadable, &error);
    assert_int_equal(once.count, 1);
    assert_non_null(strstr(once.text, "1MiB s1"));
    assert_int_equal(again.count, 0);
    gmd_corpus_free(&first);
    gmd_corpus_free(&second);
}

TEST_F(folder, its_own_inputs_are_not_read_back)
{
    gmd_corpus c = {.folder = folder};
    size_t unreadable;
    gmd_error error = {""};
    add(&c, "gmd-trace 1\nalloc a 1MiB s1\n", 1);
    assert_int_equal(read_folder(&c, &unreadable, &error).count, 0);
    gmd_corpus_free(&c);
}

/* Where no file can be made, as on a full disk. */
TEST(an_input_that_cannot_be_written_is_kept_and_counted)
{
    gmd_corpus c = {.folder = "/proc"};
    add(&c, "gmd-trace 1\nalloc a 1MiB s1\n", 1);
    assert_int_equal(c.count, 1);
    assert_int_equal(c.unwritten, 1);
    assert_non_null(strstr(c.unwritten_first, "/proc/"));
    gmd_corpus_free(&c);
}

TEST(the_same_input_is_kept_once)
{
    gmd_corpus c = {0};
    add(&c, "gmd-trace 1\nalloc a 1MiB s1\n", 1);
    add(&c, "gmd-trace 1\nalloc other_name 1MiB s7\n", 1); /* another name of the same stream */
    assert_int_equal(c.count, 2);
    add(&c, "gmd-trace 1\nalloc a 1MiB s1\n", 1);
    assert_int_equal(c.count, 2);
    gmd_corpus_free(&c);
}

TEST_F(folder, a_text_that_is_no_trace_is_counted_and_named)
{
    gmd_corpus c = {.folder = folder};
    char path[100];
    size_t unreadable;
    gmd_error error = {""};
    snprintf(path, sizeof path, "%s/broken.gmd", folder);
    FILE *out = fopen(path, "w");
    fputs("gmd-trace 1\nalloc\n", out);
    fclose(out);
    assert_int_equal(read_folder(&c, &unreadable, &error).count, 0);
    assert_int_equal(unreadable, 1);
    assert_non_null(strstr(error.text, "broken.gmd:2"));
    gmd_corpus_free(&c);
}

TEST_F(folder, any_bytes_are_an_input)
{
    gmd_corpus c = {.folder = folder};
    char path[100];
    size_t unreadable;
    gmd_error error = {""};
    snprintf(path, sizeof path, "%s/bytes", folder);
    FILE *out = fopen(path, "w");
    fputs("\001\002 neither a header nor a record \377\376", out);
    fclose(out);
    assert_int_equal(read_folder(&c, &unreadable, &error).count, 1);
    assert_int_equal(unreadable, 0);
    gmd_corpus_free(&c);
}

TEST(what_was_new_with_much_is_chosen_more_often)
{
    gmd_corpus c = {0};
    gmd_random random = {1};
    add(&c, "gmd-trace 1\nalloc a 1MiB s1\n", 1);
    add(&c, "gmd-trace 1\nalloc a 2MiB s1\n", 99);
    for (int i = 0; i < 200; i++) {
        gmd_corpus_choose(&c, &random);
    }
    assert_true(c.entries[1].chosen > 2 * c.entries[0].chosen);
    assert_true(c.entries[0].chosen > 0);
    gmd_corpus_free(&c);
}

TEST(an_empty_corpus_has_nothing_to_choose)
{
    gmd_corpus c = {0};
    gmd_random random = {1};
    assert_null(gmd_corpus_choose(&c, &random));
}
