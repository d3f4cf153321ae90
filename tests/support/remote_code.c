/* remote_code.c — see remote_code.h. */
#include "tests/support/remote_code.h"
#include "tests/support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static FILE *to_server, *from_server;

bool remote_is_used(void) { return getenv("MDOT_TEST_EMULATOR") != NULL; }

static void start_server(void)
{
    int requests[2], answers[2];
    assert_int_equal(pipe(requests), 0);
    assert_int_equal(pipe(answers), 0);
    signal(SIGPIPE, SIG_IGN); /* a server that ends makes a write fail */
    pid_t server = fork();
    assert_compare(server, >=, 0);
    if (server == 0) {
        dup2(requests[0], STDIN_FILENO);
        dup2(answers[1], STDOUT_FILENO);
        close(requests[0]);
        close(requests[1]);
        close(answers[0]);
        close(answers[1]);
        execl("/bin/sh", "sh", "-c", getenv("MDOT_TEST_EMULATOR"), (char *)NULL);
        _exit(127);
    }
    close(requests[0]);
    close(answers[1]);
    to_server = fdopen(requests[1], "w");
    from_server = fdopen(answers[0], "r");
    assert_non_null(to_server);
    assert_non_null(from_server);
}

static bool put(const void *bytes, size_t count) { return count == 0 || fwrite(bytes, 1, count, to_server) == count; }

void remote_run(const remote_call *call, const remote_memory *buffers, const remote_step *steps)
{
    if (to_server == NULL) start_server();
    bool done = put(call, sizeof *call);
    for (int64_t b = 0; b < call->buffer_count; b++) {
        const remote_buffer *about = &buffers[b].about;
        done = done && put(about, sizeof *about) && (about->fill >= 0 || put(buffers[b].bytes, (size_t)about->bytes));
    }
    done = done && put(steps, (size_t)call->step_count * sizeof *steps) && fflush(to_server) == 0;
    for (int64_t b = 0; b < call->buffer_count; b++) {
        size_t bytes = buffers[b].about.is_returned ? (size_t)buffers[b].about.bytes : 0;
        done = done && (bytes == 0 || fread(buffers[b].bytes, 1, bytes, from_server) == bytes);
    }
    if (done) return;
    fclose(to_server);
    fclose(from_server);
    to_server = from_server = NULL;
    fail_msg("the server of %s ended during %s", call->library, call->function[0] != '\0' ? call->function : "a call");
}
