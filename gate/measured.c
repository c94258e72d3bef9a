#include "measured.h"

#include "gmd_command.h"
#include "gmd_grow.h"
#include "gmd_text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((format(printf, 2, 3))) static void note_baseline(gate_state *gate, const char *text,
                                                                ...)
{
    gmd_gate_against *a = &gate->result->baseline;
    if (a->note_count < GMD_GATE_NOTE_MAX) {
        va_list arguments;
        va_start(arguments, text);
        vsnprintf(a->notes[a->note_count++], sizeof a->notes[0], text, arguments);
        va_end(arguments);
    }
}

/* --- the baseline ------------------------------------------------------------------------ */

static const char *conf_of(const gate_state *gate)
{
    return gate->options->run->conditions.conf ? gate->options->run->conditions.conf : "";
}

/* "AMD EPYC, 2 cores": what speed depends on and a file can say. */
static void name_machine(char *out, size_t size)
{
    char line[256], model[128] = "unknown processor";
    FILE *in = fopen("/proc/cpuinfo", "r");
    while (in && fgets(line, sizeof line, in)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon) {
            snprintf(model, sizeof model, "%s", colon + 1 + strspn(colon + 1, " \t"));
            model[strcspn(model, "\n#")] = '\0';
            break;
        }
    }
    if (in) {
        fclose(in);
    }
    snprintf(out, size, "%s, %ld cores", model, sysconf(_SC_NPROCESSORS_ONLN));
}

/* Notes where the baseline does not fit; its figures are compared all the same where they can
 * be. */
static void compare_headers(gate_state *gate, const char *machine)
{
    const gate_baseline *b = &gate->baseline;
    const char *path = gate->options->baseline;
    if (strcmp(gmd_file_name(b->allocator), gmd_file_name(gate->run.subject.allocator)) != 0) {
        note_baseline(gate,
                      "%.120s is of the allocator %.80s, and this is %.80s: its figures "
                      "say little about another one",
                      path, b->allocator, gate->run.subject.allocator);
    }
    if (strcmp(b->conf, conf_of(gate)) != 0) {
        note_baseline(gate, "%.120s was made with the settings '%.80s', and these are '%.80s'",
                      path, b->conf, conf_of(gate));
    }
    gate->is_other_machine = strcmp(b->machine, machine) != 0;
    if (gate->is_other_machine) {
        note_baseline(gate,
                      "%.120s was made on another machine (%.80s; this is %.80s): memory "
                      "is judged, speed is not",
                      path, b->machine, machine);
    }
}

static void write_commands(gate_state *gate)
{
    gmd_gate_against *a = &gate->result->baseline;
    snprintf(a->path, sizeof a->path, "%s", gate->options->baseline);
    gmd_command c = gmd_command_begin(a->commands, sizeof a->commands, "gmd gate");
    gmd_command_option(&c, "--allocator", gate->run.subject.allocator);
    gmd_command_option(&c, "--conf", conf_of(gate));
    gmd_command_more(&c, gate->options->subject_words);
    gmd_command_more(&c, gate->options->battery_words);
    gmd_command_option(&c, "--baseline", gate->options->baseline);
    gmd_command_end(&c);
}

gmd_status gate_open_baseline(gate_state *gate, gmd_error *error)
{
    const gmd_gate_options *o = gate->options;
    gmd_status status = GMD_OK;
    char machine[sizeof gate->baseline.machine];
    gate->wants_figures = o->baseline != NULL;
    if (!o->baseline) {
        return GMD_OK;
    }
    write_commands(gate);
    name_machine(machine, sizeof machine);
    bool is_there = access(o->baseline, F_OK) == 0;
    if (is_there || !o->updates_baseline) {
        status = baseline_read(&gate->baseline, o->baseline, error);
    }
    if (status == GMD_OK && o->updates_baseline) {
        status = baseline_probe(o->baseline, error); /* not after minutes of measuring */
    }
    if (status == GMD_OK && !o->updates_baseline) {
        compare_headers(gate, machine);
    }
    if (status == GMD_OK && o->updates_baseline) {
        gate_baseline *b = &gate->baseline;
        snprintf(b->allocator, sizeof b->allocator, "%s", gate->run.subject.allocator);
        snprintf(b->conf, sizeof b->conf, "%s", conf_of(gate));
        snprintf(b->machine, sizeof b->machine, "%s", machine);
    }
    if (o->versus) {
        snprintf(gate->baseline.versus, sizeof gate->baseline.versus, "%s", o->versus);
    } else if (!gate->baseline.versus[0]) {
        snprintf(gate->baseline.versus, sizeof gate->baseline.versus, "reference");
    }
    return status;
}

/* With --only, figures that were not measured stay as they are; without it they are dropped. */
static gmd_status write_baseline(gate_state *gate, gmd_error *error)
{
    gate_baseline *b = &gate->baseline;
    gmd_status status = GMD_OK;
    if (!gate->options->only) {
        b->count = 0;
    }
    for (size_t i = 0; i < gate->result->figure_count && status == GMD_OK; i++) {
        const gmd_gate_figure *f = &gate->result->figures[i];
        if (f->change != GMD_GATE_LOST) {
            status = baseline_set(b, f, error);
        }
    }
    if (status == GMD_OK && !b->count) {
        note_baseline(gate, "the baseline was not written: nothing was measured");
        return GMD_OK;
    }
    baseline_sort(b);
    if (status == GMD_OK) {
        status = baseline_write(b, gate->options->baseline, error);
    }
    gate->result->baseline.was_written = status == GMD_OK;
    return status;
}

static bool was_measured(const gate_state *gate, const gmd_gate_figure *like)
{
    for (size_t i = 0; i < gate->result->figure_count; i++) {
        const gmd_gate_figure *f = &gate->result->figures[i];
        if (strcmp(f->category, like->category) == 0 && strcmp(f->item, like->item) == 0 &&
            strcmp(f->name, like->name) == 0) {
            return true;
        }
    }
    return false;
}

/* Figures of the baseline for which there are none now. */
static void note_leftovers(gate_state *gate)
{
    size_t count = 0, first = 0;
    const gate_baseline *b = &gate->baseline;
    for (size_t i = b->count; i-- > 0;) {
        bool is_judged = strcmp(b->figures[i].category, "speed") != 0 || !gate->is_other_machine;
        if (is_judged && gate_asks_for_item(gate, b->figures[i].category, b->figures[i].item) &&
            !was_measured(gate, &b->figures[i])) {
            first = i;
            count++;
        }
    }
    if (count) {
        note_baseline(gate, "%zu figure%s of the baseline %s not measured here, first: %s %s %s",
                      count, count == 1 ? "" : "s", count == 1 ? "was" : "were",
                      b->figures[first].category, b->figures[first].item, b->figures[first].name);
    }
}

static int compare_figures(const void *left, const void *right)
{
    const gmd_gate_figure *a = left, *b = right;
    int order = strcmp(a->category, b->category);
    if (order) {
        return order;
    }
    if (a->change != b->change) {
        return a->change > b->change ? -1 : 1; /* LOST, WORSE, BETTER, SAME */
    }
    if (a->change == GMD_GATE_WORSE && (a->excess > b->excess || a->excess < b->excess)) {
        return a->excess > b->excess ? -1 : 1;
    }
    order = strcmp(a->item, b->item);
    return order ? order : strcmp(a->name, b->name);
}

gmd_status gate_close_baseline(gate_state *gate, gmd_error *error)
{
    gmd_gate_result *r = gate->result;
    gmd_status status = GMD_OK;
    if (!gate->wants_figures) {
        return GMD_OK;
    }
    if (r->figure_count) {
        qsort(r->figures, r->figure_count, sizeof *r->figures, compare_figures);
    }
    bool is_whole = !r->ended_early[0];
    if (gate->options->updates_baseline && is_whole) {
        status = write_baseline(gate, error);
    } else if (gate->options->updates_baseline) {
        note_baseline(gate, "the baseline was not written: the gate ended early");
    } else if (is_whole) {
        note_leftovers(gate);
    }
    return status;
}

/* --- a figure ---------------------------------------------------------------------------- */

bool gate_wants_figures(gate_state *gate)
{
    if (!gate->wants_figures) {
        snprintf(gate->part->reason, sizeof gate->part->reason,
                 "no baseline is given (--baseline FILE; --update-baseline writes one)");
    }
    return gate->wants_figures;
}

static gmd_gate_figure *add_figure(gate_state *gate)
{
    gmd_gate_result *r = gate->result;
    if (!GMD_GROW(&r->figures, &r->figure_capacity, r->figure_count + 1)) {
        gate_out_of_memory(gate, "figures");
        return NULL;
    }
    gmd_gate_figure *f = &r->figures[r->figure_count++];
    *f = (gmd_gate_figure){.change = GMD_GATE_UNJUDGED};
    snprintf(f->category, sizeof f->category, "%s", gate->part->category);
    snprintf(f->item, sizeof f->item, "%s", gate->item->name);
    return f;
}

void gate_add_figure(gate_state *gate, const char *name, const char *unit, gmd_gate_span now)
{
    gmd_gate_figure *f = gate->item ? add_figure(gate) : NULL;
    if (!f) {
        return;
    }
    f->now = now;
    snprintf(f->name, sizeof f->name, "%s", name);
    snprintf(f->unit, sizeof f->unit, "%s", unit);
    const gmd_gate_figure *before = baseline_find(&gate->baseline, f->category, f->item, f->name);
    if (before && strcmp(before->unit, unit) == 0 && !gate->options->updates_baseline) {
        baseline_judge(f, before);
    }
    gate->item->hits += gmd_gate_is_regression(f);
}

void gate_lose_figures(gate_state *gate, const char *reason)
{
    const gate_baseline *b = &gate->baseline;
    gate_note(gate, "not measured: %s", reason);
    if (gate->item && gate->options->updates_baseline) {
        gate->item->hits++; /* the new file would lack it, and no later gate would judge it */
    }
    for (size_t i = 0; gate->item && i < b->count; i++) {
        const gmd_gate_figure *before = &b->figures[i];
        bool is_of_item = strcmp(before->category, gate->part->category) == 0 &&
                          strcmp(before->item, gate->item->name) == 0;
        gmd_gate_figure *f =
            is_of_item && !gate->options->updates_baseline ? add_figure(gate) : NULL;
        if (f) {
            *f = *before;
            f->before = before->now;
            f->change = GMD_GATE_LOST;
            snprintf(f->detail, sizeof f->detail, "%s", reason);
            gate->item->hits++;
        }
    }
}
