/* Part of every program and library of a coverage build: tells libgmd_keep_counts.so, where that is
 * loaded, how gcov writes the counters of this one. */
#include <dlfcn.h>
#include <stddef.h>

typedef void tell(void (*write)(void));

void __gcov_dump(void);

static void tell_of_counters(const char *name)
{
    tell *function;
    *(void **)&function = dlsym(RTLD_DEFAULT, name);
    if (function) {
        function(__gcov_dump);
    }
}

__attribute__((constructor)) static void begin(void)
{
    tell_of_counters("gmd_counters_begin");
}

__attribute__((destructor)) static void end(void)
{
    tell_of_counters("gmd_counters_end");
}
