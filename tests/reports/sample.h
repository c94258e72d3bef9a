/* sample.h - outcomes for the tests of the report writers, and what a writer makes of them as a
 * string. */
#ifndef SAMPLE_H
#define SAMPLE_H

#include "gmd_report.h"
#include "gmd_test.h"

/* Three outcomes, reset to what they are here at each sample_reset():
 *
 * - passing: the scenario "growth leak=true", 3 phases, 2,000 requests in 0.25 s, two oracles
 * passed, `leak` skipped because "no device figures", statistics with num_ooms unknown;
 * - failing: the trace "short.gmd", one violation of `overlap` at request 17 with a case;
 * - exact:   the history "real.pickle.gz", replayed exactly, with a limit inferred and a note. */
extern gmd_outcome sample_passing, sample_failing, sample_exact;
void sample_reset(void);

/* The fixture `sample` resets them and frees `sample_text`, where a test may leave what a writer
 * made. */
extern char *sample_text;
int sample_setup(void **state);
int sample_teardown(void **state);

FIXTURE(sample, sample_setup, sample_teardown);

/* "a <b> & \"c\" | \x01 \xFF \n]]> é": what no format may take literally. */
extern const char *const sample_hostile;
/* sample_exact, but that request 512 differs: by its address, 0x10000 and 0x20000. */
void sample_differ(void);

/* Puts the hostile text into every string of the outcome. */
void sample_make_hostile(gmd_outcome *outcome);

/* A report of up to three outcomes; NULL ends the list. Valid until the next call. */
const gmd_report *sample_report(const char *command, const gmd_outcome *first,
                                const gmd_outcome *second, const gmd_outcome *third);

/* The text that the writer makes; the caller frees it. NULL: the writer failed. */
typedef gmd_status sample_writer(const gmd_report *report, FILE *out, gmd_error *error);
char *sample_written(sample_writer *writer, const gmd_report *report);
char *sample_terminal(const gmd_report *report, gmd_terminal terminal);

/* How often `part` is in `text`. */
unsigned sample_count(const char *text, const char *part);

#endif
