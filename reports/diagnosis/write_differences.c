/* write_differences.c - the ranks of a job, or times of it, side by side on a screen. */
#include "gmd_diagnosis_report.h"

#include "compared_line.h"
#include "peaks.h"

#include "gmd_min.h"
#include "gmd_report_text.h"
#include "gmd_size.h"

enum { BELOW = 4 }; /* indent of what has no room behind its figures */

static void put_findings(const gmd_diagnosis *d, FILE *out)
{
    for (size_t i = 0; i < d->finding_count; i++) {
        fprintf(out, "%s%s", i ? ", " : "", gmd_finding_class_name(d->findings[i].finding->class));
    }
    fputs(d->finding_count ? "" : "-", out);
}

static void put_snapshots(const gmd_diagnosis *diagnoses, size_t count, gmd_terminal terminal,
                          FILE *out)
{
    enum { FIGURES = 22 };
    char peak[24], reserved[24];
    size_t highest = peaks_highest(diagnoses, count);
    fputs("       peak   reserved  snapshot and findings\n", out);
    for (size_t i = 0; i < count; i++) {
        const gmd_recording *r = &diagnoses[i].devices[0].facts.recording;
        bool knows_reserved = diagnoses[i].snapshot.recorder == GMD_RECORDER_PYTORCH;
        fprintf(out, "%c %9s %10s", i == highest ? '*' : ' ',
                gmd_format_size(r->peak.amount.allocated, peak),
                knows_reserved ? gmd_format_size(r->peak.amount.reserved, reserved) : "-");
        gmd_held_text held;
        FILE *text = gmd_held_text_begin(&held, out);
        gmd_utf8_put_line(diagnoses[i].name, text);
        fputs(": ", text);
        put_findings(&diagnoses[i], text);
        gmd_held_text_put_beside(&held, terminal, FIGURES, BELOW);
    }
}

/* From the first to the last as times of a job go, and the least and the most as ranks differ. */
static void put_rows(const gmd_comparison *lines, uint32_t rows, gmd_terminal terminal, FILE *out)
{
    enum { FIGURES = 44 };
    char first[24], last[24], least[24], most[24], count[32];
    size_t shown = 0;
    fputs("\n      first       last      least       most  line\n", out);
    for (; shown < lines->row_count && shown < rows; shown++) {
        const gmd_compared_row *row = &lines->rows[shown];
        uint64_t low = row->bytes[0], high = row->bytes[0];
        for (size_t i = 1; i < lines->snapshot_count; i++) {
            low = gmd_min(row->bytes[i], low);
            high = gmd_max(row->bytes[i], high);
        }
        fprintf(out, " %10s %10s %10s %10s", gmd_format_size(row->bytes[0], first),
                gmd_format_size(row->bytes[lines->snapshot_count - 1], last),
                gmd_format_size(low, least), gmd_format_size(high, most));
        gmd_held_text held;
        compared_line_put(row, gmd_utf8_put_line, gmd_held_text_begin(&held, out));
        gmd_held_text_put_beside(&held, terminal, FIGURES, BELOW);
    }
    if (shown < lines->row_count) {
        fprintf(out, " and %s line%s more\n", gmd_format_count(lines->row_count - shown, count),
                lines->row_count - shown == 1 ? "" : "s");
    }
}

gmd_status gmd_diagnosis_write_differences(const gmd_diagnosis *diagnoses, size_t count,
                                           const gmd_diagnosis_view *view, FILE *out,
                                           gmd_error *error)
{
    gmd_comparison lines;
    char text[32];
    gmd_status status = peaks_compare(&lines, diagnoses, count, error);
    if (status != GMD_OK) {
        return status;
    }
    fprintf(out, "%s snapshots, each at its peak; *: the highest\n\n",
            gmd_format_count(count, text));
    put_snapshots(diagnoses, count, view->terminal, out);
    put_rows(&lines, view->rows, view->terminal, out);
    fputc('\n', out);
    gmd_comparison_free(&lines);
    return gmd_finish_writing(out, "the differences", error);
}
