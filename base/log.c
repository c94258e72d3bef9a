#include "gmd_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

uint32_t gmd_log_on;

static int log_descriptor = STDERR_FILENO;

static const char *const category_names[] = {
#define NAME(category, name, what) name,
    GMD_LOG_CATEGORY_LIST(NAME)
#undef NAME
};

enum {
    CATEGORIES = sizeof category_names / sizeof *category_names,
    ALL = (1 << CATEGORIES) - 1,
    LINE_MAX = 1024,
    FIRST_DESCRIPTOR = 200, /* beyond those that programs expect to get, or close, by number */
};

/* 0: there is none of that name. */
static uint32_t bits_of(const char *name, size_t length)
{
    if (length == 3 && strncmp(name, "all", length) == 0) {
        return ALL;
    }
    for (unsigned i = 0; i < CATEGORIES; i++) {
        if (strlen(category_names[i]) == length && strncmp(name, category_names[i], length) == 0) {
            return UINT32_C(1) << i;
        }
    }
    return 0;
}

static gmd_status refuse(const char *name, size_t length, gmd_error *error)
{
    char list[200] = "all";
    for (size_t i = 0, used = 3; i < CATEGORIES && used < sizeof list; i++) {
        used += (size_t)snprintf(list + used, sizeof list - used, ", %s", category_names[i]);
    }
    return gmd_fail(error, GMD_BAD_INPUT, "GMD_LOG: '%.*s' is no category; there are %s",
                    length < 60 ? (int)length : 60, name, list);
}

gmd_status gmd_log_begin(const char *names, gmd_error *error)
{
    uint32_t on = 0;
    const char *name = names ? names : "";
    while (*name) {
        size_t length = strcspn(name, ",");
        uint32_t bits = bits_of(name, length);
        if (!bits) {
            return refuse(name, length, error);
        }
        on |= bits;
        name += length;
        name += *name == ',';
    }
    if (on) {
        int own = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR);
        log_descriptor = own >= 0 ? own : STDERR_FILENO;
    }
    gmd_log_on = on;
    return GMD_OK;
}

void gmd_log_line(unsigned category, const char *format, ...)
{
    int error_before = errno;
    char line[LINE_MAX];
    size_t used = (size_t)snprintf(line, sizeof line, "gmd[%ld] %s: ", (long)getpid(),
                                   category_names[category]);
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line + used, sizeof line - used, format, arguments);
    va_end(arguments);
    used += length > 0 ? (size_t)length : 0;
    used = used < sizeof line - 1 ? used : sizeof line - 2;
    for (size_t i = 0; i < used; i++) {
        line[i] = line[i] == '\n' ? ' ' : line[i]; /* a message stays one line */
    }
    line[used++] = '\n';
    ssize_t written = write(log_descriptor, line, used);
    (void)written; /* whoever reads may be gone */
    errno = error_before;
}
