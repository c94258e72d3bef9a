/* How far long work has come: in place on a terminal, a line a minute elsewhere. */
#define _GNU_SOURCE /* posix_openpt */
#include "gmd_status_line.h"
#include "gmd_test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static gmd_status_line line;
static int standard_error, end;
static char shown[4096];

static void redirect(int to)
{
    fflush(stderr);
    standard_error = dup(STDERR_FILENO);
    dup2(to, STDERR_FILENO);
}

static int open_pipe(void **state)
{
    int ends[2];
    (void)state;
    line = (gmd_status_line){0};
    if (pipe(ends) != 0) {
        return -1;
    }
    redirect(ends[1]);
    close(ends[1]);
    end = ends[0];
    return 0;
}

static int open_terminal(void **state)
{
    (void)state;
    line = (gmd_status_line){0};
    end = posix_openpt(O_RDWR | O_NOCTTY);
    if (end < 0 || grantpt(end) != 0 || unlockpt(end) != 0) {
        return -1;
    }
    int terminal = open(ptsname(end), O_RDWR | O_NOCTTY);
    redirect(terminal);
    close(terminal);
    return 0;
}

static int put_back(void **state)
{
    (void)state;
    close(end);
    close(standard_error);
    return 0;
}

FIXTURE(piped, open_pipe, put_back);
FIXTURE(on_terminal, open_terminal, put_back);

/* What was written to standard error; from now on it goes where it went before. A terminal hands
 * it over piece by piece and when it likes: a mark tells where it ends. */
static const char *all_shown(void)
{
    static const char mark[] = "[the end]";
    char *found = NULL;
    size_t length = 0;
    fputs(mark, stderr);
    fflush(stderr);
    dup2(standard_error, STDERR_FILENO);
    while (!found && length < sizeof shown - 1) {
        ssize_t more = read(end, shown + length, sizeof shown - 1 - length);
        if (more <= 0) {
            break;
        }
        length += (size_t)more;
        shown[length] = '\0';
        found = strstr(shown, mark);
    }
    assert_non_null(found);
    *found = '\0';
    return shown;
}

TEST_F(piped, nothing_is_shown_in_the_first_minute)
{
    gmd_status_show(&line, 59, "%d runs", 1);
    assert_string_equal(all_shown(), "");
}

TEST_F(piped, a_line_a_minute_is_shown)
{
    for (int second = 0; second < 130; second++) {
        gmd_status_show(&line, second, "%d runs", second);
    }
    gmd_status_clear(&line);
    assert_string_equal(all_shown(), "60 s, 60 runs\n120 s, 120 runs\n");
}

TEST_F(on_terminal, a_line_has_the_time_first_and_80_columns_at_most)
{
    gmd_status_show(&line, 12, "%0200d", 7);
    const char *text = strstr(all_shown(), "12 s, ");
    assert_non_null(text);
    assert_int_equal(strcspn(text, "\033"), 80);
}

TEST_F(on_terminal, a_character_of_several_bytes_is_a_column)
{
    gmd_status_show(&line, 1, "%s", "\303\244\303\244");
    assert_non_null(strstr(all_shown(), "1 s, \303\244\303\244\033"));
}

TEST_F(on_terminal, what_is_shown_is_cleared_once)
{
    gmd_status_show(&line, 1, "x");
    gmd_status_clear(&line);
    gmd_status_clear(&line);
    const char *clear = strstr(all_shown(), GMD_STATUS_CLEAR);
    assert_non_null(clear);
    assert_null(strstr(clear + 1, GMD_STATUS_CLEAR));
}
