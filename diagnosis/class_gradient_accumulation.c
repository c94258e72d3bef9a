/* class_gradient_accumulation.c - gradients that are kept across iterations.
 *
 * It looks at gradients that were there when an optimizer stepped, and are there when the next
 * iteration has ended. A program that zeroes them in place (zero_grad(set_to_none=False)) keeps
 * them, too, on purpose: then zero_grad is annotated in each iteration. */
#include "classes.h"

#include "gmd_size.h"

#include <inttypes.h>
#include <string.h>

typedef struct gradients {
    uint64_t kept, all; /* bytes: that outlive the next iteration's end; at the peak */
    uint64_t blocks;    /* kept */
    uint32_t born;      /* moment of the first of them */
} gradients;

static bool zeroes_gradients(const gmd_facts *f)
{
    const gmd_snapshot *s = f->snapshot;
    for (size_t i = 0; i < s->annotation_count; i++) {
        const char *name = gmd_origins_text(&s->origins, s->annotations[i].name, NULL);
        if (strncmp(name, "Optimizer.zero_grad#", strlen("Optimizer.zero_grad#")) == 0) {
            return true;
        }
    }
    return false;
}

static gradients count_gradients(const gmd_facts *f)
{
    const gmd_recording *r = &f->recording;
    gradients g = {0};
    for (size_t i = 0; i < r->lifetime_count; i++) {
        const gmd_lifetime *l = &r->lifetimes[i];
        if (f->categories.of_lifetime[i] != GMD_GRADIENT) {
            continue;
        }
        uint32_t born = gmd_iteration_of(&f->iterations, l->born);
        uint32_t freed = l->freed == GMD_NEVER ? f->iterations.count
                                               : gmd_iteration_of(&f->iterations, l->freed);
        if (born != GMD_SET_UP && freed >= born + 2) {
            g.kept += l->size;
            g.blocks++;
            g.born = g.born ? g.born : l->born;
        }
        g.all += gmd_is_allocated_at(l, r->peak.allocated_at) ? l->size : 0;
    }
    return g;
}

static uint64_t parameter_bytes(const gmd_facts *f)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        bytes += f->categories.of_lifetime[i] == GMD_PARAMETER ? f->recording.lifetimes[i].size : 0;
    }
    return bytes;
}

bool look_for_gradient_accumulation(const class_view *view, gmd_job_finding *finding)
{
    const gmd_facts *f = view->facts;
    gradients g = count_gradients(f);
    uint64_t parameters = parameter_bytes(f);
    char kept[24], all[24];
    if (f->iterations.count < 3 || g.kept == 0 || g.kept * 2 < parameters || zeroes_gradients(f)) {
        return false;
    }
    finding->bytes = g.kept;
    finding->confidence = f->iterations.source == GMD_ITERATIONS_ANNOTATED ? 0.95 : 0.7;
    blame_line(finding, line_before(f, g.born), g.kept, true);
    say_evidence(finding,
                 "%" PRIu64
                 " gradients (%s, for %s of parameters) are made in the first backward() "
                 "and never freed: each later backward() adds to them, and nothing zeroes them.",
                 g.blocks, gmd_format_size(g.kept, kept), gmd_format_size(parameters, all));
    say_fix(finding,
            "optimizer.zero_grad(set_to_none=True)  # in each iteration, before backward()");
    return true;
}
