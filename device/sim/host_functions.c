#define _GNU_SOURCE /* syscall */
#include "host_functions.h"

#include "futex.h"
#include "lock.h"
#include "state.h"
#include "thread.h"

static _Atomic uint32_t host_functions_ended; /* so many, modulo 2^32: a futex to wait on */
static _Thread_local bool is_in_host_function __attribute__((tls_model("initial-exec")));

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

bool sim_is_in_host_function(void)
{
    return is_in_host_function;
}
