#include "page_inputs.h"

#include "distinct.h"
#include "inputs.h"
#include "page.h"
#include "play_inputs.h"
#include "reading.h"
#include "results.h"

#include "gmd_file.h"
#include "gmd_memory_file.h"

#include <stdio.h>
#include <stdlib.h>

/* What a page needs until it is written. */
typedef struct reading {
    const cli_options *options;
    const cli_page_inputs *inputs;
    gmd_diagnosis *diagnoses;
    size_t diagnosis_count;
    int *exit_status; /* of the worst input so far */
} reading;

static void note_status(const reading *r, int status)
{
    *r->exit_status = status > *r->exit_status ? status : *r->exit_status;
}

/* The snapshot is taken over. */
static gmd_status add_recording(reading *r, gmd_page *page, gmd_snapshot *snapshot,
                                const char *path, gmd_error *error)
{
    gmd_diagnosis *diagnosis = &r->diagnoses[r->diagnosis_count];
    gmd_status status = gmd_diagnosis_make(diagnosis, snapshot, path, error);
    if (status == GMD_OK) {
        r->diagnosis_count++;
        note_status(r, diagnosis->finding_count ? CLI_EXIT_FINDING : CLI_EXIT_OK);
        const char *name = cli_distinct_name(path, r->inputs->items, r->inputs->count);
        status = gmd_page_add_diagnosis(page, diagnosis, name, error);
    }
    return status;
}

/* A recording or a result, by its content. The file's bytes are given back before the diagnosis
 * takes memory. */
static gmd_status add_file(reading *r, gmd_page *page, const char *path, gmd_error *error)
{
    uint8_t *data;
    size_t size;
    gmd_snapshot snapshot = {0};
    gmd_status status = gmd_file_read_any_size(path, &data, &size, error);
    if (status != GMD_OK) {
        return status;
    }
    gmd_memory_file kind = gmd_memory_file_of(data, size);
    bool is_result = kind == GMD_FILE_RESULT || (kind == GMD_FILE_SNAPSHOT && cli_is_result(path));
    if (is_result) {
        gmd_page_verdict verdict = {GMD_PASS, GMD_OK};
        status = gmd_page_add_result(page, (const char *)data, size, path, &verdict, error);
        note_status(r, verdict.verdict == GMD_PASS   ? CLI_EXIT_OK
                       : verdict.verdict == GMD_FAIL ? CLI_EXIT_FINDING
                                                     : cli_exit_status(verdict.error_status));
    } else {
        status = gmd_memory_file_parse(&snapshot, data, size, path, error);
    }
    free(data);
    bool is_recording = !is_result && status == GMD_OK;
    return is_recording ? add_recording(r, page, &snapshot, path, error) : status;
}

static gmd_status add_bounded(reading *r, gmd_page *page, const char *path, gmd_error *error)
{
    cli_read read;
    cli_read_begin(&read, &r->options->reading, path);
    gmd_status status = add_file(r, page, path, error);
    return cli_read_end(&read, status, error);
}

static gmd_status add_run(reading *r, gmd_page *page, const char *input, gmd_error *error)
{
    cli_results results;
    cli_options options = *r->options;
    options.quiet = true;
    cli_results_open(&results, &options, "run");
    results.keeps_journals = true;
    results.speaker = "report";
    results.inputs = r->inputs->items;
    results.input_count = r->inputs->count;
    cli_run_input(&options, input, r->inputs->params, r->inputs->param_count, &results);
    int exit_status = CLI_EXIT_OK;
    gmd_status status = cli_results_add_to_page(&results, page, &exit_status, error);
    note_status(r, exit_status);
    cli_results_free(&results);
    return status;
}

static gmd_status fill(gmd_page *page, const void *context, gmd_error *error)
{
    reading *r = (reading *)(uintptr_t)context;
    gmd_status status = GMD_OK;
    for (size_t i = 0; status == GMD_OK && i < r->inputs->count; i++) {
        const char *input = r->inputs->items[i];
        bool is_file = cli_is_result(input) || r->inputs->is_recording(input);
        status = is_file ? add_bounded(r, page, input, error) : add_run(r, page, input, error);
    }
    return status;
}

int cli_page_of_inputs(const cli_options *options, const cli_page_inputs *inputs, const char *path)
{
    gmd_error error = {""};
    int exit_status = CLI_EXIT_OK;
    reading r = {.options = options,
                 .inputs = inputs,
                 .diagnoses = calloc(inputs->count + 1, sizeof *r.diagnoses),
                 .exit_status = &exit_status};
    gmd_status status = r.diagnoses
                            ? cli_page_write(path, fill, &r, &error)
                            : gmd_fail(&error, GMD_NO_MEMORY, "no host memory for the page");
    for (size_t i = 0; i < r.diagnosis_count; i++) {
        gmd_diagnosis_free(&r.diagnoses[i]);
    }
    free(r.diagnoses);
    if (status != GMD_OK) {
        fprintf(stderr, "gmd report: %s\n", error.text);
        return cli_exit_status(status);
    }
    return exit_status;
}
