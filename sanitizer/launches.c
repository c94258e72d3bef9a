#define _GNU_SOURCE
/* CUPTI calls back at each call of the driver that CUPTI_CALLS lists; here it becomes what order.h
 * knows. Work is told before the call, so that a block that is freed meanwhile was not freed
 * before; order between streams is told after it, when it has succeeded. */
#include "launches.h"

#include "cupti_calls.h"
#include "kernel_parameters.h"
#include "pointer_tables.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define NUMBERS_MOST      1024 /* of the driver's calls */
#define USES_MOST         512  /* of one launch; further words are told as further work */
#define CONTEXTS_MOST     64
#define WORD              sizeof(uint64_t)
#define ALL_POINTERS_MOST 64 /* bytes of a parameter that may be pointers only */
#define TABLE_WORDS_MOST  2048

typedef struct call_row {
    const char *name;
    uint16_t number;
    uint8_t action, is_per_thread, stream_at, a_at, b_at;
} call_row;

static const call_row call_rows[] = {
#define ROW(name, number, action, is_per_thread, stream, a, b)                                     \
    {#name, number, ACTION_##action, is_per_thread, stream, a, b},
    CUPTI_CALLS(ROW)
#undef ROW
};

typedef struct known_context {
    _Atomic(void *) context;
    atomic_int device_number; /* the device and 1 more; 0: not yet */
} known_context;

struct launches {
    order *order;
    launches_callbacks callbacks;
    kernel_table kernels;
    pointer_tables tables;
    const call_row *rows[NUMBERS_MOST]; /* by number; NULL: not looked at */
    void *cupti, *cuda;
    void *subscriber;
    int (*subscribe)(void **subscriber, cupti_callback callback, void *context);
    int (*unsubscribe)(void *subscriber);
    int (*enable)(uint32_t is_on, void *subscriber, int domain, uint32_t number);
    int (*context_device)(int *device);
    int (*stream_flags)(void *stream, unsigned *flags);
    known_context contexts[CONTEXTS_MOST];
    atomic_uint running; /* callbacks */
    atomic_bool is_stopped;
    atomic_uint stream_changes; /* how often streams were destroyed */
    struct {
        atomic_uint_fast64_t kernels, copies, graphs, words, unknown_kernels, muted;
    } counts;
};

/* What a thread is in the midst of. */
typedef struct thread_state {
    unsigned muted;
    bool is_inside;     /* calls that are made here call back, too */
    const launches *of; /* of what follows */
    uint64_t stream;    /* a handle that the order knows */
    unsigned changes;   /* stream_changes at that time */
} thread_state;

static _Thread_local thread_state self;

void launches_mute(void)
{
    self.muted++;
}

void launches_unmute(void)
{
    self.muted--;
}

/* --- parameters of calls ----------------------------------------------------------------- */

static uint64_t word_at(const void *from, size_t offset)
{
    uint64_t word;
    memcpy(&word, (const char *)from + offset, sizeof word);
    return word;
}

static void *pointer_at(const void *from, size_t offset)
{
    void *pointer;
    memcpy(&pointer, (const char *)from + offset, sizeof pointer);
    return pointer;
}

/* The device of a context, which is asked for once, while it is the current one. The
 * current device stands in for another that is not known. */
static int device_of(launches *l, void *context, bool is_current)
{
    size_t i = 0;
    for (void *other; i < CONTEXTS_MOST && (other = atomic_load(&l->contexts[i].context)) != NULL;
         i++) {
        int number = atomic_load(&l->contexts[i].device_number);
        if (other == context && number) {
            return number - 1;
        }
    }
    int device = 0;
    if (!l->context_device || l->context_device(&device)) {
        return 0;
    }
    void *none = NULL;
    if (is_current && context && i < CONTEXTS_MOST &&
        atomic_compare_exchange_strong(&l->contexts[i].context, &none, context)) {
        atomic_store(&l->contexts[i].device_number, device + 1);
    }
    return device;
}

static order_stream named(launches *l, const call_row *row, const cupti_call *call, uint64_t handle)
{
    bool is_own = handle == 2 || (handle == 0 && row->is_per_thread);
    return (order_stream){.device = device_of(l, call->context, true),
                          .handle = is_own ? 2 : handle,
                          .thread = is_own ? (uint64_t)(uintptr_t)&self : 0};
}

/* A stream from before the subscription, or that was made in a way that is not seen. */
static void introduce(launches *l, order_stream s)
{
    unsigned changes = atomic_load(&l->stream_changes);
    if (s.handle <= 2 || (self.of == l && self.stream == s.handle && self.changes == changes)) {
        return;
    }
    unsigned flags = CUDA_STREAM_NON_BLOCKING;
    if (!order_knows_stream(l->order, s) && l->stream_flags &&
        l->stream_flags((void *)(uintptr_t)s.handle, &flags) == 0) { /* NOLINT */
        order_stream_created(l->order, s, !(flags & CUDA_STREAM_NON_BLOCKING));
    }
    self.of = l;
    self.stream = s.handle;
    self.changes = changes;
}

static order_stream stream_of(launches *l, const call_row *row, const cupti_call *call)
{
    uint64_t handle = 0;
    if (row->action == ACTION_KERNEL_EX) {
        const void *config = pointer_at(call->parameters, row->stream_at);
        handle = config ? word_at(config, CUPTI_CONFIG_STREAM_AT) : 0;
    } else if (row->stream_at != CUPTI_NOWHERE) {
        handle = word_at(call->parameters, row->stream_at);
    }
    order_stream s = named(l, row, call, handle);
    introduce(l, s);
    return s;
}

static uint64_t parameter(const call_row *row, const cupti_call *call, bool is_b)
{
    uint8_t at = is_b ? row->b_at : row->a_at;
    return at == CUPTI_NOWHERE ? 0 : word_at(call->parameters, at);
}

/* What a parameter that is an address points to. */
static uint64_t pointed_to(const call_row *row, const cupti_call *call)
{
    const void *at = pointer_at(call->parameters, row->a_at);
    return at ? word_at(at, 0) : 0;
}

/* --- work -------------------------------------------------------------------------------- */

typedef struct work_list {
    launches *launches;
    order_stream stream;
    const char *what;
    bool wants_place;
    uint64_t lowest, beyond; /* of blocks */
    size_t count;
    order_use uses[USES_MOST];
} work_list;

static void start_work(work_list *w, launches *l, order_stream stream, const char *what)
{
    w->launches = l;
    w->stream = stream;
    w->what = what;
    w->wants_place = false;
    w->count = 0;
    order_span(l->order, &w->lowest, &w->beyond);
}

static void tell_work(const launches *l, const launches_work *work)
{
    if (l->callbacks.queued) {
        l->callbacks.queued(l->callbacks.context, work);
    }
}

static uint64_t place_now(const launches *l, bool is_wanted)
{
    return (is_wanted || l->callbacks.queued) && l->callbacks.place
               ? l->callbacks.place(l->callbacks.context)
               : 0;
}

static void queue_work(work_list *w)
{
    const launches *l = w->launches;
    uint64_t place = place_now(l, w->wants_place);
    order_queued(l->order, w->stream, w->what, place, w->uses, w->count);
    tell_work(l, &(launches_work){w->what, place, w->stream, w->uses, w->count});
    for (size_t i = 0; i < w->count; i++) {
        order_block_drop(l->order, w->uses[i].block);
    }
    w->count = 0;
    w->wants_place = false;
}

/* A word that may as well be two small numbers: the first of 2^16 bytes after a multiple of 2^32,
 * where a driver gives such addresses at all, or where nobody says that the word is one value. */
static bool may_be_numbers(uint64_t word, uint32_t bytes)
{
    return (uint32_t)word < 1 << 16 && (bytes > WORD || word >> 32 < 1 << 12);
}

/* Whether the word is an address within a block. */
static bool add_word(work_list *w, uint64_t word, bool is_certain)
{
    const launches *l = w->launches;
    order_block *b = word >= w->lowest && word < w->beyond
                         ? l->callbacks.find_block(l->callbacks.context, word)
                         : NULL;
    if (!b) {
        return false;
    }
    w->wants_place = w->wants_place || order_is_remarkable(b, w->stream);
    w->uses[w->count++] = (order_use){b, is_certain};
    if (w->count == USES_MOST) {
        queue_work(w);
    }
    return true;
}

static bool is_trusted(const kernel_trust *trust, uint32_t at, uint32_t bytes)
{
    uint32_t from_end = (bytes - at) / (uint32_t)WORD; /* 1: the last word */
    return bytes == WORD ? trust->in_pointers
                         : trust->in_structures || (trust->in_first_words && at == 0) ||
                               (from_end <= 32 && trust->tail_words >> (from_end - 1) & 1);
}

/* The words of a parameter. In one that is a pointer, or has nothing but pointers, nothing is
 * stale; the grade of a larger one's first words is raised when the last has turned out to be one,
 * too. */
static void add_parameter(work_list *w, const kernel_trust *trust, const char *at, uint32_t bytes)
{
    size_t first = w->count;
    bool are_all = trust->in_pointers && bytes % WORD == 0 && bytes <= ALL_POINTERS_MOST;
    for (uint32_t i = 0; i + WORD <= bytes; i += WORD) {
        uint64_t word = word_at(at, i);
        bool is_address = !may_be_numbers(word, bytes);
        are_all =
            add_word(w, word, is_address && is_trusted(trust, i, bytes)) && is_address && are_all;
    }
    for (size_t i = first; are_all && i < w->count; i++) {
        w->uses[i].is_certain = true;
    }
    atomic_fetch_add_explicit(&w->launches->counts.words, bytes / WORD, memory_order_relaxed);
}

/* What the tables among the blocks lead to. */
static void add_tables(work_list *w)
{
    launches *l = w->launches;
    size_t given = w->count;
    for (size_t i = 0; i < given && i < w->count; i++) {
        order_block *to[TABLE_POINTERS_MOST];
        size_t room = USES_MOST - 1 - w->count;
        uint32_t most = room < TABLE_POINTERS_MOST ? (uint32_t)room : TABLE_POINTERS_MOST;
        uint32_t count = pointer_tables_read(&l->tables, w->uses[i].block, to, most);
        for (uint32_t k = 0; k < count; k++) {
            w->wants_place = w->wants_place || order_is_remarkable(to[k], w->stream);
            w->uses[w->count++] = (order_use){to[k], false};
        }
    }
}

/* kernelParams: an address for each parameter. */
static void add_separate(work_list *w, const kernel_info *kernel, void *const *parameters)
{
    for (uint32_t i = 0; i < kernel->count; i++) {
        if (parameters[i]) {
            add_parameter(w, &kernel->trust, parameters[i], kernel->parameters[i].bytes);
        }
    }
}

/* extra: all parameters in one buffer, as long as it says. */
static void add_packed(work_list *w, const kernel_info *kernel, void *const *extra)
{
    const char *buffer = NULL;
    size_t bytes = 0;
    for (; (uintptr_t)extra[0] != CUDA_PARAMETERS_END; extra += 2) {
        if ((uintptr_t)extra[0] == CUDA_PARAMETERS_AT) {
            buffer = extra[1];
        } else if ((uintptr_t)extra[0] == CUDA_PARAMETERS_BYTES && extra[1]) {
            memcpy(&bytes, extra[1], sizeof bytes);
        }
    }
    for (uint32_t i = 0; buffer && i < kernel->count; i++) {
        const kernel_parameter *p = &kernel->parameters[i];
        if ((size_t)p->offset + p->bytes <= bytes) {
            add_parameter(w, &kernel->trust, buffer + p->offset, p->bytes);
        }
    }
}

static void see_kernel(launches *l, const call_row *row, const cupti_call *call)
{
    void *function = pointer_at(call->parameters, row->a_at);
    void *const *parameters = pointer_at(call->parameters, row->b_at);
    void *const *extra =
        row->action == ACTION_COOPERATIVE ? NULL : pointer_at(call->parameters, row->b_at + WORD);
    const kernel_info *kernel = kernel_table_get(&l->kernels, function, call->symbol);
    work_list w;
    start_work(&w, l, stream_of(l, row, call), kernel ? kernel->name : "kernel");
    if (!kernel || !kernel->is_known) {
        atomic_fetch_add_explicit(&l->counts.unknown_kernels, 1, memory_order_relaxed);
    } else if (parameters) {
        add_separate(&w, kernel, parameters);
    } else if (extra) {
        add_packed(&w, kernel, extra);
    }
    add_tables(&w);
    atomic_fetch_add_explicit(&l->counts.kernels, 1, memory_order_relaxed);
    queue_work(&w);
}

static bool is_device_memory(const void *rectangle, size_t type_at)
{
    unsigned type;
    memcpy(&type, (const char *)rectangle + type_at, sizeof type);
    return type == CUDA_MEMORY_DEVICE || type == CUDA_MEMORY_UNIFIED;
}

static void see_copy(launches *l, const call_row *row, const cupti_call *call)
{
    work_list w;
    start_work(&w, l, stream_of(l, row, call), row->name);
    if (row->action == ACTION_RECTANGLE || row->action == ACTION_RECTANGLE_AND_WAIT) {
        const void *r = pointer_at(call->parameters, row->a_at);
        if (r && is_device_memory(r, CUPTI_RECTANGLE_TYPE_AT)) {
            add_word(&w, word_at(r, CUPTI_RECTANGLE_FROM_AT), true);
        }
        if (r && is_device_memory(r, CUPTI_RECTANGLE_TO_TYPE_AT)) {
            add_word(&w, word_at(r, CUPTI_RECTANGLE_TO_AT), true);
        }
    } else {
        add_word(&w, parameter(row, call, false), true);
        add_word(&w, parameter(row, call, true), true);
    }
    atomic_fetch_add_explicit(&l->counts.copies, 1, memory_order_relaxed);
    queue_work(&w);
}

/* What the host copies, of which the kernel knows whether it may be read. Gives the words; 0: none,
 * or more than fit. */
/* NOLINTNEXTLINE(readability-non-const-parameter): the kernel writes to it */
static size_t read_host(const cupti_call *call, uint64_t words[TABLE_WORDS_MOST])
{
    uint64_t bytes = word_at(call->parameters, CUPTI_FROM_HOST_BYTES_AT);
    if (bytes > TABLE_WORDS_MOST * WORD) {
        return 0;
    }
    const struct iovec here = {words, bytes};
    const struct iovec there = {pointer_at(call->parameters, CUPTI_FROM_HOST_AT), bytes};
    ssize_t got = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
    return got > 0 ? (size_t)got / WORD : 0;
}

/* The host writes to a block: it may be a table. The driver reads it within the call. */
static void see_table(launches *l, order_block *block, const cupti_call *call)
{
    uint64_t words[TABLE_WORDS_MOST], lowest, beyond;
    size_t word_count = read_host(call, words);
    order_block *to[TABLE_POINTERS_MOST];
    uint32_t count = 0;
    order_span(l->order, &lowest, &beyond);
    for (size_t i = 0; i < word_count && count < TABLE_POINTERS_MOST; i++) {
        uint64_t word = words[i];
        order_block *b = word >= lowest && word < beyond
                             ? l->callbacks.find_block(l->callbacks.context, word)
                             : NULL;
        if (b) {
            to[count++] = b;
        }
    }
    pointer_tables_write(&l->tables, l->order, block, to, count);
}

static void see_copy_from_host(launches *l, const call_row *row, const cupti_call *call)
{
    work_list w;
    start_work(&w, l, stream_of(l, row, call), row->name);
    if (add_word(&w, parameter(row, call, false), true)) {
        see_table(l, w.uses[0].block, call);
    }
    atomic_fetch_add_explicit(&l->counts.copies, 1, memory_order_relaxed);
    queue_work(&w);
}

static void see_graph_launch(launches *l, const call_row *row, const cupti_call *call)
{
    uint64_t place = l->callbacks.place ? l->callbacks.place(l->callbacks.context) : 0;
    atomic_fetch_add_explicit(&l->counts.graphs, 1, memory_order_relaxed);
    order_stream s = stream_of(l, row, call);
    tell_work(l, &(launches_work){"a graph", place, s, NULL, 0});
    order_graph_launched(l->order, parameter(row, call, false), s, place);
}

/* --- what is told of a call -------------------------------------------------------------- */

static void destroy_stream(launches *l, const call_row *row, const cupti_call *call)
{
    order_stream s = named(l, row, call, word_at(call->parameters, row->stream_at));
    if (l->callbacks.stream_destroyed) {
        l->callbacks.stream_destroyed(l->callbacks.context, s);
    }
    atomic_fetch_add(&l->stream_changes, 1);
    order_stream_destroyed(l->order, s);
}

/* What comes and goes is always seen. */
static bool is_mutable(unsigned action)
{
    return action <= ACTION_GRAPH_LAUNCH || action >= ACTION_OPERANDS_AND_WAIT ||
           (action >= ACTION_RECORD && action <= ACTION_DEVICE_OVER);
}

static void before_call(launches *l, const call_row *row, const cupti_call *call)
{
    switch (row->action) {
    case ACTION_KERNEL:
    case ACTION_KERNEL_EX:
    case ACTION_COOPERATIVE:
        see_kernel(l, row, call);
        break;
    case ACTION_FROM_HOST:
        see_copy_from_host(l, row, call);
        break;
    case ACTION_GRAPH_LAUNCH:
        see_graph_launch(l, row, call);
        break;
    case ACTION_STREAM_DESTROY:
        destroy_stream(l, row, call);
        break;
    case ACTION_EVENT_DESTROY:
        order_event_destroyed(l->order, parameter(row, call, false));
        break;
    case ACTION_GRAPH_DESTROY:
        order_graph_destroyed(l->order, parameter(row, call, false));
        break;
    case ACTION_EXEC_DESTROY:
        order_exec_destroyed(l->order, parameter(row, call, false));
        break;
    case ACTION_UNLOAD:
        kernel_table_forget(&l->kernels);
        break;
    default:
        see_copy(l, row, call);
        break;
    }
}

static void create_stream(launches *l, const call_row *row, const cupti_call *call)
{
    unsigned flags;
    memcpy(&flags, (const char *)call->parameters + row->b_at, sizeof flags);
    order_stream s = named(l, row, call, pointed_to(row, call));
    order_stream_created(l->order, s, !(flags & CUDA_STREAM_NON_BLOCKING));
}

static void device_is_over(launches *l, const call_row *row, const cupti_call *call)
{
    void *context = row->a_at == CUPTI_NOWHERE ? NULL : pointer_at(call->parameters, row->a_at);
    bool is_current = !context || context == call->context;
    order_device_over(l->order, device_of(l, is_current ? call->context : context, is_current));
}

static void after_call(launches *l, const call_row *row, const cupti_call *call)
{
    order *o = l->order;
    switch (row->action) {
    case ACTION_RECORD:
        order_event_recorded(o, parameter(row, call, false), stream_of(l, row, call));
        break;
    case ACTION_WAIT:
        order_event_waited_for(o, parameter(row, call, false), stream_of(l, row, call));
        break;
    case ACTION_EVENT_OVER:
        order_event_over(o, parameter(row, call, false));
        break;
    case ACTION_STREAM_OVER:
    case ACTION_OPERANDS_AND_WAIT:
    case ACTION_RECTANGLE_AND_WAIT:
        order_stream_over(o, stream_of(l, row, call));
        break;
    case ACTION_DEVICE_OVER:
        device_is_over(l, row, call);
        break;
    case ACTION_STREAM_CREATE:
        create_stream(l, row, call);
        break;
    case ACTION_CAPTURE_BEGIN:
        order_capture_begun(o, stream_of(l, row, call));
        break;
    case ACTION_CAPTURE_END:
        order_capture_ended(o, stream_of(l, row, call), pointed_to(row, call));
        break;
    case ACTION_INSTANTIATE:
        order_graph_instantiated(o, parameter(row, call, true), pointed_to(row, call));
        break;
    case ACTION_UPDATE:
        order_graph_instantiated(o, parameter(row, call, true), parameter(row, call, false));
        break;
    default:
        break;
    }
}

/* An illegal access, which CUDA reports by whatever call comes next. */
static void see_failure(launches *l, const cupti_call *call)
{
    if (call->site != CUPTI_ENTER && call->result && *call->result == CUDA_ILLEGAL_ADDRESS &&
        !self.muted && l->callbacks.failed) {
        l->callbacks.failed(l->callbacks.context, device_of(l, call->context, true), *call->result);
    }
}

static void dispatch(launches *l, const call_row *row, const cupti_call *call)
{
    see_failure(l, call);
    if (self.muted && is_mutable(row->action)) {
        atomic_fetch_add_explicit(&l->counts.muted, call->site == CUPTI_ENTER,
                                  memory_order_relaxed);
        return;
    }
    if (call->site == CUPTI_ENTER) {
        if (row->action < ACTION_FIRST_AFTER || row->action >= ACTION_OPERANDS_AND_WAIT) {
            before_call(l, row, call);
        }
    } else if (row->action >= ACTION_FIRST_AFTER && call->result) {
        if (*call->result == 0) {
            after_call(l, row, call);
        } else if (row->action == ACTION_CAPTURE_END) {
            order_capture_ended(l->order, stream_of(l, row, call), 0);
        }
    }
}

void launches_callback(void *started, int domain, uint32_t number, const void *call)
{
    launches *l = started;
    if (domain != CUPTI_DRIVER_CALLS || number >= NUMBERS_MOST || !l->rows[number] ||
        self.is_inside) {
        return;
    }
    const call_row *row = l->rows[number];
    const cupti_call *of = call;
    if (of->site != CUPTI_ENTER && row->action < ACTION_FIRST_AFTER &&
        (!of->result || *of->result != CUDA_ILLEGAL_ADDRESS)) {
        return; /* every launch's return */
    }
    self.is_inside = true;
    atomic_fetch_add(&l->running, 1);
    if (!atomic_load(&l->is_stopped)) {
        dispatch(l, row, of);
    }
    atomic_fetch_sub(&l->running, 1);
    self.is_inside = false;
}

/* --- start and stop ---------------------------------------------------------------------- */

static void *load_any(const char *const *names, int flags)
{
    void *library = NULL;
    for (size_t i = 0; !library && names[i]; i++) {
        library = dlopen(names[i], RTLD_NOW | flags);
    }
    return library;
}

static void *load_cupti(const char *path)
{
    static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so", NULL};
    void *library = path ? dlopen(path, RTLD_NOW) : NULL;
    library = library ? library : load_any(names, RTLD_NOLOAD);
    return library ? library : load_any(names, 0);
}

static bool find_functions(launches *l)
{
    *(void **)&l->subscribe = dlsym(l->cupti, "cuptiSubscribe");
    *(void **)&l->unsubscribe = dlsym(l->cupti, "cuptiUnsubscribe");
    *(void **)&l->enable = dlsym(l->cupti, "cuptiEnableCallback");
    *(void **)&l->context_device = dlsym(l->cuda, "cuCtxGetDevice");
    *(void **)&l->stream_flags = dlsym(l->cuda, "cuStreamGetFlags");
    *(void **)&l->kernels.of_function = dlsym(l->cuda, "cuFuncGetParamInfo");
    *(void **)&l->kernels.of_kernel = dlsym(l->cuda, "cuKernelGetParamInfo");
    return l->subscribe && l->unsubscribe && l->enable;
}

static bool say(char *message, size_t bytes, const char *text)
{
    snprintf(message, bytes, "%s", text);
    return false;
}

static bool load(launches *l, const char *path, char *message, size_t bytes)
{
    static const char *const drivers[] = {"libcuda.so.1", NULL};
    l->cuda = load_any(drivers, 0);
    l->cupti = l->cuda ? load_cupti(path) : NULL;
    if (!l->cuda || !l->cupti || !find_functions(l)) {
        snprintf(message, bytes, "launches are not watched: %s cannot be loaded (%s)",
                 l->cuda ? "libcupti.so.13" : "libcuda.so.1",
                 l->cupti ? "functions are missing" : dlerror());
        return false;
    }
    if (!l->kernels.of_function) {
        return say(message, bytes,
                   "launches are not watched: this driver does not tell what parameters kernels "
                   "have (cuFuncGetParamInfo); CUDA 12.4 or later is needed");
    }
    return true;
}

/* Calls that this CUPTI does not have are calls that nobody makes. */
static bool subscribe(launches *l, char *message, size_t bytes)
{
    int result = l->subscribe(&l->subscriber, launches_callback, l);
    if (result != CUPTI_OK) {
        l->subscriber = NULL;
        snprintf(message, bytes,
                 result == CUPTI_TAKEN
                     ? "launches are not watched: torch.profiler or another tool uses CUPTI, which "
                       "has one user at a time; start without it"
                     : "launches are not watched: cuptiSubscribe returned %d",
                 result);
        return false;
    }
    size_t enabled = 0;
    for (size_t i = 0; i < sizeof call_rows / sizeof call_rows[0]; i++) {
        enabled += l->enable(1, l->subscriber, CUPTI_DRIVER_CALLS, call_rows[i].number) == CUPTI_OK;
    }
    return enabled || say(message, bytes, "launches are not watched: cuptiEnableCallback refuses");
}

static void release(launches *l)
{
    kernel_table_free(&l->kernels);
    pointer_tables_close(&l->tables, l->order);
    pthread_mutex_destroy(&l->kernels.lock);
    if (l->cupti) {
        dlclose(l->cupti);
    }
    if (l->cuda) {
        dlclose(l->cuda);
    }
    free(l);
}

bool launches_start(order *o, const launches_callbacks *callbacks, const char *cupti,
                    launches **started, char *message, size_t message_bytes)
{
    launches *l = calloc(1, sizeof *l);
    if (!l || pthread_mutex_init(&l->kernels.lock, NULL) || !pointer_tables_open(&l->tables)) {
        free(l);
        return say(message, message_bytes, "launches are not watched: no host memory");
    }
    l->order = o;
    l->callbacks = *callbacks;
    for (size_t i = 0; i < sizeof call_rows / sizeof call_rows[0]; i++) {
        l->rows[call_rows[i].number] = &call_rows[i];
    }
    if (!load(l, cupti, message, message_bytes)) {
        release(l);
        return false;
    }
    if (!subscribe(l, message, message_bytes)) {
        launches_stop(l);
        return false;
    }
    *started = l;
    return true;
}

void launches_stop(launches *l)
{
    if (!l) {
        return;
    }
    atomic_store(&l->is_stopped, true);
    if (l->subscriber) {
        l->unsubscribe(l->subscriber);
    }
    while (atomic_load(&l->running)) {
        sched_yield();
    }
    release(l);
}

void launches_statistics_of(launches *l, launches_statistics *out)
{
    *out = (launches_statistics){.kernels = atomic_load(&l->counts.kernels),
                                 .copies = atomic_load(&l->counts.copies),
                                 .graphs = atomic_load(&l->counts.graphs),
                                 .words = atomic_load(&l->counts.words),
                                 .unknown_kernels = atomic_load(&l->counts.unknown_kernels),
                                 .muted = atomic_load(&l->counts.muted)};
}
