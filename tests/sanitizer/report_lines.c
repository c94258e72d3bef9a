/* report_lines FILE - writes FILE with a finding of each kind and moment, for the schema's test. */
#include "patterns.h"
#include "report.h"

#include <stdio.h>

static size_t stack_text(uint32_t stack, char *text, size_t size)
{
    return (size_t)snprintf(text, size, "train.py:%u:step\nlib.py:1:main\n", stack);
}

/* Each with stacks of its own: no two have one cause. */
static finding finding_of(finding_kind kind, finding_moment moment, uint32_t stack)
{
    guarded_block block = {.address = 0x10000,
                           .size = 4096,
                           .number = stack,
                           .stream = (cudaStream_t)0x7f00,
                           .recorded = {(cudaStream_t)0x7f10},
                           .recorded_count = 1,
                           .allocated_stack = stack,
                           .freed_stack = stack + 1,
                           .freed_ns = 1};
    finding found = {.kind = kind,
                     .moment = moment,
                     .block = block,
                     .evidence = EVIDENCE_BYTES,
                     .current_stack = stack + 2,
                     .changed = {.first = 0xfff8, .last = 0x1000f, .changed = 8, .word = 7},
                     .expected = PATTERN_FREED,
                     .owner = {.address = 0x10000, .size = 512, .number = stack + 1}};
    if (kind == FINDING_BAD_FREE) {
        found = (finding){.kind = kind, .moment = moment, .block = {.address = 0x20000 + stack}};
        found.evidence = EVIDENCE_REQUEST;
    } else if (moment == MOMENT_QUEUED) {
        found.evidence = EVIDENCE_HAPPENS_BEFORE;
        found.use = "_Z6reducePf";
        found.use_stack = stack + 2;
    }
    if (kind == FINDING_ILLEGAL_ACCESS) {
        found.evidence = EVIDENCE_FAULT;
        found.changed.changed = 0;
        found.suspicion = (suspicion)(stack / 10 % 4);
    }
    return found;
}

int main(int argc, char **argv)
{
    sanitizer_options options;
    gmd_error error;
    if (argc != 2 || sanitizer_options_parse(&options, "cheap", &error) != GMD_OK) {
        return 2;
    }
    snprintf(options.report, sizeof options.report, "%s", argv[1]);
    remove(argv[1]);
    report *r = report_create(&options, stack_text);
    if (!r) {
        return 2;
    }
    uint32_t stack = 10;
    for (int kind = FINDING_WRITE_AFTER_FREE; kind <= FINDING_ILLEGAL_ACCESS; kind++) {
        for (int moment = MOMENT_FREE; moment <= MOMENT_FAULT; moment++, stack += 10) {
            finding found = finding_of((finding_kind)kind, (finding_moment)moment, stack);
            report_finding(r, &found);
        }
    }
    report_destroy(r);
    return 0;
}
