/* write_snapshot.c - a run as PyTorch's memory snapshot, for torch.cuda._memory_viz,
 * pytorch.org/memory_viz, and whatever else reads what torch.cuda.memory._snapshot() gives; gmd's
 * own readers among them. */
#include "gmd_min.h"
#include "gmd_report_text.h"
#include "gmd_trace.h"
#include "outcome.h"
#include "snapshot_state.h"

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
    const gmd_snapshot *recorded;     /* the history that was replayed; NULL: none */
    uint32_t *known_stacks;           /* of its origins: as known_frame.number, by stack */
    uint32_t *known_frames;           /* likewise, by frame */
} writer;

/* --- frames of a recorded history --------------------------------------------------------- */

static void put_recorded_frame(writer *w, gmd_snapshot_file *file, uint32_t number)
{
    const gmd_origins *origins = &w->recorded->origins;
    if (w->known_frames[number]) {
        pickle_again(&file->out, w->known_frames[number] - 1);
        return;
    }
    gmd_frame frame = gmd_origins_frame(origins, number);
    size_t function_length, file_length;
    const char *function = gmd_origins_text(origins, frame.function, &function_length);
    const char *file_name = gmd_origins_text(origins, frame.file, &file_length);
    gmd_snapshot_file_frame(file, function, function_length, file_name, file_length, frame.line);
    w->known_frames[number] = pickle_remember(&file->out) + 1;
}

static void put_recorded_stack(writer *w, gmd_snapshot_file *file, uint32_t stack)
{
    size_t count;
    pickle_list list;
    if (w->known_stacks[stack]) {
        pickle_again(&file->out, w->known_stacks[stack] - 1);
        return;
    }
    const uint32_t *frames = gmd_origins_stack(&w->recorded->origins, stack, &count);
    pickle_begin_list(&file->out, &list);
    for (size_t i = 0; i < count; i++) {
        pickle_next(&file->out, &list);
        put_recorded_frame(w, file, frames[i]);
    }
    pickle_end_list(&file->out, &list);
    w->known_stacks[stack] = pickle_remember(&file->out) + 1;
}

/* The journal is in memory that the allocator under test can write to. */
static gmd_origin origin_of(const writer *w, const gmd_journal_event *e)
{
    return w->recorded && e->origin < gmd_origins_count(&w->recorded->origins)
               ? gmd_origins_get(&w->recorded->origins, e->origin)
               : (gmd_origin){0};
}

static gmd_snapshot_file_text recorded_text(const writer *w, uint32_t number)
{
    gmd_snapshot_file_text text = {0};
    if (number) {
        text.bytes = gmd_origins_text(&w->recorded->origins, number, &text.length);
    }
    return text;
}

/* --- frames ------------------------------------------------------------------------------- */

static void put_frames(void *context, gmd_snapshot_file *file, uint32_t stack)
{
    writer *w = context;
    if (w->recorded) {
        put_recorded_stack(w, file, origin_of(w, &w->journal->events[stack - 1]).stack);
        return;
    }
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

/* A request that was read from no line, or of which no stack was recorded, has no frame. */
static uint32_t framed(const writer *w, uint32_t stack)
{
    if (!stack || stack > w->event_count) {
        return 0;
    }
    const gmd_journal_event *e = &w->journal->events[stack - 1];
    return (w->recorded ? origin_of(w, e).stack : e->line) ? stack : 0;
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
    const gmd_origin origin = origin_of(w, e);
    gmd_snapshot_file_event_of(
        &w->file,
        &(gmd_snapshot_file_event){.action = actions[e->action - 1],
                                   .address = e->address,
                                   .size = e->size,
                                   .stream = e->stream,
                                   .time_us = e->time_us,
                                   .stack = framed(w, index + 1),
                                   .metadata = recorded_text(w, origin.metadata),
                                   .compile_context = recorded_text(w, origin.compile_context)});
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
static void put_settings(writer *w)
{
    settings read;
    char conf[sizeof w->journal->conf] = "";
    if (w->journal) {
        snprintf(conf, sizeof conf, "%.*s", (int)sizeof conf - 1, w->journal->conf);
    }
    if (settings_parse(&read, conf, NULL) != GMD_OK) {
        settings_parse(&read, NULL, NULL);
    }
    gmd_snapshot_file_settings(&w->file, &read, conf);
}

/* A stage that gmd does not know is kept under no name. */
static void put_annotations(writer *w)
{
    static const gmd_snapshot_file_text stages[] = {
        [GMD_ANNOTATION_START] = {"START", 5},
        [GMD_ANNOTATION_END] = {"END", 3},
        [GMD_ANNOTATION_OTHER] = {0},
    };
    gmd_snapshot_file_begin_annotations(&w->file);
    for (size_t i = 0; w->recorded && i < w->recorded->annotation_count; i++) {
        const gmd_annotation *a = &w->recorded->annotations[i];
        gmd_snapshot_file_annotation_of(
            &w->file, &(gmd_snapshot_file_annotation){.stage = stages[a->stage],
                                                      .name = recorded_text(w, a->name),
                                                      .device = a->device,
                                                      .time_us = a->time_us});
    }
    gmd_snapshot_file_end_annotations(&w->file);
}

/* --- the whole ---------------------------------------------------------------------------- */

static writer *new_writer(const gmd_snapshot *recorded)
{
    writer *w = calloc(1, sizeof *w);
    if (!w || !recorded) {
        return w;
    }
    w->recorded = recorded;
    w->known_stacks = calloc(gmd_origins_stack_count(&recorded->origins), sizeof *w->known_stacks);
    w->known_frames = calloc(gmd_origins_frame_count(&recorded->origins), sizeof *w->known_frames);
    return w;
}

static void free_writer(writer *w)
{
    if (w) {
        free(w->known_stacks);
        free(w->known_frames);
        free(w);
    }
}

static gmd_status write_journal(const gmd_outcome *o, const gmd_journal *journal,
                                const gmd_snapshot *recorded, new_file *out, gmd_error *error)
{
    snapshot_state state = {0};
    writer *w = new_writer(journal ? recorded : NULL);
    bool has_memory = w && (!w->recorded || (w->known_stacks && w->known_frames)) &&
                      (!journal || snapshot_state_make(&state, journal));
    if (has_memory) {
        uint64_t count = journal ? journal->count : 0;
        w->journal = journal;
        w->event_count = gmd_min(count, GMD_JOURNAL_EVENT_MAX);
        outcome_source(o, w->source);
        w->workload = o->name;
        gmd_snapshot_file_begin(&w->file, out, put_frames, w);
        put_segments(w, &state);
        put_traces(w);
        put_settings(w);
        put_annotations(w);
        gmd_snapshot_file_end(&w->file);
    }
    snapshot_state_release(&state);
    free_writer(w);
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
    gmd_status status =
        write_journal(has_one ? report->outcomes[i] : &none, has_one ? report->journals[i] : NULL,
                      report->recorded, to, error);
    if (status == GMD_OK) {
        status = new_file_finish(to, error);
    }
    free(to);
    return status == GMD_OK ? gmd_finish_writing(out, "the snapshot", error) : status;
}
