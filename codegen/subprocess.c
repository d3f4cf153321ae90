/* subprocess.c — see subprocess.h.
 *
 * The child sends records through a pipe: arguments for the caller's callbacks, and last the answer. */
#include "codegen/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTPUT_BYTES = 400 };

typedef enum record_kind { PROGRESS, WARNING, DUMP, RESULT } record_kind;

/* Followed by `text_bytes` of text including the NUL and, for an answer, by `result_bytes`. */
typedef struct record {
    record_kind kind;
    mdot_status status; /* RESULT only; the text is its message */
    size_t done, total; /* PROGRESS only; the text is the step */
    size_t text_bytes, result_bytes;
} record;

/* If the parent is gone, SIGPIPE ends the child. */
static void write_all(int pipe, const void *bytes, size_t size)
{
    const char *cursor = bytes;
    while (size > 0) {
        ssize_t written = write(pipe, cursor, size);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) _exit(1);
        cursor += written;
        size -= (size_t)written;
    }
}

static void send_record(int pipe, record r, const char *text, const void *result)
{
    r.text_bytes = strlen(text) + 1;
    write_all(pipe, &r, sizeof r);
    write_all(pipe, text, r.text_bytes);
    write_all(pipe, result, r.result_bytes);
}

static void send_progress(void *pipe, const char *step, size_t done, size_t total)
{
    send_record(*(int *)pipe, (record){.kind = PROGRESS, .done = done, .total = total}, step, NULL);
}

static void send_warning(void *pipe, const char *text)
{
    send_record(*(int *)pipe, (record){.kind = WARNING}, text, NULL);
}

static void send_dump(void *pipe, const char *text) { send_record(*(int *)pipe, (record){.kind = DUMP}, text, NULL); }

/* Drops the program's state in the child: signal handlers, which might report the child's crash as the program's,
 * and open files, which others might wait for. The child ends when the thread that waits for it does. Returns the
 * pipe's new number. */
static int detach_child(int pipe, int output)
{
    enum { FIRST = 3 }; /* above the standard descriptors, whose numbers the pipe may have if they were closed */
    static const int signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGPIPE, SIGTERM, SIGINT, SIGQUIT};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) signal(signals[i], SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_DUMPABLE, 0); /* prevents a core file */
    int moved = fcntl(pipe, F_DUPFD, FIRST);
    if (moved < 0) return pipe;
    if (output >= 0) dup2(output, STDERR_FILENO);
    if (moved > FIRST) close_range(FIRST, (unsigned)moved - 1, 0);
    close_range((unsigned)moved + 1, ~0u, 0);
    return moved;
}

static _Noreturn void run_child(cg_work work, void *user, const cg_options *options, int pipe, int output)
{
    pipe = detach_child(pipe, output);
    cg_options child_options = *options;
    child_options.progress = options->progress != NULL ? send_progress : NULL;
    child_options.warning = options->warning != NULL ? send_warning : NULL;
    child_options.dump_text = options->dump_text != NULL ? send_dump : NULL;
    child_options.user = &pipe;
    void *result = NULL;
    size_t result_bytes = 0;
    mdot_error err = {0};
    mdot_status status = work(user, &child_options, &result, &result_bytes, &err);
    record result_record = {.kind = RESULT, .status = status, .result_bytes = status == MDOT_OK ? result_bytes : 0};
    send_record(pipe, result_record, status == MDOT_OK ? "" : err.message, result);
    _exit(0);
}

static bool read_all(int pipe, void *bytes, size_t size)
{
    char *cursor = bytes;
    while (size > 0) {
        ssize_t got = read(pipe, cursor, size);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        cursor += got;
        size -= (size_t)got;
    }
    return true;
}

/* Returns false if the child is gone or memory runs out. */
static bool read_record(int pipe, record *r, char **out_text, void **out_result)
{
    *out_text = *out_result = NULL;
    if (!read_all(pipe, r, sizeof *r)) return false;
    *out_text = malloc(r->text_bytes);
    *out_result = malloc(r->result_bytes + 1);
    if (*out_text != NULL && *out_result != NULL && read_all(pipe, *out_text, r->text_bytes) &&
        read_all(pipe, *out_result, r->result_bytes))
        return true;
    free(*out_text);
    free(*out_result);
    return false;
}

/* Passes records on until the answer arrives. Returns false if it never arrives. */
static bool listen(int pipe, const cg_options *options, void **out_bytes, size_t *out_size_bytes,
                   mdot_status *out_status, mdot_error *err)
{
    record r;
    char *text;
    void *result;
    while (read_record(pipe, &r, &text, &result)) {
        if (r.kind == PROGRESS) options->progress(options->user, text, r.done, r.total);
        if (r.kind == WARNING) options->warning(options->user, text);
        if (r.kind == DUMP) options->dump_text(options->user, text);
        bool is_result = r.kind == RESULT && r.status == MDOT_OK;
        if (is_result) {
            *out_bytes = result;
            *out_size_bytes = r.result_bytes;
        }
        if (r.kind == RESULT) *out_status = is_result ? MDOT_OK : mdot_fail(err, r.status, "%s", text);
        free(text);
        if (!is_result) free(result);
        if (r.kind == RESULT) return true;
    }
    return false;
}

/* The last line that the child wrote to stderr. */
static void read_output(int output, char out_line[OUTPUT_BYTES])
{
    off_t end = output >= 0 ? lseek(output, 0, SEEK_END) : 0;
    off_t begin = end > OUTPUT_BYTES - 1 ? end - (OUTPUT_BYTES - 1) : 0;
    ssize_t got = end > 0 ? pread(output, out_line, OUTPUT_BYTES - 1, begin) : 0;
    if (got < 0) got = 0;
    while (got > 0 && (out_line[got - 1] == '\n' || out_line[got - 1] == '\0')) got--;
    out_line[got] = '\0';
    const char *line = strrchr(out_line, '\n');
    if (line != NULL) memmove(out_line, line + 1, strlen(line + 1) + 1);
}

static mdot_status explain_end(int ended, int output, mdot_error *err)
{
    char line[OUTPUT_BYTES];
    read_output(output, line);
    bool is_killed = WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL;
    bool is_memory = is_killed || strstr(line, "memory") != NULL || strstr(line, "bad_alloc") != NULL ||
                     strstr(line, "llocation failed") != NULL;
    mdot_status status = is_memory ? MDOT_OUT_OF_MEMORY : MDOT_TOOLCHAIN;
    const char *colon = line[0] != '\0' ? ": " : "";
    if (WIFSIGNALED(ended))
        return mdot_fail(err, status, "LLVM was terminated by signal %d (%s)%s%s", WTERMSIG(ended),
                         strsignal(WTERMSIG(ended)), colon, line);
    return mdot_fail(err, status, "LLVM exited without a result%s%s", colon, line);
}

/* The work is not retried in this process, because a child usually fails to start for lack of memory. */
static mdot_status explain_no_child(int reason, mdot_error *err)
{
    return mdot_fail(err, reason == ENOMEM ? MDOT_OUT_OF_MEMORY : MDOT_TOOLCHAIN,
                     "cannot start a child process for LLVM: %s", strerror(reason));
}

mdot_status cg_run_subprocess(cg_work work, void *user, const cg_options *options, void **out_bytes,
                              size_t *out_size_bytes, mdot_error *err)
{
    int ends[2];
    if (options->in_process) return work(user, options, out_bytes, out_size_bytes, err);
    if (pipe2(ends, O_CLOEXEC) != 0) return explain_no_child(errno, err);
    int output = memfd_create("llvm", MFD_CLOEXEC);
    pid_t child = fork();
    if (child == 0) run_child(work, user, options, ends[1], output);
    mdot_status status = child > 0 ? MDOT_OK : explain_no_child(errno, err);
    close(ends[1]);
    bool has_result = child > 0 && listen(ends[0], options, out_bytes, out_size_bytes, &status, err);
    close(ends[0]); /* a child that is still writing ends */
    int ended = 0;
    while (child > 0 && waitpid(child, &ended, 0) < 0 && errno == EINTR) continue;
    if (child > 0 && !has_result) status = explain_end(ended, output, err);
    if (output >= 0) close(output);
    return status;
}
