#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include "contestant.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the new process. Its end of the socket gets the number that the worker knows. */
static void become_worker(const char *program, int socket)
{
    if (socket == BENCH_SOCKET) {
        fcntl(socket, F_SETFD, 0);
    } else if (dup2(socket, BENCH_SOCKET) < 0) {
        _exit(127);
    }
    personality(ADDR_NO_RANDOMIZE); /* where memory lies makes a difference: always the same */
    char name[] = "gmd-bench-worker";
    char *const arguments[] = {name, NULL};
    execv(program, arguments);
    fprintf(stderr, "gmd bench: %s: %s\n", program, strerror(errno));
    _exit(127);
}

/* How the process ended, after it was waited for. */
static void tell_end(int status, bench_reply *reply)
{
    reply->answer = BENCH_FAILED;
    if (WIFSIGNALED(status)) {
        snprintf(reply->text, sizeof reply->text, "its process died of signal %d (%s)",
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else {
        snprintf(reply->text, sizeof reply->text, "its process ended with status %d",
                 WEXITSTATUS(status));
    }
}

static int reap(bench_contestant *c)
{
    int status = 0;
    close(c->socket);
    while (waitpid(c->process, &status, 0) < 0 && errno == EINTR) {
    }
    c->process = 0;
    return status;
}

static void receive(bench_contestant *c, bench_reply *reply)
{
    struct pollfd ready = {.fd = c->socket, .events = POLLIN};
    *reply = (bench_reply){.answer = BENCH_FAILED};
    int count = poll(&ready, 1, (int)(c->patience_s * 1000));
    if (count == 0) {
        kill(c->process, SIGKILL);
        reap(c);
        snprintf(reply->text, sizeof reply->text, "no answer in %.0f s", c->patience_s);
        return;
    }
    if (recv(c->socket, reply, sizeof *reply, 0) != (ssize_t)sizeof *reply) {
        *reply = (bench_reply){.answer = BENCH_FAILED};
        tell_end(reap(c), reply);
    }
}

gmd_status bench_contestant_start(bench_contestant *c, gmd_error *error)
{
    int ends[2];
    bench_reply reply;
    if (c->process) {
        return GMD_OK;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return gmd_fail(error, GMD_FAILED, "no socket for a process: %s", strerror(errno));
    }
    fflush(NULL);
    c->process = fork();
    if (c->process == 0) {
        become_worker(c->program, ends[1]);
    }
    close(ends[1]);
    c->socket = ends[0];
    if (c->process < 0) {
        c->process = 0;
        close(ends[0]);
        return gmd_fail(error, GMD_FAILED, "no process: %s", strerror(errno));
    }
    ssize_t sent = send(c->socket, &c->setup, sizeof c->setup, MSG_NOSIGNAL);
    if (sent != (ssize_t)sizeof c->setup && errno == EMSGSIZE) {
        bench_contestant_stop(c);
        return gmd_fail(error, GMD_FAILED, "a worker process did not take its set-up");
    }
    receive(c, &reply);
    if (reply.answer == BENCH_DONE) {
        return GMD_OK;
    }
    bench_contestant_stop(c);
    return reply.answer == BENCH_REFUSED
               ? gmd_fail(error, reply.status, "%s", reply.text)
               : gmd_fail(error, GMD_FAILED, "%s: %s",
                          c->setup.is_floor ? "the floor" : c->setup.spec, reply.text);
}

void bench_contestant_ask(bench_contestant *c, const bench_request *request, bench_reply *reply)
{
    if (!c->process) {
        *reply = (bench_reply){.answer = BENCH_FAILED, .text = "its process has ended"};
        return;
    }
    send(c->socket, request, sizeof *request, MSG_NOSIGNAL); /* receive tells of a dead worker */
    receive(c, reply);
}

/* The end of the socket is the end of the worker; one that hangs in its allocator is not waited
 * for. */
void bench_contestant_stop(bench_contestant *c)
{
    if (!c->process) {
        return;
    }
    shutdown(c->socket, SHUT_RDWR);
    for (int tries = 0; tries < 200; tries++) {
        if (waitpid(c->process, NULL, WNOHANG) != 0) {
            close(c->socket);
            c->process = 0;
            return;
        }
        poll(NULL, 0, 10);
    }
    kill(c->process, SIGKILL);
    reap(c);
}
