#include "case.h"

#include "gmd_min.h"
#include "gmd_output.h"
#include "gmd_utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* `source` NULL: of a live scenario. */
static gmd_status copy_requests(const gmd_trace *source, const taken_run *run, size_t count,
                                gmd_trace *out, gmd_error *error)
{
    gmd_status status = GMD_OK;
    for (size_t i = 0; i < count && status == GMD_OK; i++) {
        gmd_request request;
        bool is_sound = source || take_request(run, i, &request);
        status = is_sound ? gmd_trace_append(out, source ? &source->requests[i] : &request, error)
                          : gmd_fail(error, GMD_FAILED, "the recorded requests were written over");
    }
    return status;
}

/* Entries `first` to `count` - 1 of a list, named as in `source` where that has them. */
static gmd_status copy_names(const gmd_names *source, uint32_t first, uint32_t count,
                             gmd_names *out, gmd_error *error)
{
    gmd_status status = GMD_OK;
    for (uint32_t i = first, index; i < count && status == GMD_OK; i++) {
        status = gmd_names_add(out, source && i < source->count ? source->items[i] : NULL, &index,
                               error);
    }
    return status;
}

static uint32_t at_least(uint32_t count, uint32_t index)
{
    return index >= count ? index + 1 : count;
}

/* Only blocks, streams and pools that the cut mentions; functions and threads are few. */
static gmd_status name_entries(const gmd_trace *source, gmd_trace *out, gmd_error *error)
{
    uint32_t blocks = 0, streams = 1, pools = 0;
    for (size_t i = 0; i < out->count; i++) {
        const gmd_request *r = &out->requests[i];
        blocks = gmd_op_has_block(r->op) ? at_least(blocks, r->block) : blocks;
        streams = r->stream != GMD_ALL_STREAMS ? at_least(streams, r->stream) : streams;
        streams = gmd_op_has(r->op, GMD_FIELD_OTHER_STREAM) ? at_least(streams, r->other_stream)
                                                            : streams;
        pools = gmd_op_is_on_pool(r->op) ? at_least(pools, r->pool) : pools;
    }
    gmd_status status = copy_names(source ? &source->blocks : NULL, 0, blocks, &out->blocks, error);
    if (status == GMD_OK) {
        status = copy_names(source ? &source->streams : NULL, 1, streams, &out->streams, error);
    }
    if (status == GMD_OK) {
        status = copy_names(source ? &source->pools : NULL, 0, pools, &out->pools, error);
    }
    if (status == GMD_OK && source) {
        status = copy_names(&source->functions, 0, source->functions.count, &out->functions, error);
    }
    if (status == GMD_OK && source) {
        status = copy_names(&source->threads, 1, source->threads.count, &out->threads, error);
    }
    return status;
}

static gmd_status cut_case(const taken_run *run, const gmd_run_options *options,
                           const gmd_trace *source, gmd_trace *out, gmd_error *error)
{
    size_t available = source ? source->count : run->request_count;
    /* Where requests are interleaved, later ones of other threads may have been there before. */
    size_t count = interleaving_of(options, source)
                       ? available
                       : (size_t)run->outcome.violations[0].request + 1;
    if (!source && count > available && available == GMD_RECORDED_REQUEST_MAX) {
        return gmd_fail(error, GMD_FAILED, "it takes more than %zu requests",
                        GMD_RECORDED_REQUEST_MAX);
    }
    gmd_trace_init(out);
    gmd_status status = copy_requests(source, run, gmd_min(count, available), out, error);
    if (status == GMD_OK) {
        status = name_entries(source, out, error);
    }
    const gmd_schedule *interleaving = interleaving_of(options, source);
    gmd_conditions conditions = options->conditions;
    conditions.limit_bytes = 0; /* it is a request (complete_case) */
    conditions.interleave = interleaving ? *interleaving : (gmd_schedule){0};
    return status == GMD_OK ? gmd_conditions_copy(&out->conditions, &conditions, error) : status;
}

/* What the case must say beside its requests: that a refused job was to be served, and the limit in
 * force, as its first request. */
static gmd_status complete_case(const gmd_outcome *o, const gmd_run_options *options,
                                gmd_trace *cut, gmd_error *error)
{
    gmd_request *last = cut->count ? &cut->requests[cut->count - 1] : NULL;
    if (last && last->op == GMD_OP_ALLOC && last->expect == GMD_EXPECT_ANY &&
        strcmp(o->violations[0].oracle, "expect") == 0) {
        last->expect = GMD_EXPECT_ALLOC;
    }
    if (!options->conditions.limit_bytes ||
        options->conditions.limit_bytes > options->conditions.capacity_bytes) {
        return GMD_OK;
    }
    gmd_request fraction = {.op = GMD_OP_FRACTION,
                            .fraction = fraction_for(options->conditions.limit_bytes,
                                                     options->conditions.capacity_bytes)};
    gmd_status status = gmd_trace_append(cut, &fraction, error);
    if (status == GMD_OK) {
        memmove(&cut->requests[1], &cut->requests[0], (cut->count - 1) * sizeof fraction);
        cut->requests[0] = fraction;
    }
    return status;
}

static size_t without(const char *name, size_t length, const char *ending)
{
    size_t its = strlen(ending);
    bool is_there = its <= length && strncmp(name + length - its, ending, its) == 0;
    return is_there ? length - its : length;
}

/* How much of the workload's name a case's begins with: that of a case which is run again does not
 * grow. */
static int bare_length(const gmd_outcome *o)
{
    enum { MOST = 80 };
    char ending[80];
    snprintf(ending, sizeof ending, "-%s-%" PRIu64, o->violations[0].oracle,
             o->violations[0].request);
    size_t length = without(o->name, strlen(o->name), ".gmd");
    length = without(o->name, length, ending);
    return (int)gmd_min(length, MOST);
}

/* NAME-VARIANT-NUMBER-ORACLE-REQUEST.gmd, without spaces and slashes. */
static void name_case(const gmd_outcome *o, const gmd_run_options *options, char *path, size_t size)
{
    char variant[sizeof o->variant + 1], number[16] = "";
    snprintf(variant, sizeof variant, "%s%s", *o->variant ? "-" : "", o->variant);
    for (char *c = variant; *c; c++) {
        *c = strchr(" /\\", *c) ? '_' : *c;
    }
    if (options->cases.number > 1) {
        snprintf(number, sizeof number, "-%" PRIu32, options->cases.number);
    }
    snprintf(path, size, "%s/%.*s%.60s%s-%s-%" PRIu64 ".gmd", options->cases.directory,
             bare_length(o), o->name, variant, number, o->violations[0].oracle,
             o->violations[0].request);
}

static gmd_status write_file(const gmd_trace *cut, const char *path, const gmd_run_options *options,
                             const gmd_violation *v, gmd_error *error)
{
    gmd_output out;
    if (gmd_output_folder(options->cases.directory) != 0) {
        return gmd_fail(error, GMD_FAILED, "%s: %s", path, strerror(errno));
    }
    gmd_status status = gmd_output_open(&out, path, error);
    if (status != GMD_OK) {
        return status;
    }
    status = gmd_trace_write(cut, out.stream, error);
    fprintf(out.stream, "# %s: %s\n# --allocator ", v->oracle, v->message);
    gmd_utf8_put_line(options->subject.allocator, out.stream);
    fputc('\n', out.stream);
    return gmd_output_close(&out, status, error);
}

gmd_status case_cut(const gmd_run_options *options, const gmd_workload *workload,
                    const taken_run *run, gmd_trace *cut, gmd_error *error)
{
    *cut = (gmd_trace){0};
    gmd_status status = cut_case(run, options, workload->trace, cut, error);
    return status == GMD_OK ? complete_case(&run->outcome, options, cut, error) : status;
}

/* What was run is a case already. */
static bool is_own_file(const gmd_run_options *options, const gmd_workload *workload,
                        const gmd_trace *cut, size_t path_size)
{
    const gmd_trace *source = workload->trace;
    bool is_whole = options->cases.file_says_all && source && workload->path &&
                    strlen(workload->path) < path_size && cut->count == source->count;
    for (size_t i = 0; is_whole && i < cut->count; i++) {
        char said[200], was[200];
        gmd_request_text(cut, &cut->requests[i], said, sizeof said);
        gmd_request_text(source, &source->requests[i], was, sizeof was);
        is_whole = strcmp(said, was) == 0 && cut->requests[i].thread == source->requests[i].thread;
    }
    return is_whole;
}

static void note_unwritten(gmd_outcome *o, const gmd_error *error)
{
    if (o->note_count < GMD_NOTE_MAX) {
        snprintf(o->notes[o->note_count++], sizeof o->notes[0],
                 "the failing case could not be written: %.500s", error->text);
    }
}

void case_write(const gmd_run_options *options, const gmd_workload *workload, taken_run *run)
{
    gmd_outcome *o = &run->outcome;
    if (!options->cases.directory || !o->violation_count) {
        return;
    }
    char path[sizeof o->violations[0].case_path];
    name_case(o, options, path, sizeof path);
    gmd_trace cut;
    gmd_error error = {""};
    gmd_status status = case_cut(options, workload, run, &cut, &error);
    if (status == GMD_OK && is_own_file(options, workload, &cut, sizeof path)) {
        snprintf(path, sizeof path, "%s", workload->path);
    } else if (status == GMD_OK) {
        status = write_file(&cut, path, options, &o->violations[0], &error);
    }
    gmd_trace_free(&cut);
    if (status != GMD_OK) {
        fprintf(stderr, "gmd: the failing case could not be written: %s\n", error.text);
        note_unwritten(o, &error);
        return;
    }
    for (uint32_t i = 0; i < o->violation_count; i++) {
        snprintf(o->violations[i].case_path, sizeof path, "%s", path);
    }
}
