#include "exceptions.h"

#include "gmd_exceptions.h"
#include "view.h"

#include <stdio.h>

static void note_exception(void *context, const char *type, const char *what, int is_bad_alloc)
{
    gmd_thrown_list *thrown = context;
    uint32_t index = atomic_fetch_add(&thrown->count, 1);
    if (index < GMD_THROWN_MAX) {
        gmd_thrown *entry = &thrown->list[index];
        snprintf(entry->type, sizeof entry->type, "%s", type);
        snprintf(entry->what, sizeof entry->what, "%s", what);
        entry->is_bad_alloc = is_bad_alloc;
        atomic_store(&entry->is_told, 1);
    }
}

void session_watch_exceptions(gmd_session *session)
{
    const char *libraries = session->options->subject.lib_directory;
    gmd_exceptions_watch(&session->subject, libraries, note_exception, &session->shared->thrown);
    if (session_promises(session) & GMD_PROMISE_THROWS) {
        gmd_exceptions_catch(&session->subject, libraries);
    }
}
