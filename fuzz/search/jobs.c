#define _GNU_SOURCE /* madvise */
#include "gmd_jobs.h"

#include "gmd_clock.h"
#include "gmd_min.h"
#include "gmd_temporary.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK_NS 200000000 /* between two checks of how the processes get on */

enum { REPLACED_MAX = 32 }; /* processes that are started in place of others */

/* What one process does; one in place of another has a job of its own. In memory that the processes
 * share. */
typedef struct job {
    uint64_t runs; /* 0: no limit */
    double seconds;
    bool has_nothing; /* fewer runs than processes */
    gmd_search_status status;
    gmd_search_result result;
    gmd_status end;
    gmd_error error;
    bool is_over;
} job;

typedef struct crew {
    const gmd_search_options *options;
    unsigned count; /* jobs */
    unsigned replaced;
    double start;
    job *jobs;
    size_t bytes;     /* of them, and of those to come */
    pid_t *processes; /* by job; 0: it is over */
    gmd_board *board;
    char scratch[PATH_MAX]; /* a folder for the time of the campaign; empty: none */
} crew;

/* --- one process ------------------------------------------------------------------------- */

static void note_status(void *context, const gmd_search_status *status)
{
    ((job *)context)->status = *status;
}

/* A process has nothing else that its handlers could find. */
static volatile sig_atomic_t is_told_to_end;

static void end_soon(int signal_number)
{
    (void)signal_number;
    is_told_to_end = 1;
}

/* The campaign is gone: so is this process, at once. */
static void end_now(int signal_number)
{
    (void)signal_number;
    gmd_temporary_remove_all(); /* NOLINT(bugprone-signal-handler): made for handlers */
    _exit(EXIT_FAILURE);
}

/* The campaign alone says when to end: what a terminal sends, it sends to all of the group. */
static void listen_to(pid_t parent)
{
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGTERM, end_soon);
    signal(SIGUSR1, end_now);
    prctl(PR_SET_PDEATHSIG, SIGUSR1);
    if (getppid() != parent) {
        end_now(SIGUSR1); /* it was gone before */
    }
}

/* The allocator's processes have nothing to write there. */
static void hide(const crew *c)
{
    madvise(c->jobs, c->bytes, MADV_DONTFORK);
    if (c->board) {
        madvise(c->board, sizeof *c->board, MADV_DONTFORK);
    }
}

static void search_as(const crew *c, unsigned index, const gmd_findings *findings)
{
    job *own = &c->jobs[index];
    gmd_corpus corpus = {.folder = c->options->corpus->folder};
    if (*c->scratch) {
        corpus.folder = c->scratch;
    }
    gmd_search_options options = *c->options;
    gmd_run_options run = *options.run;
    options.is_interrupted = run.process.is_interrupted = &is_told_to_end;
    options.run = &run;
    options.seed = gmd_random_derive(options.seed, index);
    options.runs = own->runs;
    options.seconds = own->seconds;
    options.corpus = &corpus;
    options.progress = note_status;
    options.context = own;
    gmd_findings mine = *findings;
    mine.board = c->board;
    hide(c);
    own->end = own->has_nothing ? GMD_OK : gmd_search(&options, &mine, &own->result, &own->error);
    own->is_over = true;
    _exit(EXIT_SUCCESS);
}

static gmd_status start_job(crew *c, unsigned index, const gmd_findings *findings, gmd_error *error)
{
    pid_t parent = getpid();
    fflush(NULL); /* or each process would print once more what is buffered here */
    c->processes[index] = fork();
    if (c->processes[index] == 0) {
        listen_to(parent);
        search_as(c, index, findings);
    } else if (c->processes[index] < 0) {
        c->processes[index] = 0;
        return gmd_fail(error, GMD_FAILED, "fork: %s", strerror(errno));
    }
    return GMD_OK;
}

static gmd_status start(crew *c, unsigned jobs, const gmd_findings *findings, gmd_error *error)
{
    gmd_status status = GMD_OK;
    const uint64_t runs = c->options->runs;
    c->start = gmd_clock_s();
    for (unsigned i = 0; i < jobs && status == GMD_OK; i++) {
        job *own = &c->jobs[c->count++];
        own->runs = runs / jobs + (i < runs % jobs);
        own->has_nothing = runs && !own->runs;
        own->seconds = c->options->seconds;
        status = start_job(c, i, findings, error);
    }
    return status;
}

/* Makes the rest of a job that somebody ended one for another process; what is found is on the
 * board, and what is learnt in the folder. False: there is no rest. */
static bool hand_on(crew *c, const job *ended)
{
    const double left = c->options->seconds - (gmd_clock_s() - c->start);
    const uint64_t runs = gmd_min(ended->status.runs, ended->runs);
    if ((ended->runs && runs == ended->runs) || (c->options->seconds > 0 && left <= 0)) {
        return false;
    }
    job *next = &c->jobs[c->count++];
    next->runs = ended->runs - runs;
    next->seconds = c->options->seconds > 0 ? left : 0;
    c->replaced++;
    return true;
}

/* --- all of them ------------------------------------------------------------------------- */

static void add_up_status(const crew *c, gmd_search_status *sum)
{
    *sum = c->jobs[0].status;
    sum->runs = sum->requests = sum->rounds = sum->known = 0;
    sum->doing = "searching";
    for (unsigned i = 0; i < c->count; i++) {
        const gmd_search_status *s = &c->jobs[i].status;
        sum->runs += s->runs;
        sum->requests += s->requests;
        sum->rounds += s->rounds;
        sum->known += s->known;
        sum->seconds = s->seconds > sum->seconds ? s->seconds : sum->seconds;
        sum->inputs = s->inputs > sum->inputs ? s->inputs : sum->inputs;
        sum->features = s->features > sum->features ? s->features : sum->features;
        sum->fresh_seconds =
            s->fresh_seconds < sum->fresh_seconds ? s->fresh_seconds : sum->fresh_seconds;
    }
    sum->findings = c->board ? c->board->count : 0;
}

/* A process that ended before its time. Another goes on in place of one that SIGKILL ended: the
 * kernel, short of memory, or a person sent it. Any other end is a fault of gmd. */
static gmd_status bear_loss(crew *c, unsigned index, int how, const gmd_findings *findings,
                            gmd_error *error)
{
    bool was_shot = WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL;
    if (was_shot && *c->options->is_interrupted) {
        return GMD_OK;
    }
    if (was_shot && c->replaced < REPLACED_MAX) {
        return hand_on(c, &c->jobs[index]) ? start_job(c, c->count - 1, findings, error) : GMD_OK;
    }
    return gmd_fail(error, GMD_FAILED, "process %u of the campaign ended with %s %d", index,
                    WIFSIGNALED(how) ? "signal" : "exit status",
                    WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how));
}

/* Waits for the processes that are left, if any. */
static bool is_any_left(crew *c, const gmd_findings *findings, gmd_error *error, gmd_status *status)
{
    bool is_left = false;
    for (unsigned i = 0; i < c->count; i++) { /* more may be added meanwhile */
        int how;
        pid_t ended = c->processes[i] ? waitpid(c->processes[i], &how, WNOHANG) : 0;
        if (ended == c->processes[i] && ended) {
            c->processes[i] = 0;
            if (!c->jobs[i].is_over && *status == GMD_OK) {
                *status = bear_loss(c, i, how, findings, error);
            }
        }
        is_left = is_left || c->processes[i];
    }
    return is_left;
}

static void end_all(const crew *c)
{
    for (unsigned i = 0; i < c->count; i++) {
        if (c->processes[i]) {
            kill(c->processes[i], SIGTERM);
        }
    }
}

static gmd_status watch(crew *c, const gmd_findings *findings, gmd_error *error)
{
    gmd_status status = GMD_OK;
    bool is_ending = false;
    while (is_any_left(c, findings, error, &status)) {
        nanosleep(&(struct timespec){.tv_nsec = CHECK_NS}, NULL);
        if (c->options->progress) {
            gmd_search_status sum;
            add_up_status(c, &sum);
            c->options->progress(c->options->context, &sum);
        }
        if (*c->options->is_interrupted && !is_ending) {
            is_ending = true;
            end_all(c);
        }
    }
    return status;
}

/* One that has a result, if any has. */
static unsigned find_first(const crew *c)
{
    unsigned first = 0;
    while (first < c->count && !c->jobs[first].is_over) {
        first++;
    }
    return first < c->count ? first : 0;
}

static gmd_status add_up(const crew *c, gmd_search_result *sum, gmd_error *error)
{
    gmd_status status = GMD_OK;
    const unsigned first = find_first(c);
    *sum = c->jobs[first].result;
    sum->replaced = c->replaced;
    for (unsigned i = 0; i < c->count; i++) {
        const gmd_search_result *r = &c->jobs[i].result;
        if (status == GMD_OK && c->jobs[i].end != GMD_OK) {
            status = gmd_fail(error, c->jobs[i].end, "%s", c->jobs[i].error.text);
        }
        if (i != first) {
            sum->refused += r->refused;
            sum->unconfirmed += r->unconfirmed;
            sum->interleaved += r->interleaved;
            sum->lapses += r->lapses;
            sum->faults_planted += r->faults_planted;
            sum->faults_unfired += r->faults_unfired;
            if (!sum->unwritten) {
                memcpy(sum->unwritten_first, r->unwritten_first, sizeof sum->unwritten_first);
            }
            sum->unwritten += r->unwritten;
            sum->is_interrupted = sum->is_interrupted || r->is_interrupted;
            gmd_judged_add(&sum->judged, r->judged.oracles, r->judged.count);
            sum->cut_off += r->cut_off;
            gmd_add_troubles(&sum->troubles, &r->troubles);
        }
    }
    add_up_status(c, &sum->status);
    sum->status.doing = "done";
    return status;
}

static gmd_status take_findings(const crew *c, gmd_findings *findings, gmd_error *error)
{
    gmd_status status = GMD_OK;
    size_t count = c->board ? c->board->count : 0;
    for (size_t i = 0; i < count && status == GMD_OK; i++) {
        status = gmd_findings_take(findings, &c->board->items[i], error);
    }
    return status;
}

/* --- the folder in between --------------------------------------------------------------- */

static gmd_status make_scratch(crew *c, gmd_error *error)
{
    const char *folder = getenv("TMPDIR");
    snprintf(c->scratch, sizeof c->scratch, "%.3900s/gmd-corpus-XXXXXX",
             folder && *folder ? folder : "/tmp");
    if (!mkdtemp(c->scratch)) {
        gmd_fail(error, GMD_FAILED, "%s: cannot be made: %s", c->scratch, strerror(errno));
        *c->scratch = '\0';
        return GMD_FAILED;
    }
    return GMD_OK;
}

static void remove_scratch(const crew *c)
{
    DIR *folder = *c->scratch ? opendir(c->scratch) : NULL;
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        unlinkat(dirfd(folder), entry->d_name, 0);
    }
    if (folder) {
        closedir(folder);
        rmdir(c->scratch);
    }
}

gmd_status gmd_search_jobs(const gmd_search_options *options, unsigned jobs, gmd_findings *findings,
                           gmd_search_result *result, gmd_error *error)
{
    static const volatile sig_atomic_t never;
    gmd_search_options given = *options;
    given.is_interrupted = options->is_interrupted ? options->is_interrupted : &never;
    crew c = {.options = &given};
    const size_t most = (size_t)jobs + REPLACED_MAX;
    c.bytes = most * sizeof *c.jobs;
    c.jobs = mmap(NULL, c.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    c.processes = calloc(most, sizeof *c.processes);
    gmd_status status = c.jobs != MAP_FAILED && c.processes
                            ? gmd_board_open(&c.board, error)
                            : gmd_fail(error, GMD_NO_MEMORY, "no memory for %u processes", jobs);
    if (status == GMD_OK && !options->corpus->folder) {
        status = make_scratch(&c, error);
    }
    if (status == GMD_OK) {
        status = start(&c, jobs, findings, error);
        if (status != GMD_OK) {
            end_all(&c);
        }
        gmd_status watched = watch(&c, findings, error);
        status = status == GMD_OK ? watched : status;
    }
    if (c.board) { /* whatever ended it: what was found until then counts */
        gmd_error other = {""};
        gmd_status added = add_up(&c, result, status == GMD_OK ? error : &other);
        status = status == GMD_OK ? added : status;
        gmd_status taken = take_findings(&c, findings, status == GMD_OK ? error : &other);
        status = status == GMD_OK ? taken : status;
    }
    remove_scratch(&c);
    gmd_board_close(c.board);
    free(c.processes);
    if (c.jobs != MAP_FAILED) {
        munmap(c.jobs, c.bytes);
    }
    return status;
}
