/* isolate.c - the child process that makes the requests, and the parent that watches it. */
#include "session_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define POLL_MS 50

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* --- the child --------------------------------------------------------------------------- */

static void run_workload(gmd_session *session, const gmd_workload *workload, gmd_shared *shared)
{
    gmd_error error = {""};
    atomic_store(&shared->stage, GMD_STAGE_REQUESTS);
    double start = now_s();
    gmd_status status = workload->body(workload->context, session, &error);
    shared->outcome.seconds = now_s() - start;
    if (status != GMD_OK) {
        gmd_outcome_error(&shared->outcome, status, &error);
        session->is_over = true;
    }
    gmd_session_finish(session);
}

/* A core file of the allocator under test helps nobody in a campaign, and what it prints must not
 * mix with gmd's own output. */
static void prepare_child(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM};
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) {
        signal(deadly[i], SIG_DFL); /* handlers of the parent's process would hide the crash */
    }
    dup2(STDERR_FILENO, STDOUT_FILENO);
}

static void run_child(const gmd_run_options *options, const gmd_workload *workload,
                      gmd_shared *shared)
{
    prepare_child();
    gmd_session session;
    gmd_error error = {""};
    gmd_status status = gmd_session_open(&session, options, workload, shared, &error);
    if (status == GMD_OK) {
        run_workload(&session, workload, shared);
    } else {
        gmd_outcome_error(&shared->outcome, status, &error);
    }
    gmd_session_close(&session);
    atomic_store(&shared->stage, GMD_STAGE_UNLOADING);
    atomic_store(&shared->is_finished, 1);
    exit(EXIT_SUCCESS); /* not _exit: a crash in the library's own teardown is a finding, too */
}

/* --- the parent -------------------------------------------------------------------------- */

/* Only what takes longer than a glance says how far it is. */
static void show_progress(const gmd_run_options *options, const gmd_shared *shared, double seconds)
{
    if (options->shows_progress && seconds > 0.5) {
        uint64_t requests = shared->outcome.requests;
        fprintf(stderr, "\r%s: %" PRIu64 " requests, %.0f/s, %.0f s \033[K", shared->outcome.name,
                requests, (double)requests / seconds, seconds);
    }
}

static void clear_progress(const gmd_run_options *options)
{
    if (options->shows_progress) {
        fprintf(stderr, "\r\033[K");
    }
}

typedef enum child_end { CHILD_EXITED, CHILD_HUNG } child_end;

/* Waits for the child. `life` is readable (end of file) when the child is gone. A request that does
 * not end within the budget is a hang; loading and clean-up get the same time in all. */
static child_end watch(pid_t child, int life, const gmd_shared *shared,
                       const gmd_run_options *options, int *exit_status)
{
    uint64_t last_beat = 0;
    int last_stage = -1;
    double start = now_s(), since = start;
    for (;;) {
        struct pollfd waiting = {.fd = life, .events = POLLIN};
        if (poll(&waiting, 1, POLL_MS) > 0) {
            while (waitpid(child, exit_status, 0) < 0 && errno == EINTR) {
            }
            return CHILD_EXITED;
        }
        show_progress(options, shared, now_s() - start);
        uint64_t beat = atomic_load(&shared->beats);
        int stage = atomic_load(&shared->stage);
        if (beat != last_beat || stage != last_stage) {
            last_beat = beat;
            last_stage = stage;
            since = now_s();
        } else if (now_s() - since > options->call_budget_s) {
            kill(child, SIGKILL);
            while (waitpid(child, exit_status, 0) < 0 && errno == EINTR) {
            }
            return CHILD_HUNG;
        }
    }
}

static const char *where(const gmd_shared *shared, const gmd_workload *workload, char *text,
                         size_t size)
{
    static const gmd_trace nameless;
    char request[200];
    switch (atomic_load(&shared->stage)) {
    case GMD_STAGE_LOADING:
        return "while the allocator was loaded and initialised";
    case GMD_STAGE_CLEAN_UP:
        return "while everything was freed and the cache emptied at the end";
    case GMD_STAGE_UNLOADING:
        return "while the process ended (destructors of the library)";
    default:
        gmd_request_text(workload->trace ? workload->trace : &nameless, &shared->current, request,
                         sizeof request);
        snprintf(text, size, "in request %" PRIu64 ": %s", shared->outcome.requests, request);
        return text;
    }
}

static void judge_death(const gmd_run_options *options, const gmd_workload *workload,
                        gmd_shared *shared, int exit_status, child_end end)
{
    char place[300], message[600];
    const char *at = where(shared, workload, place, sizeof place);
    if (end == CHILD_HUNG) {
        snprintf(message, sizeof message, "no answer within %g s %s", options->call_budget_s, at);
    } else if (WIFSIGNALED(exit_status)) {
        snprintf(message, sizeof message, "crashed with signal %d (%s) %s", WTERMSIG(exit_status),
                 strsignal(WTERMSIG(exit_status)), at);
    } else {
        snprintf(message, sizeof message, "ended the process with status %d %s",
                 WEXITSTATUS(exit_status), at);
    }
    gmd_outcome_violation(&shared->outcome, options->known, "progress", shared->outcome.requests,
                          message);
}

/* --- the case ---------------------------------------------------------------------------- */

/* The requests up to the one that showed it, as a trace of their own. */
static gmd_status cut_case(const gmd_shared *shared, const gmd_run_options *options,
                           const gmd_workload *workload, gmd_trace *out, gmd_error *error)
{
    const gmd_trace *source = workload->trace;
    const gmd_request *requests = source ? source->requests : shared->requests;
    size_t available = source ? source->count : shared->request_count;
    size_t count = (size_t)shared->outcome.violations[0].request + 1;
    count = count < available ? count : available;
    gmd_trace_init(out);
    gmd_status status = GMD_OK;
    for (size_t i = 0; i < count && status == GMD_OK; i++) {
        status = gmd_trace_append(out, &requests[i], error);
    }
    uint32_t blocks = 0, streams = 0, index;
    for (size_t i = 0; i < count; i++) {
        const gmd_request *r = &requests[i];
        bool has_block = r->op <= GMD_OP_RECORD;
        blocks = has_block && r->block >= blocks ? r->block + 1 : blocks;
        streams = r->stream != GMD_ALL_STREAMS && r->stream >= streams ? r->stream + 1 : streams;
        streams =
            r->op == GMD_OP_WAIT && r->other_stream >= streams ? r->other_stream + 1 : streams;
    }
    for (uint32_t i = 0; i < blocks && status == GMD_OK; i++) {
        const char *name = source && i < source->blocks.count ? source->blocks.items[i] : NULL;
        status = gmd_names_add(&out->blocks, name, &index, error);
    }
    for (uint32_t i = 1; i < streams && status == GMD_OK; i++) {
        const char *name = source && i < source->streams.count ? source->streams.items[i] : NULL;
        status = gmd_names_add(&out->streams, name, &index, error);
    }
    for (uint32_t i = 0; source && i < source->functions.count && status == GMD_OK; i++) {
        status = gmd_names_add(&out->functions, source->functions.items[i], &index, error);
    }
    for (uint32_t i = 1; source && i < source->threads.count && status == GMD_OK; i++) {
        status = gmd_names_add(&out->threads, source->threads.items[i], &index, error);
    }
    out->device_count = options->device_count;
    out->capacity_bytes = options->capacity_bytes;
    return status;
}

static void write_case(const gmd_run_options *options, const gmd_workload *workload,
                       gmd_shared *shared)
{
    gmd_outcome *o = &shared->outcome;
    if (!options->case_directory || !o->violation_count) {
        return;
    }
    const char *base = strrchr(workload->name, '/');
    gmd_violation *v = &o->violations[0];
    snprintf(v->case_path, sizeof v->case_path, "%s/%.100s-%s-%" PRIu64 ".gmd",
             options->case_directory, base ? base + 1 : workload->name, v->oracle, v->request);
    gmd_trace cut = {0};
    gmd_error error = {""};
    FILE *out = NULL;
    gmd_status status = cut_case(shared, options, workload, &cut, &error);
    if (status == GMD_OK) {
        if ((mkdir(options->case_directory, 0777) != 0 && errno != EEXIST) ||
            !(out = fopen(v->case_path, "w"))) {
            status = gmd_fail(&error, GMD_FAILED, "%s: %s", v->case_path, strerror(errno));
        }
    }
    if (status == GMD_OK) {
        status = gmd_trace_write(&cut, out, &error);
        fprintf(out, "# %s: %s\n", v->oracle, v->message);
    }
    if (out && fclose(out) != 0 && status == GMD_OK) {
        status = gmd_fail(&error, GMD_FAILED, "%s: %s", v->case_path, strerror(errno));
    }
    gmd_trace_free(&cut);
    if (status != GMD_OK) {
        v->case_path[0] = '\0';
        fprintf(stderr, "gmd: the failing case could not be written: %s\n", error.text);
    }
    for (uint32_t i = 1; i < o->violation_count; i++) {
        snprintf(o->violations[i].case_path, sizeof o->violations[i].case_path, "%s", v->case_path);
    }
}

/* --- all of it --------------------------------------------------------------------------- */

static void prepare_outcome(gmd_outcome *o, const gmd_run_options *options,
                            const gmd_workload *workload)
{
    const char *base = strrchr(workload->name, '/');
    snprintf(o->name, sizeof o->name, "%s", base ? base + 1 : workload->name);
    snprintf(o->kind, sizeof o->kind, "%s", workload->kind);
    snprintf(o->variant, sizeof o->variant, "%s", workload->variant ? workload->variant : "");
    o->seed = options->seed;
}

#define TERMINATE(text)    ((text)[sizeof(text) - 1] = '\0')
#define CLAMP(count, most) ((count) = (count) < (most) ? (count) : (most))

/* The child shares this memory with the allocator under test, which may have written anywhere: what
 * is read from here on is at least well formed. */
static void mend_outcome(gmd_outcome *o)
{
    CLAMP(o->violation_count, (uint32_t)GMD_VIOLATION_MAX);
    CLAMP(o->oracle_count, (uint32_t)GMD_ORACLE_MAX);
    CLAMP(o->phase_count, (uint32_t)GMD_PHASE_MAX);
    CLAMP(o->note_count, (uint32_t)GMD_NOTE_MAX);
    TERMINATE(o->error);
    for (uint32_t i = 0; i < o->violation_count; i++) {
        TERMINATE(o->violations[i].oracle);
        TERMINATE(o->violations[i].message);
        TERMINATE(o->violations[i].case_path);
    }
    for (uint32_t i = 0; i < o->oracle_count; i++) {
        TERMINATE(o->oracles[i].name);
        TERMINATE(o->oracles[i].reason);
    }
    for (uint32_t i = 0; i < o->phase_count; i++) {
        TERMINATE(o->phases[i].label);
    }
    for (uint32_t i = 0; i < o->note_count; i++) {
        TERMINATE(o->notes[i]);
    }
    TERMINATE(o->check.first_difference.what);
    TERMINATE(o->check.first_difference.expected);
    TERMINATE(o->check.first_difference.got);
    TERMINATE(o->check.first_difference.text);
}

static void note_known(gmd_outcome *o)
{
    if (o->known_count && o->note_count < GMD_NOTE_MAX) {
        snprintf(o->notes[o->note_count++], sizeof o->notes[0],
                 "%" PRIu64 " violations are known (--known) and not counted", o->known_count);
    }
}

static gmd_status fork_and_watch(const gmd_run_options *options, const gmd_workload *workload,
                                 gmd_shared *shared, gmd_error *error)
{
    int life[2];
    if (pipe(life) != 0) {
        return gmd_fail(error, GMD_FAILED, "pipe: %s", strerror(errno));
    }
    fflush(NULL); /* or the child would print what is buffered here once more */
    pid_t child = fork();
    if (child < 0) {
        close(life[0]);
        close(life[1]);
        return gmd_fail(error, GMD_FAILED, "fork: %s", strerror(errno));
    }
    if (child == 0) {
        close(life[0]);
        run_child(options, workload, shared);
    }
    close(life[1]);
    int exit_status = 0;
    child_end end = watch(child, life[0], shared, options, &exit_status);
    clear_progress(options);
    close(life[0]);
    mend_outcome(&shared->outcome);
    CLAMP(shared->request_count, GMD_RECORDED_REQUEST_MAX);
    bool is_clean = end == CHILD_EXITED && WIFEXITED(exit_status) && WEXITSTATUS(exit_status) == 0;
    if (!is_clean || !atomic_load(&shared->is_finished)) {
        judge_death(options, workload, shared, exit_status, end);
    }
    return GMD_OK;
}

gmd_status gmd_run_isolated(const gmd_run_options *options, const gmd_workload *workload,
                            gmd_outcome *outcome, gmd_error *error)
{
    gmd_status status = gmd_subject_check(options->allocator, options->lib_directory, error);
    if (status != GMD_OK) {
        return status;
    }
    gmd_shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (shared == MAP_FAILED) {
        return gmd_fail(error, GMD_NO_MEMORY, "no memory to share with the child process: %s",
                        strerror(errno));
    }
    prepare_outcome(&shared->outcome, options, workload);
    status = fork_and_watch(options, workload, shared, error);
    if (status == GMD_OK) {
        note_known(&shared->outcome);
        write_case(options, workload, shared);
        *outcome = shared->outcome;
    }
    munmap(shared, sizeof *shared);
    return status;
}

gmd_status gmd_play_trace(void *context, gmd_session *session, gmd_error *error)
{
    (void)context;
    (void)error;
    const gmd_trace *trace = session->workload->trace;
    for (size_t i = 0; i < trace->count; i++) {
        if (gmd_session_request(session, &trace->requests[i]) == GMD_STOP) {
            break;
        }
    }
    return GMD_OK;
}
