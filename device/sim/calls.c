#define _GNU_SOURCE /* syscall */
#include "calls.h"

#include "state.h"
#include "validity.h"

#include "gmd_assert.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FAULTS_MAX 64

typedef struct fault {
    call_id id;
    uint64_t at; /* the count of calls of `id` at which it answers */
    bool every_later;
    int error;
} fault;

static struct {
    uint64_t counts[CALL_COUNT];
    uint64_t all, misuses;
    fault faults[FAULTS_MAX];
    size_t fault_count;
    gmd_sim_observer *observer;
    void *observer_context;
} calls;

/* A futex of our own: half of what a call costs would be a mutex, and gmd interposes the mutexes of
 * the allocator under test. */
static _Atomic uint32_t lock; /* 0: free, 1: held, 2: held, and waited for */

/* Looked at before the lock is taken: a hook that waits for another thread must not hold it. */
static _Atomic(gmd_sim_yield *) yield_hook;
static void *_Atomic yield_context;

/* Initial-exec: the libraries are loaded early and this is small, and every call looks at it. */
static _Thread_local sim_thread this_thread __attribute__((tls_model("initial-exec")));

static _Atomic uint32_t host_functions_ended; /* so many, modulo 2^32: a futex to wait on */
static _Thread_local bool is_in_host_function __attribute__((tls_model("initial-exec")));

static _Thread_local bool is_harness __attribute__((tls_model("initial-exec")));

static const char *const call_names[CALL_COUNT] = {
#define CALL_NAME(result, name, parameters, arguments) #name,
    GMD_SIM_CUDA_FUNCTIONS(CALL_NAME)};
#undef CALL_NAME

/* A child of fork starts with the lock free, whoever held it in the parent. */
__attribute__((constructor)) static void keep_lock_across_fork(void)
{
    pthread_atfork(sim_lock, sim_unlock, sim_unlock);
}

static void futex_wait(_Atomic uint32_t *word, uint32_t while_it_is)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, while_it_is, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, int threads)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
}

/* A process of one thread, which starts none while it is in here, needs no atomic exchange: that is
 * most of what the lock costs. */
void sim_lock(void)
{
    uint32_t seen = 0;
    if (__libc_single_threaded) {
        atomic_store_explicit(&lock, 1, memory_order_relaxed);
        return;
    }
    if (atomic_compare_exchange_strong_explicit(&lock, &seen, 1, memory_order_acquire,
                                                memory_order_relaxed)) {
        return;
    }
    while (atomic_exchange_explicit(&lock, 2, memory_order_acquire) != 0) {
        futex_wait(&lock, 2);
    }
}

void sim_unlock(void)
{
    if (__libc_single_threaded) {
        atomic_store_explicit(&lock, 0, memory_order_relaxed);
        return;
    }
    if (atomic_exchange_explicit(&lock, 0, memory_order_release) == 2) {
        futex_wake(&lock, 1);
    }
}

sim_thread *sim_this_thread(void)
{
    if (this_thread.epoch != sim.epoch) {
        memset(&this_thread, 0, sizeof this_thread);
        this_thread.epoch = sim.epoch;
    }
    return &this_thread;
}

static bool is_driver_call(call_id id)
{
    return id >= CALL_cuInit && id < CALL_kernel;
}

/* The runtime makes the current device's context on first use; these calls do not need one. */
static bool needs_context(call_id id)
{
    switch (id) {
    case CALL_cudaGetDevice:
    case CALL_cudaGetDeviceCount:
    case CALL_cudaGetDeviceProperties:
    case CALL_cudaDeviceCanAccessPeer:
    case CALL_cudaGetDriverEntryPoint:
    case CALL_cudaGetDriverEntryPointByVersion:
    case CALL_cudaThreadExchangeStreamCaptureMode:
    case CALL_cudaDeviceGetAttribute:
    case CALL_cudaRuntimeGetVersion:
    case CALL_cudaDriverGetVersion:
    case CALL_cudaGetLastError:
    case CALL_cudaPeekAtLastError:
    case CALL_cudaDeviceReset:
    case CALL_cudaSetDevice: /* of the new device: see there */
        return false;
    default:
        return !is_driver_call(id);
    }
}

/* The fault that answers the current call of `id`, if any. A single one is used up. */
static bool take_fault(call_id id, int *error)
{
    for (size_t i = 0; i < calls.fault_count; i++) {
        fault *f = &calls.faults[i];
        if (f->id == id &&
            (calls.counts[id] == f->at || (f->every_later && calls.counts[id] > f->at))) {
            *error = f->error;
            if (!f->every_later) {
                *f = calls.faults[--calls.fault_count];
            }
            return true;
        }
    }
    return false;
}

/* On a device that is broken, all that needs its context fails. */
static bool fails_on_broken(call_id id)
{
    static const char *const prefixes[] = {"cuMem", "cuStream", "cuEvent", "cuLaunch", "cuGraph"};
    if (!is_driver_call(id)) {
        return needs_context(id) && id != CALL_cudaPointerGetAttributes;
    }
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (strncmp(call_names[id], prefixes[i], strlen(prefixes[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* Gives the call the error of its device. The first that the observer sees says why. */
static bool fail_if_broken(sim_call *call)
{
    sim_device *d = &sim.devices[call->thread->device];
    if (__builtin_expect(d->error == 0, 1) || !fails_on_broken(call->id)) {
        return false;
    }
    call->record.result = d->error;
    if (!d->is_error_noted && !is_harness) {
        d->is_error_noted = true;
        call->record.misuse = "queued work touched memory that is not allocated any more; "
                              "the device is lost until it is reset";
        call->record.misuse_rule = "device_lost";
    }
    return true;
}

/* What a host function may call. */
static bool works_in_host_function(call_id id)
{
    return id == CALL_cudaEventQuery || id == CALL_cuEventQuery || id == CALL_cudaGetLastError ||
           id == CALL_cudaPeekAtLastError;
}

/* Calls that a capture in another stream forbids, whatever they are given. */
static bool is_unsafe_in_capture(call_id id)
{
    switch (id) {
    case CALL_cudaMalloc:
    case CALL_cudaFree:
    case CALL_cudaMallocHost:
    case CALL_cudaHostAlloc:
    case CALL_cudaFreeHost:
    case CALL_cuMemAlloc_v2:
    case CALL_cuMemFree_v2:
    case CALL_cuMemHostAlloc:
    case CALL_cuMemAllocHost_v2:
    case CALL_cuMemFreeHost:
    case CALL_cudaMallocPitch:
    case CALL_cudaMalloc3D:
        return true;
    default:
        return false;
    }
}

/* The error of a call that may not be made where it is made; 0: it may. */
static int forbidden(sim_call *call)
{
    if (is_in_host_function && !works_in_host_function(call->id)) {
        return call_misuse(call, cudaErrorNotPermitted, "a CUDA call within a host function");
    }
    return capture_is_any() && is_unsafe_in_capture(call->id) ? capture_check_unsafe(call) : 0;
}

/* Counts the call; true when a planted fault answers it. */
static bool count_call(sim_call *call)
{
    call->record.index = ++calls.all;
    calls.counts[call->id]++;
    call->record.failed_by_fault = calls.fault_count && take_fault(call->id, &call->record.result);
    return call->record.failed_by_fault;
}

static void yield_at(call_id id, bool is_before)
{
    gmd_sim_yield *hook = atomic_load_explicit(&yield_hook, memory_order_acquire);
    if (__builtin_expect(hook != NULL, 0)) {
        hook(atomic_load_explicit(&yield_context, memory_order_relaxed), call_names[id], is_before);
    }
}

bool call_enter(sim_call *call, call_id id)
{
    yield_at(id, true);
    sim_lock();
    sim_start();
    call->thread = sim_this_thread();
    call->id = id;
    call->lacks_memory = false;
    call->record = (gmd_sim_call){.function = call_names[id], .device = call->thread->device};
    if (!is_harness && count_call(call)) {
        return false;
    }
    if (!call->thread->has_context && needs_context(id)) {
        device_use(call->thread, call->thread->is_detached ? 0 : call->thread->device);
    }
    if (fail_if_broken(call)) {
        return false;
    }
    if (call->thread->has_context && !is_in_host_function) {
        schedule_progress();
    }
    call->record.result = forbidden(call);
    return call->record.result == 0;
}

int call_misuse(sim_call *call, int result, const char *sentence)
{
    call->record.misuse = sentence;
    call->record.misuse_rule = NULL;
    return result;
}

int call_misuse_of(sim_call *call, int result, const char *rule, const char *sentence)
{
    call->record.misuse = sentence;
    call->record.misuse_rule = rule;
    return result;
}

int call_leave(sim_call *call)
{
    if (!call->record.misuse &&
        (call->record.result == cudaSuccess || call->record.result == cudaErrorNotReady)) {
        fail_if_broken(call); /* by work that completed meanwhile */
    }
    if (call->lacks_memory) {
        call->record.result = cudaErrorMemoryAllocation;
    }
    GMD_ASSERT_VALID(sim_due_violation());
    int result = call->record.result;
    if (result && result != cudaErrorNotReady && !is_driver_call(call->id) &&
        call->id != CALL_cudaGetLastError && call->id != CALL_cudaPeekAtLastError) {
        call->thread->last_error = (cudaError_t)result;
    }
    calls.misuses += call->record.misuse != NULL && !is_harness;
    gmd_sim_observer *observer = is_harness ? NULL : calls.observer;
    void *context = calls.observer_context;
    sim_unlock();
    if (observer) {
        observer(context, &call->record);
    }
    yield_at(call->id, false);
    return result;
}

void sim_run_host(cudaHostFn_t function, cudaStreamCallback_t callback, cudaStream_t on, void *data)
{
    cudaError_t last_error = sim_this_thread()->last_error; /* the real one has its own thread */
    sim.running++;
    sim_unlock();
    is_in_host_function = true;
    if (callback) {
        callback(on, cudaSuccess, data);
    } else {
        function(data);
    }
    is_in_host_function = false;
    sim_lock();
    sim_this_thread()->last_error = last_error;
    sim.running--;
    atomic_fetch_add(&host_functions_ended, 1);
    futex_wake(&host_functions_ended, INT32_MAX);
}

void sim_wait_for_host(void)
{
    uint32_t ended = atomic_load(&host_functions_ended);
    sim_unlock();
    futex_wait(&host_functions_ended, ended);
    sim_lock();
}

void calls_reset(void)
{
    memset(calls.counts, 0, sizeof calls.counts);
    calls.all = calls.misuses = 0;
    calls.fault_count = 0;
}

cudaError_t gmd_sim_cudaGetLastError(void)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaGetLastError)) {
        call.record.result = (int)call.thread->last_error;
        call.thread->last_error = cudaSuccess;
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaPeekAtLastError(void)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaPeekAtLastError)) {
        call.record.result = (int)call.thread->last_error;
    }
    return (cudaError_t)call_leave(&call);
}

/* --- control ----------------------------------------------------------------------------- */

static call_id find_call(const char *function)
{
    int id = 0;
    while (id < CALL_COUNT && strcmp(call_names[id], function) != 0) {
        id++;
    }
    return (call_id)id;
}

void gmd_sim_harness(bool is_harness_now)
{
    is_harness = is_harness_now;
}

void gmd_sim_thread(gmd_sim_thread_state *state)
{
    const sim_thread *thread = sim_this_thread();
    *state = (gmd_sim_thread_state){.device = thread->device,
                                    .last_error = (int)thread->last_error,
                                    .capture_mode = (int)thread->capture_mode};
}

void gmd_sim_observe(gmd_sim_observer *observer, void *context)
{
    sim_lock();
    calls.observer = observer;
    calls.observer_context = context;
    sim_unlock();
}

void gmd_sim_set_yield(gmd_sim_yield *hook, void *context)
{
    atomic_store_explicit(&yield_hook, NULL, memory_order_relaxed);
    atomic_store_explicit(&yield_context, context, memory_order_relaxed);
    atomic_store_explicit(&yield_hook, hook, memory_order_release);
}

uint64_t gmd_sim_call_count(const char *function)
{
    call_id id = find_call(function);
    sim_lock();
    uint64_t count = id < CALL_COUNT ? calls.counts[id] : 0;
    sim_unlock();
    return count;
}

uint64_t gmd_sim_misuse_count(void)
{
    sim_lock();
    uint64_t count = calls.misuses;
    sim_unlock();
    return count;
}

int gmd_sim_fault(const char *function, uint64_t nth, bool every_later, int error)
{
    call_id id = find_call(function);
    if (id == CALL_COUNT || nth == 0 || error == 0) {
        return -1;
    }
    sim_lock();
    fault f = {.id = id, .every_later = every_later, .error = error};
    bool fits =
        calls.fault_count < FAULTS_MAX && !__builtin_add_overflow(calls.counts[id], nth, &f.at);
    if (fits) {
        calls.faults[calls.fault_count++] = f;
    }
    sim_unlock();
    return fits ? 0 : -1;
}

void gmd_sim_clear_faults(void)
{
    sim_lock();
    calls.fault_count = 0;
    sim_unlock();
}
