/* Programs of random calls of the functions in the table, without a GPU: none crashes, each call
 * works or is refused with its place, and in the end nothing is allocated.
 *
 *     GMD_PROGRAMS=10000 GMD_PROGRAM_SEED=7 test_scenarios_random_programs */
#include "call_text.h"
#include "gmd_test.h"
#include "scenario_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATEMENTS   24
#define PROGRAM_SIZE 65536

static uint64_t setting(const char *name, uint64_t absent)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : absent;
}

typedef struct choice {
    const struct script_group *group;
    const struct script_function *function;
    uint64_t seen, chosen;
} choice;

static void offer(const struct script_group *group, const struct script_function *function,
                  void *context)
{
    choice *one = context;
    if (one->seen++ == one->chosen) {
        one->group = group;
        one->function = function;
    }
}

static choice some_function(gmd_random *random)
{
    choice one = {.chosen = UINT64_MAX};
    call_each(offer, &one);
    one.chosen = gmd_random_below(random, one.seen);
    one.seen = 0;
    call_each(offer, &one);
    return one;
}

/* Tensors with and without gradients, of several dimensions and types; modules of both kinds. */
static const char beginning[] =
    "x = randn { 4, 6, requires_grad = true }\ny = randn { 4, 6 }\nz = randint { 4 }\n"
    "u = randn { 2, 4, 8, 8, requires_grad = true }\nw = randn { 3, 1, 6 }\nv = x * 1\n"
    "m = nn.Linear { 6, 4 }\nn = nn.Sequential { nn.Conv2d { 4, 8, 3, padding = 1 }, nn.ReLU() }\n"
    "l = list()\no = optim.Adam { m, n }\ns = cuda.Stream()\n"
    "worked = 0\nfunction attempt(f)\n  local ok, message = pcall(f)\n"
    "  if ok then worked = worked + 1 end\n"
    "  if not ok then assert(type(message) == 'string' and #message > 8, 'no message') end\nend\n";

/* What a tensor came of is called, bound, or used for a backward pass. */
static size_t add_statement(char *text, size_t size, gmd_random *random)
{
    static const char *const forms[] = {
        "attempt(function() %s end)\n",
        "attempt(function() v = %s end)\n",
        "attempt(function() v = m(%s) end)\n",
        "attempt(function() v = n(%s) end)\n",
        "attempt(function() local r = %s\n  r:sum():backward()\n  o:step() end)\n",
        "attempt(function() (%s):mean():backward() end)\n",
    };
    char call[CALL_TEXT_SIZE], many[CALL_TEXT_SIZE];
    choice one = some_function(random);
    call_at_random(one.group, one.function, random, call);
    const char *form = forms[gmd_random_below(random, sizeof forms / sizeof *forms)];
    const char *around = strstr(form, "%s");
    size_t used =
        (size_t)snprintf(text, size, "%.*s%s%s", (int)(around - form), form, call, around + 2);
    call_with_too_many(one.group, one.function, many);
    return used + (size_t)snprintf(text + used, size - used,
                                   "assert(not pcall(function() return %s end), 'silent')\n", many);
}

static void write_program(char text[PROGRAM_SIZE], uint64_t seed)
{
    gmd_random random = {seed};
    size_t used = (size_t)snprintf(text, PROGRAM_SIZE, "%s", beginning);
    for (int i = 0; i < STATEMENTS && used < PROGRAM_SIZE - 4096; i++) {
        used += add_statement(text + used, PROGRAM_SIZE - used, &random);
    }
    snprintf(text + used, PROGRAM_SIZE - used, "phase(worked)\n");
}

/* Gives how many of its statements worked. */
static uint64_t run_program(char text[PROGRAM_SIZE], uint64_t seed)
{
    write_program(text, seed);
    bench *run = bench_run_limited(text, (uint64_t)1 << 40);
    if (run->status != GMD_OK || run->allocated != 0 || run->requested != 0) {
        print_error("%s\n", text);
        fail_msg("GMD_PROGRAMS=1 GMD_PROGRAM_SEED=%llu: %llu bytes are left; %s",
                 (unsigned long long)seed, (unsigned long long)run->allocated, run->error.text);
    }
    uint64_t worked = strtoull(run->phases[run->phase_count - 1].label, NULL, 10);
    bench_free(run);
    return worked;
}

TEST_F(bench, random_programs_end_with_nothing_allocated)
{
    static char text[PROGRAM_SIZE];
    uint64_t programs = setting("GMD_PROGRAMS", 300), seed = setting("GMD_PROGRAM_SEED", 1);
    print_message("%llu programs from seed %llu on\n", (unsigned long long)programs,
                  (unsigned long long)seed);
    uint64_t worked = 0;
    for (uint64_t i = 0; i < programs; i++) {
        worked += run_program(text, seed + i);
    }
    uint64_t statements = programs * STATEMENTS;
    print_message("%llu of %llu statements worked, the others were refused\n",
                  (unsigned long long)worked, (unsigned long long)statements);
    assert_true(4 * worked >= statements); /* else it tests little but refusals */
}
