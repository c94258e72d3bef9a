#include "gmd_contract_probe.h"

#include "gmd_utf8.h"

#include <inttypes.h>

static void put_comment(const char *text, FILE *out)
{
    fputs("  # ", out);
    gmd_utf8_put_line(text, out);
}

static void put_clause(const gmd_contract_probe *probe, gmd_clause clause, FILE *out)
{
    char line[GMD_CONTRACT_LINE];
    const char *found = probe->found[clause];
    gmd_contract_line(&probe->contract, clause, line);
    if (!*line && !*found) {
        return;
    }
    if (probe->is_open[clause]) {
        fprintf(out, "# %s: with every term something is found", gmd_clause_rows[clause].name);
    } else {
        fputs(line, out);
    }
    if (*found) {
        put_comment(found, out);
    }
    putc('\n', out);
}

static void put_promises(const gmd_contract_probe *probe, FILE *out)
{
    for (const gmd_tried_promise *p = probe->promises; p->name; p++) {
        fprintf(out, "%spromise %s", p->fate == GMD_PROMISE_KEPT ? "" : "# ", p->name);
        if (p->fate != GMD_PROMISE_KEPT) {
            fputs(p->fate == GMD_PROMISE_BROKEN ? ": not kept: " : ": not seen: ", out);
            gmd_utf8_put_line(p->why_not, out);
        }
        putc('\n', out);
    }
}

void gmd_contract_probe_write(const gmd_contract_probe *probe, const char *allocator, FILE *out)
{
    fputs("gmd-profile 1\n# gmd probe --allocator ", out);
    gmd_utf8_put_line(allocator, out);
    fprintf(out,
            ": what it does in %" PRIu64 " runs. That may be more than it promises,\n"
            "# or a defect: behind a line stands what was found with the stricter term.\n",
            probe->runs);
    for (uint32_t i = 0; i < probe->defect_count; i++) {
        fputs("# a defect, most likely: ", out);
        gmd_utf8_put_line(probe->defects[i], out);
        putc('\n', out);
    }
    for (int i = 0; i < GMD_CLAUSE_COUNT; i++) {
        put_clause(probe, (gmd_clause)i, out);
    }
    put_promises(probe, out);
}
