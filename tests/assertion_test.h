/* assertion_test.h - whether a piece of code ends by an assertion, asked in a child process. */
#ifndef ASSERTION_TEST_H
#define ASSERTION_TEST_H

#include "gmd_assert.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct assertion_end {
    bool is_assertion; /* abort, and the line of an assertion was the last on standard error */
    bool is_silent;    /* exit status 0, and nothing on standard error */
    char said[2048];   /* the whole of standard error */
} assertion_end;

static inline void assertion_test_child(void (*run)(void *), void *context, int to)
{
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(SIGABRT, SIG_DFL);
    dup2(to, STDERR_FILENO);
    run(context);
    _exit(0);
}

static inline assertion_end assertion_test(void (*run)(void *), void *context)
{
    assertion_end end = {0};
    int ends[2];
    fflush(NULL);
    pid_t child = pipe(ends) == 0 ? fork() : -1;
    if (child == 0) {
        assertion_test_child(run, context, ends[1]);
    }
    if (child < 0) {
        return end;
    }
    close(ends[1]);
    size_t length = 0;
    ssize_t got = 1;
    while (got > 0 && length < sizeof end.said - 1) {
        got = read(ends[0], end.said + length, sizeof end.said - 1 - length);
        length += got > 0 ? (size_t)got : 0;
    }
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    end.is_assertion = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT &&
                       strncmp(end.said, GMD_ASSERT_PREFIX, strlen(GMD_ASSERT_PREFIX)) == 0;
    end.is_silent = WIFEXITED(status) && WEXITSTATUS(status) == 0 && !length;
    return end;
}

#endif
