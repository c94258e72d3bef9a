/* What GMD_LOG switches on, and what a line looks like. */
#include "gmd_log.h"
#include "gmd_test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Standard error is a pipe while a test runs; the logging begins there. */
typedef struct captured {
    int kept, from;
    char text[8192];
} captured;

static captured capture;

static int begin_capture(void **state)
{
    (void)state;
    int ends[2];
    capture.kept = dup(STDERR_FILENO);
    if (pipe(ends) != 0 || dup2(ends[1], STDERR_FILENO) < 0) {
        return -1;
    }
    close(ends[1]);
    capture.from = ends[0];
    return 0;
}

static int end_capture(void **state)
{
    (void)state;
    gmd_log_begin(NULL, NULL);
    dup2(capture.kept, STDERR_FILENO);
    close(capture.kept);
    close(capture.from);
    return 0;
}

FIXTURE(log, begin_capture, end_capture);

/* What was written so far. There must be something. */
static const char *written(void)
{
    ssize_t got = read(capture.from, capture.text, sizeof capture.text - 1);
    assert_true(got > 0);
    capture.text[got] = '\0';
    return capture.text;
}

TEST_F(log, a_line_has_its_process_category_and_text)
{
    char expected[100];
    gmd_error error;
    assert_int_equal(gmd_log_begin("session", &error), GMD_OK);
    GMD_LOG(SESSION, "opened %s", "it");
    snprintf(expected, sizeof expected, "gmd[%ld] session: opened it\n", (long)getpid());
    assert_string_equal(written(), expected);
}

TEST_F(log, only_categories_that_were_named_write)
{
    gmd_error error;
    assert_int_equal(gmd_log_begin("device,fuzz", &error), GMD_OK);
    GMD_LOG(SESSION, "not this");
    GMD_LOG(FUZZ, "this");
    GMD_LOG(DEVICE, "and this");
    const char *text = written();
    assert_null(strstr(text, "not this"));
    assert_non_null(strstr(text, "fuzz: this\n"));
    assert_non_null(strstr(text, "device: and this\n"));
}

TEST(all_is_every_category_and_nothing_is_none)
{
    gmd_error error;
    assert_int_equal(gmd_log_begin("", &error), GMD_OK);
    assert_int_equal(gmd_log_on, 0);
    assert_int_equal(gmd_log_begin("all", &error), GMD_OK);
    assert_true(GMD_LOG_IS_ON(SUBJECT) && GMD_LOG_IS_ON(GATE));
    assert_int_equal(gmd_log_begin(NULL, &error), GMD_OK);
    assert_int_equal(gmd_log_on, 0);
}

TEST(an_unknown_category_is_refused_with_the_list_of_them)
{
    static const char *const wrong[] = {"sessions", "session,,device", "Session", ",",
                                        "session, fuzz"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        gmd_error error = {""};
        assert_int_equal(gmd_log_begin(wrong[i], &error), GMD_BAD_INPUT);
        assert_non_null(strstr(error.text, "all, subject, session, device, process"));
        assert_non_null(strstr(error.text, "gate"));
        assert_int_equal(gmd_log_on, 0);
    }
}

TEST(arguments_of_a_category_that_is_off_are_not_evaluated)
{
    int count = 0;
    GMD_LOG(TRACE, "%d", count++);
    assert_int_equal(count, 0);
}

TEST_F(log, a_child_whose_standard_error_is_closed_writes_to_that_of_its_parent)
{
    gmd_error error;
    assert_int_equal(gmd_log_begin("process", &error), GMD_OK);
    pid_t child = fork();
    if (child == 0) {
        close(STDERR_FILENO);
        GMD_LOG(PROCESS, "from the child");
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    char expected[100];
    snprintf(expected, sizeof expected, "gmd[%ld] process: from the child\n", (long)child);
    assert_string_equal(written(), expected);
}

TEST_F(log, a_text_of_several_lines_stays_one_line)
{
    gmd_error error;
    assert_int_equal(gmd_log_begin("trace", &error), GMD_OK);
    GMD_LOG(TRACE, "one\ntwo\n");
    assert_non_null(strstr(written(), "trace: one two \n"));
}

TEST_F(log, a_long_text_is_cut_off_and_its_line_ends)
{
    static char longer[3000];
    gmd_error error;
    memset(longer, 'x', sizeof longer - 1);
    assert_int_equal(gmd_log_begin("trace", &error), GMD_OK);
    GMD_LOG(TRACE, "%s", longer);
    const char *text = written();
    assert_int_equal(strlen(text), 1023);
    assert_int_equal(text[1022], '\n');
}

TEST_F(log, errno_stays_as_it_was)
{
    gmd_error error;
    assert_int_equal(gmd_log_begin("trace", &error), GMD_OK);
    errno = EDOM;
    GMD_LOG(TRACE, "anything");
    assert_int_equal(errno, EDOM);
}
