/* bench_torch - what PyTorch's own allocator costs on the simulated device and on a real one:
 * nanoseconds for a cache-hit pair of malloc and free, by the same program in one run, and the
 * ratio of the two. A device is measured in a process of its own; one that is not there is left
 * out.
 *
 *     bench_torch [TORCH_DIR]          gmd's libraries: $GMD_LIB_DIR, else ../lib/gmd from here */
#define _GNU_SOURCE /* clock.h: RUSAGE_THREAD */
#include "clock.h"
#include "gmd_runtime.h"
#include "gmd_subject.h"
#include "gmd_torch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 9, PAIRS = 100000, SIZES = 6 };

static const size_t sizes[SIZES] = {
    512, (size_t)64 << 10, (size_t)1 << 20, (size_t)4 << 20, (size_t)32 << 20, (size_t)256 << 20};

typedef struct figures { /* of one device, shared with its process */
    bool is_complete;
    double pair_ns[SIZES], call_ns;
    char reason[768]; /* why it is not complete */
} figures;

typedef struct setup {
    char lib_directory[PATH_MAX], adapter[PATH_MAX];
} setup;

/* The best of several rounds, in which other processes disturbed least. */
static double time_pairs(const gmd_subject *s, cudaStream_t stream, size_t size)
{
    double best = 0;
    s->free(s->malloc(size, 0, stream), size, 0, stream);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start = bench_now_ns();
        for (int i = 0; i < PAIRS; i++) {
            s->free(s->malloc(size, 0, stream), size, 0, stream);
        }
        double each = (double)(bench_now_ns() - start) / PAIRS;
        best = round == 0 || each < best ? each : best;
    }
    return best;
}

/* A call that reaches the runtime and does nothing: how much of a pair it can be. */
static double time_call(const gmd_runtime *rt)
{
    uint64_t start = bench_now_ns();
    for (int i = 0; i < PAIRS; i++) {
        int device;
        rt->cudaGetDevice(&device);
    }
    return (double)(bench_now_ns() - start) / PAIRS;
}

static gmd_status measure(const setup *from, gmd_device_kind kind, figures *out, gmd_error *error)
{
    gmd_runtime rt;
    gmd_subject subject;
    const gmd_subject_source source = {
        .spec = "torch", .lib_directory = from->lib_directory, .torch_adapter = from->adapter};
    gmd_status status = gmd_runtime_open(&rt, kind, from->lib_directory, error);
    if (status == GMD_OK) {
        status = gmd_subject_open(&subject, &source, error);
    }
    if (status != GMD_OK) {
        return status;
    }
    int count = 0;
    cudaStream_t stream = NULL;
    if (rt.cudaGetDeviceCount(&count) != cudaSuccess ||
        rt.cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) {
        return gmd_fail(error, GMD_FAILED, "the device does not work");
    }
    subject.init(count);
    for (size_t i = 0; i < SIZES; i++) {
        out->pair_ns[i] = time_pairs(&subject, stream, sizes[i]);
    }
    out->call_ns = time_call(&rt);
    out->is_complete = true;
    return GMD_OK;
}

static void measure_apart(const setup *from, gmd_device_kind kind, figures *out)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        gmd_error error = {""};
        if (measure(from, kind, out, &error) != GMD_OK) {
            snprintf(out->reason, sizeof out->reason, "%s", error.text);
        }
        _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) < 0) {
        snprintf(out->reason, sizeof out->reason, "no process for it");
    } else if (!out->is_complete && !out->reason[0]) {
        snprintf(out->reason, sizeof out->reason, "its process died");
    }
}

static void print_time(double ns)
{
    if (ns > 0) {
        printf(" %9.1f ns", ns);
    } else {
        printf(" %12s", "-");
    }
}

static void print_row(const char *name, double simulated, double real)
{
    printf("%-26s", name);
    print_time(simulated);
    print_time(real);
    if (simulated > 0 && real > 0) {
        printf(" %14.0f %%", real / simulated * 100);
    }
    printf("\n");
}

/* Figures that are not there are 0. */
static void report(const figures *sim, const figures *real)
{
    printf("%-26s %12s %12s %16s\n", "malloc + free, cache hit", "simulated", "real GPU",
           "simulated speed");
    for (size_t i = 0; i < SIZES; i++) {
        char name[32];
        snprintf(name, sizeof name, "%12zu B", sizes[i]);
        print_row(name, sim->pair_ns[i], real->pair_ns[i]);
    }
    print_row("cudaGetDevice", sim->call_ns, real->call_ns);
}

static void find_libraries(char *out)
{
    const char *given = getenv("GMD_LIB_DIR");
    char path[PATH_MAX - 32];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash) {
        *slash = '\0';
    }
    snprintf(out, PATH_MAX, "%s%s", given && *given ? given : path,
             given && *given ? "" : "/../lib/gmd");
}

int main(int argc, char **argv)
{
    static setup from;
    gmd_torch torch;
    gmd_error error = {""};
    find_libraries(from.lib_directory);
    gmd_status status = gmd_torch_find(&torch, argc > 1 ? argv[1] : NULL, &error);
    if (status == GMD_OK) {
        status = gmd_torch_adapter(&torch, from.lib_directory, true, from.adapter, &error);
    }
    figures *devices =
        mmap(NULL, 2 * sizeof *devices, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (status != GMD_OK || devices == MAP_FAILED) {
        fprintf(stderr, "bench_torch: %s\n", status != GMD_OK ? error.text : "no host memory");
        return 2;
    }
    measure_apart(&from, GMD_DEVICE_SIM, &devices[0]);
    measure_apart(&from, GMD_DEVICE_CUDA, &devices[1]);
    report(&devices[0], &devices[1]);
    static const char *const names[] = {"simulated device", "real GPU"};
    for (int i = 0; i < 2; i++) {
        if (!devices[i].is_complete) {
            printf("no %s: %.300s\n", names[i], devices[i].reason);
        }
    }
    return devices[0].is_complete ? 0 : 3;
}
