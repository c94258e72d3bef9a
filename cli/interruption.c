#include "interruption.h"

#include "gmd_temporary.h"

#include <stdbool.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

/* timeout(1) sends a signal to its child and then to its group: these two are one. */
#define SAME_SIGNAL_SECONDS 0.25

/* A handler is given nothing but its number. */
static volatile sig_atomic_t is_awaited, is_interrupted;
static struct timespec interrupted_at; /* written before is_interrupted is set */

static double seconds_since(const struct timespec *then)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - then->tv_sec) + (double)(now.tv_nsec - then->tv_nsec) * 1e-9;
}

static void end_at_once(int number)
{
    gmd_temporary_remove_all();
    if (is_awaited) {
        _exit(128 +
              number); /* as a shell says it; the processes of the allocator die with this one */
    }
    signal(number, SIG_DFL);
    raise(number); /* blocked until the handler returns */
}

static void interrupt(int number)
{
    if (is_awaited && !is_interrupted) {
        clock_gettime(CLOCK_MONOTONIC, &interrupted_at);
        is_interrupted = 1;
    } else if (!is_awaited || seconds_since(&interrupted_at) > SAME_SIGNAL_SECONDS) {
        end_at_once(number);
    }
}

void cli_signals_begin(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART}, before;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        sigaddset(&action.sa_mask, numbers[i]); /* one handler at a time */
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        sigaction(numbers[i], NULL, &before);
        if (numbers[i] != SIGHUP || before.sa_handler != SIG_IGN) {
            sigaction(numbers[i], &action, NULL);
        }
    }
    signal(SIGXFSZ, SIG_IGN);
}

const volatile sig_atomic_t *cli_interruption_awaited(void)
{
    is_awaited = 1;
    return &is_interrupted;
}
