#include "checker.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void blame_quirk(checker *c, const gmd_check_quirk *q, uint64_t request)
{
    for (uint64_t i = 0; i < q->count && i < sizeof q->requests / sizeof *q->requests; i++) {
        if (q->requests[i] == request) {
            gmd_session_note(c->session,
                             "request %" PRIu64 " is where the recorded version has its quirk %s: "
                             "without it the allocator does otherwise, rightly",
                             request, q->name);
        }
    }
}

/* Which of the quirks that the allocator does not keep to made the first difference. */
static void blame_quirks(checker *c, uint64_t request)
{
    const gmd_check *recorded = c->input->as_recorded;
    for (uint32_t i = 0; recorded && i < recorded->quirk_count; i++) {
        for (size_t k = 0; k < GMD_QUIRK_KINDS; k++) {
            bool is_off = !(c->input->quirks >> k & 1);
            if (is_off && strcmp(recorded->quirks[i].name, quirk_kinds[k].name) == 0) {
                blame_quirk(c, &recorded->quirks[i], request);
            }
        }
    }
}

void checker_differ(checker *c, uint64_t request, const char *what, const char *expected,
                    const char *format, ...)
{
    gmd_check *r = c->result;
    r->exact = false;
    r->first_difference.present = true;
    r->first_difference.request = request;
    snprintf(r->first_difference.what, sizeof r->first_difference.what, "%s", what);
    snprintf(r->first_difference.expected, sizeof r->first_difference.expected, "%s", expected);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(r->first_difference.got, sizeof r->first_difference.got, format, arguments);
    va_end(arguments);
    const gmd_trace *trace = &c->input->history->trace;
    if (request < trace->count) {
        gmd_request_text(trace, &trace->requests[request], r->first_difference.text,
                         sizeof r->first_difference.text);
    }
    session_outcome(c->session)->verdict = GMD_FAIL;
    blame_quirks(c, request);
}
