/* job_findings.c - asks each class, and puts what they found in order. */
#include "gmd_job_findings.h"

#include "classes.h"

#include <stdlib.h>

typedef struct class_entry {
    gmd_finding_class class;
    class_look *look;
} class_entry;

/* In the order in which they look. */
static const class_entry leak_classes[] = {
    {GMD_FINDING_GRADIENT_ACCUMULATION, look_for_gradient_accumulation},
    {GMD_FINDING_CHECKPOINT_CACHE, look_for_checkpoint_cache},
    {GMD_FINDING_HIDDEN_STATE, look_for_hidden_state},
    {GMD_FINDING_REFERENCE_CYCLE, look_for_reference_cycle},
    {GMD_FINDING_EVAL_GRAPH, look_for_eval_graph},
    {GMD_FINDING_RETAINED_GRAPH, look_for_retained_graph},
};

/* An out-of-memory is explained by what leaks, or else by one of these. */
static const class_entry other_classes[] = {
    {GMD_FINDING_CROSS_STREAM_PENDING, look_for_cross_stream_pending},
    {GMD_FINDING_FRAGMENTATION, look_for_fragmentation},
    {GMD_FINDING_CACHED_NOT_RELEASED, look_for_cached_not_released},
    {GMD_FINDING_TRUE_CAPACITY, look_for_true_capacity},
};

static int compare_findings(const void *a, const void *b)
{
    const gmd_job_finding *x = a, *y = b;
    if (x->bytes != y->bytes) {
        return x->bytes > y->bytes ? -1 : 1;
    }
    return (x->class > y->class) - (x->class < y->class);
}

static void ask(const class_entry *classes, size_t count, gmd_job_findings *findings,
                const class_view *view)
{
    for (size_t i = 0; i < count; i++) {
        gmd_job_finding *finding = &findings->items[findings->count];
        *finding = (gmd_job_finding){.class = classes[i].class};
        findings->count += classes[i].look(view, finding);
    }
}

static void look(gmd_job_findings *findings, gmd_ooms *ooms, class_view *view)
{
    ask(leak_classes, sizeof leak_classes / sizeof *leak_classes, findings, view);
    view->leaks = findings->items;
    view->leak_count = findings->count;
    gmd_ooms_know_leaks(ooms, view->facts, view->leaks, view->leak_count);
    view->refusal = gmd_ooms_costly(ooms);
    view->lost = ooms->lost;
    ask(other_classes, sizeof other_classes / sizeof *other_classes, findings, view);
    qsort(findings->items, findings->count, sizeof *findings->items, compare_findings);
}

/* What classes look at, beside the facts. */
typedef struct observations {
    retention retained;
    loops loops;
    course course;
    gmd_free_memory free;
    parameter_sizes parameters;
} observations;

/* The job's end: a refusal, if that ended it. */
static uint32_t end_of(const gmd_ooms *ooms, const gmd_recording *r)
{
    const gmd_oom *refusal = gmd_ooms_costly(ooms);
    return refusal && refusal->outcome == GMD_OOM_ENDED ? refusal->moment : r->last;
}

static gmd_status observe(observations *o, const gmd_facts *facts, uint32_t end, gmd_error *error)
{
    const gmd_recording *r = &facts->recording;
    *o = (observations){0};
    gmd_status status = retention_find(&o->retained, facts, error);
    if (status == GMD_OK) {
        status = parameter_sizes_find(&o->parameters, facts, error);
    }
    if (status == GMD_OK) {
        status = loops_find(&o->loops, facts, &o->parameters, error);
    }
    if (status == GMD_OK) {
        status = course_find(&o->course, r, &facts->iterations, error);
    }
    if (status == GMD_OK) {
        status = gmd_free_memory_find(&o->free, r, &facts->places, end, NULL, error);
    }
    return status;
}

static void release(observations *o)
{
    retention_free(&o->retained);
    loops_free(&o->loops);
    gmd_free_memory_release(&o->free);
    parameter_sizes_free(&o->parameters);
}

gmd_status gmd_job_findings_find(gmd_job_findings *findings, gmd_ooms *ooms, const gmd_facts *facts,
                                 gmd_error *error)
{
    observations o;
    const uint32_t end = end_of(ooms, &facts->recording);
    *findings = (gmd_job_findings){0};
    gmd_status status = observe(&o, facts, end, error);
    if (status == GMD_OK) {
        findings->items = calloc(GMD_FINDING_CLASS_COUNT + 1, sizeof *findings->items);
        findings->blamed = calloc(facts->recording.lifetime_count + 1, sizeof *findings->blamed);
        status = findings->items && findings->blamed
                     ? GMD_OK
                     : gmd_fail(error, GMD_NO_MEMORY, "no host memory for findings");
    }
    if (status == GMD_OK) {
        look(findings, ooms,
             &(class_view){.facts = facts,
                           .end = end,
                           .loops = &o.loops,
                           .course = o.course,
                           .free = &o.free,
                           .parameters = &o.parameters,
                           .retained = &o.retained,
                           .blamed = findings->blamed});
    }
    release(&o);
    return status;
}

void gmd_job_findings_free(gmd_job_findings *findings)
{
    free(findings->items);
    free(findings->blamed);
    *findings = (gmd_job_findings){0};
}

uint32_t gmd_finding_stack(const gmd_job_findings *findings, const gmd_job_finding *finding,
                           const gmd_facts *facts, uint32_t frame)
{
    const gmd_places *places = &facts->places;
    uint64_t *bytes = calloc(gmd_origins_stack_count(places->origins), sizeof *bytes);
    uint32_t most = 0;
    for (int is_blamed = 1; bytes && !most && is_blamed >= 0; is_blamed--) {
        for (size_t i = 0; i < facts->recording.lifetime_count; i++) {
            const gmd_lifetime *l = &facts->recording.lifetimes[i];
            uint32_t stack = gmd_origins_get(places->origins, l->origin).stack;
            if (places->user_frame_of[stack] == frame &&
                (!is_blamed || findings->blamed[i] == finding->class + 1)) {
                bytes[stack] += l->size;
                most = !most || bytes[stack] > bytes[most] ? stack : most;
            }
        }
    }
    free(bytes);
    return most;
}

bool gmd_finding_is_leak(gmd_finding_class class)
{
    for (size_t i = 0; i < sizeof leak_classes / sizeof *leak_classes; i++) {
        if (leak_classes[i].class == class) {
            return true;
        }
    }
    return false;
}

const char *gmd_finding_class_name(gmd_finding_class class)
{
    static const char *const names[] = {
#define GMD_FINDING_CLASS_NAME(name, text) text,
        GMD_FINDING_CLASSES(GMD_FINDING_CLASS_NAME)
#undef GMD_FINDING_CLASS_NAME
    };
    return names[class];
}
