#define _GNU_SOURCE
#include "mute_stderr.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

/* A function of the sanitizers' runtime; NULL in programs without one. */
extern void __sanitizer_set_report_fd(void *descriptor) __attribute__((weak));

static void report_to(int descriptor)
{
    if (__sanitizer_set_report_fd) {
        __sanitizer_set_report_fd((void *)(intptr_t)descriptor);
    }
}

static void close_both(stderr_mute *h)
{
    if (h->kept >= 0) {
        close(h->kept);
    }
    if (h->nowhere >= 0) {
        close(h->nowhere);
    }
}

static bool open_both(stderr_mute *h)
{
    h->kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    h->nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    h->is_open = h->kept >= 0 && h->nowhere >= 0;
    if (!h->is_open) {
        close_both(h);
    }
    return h->is_open;
}

bool mute_begin(stderr_mute *h)
{
    if (!h->is_open && !open_both(h)) {
        return false;
    }
    report_to(h->kept);
    return dup2(h->nowhere, STDERR_FILENO) >= 0;
}

void mute_end(stderr_mute *h)
{
    dup2(h->kept, STDERR_FILENO);
    report_to(STDERR_FILENO);
}

void mute_close(stderr_mute *h)
{
    if (h->is_open) {
        close_both(h);
        h->is_open = false;
    }
}

bool mute_is_needless(void)
{
    struct stat now, nowhere;
    return fstat(STDERR_FILENO, &now) == 0 && stat("/dev/null", &nowhere) == 0 &&
           S_ISCHR(now.st_mode) && now.st_rdev == nowhere.st_rdev;
}
