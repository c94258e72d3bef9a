#include "schedule_state.h"

#include "gmd_assert.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

struct turn_state turn_state;
_Thread_local scheduled_thread *turns_me;

void turns_wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0 && errno == EINTR) {
    }
}

void turns_lock(void)
{
    turns_wait_for(&turn_state.lock);
}

const char *turns_violation(void)
{
    unsigned joined = 0, running = 0;
    for (unsigned i = 0; i < turn_state.config.thread_count; i++) {
        const scheduled_thread *t = &turn_state.threads[i];
        joined += t->state != THREAD_ABSENT;
        running += t->state == THREAD_RUNNING;
        if (t->held_count > HELD_MAX) {
            return "the locks of a thread are in its list";
        }
        if ((t->state == THREAD_RUNNING) != (turn_state.current == i)) {
            return "the thread that runs is the one that has the turn";
        }
    }
    return joined != turn_state.joined                 ? "the threads that have joined are counted"
           : running != (turn_state.current != NOBODY) ? "who has the turn is one of the threads"
                                                       : NULL;
}

void turns_unlock(void)
{
    GMD_ASSERT_VALID(turns_violation());
    sem_post(&turn_state.lock);
}

const scheduled_thread *turns_holder(const void *object)
{
    for (unsigned i = 0; i < turn_state.config.thread_count; i++) {
        for (unsigned k = 0; k < turn_state.threads[i].held_count; k++) {
            if (turn_state.threads[i].held[k] == object) {
                return &turn_state.threads[i];
            }
        }
    }
    return NULL;
}

static bool is_known_task(pid_t id)
{
    for (unsigned i = 0; i < turn_state.config.thread_count; i++) {
        if (turn_state.threads[i].id == id) {
            return true;
        }
    }
    return turn_state.watchdog_id == id;
}

bool turns_has_foreign_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    bool found = !tasks;
    for (struct dirent *entry; tasks && !found && (entry = readdir(tasks));) {
        found = entry->d_name[0] != '.' && !is_known_task((pid_t)strtol(entry->d_name, NULL, 10));
    }
    if (tasks) {
        closedir(tasks);
    }
    return found;
}
