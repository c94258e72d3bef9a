/* classes.h - the classes of what can be wrong, one file each: what it looks at, when it speaks,
 * and what it says. */
#ifndef GMD_DIAGNOSIS_CLASSES_H
#define GMD_DIAGNOSIS_CLASSES_H

#include "course.h"
#include "gmd_facts.h"
#include "gmd_free_memory.h"
#include "gmd_job_finding.h"
#include "gmd_ooms.h"
#include "loops.h"
#include "parameter_sizes.h"
#include "retention.h"

/* What all classes look at. */
typedef struct class_view {
    const gmd_facts *facts;
    uint32_t end; /* moment of the job's end: of the refusal that ended it, if one did */
    const loops *loops;
    course course;
    const gmd_free_memory *free; /* at the end */
    const gmd_oom *refusal; /* that cost the job something; NULL: none. Known when all that leaks is
                               found */
    uint64_t lost;          /* iterations, to refusals */
    const gmd_job_finding *leaks; /* likewise */
    size_t leak_count;
    parameter_sizes *parameters; /* a class counts blocks in it */
    retention *retained;         /* and marks the groups that it explains */
    uint8_t *blamed;             /* and the blocks that it counts: gmd_job_findings */
} class_view;

/* A class looks, and fills in what it found but for its class: false: nothing is wrong of its kind.
 * The narrow ones look first, and those after them see what is left to explain. */
typedef bool class_look(const class_view *view, gmd_job_finding *finding);

class_look look_for_gradient_accumulation, look_for_retained_graph, look_for_hidden_state,
    look_for_eval_graph, look_for_reference_cycle, look_for_checkpoint_cache,
    look_for_fragmentation, look_for_cached_not_released, look_for_cross_stream_pending,
    look_for_true_capacity;

/* --- what several classes share (evidence.c) ------------------------------------------------- */

/* What grows from iteration to iteration. */
typedef struct growth {
    uint64_t bytes;               /* where it was most */
    uint64_t bytes_per_iteration; /* on average */
    uint64_t grown;               /* bytes by which the last end has more than the first */
    uint64_t blocks;
    uint64_t blocks_per_iteration; /* on average, rounded up */
    uint64_t blocks_at_a_time;     /* in an iteration that adds some, likewise */
    uint32_t lines;                /* of requests: groups */
    bool is_of_other_loop;         /* most of it is of the loop after the optimizer's steps */
    bool is_of_constructors;       /* most of it is allocated as objects of the program are made */
    bool is_of_layers;             /* a good part of it is allocated as layers are made */
} growth;

typedef bool group_test(const class_view *view, const retained_group *group);

/* Sums up the groups that grow, that no class has explained yet and that pass a test (NULL: all).
 */
growth growth_of(const class_view *view, group_test *test);

/* Whether so much grows that it matters; all that grows, explained or not. */
bool is_growth_material(const class_view *view, growth g);
bool has_material_growth(const class_view *view);

/* Whether the job is seen at work for long enough to tell what it needs again and again from what
 * it needs once: so many iterations, or, where none are found, all its memory so many times. */
bool goes_round(const class_view *view, uint32_t least_iterations);

/* Whether what grows may be kept on purpose: it is no graph, since no backward pass and no module
 * is seen where all that could be. */
bool growth_may_be_meant(const class_view *view);

/* Whether much of what is reserved was never in use at once and lies beside blocks that stay, and
 * more is taken to the end: no working set explains it, and neither does what grows. */
bool pins_unused_memory(const class_view *view);

/* How much more was reserved late in the job than was ever active at once. */
uint64_t never_in_use(const class_view *view);

/* Whether much of it was taken since requests of new sizes fit no free block; whether that was late
 * in the job. */
bool is_taken_for_new_sizes(const class_view *view);
bool is_taken_late(const class_view *view);

/* What was reserved at the end. */
uint64_t reserved_at_end(const class_view *view);

/* What the refusal cost: "The job ends as 8.0 MiB is refused", and the like. */
enum { REFUSAL_TEXT = 160 };
const char *refusal_text(const class_view *view, char text[REFUSAL_TEXT]);

/* Puts the groups that pass a test (NULL: all) into the finding, and marks them as explained. */
void blame_growth(gmd_job_finding *finding, const class_view *view, group_test *test);

/* Marks a block as one that the finding counts. */
void blame_block(const gmd_job_finding *finding, const class_view *view, size_t lifetime);

/* The same of each block that a group keeps from iteration to iteration. */
void blame_kept(gmd_job_finding *finding, const class_view *view, const retained_group *group);

/* Adds to the lines where bytes are, most bytes first. `is_inferred`: no frames were recorded. */
void blame_line(gmd_job_finding *finding, uint32_t frame, uint64_t bytes, bool is_inferred);

/* The user's line that led to a moment at which no frames were recorded: the last one before it,
 * and when that was; GMD_BEFORE: there is none. */
uint32_t line_before(const gmd_facts *facts, uint32_t moment);
uint32_t moment_of_line_before(const gmd_facts *facts, uint32_t moment);

/* "train.py:42", the first line of the finding, for a fix to name; "the program": none is known.
 */
enum { LINE_TEXT = 120 };
const char *first_line(const class_view *view, const gmd_job_finding *finding,
                       char text[LINE_TEXT]);

/* Confidence, less where there is less to see: a recording without frames, without annotations, or
 * one that begins late. */
double weigh(const class_view *view, double confidence);

__attribute__((format(printf, 2, 3))) void say_evidence(gmd_job_finding *finding,
                                                        const char *format, ...);
__attribute__((format(printf, 2, 3))) void say_fix(gmd_job_finding *finding, const char *format,
                                                   ...);

/* Whether what grows in a loop that does not train may be a graph: modules of PyTorch allocate some
 * of it, and what their activation functions make stays, too. Where no stack shows modules, it may
 * be.
 */
bool may_be_graph(const class_view *view);

/* Whether backward() freed a block of the group's stack: its pass is trained. */
bool backward_goes_through(const class_view *view, const retained_group *group);

/* Whether it does not, but frees what the same calls made for another function of the program. */
group_test is_of_second_pass;

/* The parts of PyTorch that the requests of a group go through: gmd_part. */
unsigned parts_of_group(const class_view *view, const retained_group *group);

#endif
