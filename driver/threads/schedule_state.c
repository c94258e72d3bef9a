#include "schedule_state.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

struct gmd_turns gmd_turns;
_Thread_local gmd_turns_thread *gmd_turns_me;

void gmd_turns_wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0 && errno == EINTR) {
    }
}

void gmd_turns_lock(void)
{
    gmd_turns_wait_for(&gmd_turns.lock);
}

void gmd_turns_unlock(void)
{
    sem_post(&gmd_turns.lock);
}

const gmd_turns_thread *gmd_turns_holder(const void *object)
{
    for (unsigned i = 0; i < gmd_turns.config.thread_count; i++) {
        for (unsigned k = 0; k < gmd_turns.threads[i].held_count; k++) {
            if (gmd_turns.threads[i].held[k] == object) {
                return &gmd_turns.threads[i];
            }
        }
    }
    return NULL;
}

static bool is_known_task(pid_t id)
{
    for (unsigned i = 0; i < gmd_turns.config.thread_count; i++) {
        if (gmd_turns.threads[i].id == id) {
            return true;
        }
    }
    return gmd_turns.watchdog_id == id;
}

bool gmd_turns_has_foreign_threads(void)
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
