/* oom_text.c - each out-of-memory on a screen: what cost most first. */
#include "oom_text.h"

#include "gmd_min.h"
#include "gmd_report_text.h"
#include "gmd_size.h"

#include <inttypes.h>

static void put_oom_amounts(const page *p, const gmd_oom *oom)
{
    char allocated[24], reserved[24], other[24];
    page_line line;
    page_line_begin(&line, p);
    fprintf(line.page.out, "%s%s allocated of %s reserved",
            gmd_is_lower_bound(&p->facts->recording, oom->moment) ? "at least " : "",
            gmd_format_size(oom->free.amount.allocated, allocated),
            gmd_format_size(oom->free.amount.reserved, reserved));
    if (oom->device_free != GMD_NOT_KNOWN) {
        fprintf(line.page.out, ", %s free on the device", gmd_format_size(oom->device_free, other));
    }
    page_line_end(&line, p, 2, 4);
    if (oom->beside != GMD_NOT_KNOWN) {
        page_line_begin(&line, p);
        fprintf(line.page.out,
                "%s held beside PyTorch: by the driver, libraries and other processes",
                gmd_format_size(oom->beside, other));
        page_line_end(&line, p, 2, 4);
    }
}

static void put_oom_title(const page *p, const gmd_oom *oom)
{
    char bytes[24];
    page_line line;
    page_line_begin(&line, p);
    fprintf(line.page.out, "%s: ", gmd_oom_outcome_title(oom->outcome));
    page_put_request(&line.page, oom->requested, oom->origin);
    page_line_end(&line, p, 0, 4);
    page_line_begin(&line, p);
    fputs("at ", line.page.out);
    page_put_moment(&line.page, oom->moment);
    if (oom->needed != oom->requested) {
        fprintf(line.page.out, "; the device was asked for %s",
                gmd_format_size(oom->needed, bytes));
    }
    if (oom->repeats) {
        fprintf(line.page.out, ", and %" PRIu32 " more like it", oom->repeats);
    }
    page_line_end(&line, p, 2, 4);
}

static gmd_status put_oom(const page *p, const gmd_oom *oom)
{
    enum { ROWS = 3 };
    char bytes[24];
    put_oom_title(p, oom);
    put_oom_amounts(p, oom);
    page_put_causes(p, &oom->free);
    page_line line;
    page_line_begin(&line, p);
    fprintf(line.page.out, "The largest request that would have been served: at least %s",
            gmd_format_size(oom->largest, bytes));
    page_line_end(&line, p, 2, 4);
    fprintf(p->out, "  Cause: %s. Change:\n", gmd_oom_cause_name(oom->cause));
    gmd_put_wrapped(p->out, p->view->columns, 4, oom->change);
    fputs("  Held then\n", p->out);
    return page_put_holders(p, oom->moment, ROWS);
}

/* Those of an outcome, as many as there is room for; `*room` is what is left of it. */
static gmd_status put_ooms_of(const page *p, const gmd_ooms *ooms, gmd_oom_outcome outcome,
                              size_t *room)
{
    gmd_status status = GMD_OK;
    for (size_t i = 0; status == GMD_OK && i < ooms->count && *room; i++) {
        if (ooms->items[i].outcome == outcome) {
            status = put_oom(p, &ooms->items[i]);
            (*room)--;
        }
    }
    return status;
}

/* What cost most first. */
gmd_status oom_text_put(const page *p, const gmd_ooms *ooms)
{
    enum { SHOWN = 3 };
    char count[32];
    size_t room = gmd_min(p->view->rows, SHOWN), shown = room;
    gmd_status status = GMD_OK;
    for (int outcome = GMD_OOM_OUTCOME_COUNT; status == GMD_OK && outcome-- > 0;) {
        status = put_ooms_of(p, ooms, (gmd_oom_outcome)outcome, &room);
    }
    uint64_t more = ooms->count - (shown - room) + ooms->left_out;
    if (more) {
        fprintf(p->out, "Out of memory for %s line%s and size%s more (all: --json)\n",
                gmd_format_count(more, count), more == 1 ? "" : "s", more == 1 ? "" : "s");
    }
    if (ooms->count) {
        fputc('\n', p->out);
    }
    return status;
}
