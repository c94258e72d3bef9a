/* shared_ranges.h - the memory that this process shares with others, as /proc/self/maps says it.
 * For planted libraries that write where they must not. */
#ifndef GMD_TESTS_DRIVER_SHARED_RANGES_H
#define GMD_TESTS_DRIVER_SHARED_RANGES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls `visit` for each range that can be written to. */
static inline void each_shared_range(void (*visit)(char *from, char *to, void *context),
                                     void *context)
{
    char line[400];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        char *rest; /* FROM-TO RIGHTS ... */
        unsigned long from = strtoul(line, &rest, 16);
        unsigned long to = *rest == '-' ? strtoul(rest + 1, &rest, 16) : 0;
        if (to > from && strncmp(rest, " rw-s ", 6) == 0) {
            visit((char *)from, (char *)to, context); /* NOLINT(performance-no-int-to-ptr) */
        }
    }
    if (maps) {
        fclose(maps);
    }
}

#endif
