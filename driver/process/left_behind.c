#define _GNU_SOURCE /* waitid */
#include "left_behind.h"

#include "gmd_grow.h"
#include "gmd_log.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each round ends what the round before brought to light: of one that forks faster than it is ended
 * the rest is left. */
#define ROUNDS_MAX 200

void left_behind_take_in(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

bool left_behind_is_any(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static bool is_own(const own_children *own, pid_t process)
{
    size_t i = 0;
    while (i < own->count && own->list[i] != process) {
        i++;
    }
    return i < own->count;
}

typedef struct list {
    pid_t *items;
    size_t count, capacity;
} list;

/* Without host memory the rest is left out. */
static void add_children_of_thread(list *to, const char *thread)
{
    char path[64];
    long child;
    snprintf(path, sizeof path, "/proc/self/task/%.20s/children", thread);
    FILE *children = fopen(path, "re");
    while (children &&
           fscanf(children, "%ld", &child) == 1 && /* NOLINT(cert-err34-c): the kernel's */
           GMD_GROW(&to->items, &to->capacity, to->count + 1)) {
        to->items[to->count++] = (pid_t)child;
    }
    if (children) {
        fclose(children);
    }
}

own_children left_behind_note(void)
{
    list found = {.count = 0};
    DIR *threads = left_behind_is_any() ? opendir("/proc/self/task") : NULL;
    for (struct dirent *entry; threads && (entry = readdir(threads)) != NULL;) {
        if (entry->d_name[0] != '.') {
            add_children_of_thread(&found, entry->d_name);
        }
    }
    if (threads) {
        closedir(threads);
    }
    return (own_children){.list = found.items, .count = found.count};
}

void left_behind_free(own_children *own)
{
    free(own->list);
    *own = (own_children){.count = 0};
}

/* Ends one and buries it. True: it still ran. */
static bool end_one(pid_t process, pid_t killed)
{
    siginfo_t info = {.si_pid = 0};
    bool is_ending = getpgid(process) == killed;
    bool ran =
        waitid(P_PID, (id_t)process, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && !info.si_pid;
    kill(process, SIGKILL);
    waitpid(process, NULL, 0);
    return ran && !is_ending;
}

uint64_t left_behind_end(const own_children *own, pid_t killed)
{
    uint64_t ended = 0;
    bool goes_on = left_behind_is_any();
    for (int round = 0; goes_on && round < ROUNDS_MAX; round++) {
        own_children now = left_behind_note();
        goes_on = false;
        for (size_t i = 0; i < now.count; i++) {
            if (!is_own(own, now.list[i])) {
                ended += end_one(now.list[i], killed);
                goes_on = true;
            }
        }
        left_behind_free(&now);
    }
    if (ended) {
        GMD_LOG(PROCESS, "ended %lu processes that were left behind", (unsigned long)ended);
    }
    return ended;
}
