/* write_snapshot.c - a run as PyTorch's memory snapshot, for torch.cuda._memory_viz,
 * pytorch.org/memory_viz, and whatever else reads what torch.cuda.memory._snapshot() gives; gmd's
 * own readers among them. */
#include "gmd_report_text.h"
#include "gmd_text.h"
#include "outcome.h"
#include "snapshot_state.h"

#include "gmd_min.h"
#include "gmd_report_text.h"
#include "gmd_text.h"
#include "gmd_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KNOWN_FRAMES = 4096 }; /* a power of two */

typedef struct known_frame { /* written, and can be referred to */
    uint32_t line, number;   /* number: of the pickle's memory, and 1 more; 0: none */
    char name[sizeof((gmd_journal_event *)NULL)->name];
} known_frame;

typedef struct writer {
    const gmd_journal *journal;
    uint64_t event_count;
    gmd_snapshot_file file;
    char source[GMD_TITLE_TEXT]; /* what the lines are of */
    const char *workload;
    known_frame frames[KNOWN_FRAMES]; /* by their lines: of a case the latest, of a script all */
} writer;

/* --- frames ------------------------------------------------------------------------------- */

static void put_frames(void *context, gmd_snapshot_file *file, uint32_t stack)
{
    writer *w = context;
    const gmd_journal_event *e = &w->journal->events[stack - 1];
    known_frame *known = &w->frames[e->line % KNOWN_FRAMES];
    char name[sizeof e->name];
    snprintf(name, sizeof name, "%.*s", (int)sizeof e->name - 1, e->name);
    if (known->number && known->line == e->line && strcmp(known->name, name) == 0) {
        pickle_again(&file->out, known->number - 1);
        return;
    }
    const char *function = *name ? name : w->workload;
    pickle_list list;
    pickle_begin_list(&file->out, &list);
    pickle_next(&file->out, &list);
    gmd_snapshot_file_frame(file, function, strlen(function), w->source, strlen(w->source),
                            e->line);
    pickle_end_list(&file->out, &list);
    known->line = e->line;
    known->number = pickle_remember(&file->out) + 1;
    memcpy(known->name, name, sizeof name);
}

/* A request that was read from no line has no frame. */
static uint32_t framed(const writer *w, uint32_t stack)
{
    return stack && stack <= w->event_count && w->journal->events[stack - 1].line ? stack : 0;
}

static void name_source(writer *w, const gmd_outcome *o)
{
    bool is_script = strcmp(o->kind, "scenario") == 0;
    bool has_ending = gmd_text_ends_with(o->name, ".lua");
    snprintf(w->source, sizeof w->source, "%s%s", o->name, is_script && !has_ending ? ".lua" : "");
    w->workload = o->name;
}

/* --- parts -------------------------------------------------------------------------------- */

static void put_segments(writer *w, snapshot_state *state)
{
    gmd_snapshot_file_begin_segments(&w->file);
    for (size_t i = 0; i < state->segment_count; i++) {
        snapshot_state_segment *s = &state->segments[i];
        s->segment.stack = framed(w, s->segment.stack);
        gmd_snapshot_file_begin_segment(&w->file, &s->segment);
        for (size_t k = 0; k < s->block_count; k++) {
            gmd_snapshot_file_block *b = &state->blocks[s->first_block + k];
            b->stack = framed(w, b->stack);
            gmd_snapshot_file_block_of(&w->file, b);
        }
        gmd_snapshot_file_end_segment(&w->file);
    }
    gmd_snapshot_file_end_segments(&w->file);
}

static void put_event(writer *w, uint32_t index)
{
    static const gmd_snapshot_action actions[] = {
        [GMD_ACTION_ALLOC] = GMD_SNAPSHOT_ALLOC,
        [GMD_ACTION_FREE_REQUESTED] = GMD_SNAPSHOT_FREE_REQUESTED,
        [GMD_ACTION_FREE_COMPLETED] = GMD_SNAPSHOT_FREE_COMPLETED,
        [GMD_ACTION_SEGMENT_ALLOC] = GMD_SNAPSHOT_SEGMENT_ALLOC,
        [GMD_ACTION_SEGMENT_FREE] = GMD_SNAPSHOT_SEGMENT_FREE,
        [GMD_ACTION_SEGMENT_MAP] = GMD_SNAPSHOT_SEGMENT_MAP,
        [GMD_ACTION_SEGMENT_UNMAP] = GMD_SNAPSHOT_SEGMENT_UNMAP,
        [GMD_ACTION_SNAPSHOT] = GMD_SNAPSHOT_SNAPSHOT,
        [GMD_ACTION_OOM] = GMD_SNAPSHOT_OOM,
    };
    const gmd_journal_event *e = &w->journal->events[index];
    if (!e->action || e->action > GMD_ACTION_OOM + 1) {
        return; /* written over by the allocator under test */
    }
    gmd_snapshot_file_event_of(&w->file,
                               &(gmd_snapshot_file_event){.action = actions[e->action - 1],
                                                          .address = e->address,
                                                          .size = e->size,
                                                          .stream = e->stream,
                                                          .time_us = e->time_us,
                                                          .stack = framed(w, index + 1)});
}

static void put_traces(writer *w)
{
    gmd_snapshot_file_begin_traces(&w->file);
    uint32_t devices = w->journal ? w->journal->device_count : 0;
    for (uint32_t device = 0; device < devices && device < GMD_MAX_DEVICES; device++) {
        gmd_snapshot_file_begin_device(&w->file);
        for (uint64_t i = 0; i < w->event_count; i++) {
            if (w->journal->events[i].device == device) {
                put_event(w, (uint32_t)i);
            }
        }
        gmd_snapshot_file_end_device(&w->file);
    }
    gmd_snapshot_file_end_traces(&w->file);
}

/* Settings that are not PyTorch's are none of the settings that a snapshot tells of. */
static void put_end(writer *w)
{
    settings read;
    char conf[sizeof w->journal->conf] = "";
    if (w->journal) {
        snprintf(conf, sizeof conf, "%.*s", (int)sizeof conf - 1, w->journal->conf);
    }
    if (settings_parse(&read, conf, NULL) != GMD_OK) {
        settings_parse(&read, NULL, NULL);
    }
    gmd_snapshot_file_end(&w->file, &read, conf);
}

/* --- the whole ---------------------------------------------------------------------------- */

static gmd_status write_journal(const gmd_outcome *o, const gmd_journal *journal, new_file *out,
                                gmd_error *error)
{
    snapshot_state state = {0};
    writer *w = calloc(1, sizeof *w);
    bool has_memory = w && (!journal || snapshot_state_make(&state, journal));
    if (has_memory) {
        uint64_t count = journal ? journal->count : 0;
        w->journal = journal;
        w->event_count = gmd_min(count, GMD_JOURNAL_EVENT_MAX);
        name_source(w, o);
        gmd_snapshot_file_begin(&w->file, out, put_frames, w);
        put_segments(w, &state);
        put_traces(w);
        put_end(w);
    }
    snapshot_state_release(&state);
    free(w);
    return has_memory ? GMD_OK
                      : gmd_fail(error, GMD_NO_MEMORY, "no host memory for the snapshot of a run");
}

gmd_status gmd_report_snapshot(const gmd_report *report, FILE *out, gmd_error *error)
{
    static const gmd_outcome none;
    size_t i = 0;
    while (report->journals && i < report->outcome_count && !report->journals[i]) {
        i++;
    }
    bool has_one = report->journals && i < report->outcome_count;
    new_file *to = malloc(sizeof *to);
    if (!to) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the snapshot of a run");
    }
    new_file_on_stream(to, out);
    gmd_status status = write_journal(has_one ? report->outcomes[i] : &none,
                                      has_one ? report->journals[i] : NULL, to, error);
    if (status == GMD_OK) {
        status = new_file_finish(to, error);
    }
    free(to);
    return status == GMD_OK ? gmd_finish_writing(out, "the snapshot", error) : status;
}
