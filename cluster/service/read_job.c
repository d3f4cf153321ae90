/* read_job.c — see read_job.h. The child is this program again, by exec, so that it has no thread, no lock and no
 * secret of the service, and a fault of a parser ends the child alone. */
#include "service/read_job.h"

#include "base/file.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RESULT "job.job"
enum { MOST_OPTIONS = SV_QUERY_TEXTS, OWN_ARGUMENTS = 8 };

/* ---- The child --------------------------------------------------------------------------------------------------- */

static void limit(int resource, rlim_t value) { setrlimit(resource, &(struct rlimit){value, value}); }

int sv_read_job_child(const cli_reading *reading, const sv_reader_limits *limits)
{
    mdot_job *job = NULL;
    mdot_error err = {0};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_CPU, (rlim_t)limits->seconds);
    limit(RLIMIT_FSIZE, SV_JOB_BYTES);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* which reserve terabytes of addresses */
    limit(RLIMIT_AS, (rlim_t)limits->memory_mib << 20);
#endif
    mdot_status status = cli_read_job("mdotd", "-", reading, &job, &err);
    if (status == MDOT_OK) status = mdot_job_save(job, RESULT, &err);
    mdot_job_destroy(job);
    if (status == MDOT_OK) return 0;
    fprintf(stderr, "%s\n", err.message);
    return SV_READ_FAILED + (int)status;
}

/* ---- The service ------------------------------------------------------------------------------------------------- */

/* An anonymous file with the bytes, at its beginning; -1 on failure. */
static int make_input(const void *bytes, size_t size)
{
    int file = memfd_create("job", MFD_CLOEXEC);
    for (size_t written = 0; file >= 0 && written < size;) {
        ssize_t count = write(file, (const char *)bytes + written, size - written);
        if (count > 0) written += (size_t)count;
        if (count < 0 && errno != EINTR) {
            close(file);
            return -1;
        }
    }
    if (file >= 0) lseek(file, 0, SEEK_SET);
    return file;
}

static bool start(const sv_reader_limits *limits, const char *folder, int input, int output, const char *const *options,
                  size_t count, pid_t *out_child)
{
    char seconds[32], memory[32];
    const char *argv[OWN_ARGUMENTS + MOST_OPTIONS + 1] = {"mdotd", "--read-job", seconds, memory};
    static char *const environment[] = {"PATH=/nonexistent", NULL};
    snprintf(seconds, sizeof seconds, "--job-seconds=%lld", (long long)limits->seconds);
    snprintf(memory, sizeof memory, "--job-memory=%lld", (long long)limits->memory_mib);
    for (size_t i = 0; i < count && i < MOST_OPTIONS; i++) argv[4 + i] = options[i];
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addchdir_np(&actions, folder);
    int fault = posix_spawn(out_child, limits->program, &actions, &attributes, (char *const *)argv, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    errno = fault;
    return fault == 0;
}

/* Collects the child's text until it ends; kills it at the limit. Returns false for a child that was killed. */
static bool collect(pid_t child, int input, int64_t seconds, sv_read_text *out, int *out_status)
{
    int64_t end_ms = sv_now_ns() / 1000000 + 1000 * seconds;
    bool is_late = false;
    for (bool is_open = true; is_open && !is_late;) {
        struct pollfd ready = {.fd = input, .events = POLLIN};
        int64_t rest = end_ms - sv_now_ns() / 1000000;
        char spare[512];
        if (rest <= 0 || poll(&ready, 1, (int)rest) == 0) is_late = true;
        if (ready.revents == 0) continue;
        bool has_space = out->used + 1 < sizeof out->text;
        ssize_t count = has_space ? read(input, out->text + out->used, sizeof out->text - 1 - out->used)
                                  : read(input, spare, sizeof spare);
        if (count > 0 && has_space) out->used += (size_t)count;
        is_open = count > 0 || (count < 0 && errno == EINTR);
    }
    if (is_late) kill(child, SIGKILL);
    while (waitpid(child, out_status, 0) < 0 && errno == EINTR) continue;
    out->text[out->used] = '\0';
    return !is_late;
}

static const char *last_line(char *text)
{
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == '\n') text[--length] = '\0';
    char *line = strrchr(text, '\n');
    return line != NULL ? line + 1 : text;
}

static mdot_status judge(const sv_reader_limits *limits, bool is_ended, int status, sv_read_text *text, mdot_error *err)
{
    if (is_ended && WIFEXITED(status) && WEXITSTATUS(status) == 0) return MDOT_OK;
    int code = is_ended && WIFEXITED(status) ? WEXITSTATUS(status) - SV_READ_FAILED : -1;
    if (code == CLI_USAGE - SV_READ_FAILED) {
        text->text[strcspn(text->text, "\n")] = '\0';
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%.900s", text->text + strcspn(text->text, "-"));
    }
    if (!is_ended || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU))
        return mdot_fail(err, MDOT_OUT_OF_RANGE, "reading the job takes longer than %lld s (--job-seconds)",
                         (long long)limits->seconds);
    if (code == MDOT_OUT_OF_MEMORY)
        return mdot_fail(err, MDOT_OUT_OF_RANGE, "reading the job takes more than %lld MiB (--job-memory)",
                         (long long)limits->memory_mib);
    if (code <= 0 || code > MDOT_DEVICE)
        return mdot_fail(err, MDOT_MALFORMED, "the reader ended abnormally: the job cannot be read");
    const char *line = last_line(text->text);
    static const char stream[] = "standard input: ";
    if (strncmp(line, stream, sizeof stream - 1) == 0) line += sizeof stream - 1;
    return mdot_fail(err, (mdot_status)code, "%.900s", line);
}

static mdot_status run(const sv_reader_limits *limits, const char *folder, int input, const char *const *options,
                       size_t count, sv_read_text *text, mdot_error *err)
{
    int ends[2], status = 0;
    pid_t child;
    if (pipe2(ends, O_CLOEXEC) != 0) return mdot_fail(err, MDOT_IO, "no pipe to the reader: %s", strerror(errno));
    bool is_started = start(limits, folder, input, ends[1], options, count, &child);
    mdot_status result =
        is_started ? MDOT_OK : mdot_fail(err, MDOT_IO, "the reader cannot be started: %s", strerror(errno));
    close(ends[1]);
    if (is_started) {
        bool is_ended = collect(child, ends[0], limits->seconds, text, &status);
        result = judge(limits, is_ended, status, text, err);
    }
    close(ends[0]);
    return result;
}

/* Removes the folder with its files: a killed child leaves one under a temporary name. */
static void remove_folder(const char *folder)
{
    DIR *list = opendir(folder);
    for (struct dirent *file; list != NULL && (file = readdir(list)) != NULL;)
        if (file->d_name[0] != '.' || strlen(file->d_name) > 2) unlinkat(dirfd(list), file->d_name, 0);
    if (list != NULL) closedir(list);
    rmdir(folder);
}

mdot_status sv_read_job(const sv_reader_limits *limits, const void *bytes, size_t size, const char *const *options,
                        size_t count, unsigned char **out_bytes, size_t *out_size, sv_read_text *text, mdot_error *err)
{
    char *folder = NULL, *result = NULL;
    *text = (sv_read_text){0};
    if (asprintf(&folder, "%s/mdotd-XXXXXX", limits->folder) < 0) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    if (mkdtemp(folder) == NULL) {
        mdot_status failed = mdot_fail(err, MDOT_IO, "no temporary folder for the reader: %s", strerror(errno));
        free(folder);
        return failed;
    }
    int input = make_input(bytes, size);
    mdot_status status = input < 0 ? mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL) : MDOT_OK;
    if (status == MDOT_OK && asprintf(&result, "%s/" RESULT, folder) < 0) {
        result = NULL;
        status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    }
    if (status == MDOT_OK) status = run(limits, folder, input, options, count, text, err);
    if (status == MDOT_OK) status = bs_read_file_within(result, SV_JOB_BYTES, out_bytes, out_size, err);
    if (input >= 0) close(input);
    remove_folder(folder);
    free(result);
    free(folder);
    return status;
}
