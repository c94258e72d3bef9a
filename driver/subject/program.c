#define _GNU_SOURCE /* pipe2 */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* To the end of the stream: a program whose output nobody reads would wait for ever. */
static void read_all(int from, char *text, size_t size)
{
    size_t length = 0;
    char rest[512];
    for (;;) {
        bool is_full = length + 1 >= size;
        ssize_t got =
            read(from, is_full ? rest : text + length, is_full ? sizeof rest : size - 1 - length);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        length += is_full ? 0 : (size_t)got;
    }
    text[length] = '\0';
}

static int start(pid_t *child, const char *const *arguments, int descriptor, int to)
{
    posix_spawn_file_actions_t actions;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed) {
        return failed;
    }
    failed = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!failed) {
        failed = posix_spawn_file_actions_adddup2(&actions, to, descriptor);
    }
    if (!failed) { /* the programs that are started take their arguments as they are */
        char *const *argv = (char *const *)(uintptr_t)arguments;
        failed = posix_spawnp(child, arguments[0], &actions, NULL, argv, environ);
    }
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

gmd_status spawn_program(const char *const *arguments, int descriptor, char *text, size_t size,
                         int *exit_status, gmd_error *error)
{
    int ends[2];
    text[0] = '\0';
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return gmd_fail(error, GMD_FAILED, "pipe2: %s", strerror(errno));
    }
    pid_t child = 0;
    int failed = start(&child, arguments, descriptor, ends[1]);
    close(ends[1]);
    if (failed) {
        close(ends[0]);
        return gmd_fail(error, GMD_BAD_INPUT, "%s cannot be started: %s", arguments[0],
                        strerror(failed));
    }
    read_all(ends[0], text, size);
    close(ends[0]);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    *exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return GMD_OK;
}
