#include "asks.h"

#include <stdio.h>

static bench *run_call(const char *inputs, const char *call)
{
    char text[2048];
    snprintf(text, sizeof text,
             "k = nn.Linear { 4, 4 }\nk(randn { 1, 4 }):sum():backward()\n%s\nphase 'inputs'\n"
             "%s\nphase 'forward'\nif out.grad_fn then out:sum():backward() end\n"
             "phase 'backward'\n",
             inputs, call);
    bench *run = bench_run(text);
    bench_assert_ok(run);
    return run;
}

void assert_asks(const char *inputs, const char *call, const char *forward, const char *backward)
{
    bench *run = run_call(inputs, call);
    if (forward) {
        assert_string_equal(bench_asked_in(run, "forward"), forward);
    }
    if (backward) {
        assert_string_equal(bench_asked_in(run, "backward"), backward);
    }
    bench_free(run);
}
