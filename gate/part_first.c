/* part_first.c - a few requests, with each of the settings that the allocator takes. */
#include "parts.h"
#include "play.h"

#include <string.h>

static const char first_text[] = "gmd-trace 1\n"
                                 "capacity 1GiB\n"
                                 "alloc a 1000 s1\n"
                                 "use a s1\n"
                                 "free a\n"
                                 "alloc b 4MiB s1\n"
                                 "free b\n";
/* On so large a device there is no excuse for a refusal (oom_retry). */
static const char large_text[] = "gmd-trace 1\n"
                                 "capacity 128GiB\n"
                                 "alloc a 1000 s1\n"
                                 "free a\n";

static void play_text(gate_state *gate, gmd_runner *runner, const char *text, const char *conf)
{
    gmd_trace trace;
    gmd_error error;
    gmd_status status = gmd_trace_parse(&trace, text, strlen(text), "first", &error);
    if (status == GMD_OK) {
        if (gate_set_conf(gate, &trace, conf)) {
            gate_play(gate, runner, &trace);
        }
        gmd_trace_free(&trace);
    }
    gate_fail(gate, status, &error);
}

/* Once: of the item that is run first. */
static void note_what_is_not_judged(gate_state *gate)
{
    if (gate->waits_unjudged && gate->part->item_count == 1) {
        gate_note(gate, "freed blocks stay active while recorded streams are at work: whether they "
                        "come back as soon as these are done (head-of-line blocking) is judged "
                        "with --promise prompt only");
    }
}

static void play(gate_state *gate, const char *conf)
{
    note_what_is_not_judged(gate);
    gmd_runner runner;
    gmd_runner_init(&runner, &gate->run);
    play_text(gate, &runner, first_text, conf);
    play_text(gate, &runner, large_text, conf);
    gate_close_runner(gate, &runner);
}

void part_first(gate_state *gate)
{
    if (!gate->conf_is_fixed && gate_begin_item(gate, "no settings")) {
        play(gate, NULL);
        gate_end_item(gate);
    }
    for (size_t i = 0; i < gate->conf_count; i++) {
        if (gate_begin_item(gate, gate->confs[i])) {
            play(gate, gate->confs[i]);
            gate_end_item(gate);
        }
    }
    if (!gate->abilities.configure) {
        gate_skip_item(gate, "settings", "the allocator exports no gmd_configure");
    }
}
