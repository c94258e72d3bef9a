/* libgmd_keep_counts.so - for LD_PRELOAD in coverage builds: a process that ends with _exit(), as
 * each child of a campaign does, writes its gcov counters first. Without it only exit()
 * writes them. Every program and library has counters of its own (cmake/coverage_counts.c tells of
 * them). */
#include <pthread.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MODULES_MAX = 256 };

static struct {
    pthread_mutex_t lock;
    void (*write[MODULES_MAX])(void);
    size_t count;
} modules = {.lock = PTHREAD_MUTEX_INITIALIZER};

void gmd_counters_begin(void (*write)(void));
void gmd_counters_end(void (*write)(void));

void gmd_counters_begin(void (*write)(void))
{
    pthread_mutex_lock(&modules.lock);
    if (modules.count < MODULES_MAX) {
        modules.write[modules.count++] = write;
    }
    pthread_mutex_unlock(&modules.lock);
}

void gmd_counters_end(void (*write)(void))
{
    pthread_mutex_lock(&modules.lock);
    for (size_t i = 0; i < modules.count; i++) {
        if (modules.write[i] == write) {
            modules.write[i] = modules.write[--modules.count];
        }
    }
    pthread_mutex_unlock(&modules.lock);
}

/* Without the lock, which another thread may have held when this process was forked. */
void _exit(int status)
{
    for (size_t i = 0; i < modules.count; i++) {
        modules.write[i]();
    }
    for (;;) {
        syscall(SYS_exit_group, status);
    }
}
