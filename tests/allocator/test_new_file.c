/* A file that appears under its name only when it is whole, and what is said where it does not. */
#include "gmd_test.h"
#include "new_file.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/gmd_new_file_XXXXXX", path[sizeof folder + 8];
static new_file file;

static int make_folder(void **state)
{
    (void)state;
    bool is_made = mkdtemp(folder) != NULL;
    snprintf(path, sizeof path, "%s/new", folder);
    return is_made ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static int count_entries(void)
{
    int count = -2; /* itself and its parent */
    DIR *open = opendir(folder);
    assert_non_null(open);
    while (readdir(open)) {
        count++;
    }
    closedir(open);
    return count;
}

TEST(a_part_that_is_larger_than_the_buffer_is_written_in_its_place)
{
    static unsigned char large[2 * sizeof file.buffer + 1], read[sizeof large + 8];
    gmd_error error = {""};
    memset(large, 'x', sizeof large);
    assert_int_equal(new_file_open(&file, path, &error), GMD_OK);
    new_file_put(&file, "a", 1);
    new_file_put(&file, large, sizeof large);
    new_file_put(&file, "b", 1);
    assert_int_equal(new_file_finish(&file, &error), GMD_OK);
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    assert_int_equal(fread(read, 1, sizeof read, in), sizeof large + 2);
    fclose(in);
    assert_int_equal(read[0], 'a');
    assert_memory_equal(read + 1, large, sizeof large);
    assert_int_equal(read[sizeof large + 1], 'b');
    unlink(path);
}

TEST(it_is_not_there_before_it_is_whole)
{
    gmd_error error = {""};
    assert_int_equal(new_file_open(&file, path, &error), GMD_OK);
    new_file_put(&file, "a", 1);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(new_file_finish(&file, &error), GMD_OK);
    assert_int_equal(access(path, F_OK), 0);
    unlink(path);
}

TEST(a_name_that_is_too_long_is_refused)
{
    static char longest[sizeof file.path + 2];
    gmd_error error = {""};
    memset(longest, 'x', sizeof longest - 1);
    assert_int_equal(new_file_open(&file, longest, &error), GMD_FAILED);
    assert_non_null(strstr(error.text, "xxx"));
}

TEST(a_full_disk_is_told_at_the_end)
{
    gmd_error error = {""};
    if (access("/dev/full", W_OK) != 0) {
        skip();
    }
    assert_int_equal(new_file_open(&file, "/dev/full", &error), GMD_OK);
    new_file_put(&file, "a", 1);
    assert_int_equal(new_file_finish(&file, &error), GMD_FAILED);
    assert_string_equal(error.text, "/dev/full: cannot be written: No space left on device");
}

TEST(a_file_that_cannot_be_put_in_its_place_leaves_nothing)
{
    gmd_error error = {""};
    assert_int_equal(new_file_open(&file, path, &error), GMD_OK);
    assert_int_equal(mkdir(path, 0777), 0); /* meanwhile */
    assert_int_equal(new_file_finish(&file, &error), GMD_FAILED);
    assert_non_null(strstr(error.text, "cannot be written: Is a directory"));
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(count_entries(), 0);
}

/* --- on a stream that somebody else opened ------------------------------------------------ */

TEST(on_a_stream_everything_put_is_written_to_it)
{
    gmd_error error = {""};
    char read[8] = {0};
    FILE *stream = tmpfile();
    assert_non_null(stream);
    new_file_on_stream(&file, stream);
    new_file_put(&file, "abc", 3);
    assert_int_equal(new_file_finish(&file, &error), GMD_OK);
    rewind(stream);
    assert_int_equal(fread(read, 1, sizeof read, stream), 3);
    assert_string_equal(read, "abc");
    fclose(stream);
}

TEST(a_stream_that_takes_nothing_is_told_at_the_end)
{
    gmd_error error = {""};
    FILE *stream = fopen("/dev/null", "r"); /* reading alone */
    assert_non_null(stream);
    new_file_on_stream(&file, stream);
    new_file_put(&file, "a", 1);
    assert_int_equal(new_file_finish(&file, &error), GMD_FAILED);
    assert_non_null(strstr(error.text, "the file: cannot be written"));
    fclose(stream);
}

TEST_GROUP(make_folder, remove_folder);
