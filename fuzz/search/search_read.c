/* search_read.c - a campaign reads the corpus of others. Inputs with the same header run in one
 * process, one after the other, whatever order the folder has them in: a process costs more than
 * what it runs, on a real device a second and a half. */
#include "campaign.h"

#include "gmd_space.h"

#include "gmd_clock.h"

#include <stdio.h>
#include <stdlib.h>

#define READ_SECONDS 5 /* between readings of what other processes have put into the corpus */
#define HELD_INPUTS  4096
#define HELD_BYTES   ((size_t)64 << 20) /* of requests */

/* What was read and waits for others with the same header. */
typedef struct reading {
    campaign *campaign;
    gmd_trace *held;
    bool *was_run;
    size_t count, bytes;
    batch batch; /* its traces are those that are held */
} reading;

static bool has_threads(const gmd_trace *trace)
{
    return trace->threads.count > 1;
}

/* An input that ends a batch early costs none of the others their turn. */
static void run_batch(reading *r)
{
    campaign *c = r->campaign;
    batch *b = &r->batch;
    bool interleaves = b->count && has_threads(&b->traces[0].trace);
    while (b->next < b->count && !campaign_is_over(c)) {
        size_t before = b->next;
        campaign_run_batch(c, interleaves, b);
        b->next += b->next == before;
        campaign_tell(c, "reading the corpus");
    }
    b->count = b->next = 0;
}

static void run_group(reading *r, size_t first)
{
    const gmd_trace *header = &r->held[first];
    for (size_t i = first; i < r->count; i++) {
        const gmd_trace *t = &r->held[i];
        if (!r->was_run[i] && has_threads(t) == has_threads(header) &&
            gmd_runner_shares_process(&r->campaign->runner, &t->conditions, &header->conditions)) {
            r->was_run[i] = true;
            r->batch.traces[r->batch.count++] =
                (gmd_persistent_input){.trace = *t}; /* not cut short by questions */
        }
        if (r->batch.count == BATCH) {
            run_batch(r);
        }
    }
    run_batch(r);
}

/* For what they show; each stays in the corpus where it shows anything new. */
static void run_held(reading *r)
{
    for (size_t i = 0; i < r->count; i++) {
        if (!r->was_run[i]) {
            run_group(r, i);
        }
    }
    for (size_t i = 0; i < r->count; i++) {
        gmd_trace_free(&r->held[i]);
        r->was_run[i] = false;
    }
    r->count = r->bytes = 0;
}

/* Another campaign wrote it, another process of this one, or a person. */
static gmd_status hold(void *context, gmd_trace *trace)
{
    reading *r = context;
    campaign *c = r->campaign;
    gmd_space_fit(&c->options->space, trace);
    c->status = gmd_space_fit_header(&c->options->space, &trace->conditions, c->error);
    if (c->status != GMD_OK) {
        gmd_trace_free(trace);
        return c->status;
    }
    r->held[r->count++] = *trace;
    r->bytes += trace->count * sizeof *trace->requests;
    if (r->count == HELD_INPUTS || r->bytes >= HELD_BYTES) {
        run_held(r);
    }
    return c->status;
}

static gmd_status read_all(campaign *c, size_t *unreadable, gmd_error *error)
{
    reading *r = calloc(1, sizeof *r);
    gmd_trace *held = r ? calloc(HELD_INPUTS, sizeof *held) : NULL;
    bool *was_run = held ? calloc(HELD_INPUTS, sizeof *was_run) : NULL;
    gmd_status status = GMD_OK;
    *unreadable = 0;
    if (was_run) {
        *r = (reading){.campaign = c, .held = held, .was_run = was_run};
        status = gmd_corpus_read(c->options->corpus, hold, r, unreadable, error);
        run_held(r);
    } else {
        status = gmd_fail(error, GMD_NO_MEMORY, "no host memory for sequences");
    }
    free(was_run);
    free(held);
    free(r);
    return status;
}

void campaign_read_corpus(campaign *c)
{
    const gmd_corpus *corpus = c->options->corpus;
    bool is_due = corpus && corpus->folder && gmd_clock_s() - c->last_read >= READ_SECONDS;
    gmd_error error = {""};
    size_t unreadable;
    if (!is_due || campaign_is_over(c)) {
        return;
    }
    gmd_status status = read_all(c, &unreadable, &error);
    if (status != GMD_OK && c->status == GMD_OK) {
        c->status = gmd_fail(c->error, status, "%s", error.text);
    } else if (unreadable && !c->result->unreadable) {
        snprintf(c->result->unreadable_first, sizeof c->result->unreadable_first, "%s", error.text);
    }
    c->result->unreadable += unreadable;
    c->last_read = gmd_clock_s();
}
