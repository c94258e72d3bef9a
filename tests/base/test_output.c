/* gmd_output.h: a file is there whole or not at all. */
#include "gmd_output.h"
#include "gmd_test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static int enter_folder(void **state)
{
    char folder[] = "/tmp/gmd-output-XXXXXX";
    *state = mkdtemp(folder) ? strdup(folder) : NULL;
    return *state ? chdir(*state) : -1;
}

static int leave_folder(void **state)
{
    unlink("report");
    unlink("link");
    unlink("pipe");
    int left = chdir("/") + rmdir(*state); /* of which nothing else may be left */
    free(*state);
    return left;
}

FIXTURE(folder, enter_folder, leave_folder);

static void put(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

static void assert_holds(const char *path, const char *text)
{
    char found[64] = "";
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    found[fread(found, 1, sizeof found - 1, in)] = '\0';
    fclose(in);
    assert_string_equal(found, text);
}

static gmd_status write_with(const char *path, const char *text, gmd_status status)
{
    gmd_output out;
    gmd_error error;
    assert_int_equal(gmd_output_open(&out, path, &error), GMD_OK);
    assert_true(fputs(text, out.stream) >= 0);
    return gmd_output_close(&out, status, &error);
}

TEST_F(folder, what_was_there_stays_until_the_new_file_is_whole)
{
    gmd_output out;
    put("report", "before");
    assert_int_equal(gmd_output_open(&out, "report", NULL), GMD_OK);
    fputs("after", out.stream);
    fflush(out.stream);
    assert_holds("report", "before");
    assert_int_equal(gmd_output_close(&out, GMD_OK, NULL), GMD_OK);
    assert_holds("report", "after");
}

TEST_F(folder, a_failed_writer_leaves_what_was_there)
{
    put("report", "before");
    assert_int_equal(write_with("report", "half", GMD_NO_MEMORY), GMD_NO_MEMORY);
    assert_holds("report", "before");
}

TEST_F(folder, a_failed_writer_leaves_no_new_file)
{
    assert_int_equal(write_with("report", "half", GMD_FAILED), GMD_FAILED);
    assert_int_equal(access("report", F_OK), -1);
}

/* A limit on the size of files fails writes as a full disk does. */
TEST_F(folder, a_full_disk_leaves_what_was_there_and_names_the_file)
{
    gmd_output out;
    gmd_error error = {""};
    struct rlimit before, none;
    put("report", "before");
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    none = (struct rlimit){0, before.rlim_max};
    assert_int_equal(gmd_output_open(&out, "report", &error), GMD_OK);
    fputs("after", out.stream);
    setrlimit(RLIMIT_FSIZE, &none);
    gmd_status status = gmd_output_close(&out, GMD_OK, &error);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(status, GMD_FAILED);
    assert_string_equal(error.text, "report: writing failed: File too large");
    assert_holds("report", "before");
}

TEST_F(folder, the_rights_of_the_file_stay)
{
    struct stat info;
    put("report", "before");
    assert_int_equal(chmod("report", 0640), 0);
    assert_int_equal(write_with("report", "after", GMD_OK), GMD_OK);
    assert_int_equal(stat("report", &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
}

TEST_F(folder, a_link_stays_and_names_the_new_file)
{
    struct stat info;
    assert_int_equal(symlink("report", "link"), 0);
    assert_int_equal(write_with("link", "after", GMD_OK), GMD_OK);
    assert_int_equal(lstat("link", &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_holds("report", "after");
}

TEST_F(folder, a_pipe_is_written_directly)
{
    char got[8] = "";
    assert_int_equal(mkfifo("pipe", 0600), 0);
    FILE *reader = fopen("pipe", "r+"); /* of which nobody has to wait for the other end */
    assert_int_equal(write_with("pipe", "after\n", GMD_OK), GMD_OK);
    assert_non_null(fgets(got, sizeof got, reader));
    fclose(reader);
    assert_string_equal(got, "after\n");
}

TEST_F(folder, a_folder_that_is_not_there_is_told)
{
    gmd_output out;
    gmd_error error;
    assert_int_equal(gmd_output_open(&out, "nowhere/report", &error), GMD_BAD_INPUT);
    assert_string_equal(error.text, "nowhere/report: cannot be written: No such file or directory");
}
