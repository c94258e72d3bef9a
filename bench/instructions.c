#define _GNU_SOURCE /* MAP_ANONYMOUS, syscall */
#include "instructions.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct shared_count { /* between the copy and its parent */
    uint64_t count;
    bool is_counted, has_failed;
} shared_count;

typedef struct job {
    bool (*work)(void *context);
    void *context;
    shared_count *shared;
} job;

/* --- the processor's counter ------------------------------------------------------------- */

static int open_counter(void)
{
    struct perf_event_attr attributes = {.type = PERF_TYPE_HARDWARE,
                                         .size = sizeof attributes,
                                         .config = PERF_COUNT_HW_INSTRUCTIONS,
                                         .disabled = 1,
                                         .exclude_kernel = 1,
                                         .exclude_hv = 1};
    return (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0);
}

static void count_here(const job *j)
{
    int counter = open_counter();
    if (counter < 0) {
        return;
    }
    ioctl(counter, PERF_EVENT_IOC_RESET, 0);
    ioctl(counter, PERF_EVENT_IOC_ENABLE, 0);
    j->shared->has_failed = !j->work(j->context);
    ioctl(counter, PERF_EVENT_IOC_DISABLE, 0);
    uint64_t count = 0;
    j->shared->is_counted = read(counter, &count, sizeof count) == (ssize_t)sizeof count && count;
    j->shared->count = count;
    close(counter);
}

/* --- step by step ------------------------------------------------------------------------ */

/* The two stops are the marks between which the parent counts. */
static void be_stepped(const job *j)
{
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) {
        return;
    }
    raise(SIGSTOP);
    bool is_done = j->work(j->context);
    raise(SIGSTOP);
    j->shared->has_failed = !is_done;
    j->shared->is_counted = true;
}

static bool is_stopped_by(int status, int signal_number)
{
    return WIFSTOPPED(status) && WSTOPSIG(status) == signal_number;
}

static bool wait_for(pid_t child, int *status)
{
    pid_t got;
    do {
        got = waitpid(child, status, 0);
    } while (got < 0 && errno == EINTR);
    return got == child;
}

/* Between the stops; the few instructions of raise() itself are always the same. */
static void step(pid_t child, uint64_t steps_max, bench_instructions *out)
{
    int status = 0;
    out->count = 0;
    while (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) == 0 && wait_for(child, &status) &&
           is_stopped_by(status, SIGTRAP)) {
        if (++out->count == steps_max) {
            out->is_least = true;
            return;
        }
    }
    if (is_stopped_by(status, SIGSTOP)) {
        ptrace(PTRACE_CONT, child, NULL, NULL);
        wait_for(child, &status);
    }
}

/* --- either ------------------------------------------------------------------------------ */

static pid_t start(const job *j, void (*how)(const job *j))
{
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        how(j);
        _exit(0);
    }
    return child;
}

static void count_by_counter(const job *j, bench_instructions *out)
{
    int status;
    pid_t child = start(j, count_here);
    if (child > 0) {
        wait_for(child, &status);
    }
    out->by = BENCH_COUNTER;
    out->count = j->shared->count;
}

static void count_by_steps(const job *j, uint64_t steps_max, bench_instructions *out)
{
    int status = 0;
    pid_t child = start(j, be_stepped);
    out->by = BENCH_STEPS;
    if (child > 0 && wait_for(child, &status) && is_stopped_by(status, SIGSTOP)) {
        step(child, steps_max, out);
        if (out->is_least) {
            kill(child, SIGKILL);
            wait_for(child, &status);
            j->shared->is_counted = true;
        }
    }
}

gmd_status bench_count_instructions(bool (*work)(void *context), void *context, uint64_t steps_max,
                                    bench_instructions *out, gmd_error *error)
{
    shared_count *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *out = (bench_instructions){.count = 0};
    if (shared == MAP_FAILED) {
        return gmd_fail(error, GMD_NO_MEMORY, "no memory to share with another process");
    }
    const job j = {work, context, shared};
    count_by_counter(&j, out);
    if (!shared->is_counted) {
        *shared = (shared_count){.count = 0};
        count_by_steps(&j, steps_max, out);
    }
    bool is_counted = shared->is_counted, has_failed = shared->has_failed;
    munmap(shared, sizeof *shared);
    if (!is_counted) {
        return gmd_fail(error, GMD_FAILED,
                        "instructions cannot be counted here: perf_event_open and ptrace are "
                        "refused, or the work did not end");
    }
    return has_failed ? gmd_fail(error, GMD_FAILED, "malloc returned NULL") : GMD_OK;
}
