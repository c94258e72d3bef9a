#define _GNU_SOURCE /* dladdr */
#include "gmd_self_deadlock.h"

#include "gmd_text.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>

#define PATIENCE_NS   200000000
#define NS_PER_SECOND 1000000000

static _Thread_local const self_deadlock_watch *inside;

void self_deadlock_enter(const self_deadlock_watch *watch)
{
    inside = watch;
}

void self_deadlock_leave(void)
{
    inside = NULL;
}

bool self_deadlock_is_inside(void)
{
    return inside != NULL;
}

struct timespec self_deadlock_patience(void)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += PATIENCE_NS;
    if (until.tv_nsec >= NS_PER_SECOND) {
        until.tv_nsec -= NS_PER_SECOND;
        until.tv_sec++;
    }
    return until;
}

/* UINT_MAX where the system does not tell. */
static unsigned count_threads(void)
{
    unsigned count = 0;
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks) {
        return ~0u;
    }
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    closedir(tasks);
    return count;
}

/* A place in a library's data is the same in every run, an address is not. */
void gmd_object_name(const void *object, char *text, size_t size)
{
    Dl_info info;
    text[0] = '\0';
    if (dladdr(object, &info) && info.dli_fname) {
        snprintf(text, size, "%s+0x%zx", gmd_file_name(info.dli_fname),
                 (size_t)((const char *)object - (const char *)info.dli_fbase));
    }
}

void name_object(const char *what, const void *object, char *text, size_t size)
{
    char name[128];
    gmd_object_name(object, name, sizeof name);
    snprintf(text, size, "%s%s%s", what, *name ? " at " : "", name);
}

void self_deadlock_waits(const char *what, const char *why, const void *object)
{
    const self_deadlock_watch *watch = inside;
    char name[128], place[160], text[240];
    if (watch && count_threads() <= watch->own_threads(watch->context)) {
        inside = NULL;
        gmd_object_name(object, name, sizeof name);
        name_object(what, object, place, sizeof place);
        snprintf(text, sizeof text, "%s%s", place, why);
        watch->stuck(watch->context, text, name);
    }
}
