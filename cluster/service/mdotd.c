/* mdotd.c — the service's program: options, sockets, signals. */
#include "base/command/command.h"
#include "base/file.h"
#include "service/read_job.h"
#include "service/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PROGRAM "mdotd"
enum { FIRST_PASSED = 3, BACKLOG = 4096, MAX_TOKEN_BYTES = 500, MODE = 0660 };

typedef struct mdotd_request {
    sv_sources sources;
    const char *socket, *token_file, *store, *folder;
    int64_t tcp, threads, job_cache, job_body, job_seconds, job_memory, plan_seconds, connections, client_connections,
        client_rate, request_seconds, idle_seconds, drain_seconds;
    bool reads_job;
    cli_reading reading; /* of the child */
} mdotd_request;

/* Limits: name, value, member, least, most, default, help. */
#define LIMIT_MAP(X)                                                                                                   \
    X("job-cache", "MiB", job_cache, 1, 1 << 20, 512, "memory for jobs and their encodings"),                          \
        X("job-body", "MiB", job_body, 1, SV_JOB_BYTES >> 20, 64, "largest body of POST /v1/jobs"),                    \
        X("job-seconds", "S", job_seconds, 1, 600, 10, "time to read a job"),                                          \
        X("job-memory", "MiB", job_memory, 64, 1 << 20, 1024, "memory to read a job"),                                 \
        X("plan-seconds", "S", plan_seconds, 1, 3600, 30, "time of a search for layouts"),                             \
        X("connections", "N", connections, 8, 100000, 1024, "connections at once"),                                    \
        X("client-connections", "N", client_connections, 1, 100000, 256, "connections of one user or address"),        \
        X("client-rate", "N", client_rate, 0, 1 << 30, 10000,                                                          \
          "requests per second of one user or address; 0: any number"),                                                \
        X("request-seconds", "S", request_seconds, 1, 3600, 10,                                                        \
          "time for a request to arrive, or an answer to be read"),                                                    \
        X("idle-seconds", "S", idle_seconds, 1, 3600, 30, "time between requests of a connection"),                    \
        X("drain-seconds", "S", drain_seconds, 0, 3600, 20, "time for requests in progress after SIGTERM")

#define COUNT_OPTION(NAME, VALUE, MEMBER, LEAST, MOST, HELP)                                                           \
    .name = NAME, .value = VALUE, .help = HELP, .kind = CLI_WHOLE, .at = offsetof(mdotd_request, MEMBER),              \
    .least = LEAST, .most = MOST
#define LIMIT_OPTION(NAME, VALUE, MEMBER, LEAST, MOST, DEFAULT, HELP)                                                  \
    {                                                                                                                  \
        COUNT_OPTION(NAME, VALUE, MEMBER, LEAST, MOST, HELP " (default " #DEFAULT ")")                                 \
    }
#define TEXT_OPTION(NAME, VALUE, MEMBER, HELP)                                                                         \
    .name = NAME, .value = VALUE, .help = HELP, .kind = CLI_TEXT, .at = offsetof(mdotd_request, MEMBER)

static const cli_option options[] = {
    {.heading = "Sockets",
     TEXT_OPTION("socket", "PATH", socket,
                 "Unix socket (default: mdotd.sock in $RUNTIME_DIRECTORY or /run/mdotd). Sockets "
                 "that systemd passes replace it")},
    {COUNT_OPTION("tcp", "PORT", tcp, 1, 65535, "also listen on 127.0.0.1 at this port; needs --token-file"),
     .needs = "token-file"},
    {TEXT_OPTION("token-file", "FILE", token_file, "file with the bearer token that TCP requests must have")},
    {.heading = "Predictions",
     TEXT_OPTION("model", "FILE", sources.predictor, "compiled predictor (default: that of the installation)"),
     .letter = 'm',
     .files = "mdot"},
    {TEXT_OPTION("calibration", "FILE.cal", sources.calibration, "calibration that `mdot calibrate` made"),
     .letter = 'c', .files = "cal"},
    {TEXT_OPTION("gpus", "FILE.json", sources.gpus, "the site's own GPUs, in the form of `mdot gpus --json`"),
     .files = "json"},
    {TEXT_OPTION("shadow", "FILE", sources.shadow, "second predictor that answers beside; differences are counted"),
     .files = "mdot"},
    {TEXT_OPTION("store", "FILE", store, "store for POST /v1/observations and /v1/durations (mdot-store)")},
    {.heading = "Limits",
     COUNT_OPTION("threads", "N", threads, 1, 64,
                  "threads for small requests, and as many for long ones (default: processors, up to 8)")},
    LIMIT_MAP(LIMIT_OPTION),
    {TEXT_OPTION("folder", "FOLDER", folder, "for temporary files (default: $RUNTIME_DIRECTORY or /tmp)")},
    /* of the child that reads a job */
    {.name = "read-job", .kind = CLI_FLAG, .at = offsetof(mdotd_request, reads_job)},
    CLI_VALUE_ROW(CLI_DIM, "dim", "NAME=N", mdotd_request, reading.dims, NULL, .least = 1, .repeats = true),
    CLI_VALUE_ROW(CLI_TEXTS, "frozen", "MODULE", mdotd_request, reading.frozen, NULL, .repeats = true),
    CLI_VALUE_ROW(CLI_TEXTS, "trained", "MODULE", mdotd_request, reading.trained, NULL, .repeats = true),
};

/* ---- Sockets ----------------------------------------------------------------------------------------------------- */

static mdot_status listen_at(const struct sockaddr *address, socklen_t length, const char *name, int *out,
                             mdot_error *err)
{
    int one = 1, descriptor = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool is_open = descriptor >= 0;
    if (is_open) setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (is_open && bind(descriptor, address, length) == 0 && listen(descriptor, BACKLOG) == 0) {
        *out = descriptor;
        return MDOT_OK;
    }
    mdot_status status = mdot_fail(err, MDOT_IO, "%s: cannot listen: %s", name, strerror(errno));
    if (is_open) close(descriptor);
    return status;
}

/* Removes a socket that nobody listens on any more; a running service keeps its own. */
static bool is_free(const struct sockaddr_un *address)
{
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool answers = probe >= 0 && connect(probe, (const struct sockaddr *)address, sizeof *address) == 0;
    struct stat file;
    if (probe >= 0) close(probe);
    if (!answers && lstat(address->sun_path, &file) == 0 && S_ISSOCK(file.st_mode)) unlink(address->sun_path);
    return !answers;
}

static mdot_status listen_unix(const char *path, int *out, mdot_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "--socket takes at most %zu bytes", sizeof address.sun_path - 1);
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (!is_free(&address)) return mdot_fail(err, MDOT_IO, "%s: another service listens there", path);
    mode_t former = umask(0777 & ~MODE);
    mdot_status status = listen_at((const struct sockaddr *)&address, sizeof address, path, out, err);
    umask(former);
    return status;
}

static mdot_status listen_tcp(int64_t port, int *out, mdot_error *err)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    return listen_at((const struct sockaddr *)&address, sizeof address, "127.0.0.1", out, err);
}

/* Takes the sockets that systemd passes (sd_listen_fds(3)). */
static size_t take_passed(int sockets[SV_MOST_SOCKETS])
{
    const char *process = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    size_t taken = 0, passed = process != NULL && count != NULL && strtol(process, NULL, 10) == getpid()
                                   ? strtoul(count, NULL, 10)
                                   : 0;
    for (; taken < passed && taken < SV_MOST_SOCKETS - 1; taken++) {
        sockets[taken] = FIRST_PASSED + (int)taken;
        fcntl(sockets[taken], F_SETFD, FD_CLOEXEC);
        fcntl(sockets[taken], F_SETFL, O_NONBLOCK);
    }
    return taken;
}

static bool is_tcp(int descriptor)
{
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof address;
    return getsockname(descriptor, (struct sockaddr *)&address, &length) == 0 && address.ss_family != AF_UNIX;
}

static mdot_status open_sockets(const mdotd_request *r, int sockets[SV_MOST_SOCKETS], size_t *count, mdot_error *err)
{
    char fallback[128];
    const char *folder = getenv("RUNTIME_DIRECTORY");
    snprintf(fallback, sizeof fallback, "%s/mdotd.sock", folder != NULL ? folder : "/run/mdotd");
    *count = take_passed(sockets);
    for (size_t i = 0; i < *count; i++)
        if (is_tcp(sockets[i]) && r->token_file == NULL)
            return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a socket of TCP needs --token-file");
    mdot_status status = MDOT_OK;
    if (*count == 0) status = listen_unix(r->socket != NULL ? r->socket : fallback, &sockets[0], err);
    if (status == MDOT_OK && *count == 0) *count = 1;
    if (status == MDOT_OK && r->tcp > 0) {
        status = listen_tcp(r->tcp, &sockets[*count], err);
        *count += status == MDOT_OK;
    }
    return status;
}

/* Tells systemd the state (sd_notify(3)). */
static void notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (path == NULL || (*path != '/' && *path != '@') || strlen(path) >= sizeof address.sun_path) return;
    memcpy(address.sun_path, path, strlen(path));
    if (*path == '@') address.sun_path[0] = '\0';
    int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return;
    sendto(descriptor, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address,
           (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path)));
    close(descriptor);
}

/* ---- Running ----------------------------------------------------------------------------------------------------- */

static mdot_status load_token(sv_server *server, const char *path, mdot_error *err)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    if (path == NULL) return MDOT_OK;
    mdot_status status = bs_read_file_within(path, MAX_TOKEN_BYTES, &bytes, &size, err);
    if (status != MDOT_OK) return status;
    char *text = (char *)bytes;
    size_t length = strcspn(text, " \t\r\n");
    enum { LEAST_TOKEN = 16 };
    if (length < LEAST_TOKEN || text[length + strspn(text + length, " \t\r\n")] != '\0')
        status = mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s: a token is one word of %d characters or more", path,
                           LEAST_TOKEN);
    text[length] = '\0';
    if (status == MDOT_OK) sv_server_set_token(server, text);
    free(bytes);
    return status;
}

static void reload(const mdotd_request *r, sv_state *state, sv_server *server)
{
    mdot_error err = {0};
    notify("RELOADING=1");
    mdot_status status = sv_state_reload(state, &err);
    if (status == MDOT_OK) status = load_token(server, r->token_file, &err);
    if (status == MDOT_OK)
        cli_message(NULL, "reloaded");
    else
        cli_message(NULL, "not reloaded, everything stays as it was: %s", err.message);
    notify("READY=1");
}

/* Waits for signals: SIGHUP reloads, SIGTERM and SIGINT end. */
static void wait_for_end(const mdotd_request *r, sv_state *state, sv_server *server, const sigset_t *signals)
{
    for (int signal = 0; signal != SIGTERM && signal != SIGINT;)
        if (sigwait(signals, &signal) == 0 && signal == SIGHUP) reload(r, state, server);
    notify("STOPPING=1");
}

static mdot_status serve(const mdotd_request *r, sv_state *state, const sigset_t *signals, mdot_error *err)
{
    int sockets[SV_MOST_SOCKETS];
    size_t count = 0;
    sv_server *server = NULL;
    const sv_server_options o = {.threads = (size_t)r->threads,
                                 .workers = (size_t)r->threads,
                                 .job_bytes = (size_t)r->job_body << 20,
                                 .body_bytes = ((size_t)r->job_body << 20) * 4,
                                 .limits = {.connections = r->connections,
                                            .client_connections = r->client_connections,
                                            .client_rate = (double)r->client_rate,
                                            .idle_ms = 1000 * r->idle_seconds,
                                            .request_ms = 1000 * r->request_seconds}};
    mdot_status status = sv_state_open(state, (size_t)r->job_cache << 20, err);
    if (status == MDOT_OK && r->sources.shadow != NULL) {
        enum { SHADOW_WAITING = 256 };
        state->shadows = sv_workers_create(1, SHADOW_WAITING);
        if (state->shadows == NULL) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    }
    if (status == MDOT_OK) status = open_sockets(r, sockets, &count, err);
    if (status == MDOT_OK) status = sv_server_start(state, &o, sockets, count, &server, err);
    if (status == MDOT_OK) status = load_token(server, r->token_file, err);
    if (status == MDOT_OK) {
        notify("READY=1");
        wait_for_end(r, state, server, signals);
    }
    sv_server_stop(server, r->drain_seconds);
    sv_workers_destroy(state->shadows);
    sv_state_close(state);
    return status;
}

static int run(int argc, char **argv)
{
    static mdotd_request r; /* too large for the stack */
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
#define LIMIT_DEFAULT(NAME, VALUE, MEMBER, LEAST, MOST, DEFAULT, HELP) .MEMBER = DEFAULT
    enum { MOST_PROCESSORS = 8 };
    int64_t threads = processors < 1 ? 1 : processors > MOST_PROCESSORS ? MOST_PROCESSORS : processors;
    r = (mdotd_request){LIMIT_MAP(LIMIT_DEFAULT), .threads = threads};
    cli_operands operands;
    int usage;
    if (!cli_read_line(&cli_program, argc, argv, &r, &operands, &usage)) return usage;
    if (operands.count > 0) return cli_usage_error(PROGRAM, "expected options only, not \"%s\"", operands.item[0]);
    const char *folder = getenv("RUNTIME_DIRECTORY");
    const sv_reader_limits reader = {.program = "/proc/self/exe",
                                     .folder = r.folder != NULL ? r.folder
                                               : folder != NULL ? folder
                                                                : "/tmp",
                                     .seconds = r.job_seconds,
                                     .memory_mib = r.job_memory};
    if (r.reads_job) return sv_read_job_child(&r.reading, &reader);
    static sv_state state;
    state = (sv_state){.sources = r.sources,
                       .reader = reader,
                       .threads = 3 * (size_t)r.threads,
                       .plan_threads = (size_t)r.threads,
                       .plan_seconds = r.plan_seconds,
                       .store_path = r.store};
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* inherited by all threads */
    mallopt(M_MMAP_THRESHOLD, 32 << 20);        /* large answers reuse their memory */
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit of file sizes then fails */
    struct rlimit files = {0};
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    mdot_error err = {0};
    return serve(&r, &state, &signals, &err) == MDOT_OK ? CLI_OK : cli_report(NULL, &err);
}

const cli_command cli_program = {
    .name = PROGRAM,
    .summary = "answer predictions over HTTP",
    .synopsis = "[OPTION]…",
    .description =
        "Serves predictions, searches for layouts, measured steps and durations as HTTP and JSON on a Unix socket. "
        "SIGHUP reloads predictor, calibration, GPU table and token without a failed request; SIGTERM ends "
        "after the requests in progress.",
    CLI_OPTIONS(options),
    .notes =
        "For example:\n\nmdotd --socket /run/mdotd/mdotd.sock --store /var/lib/mdotd/steps.store\ncurl --unix-socket "
        "/run/mdotd/mdotd.sock http://mdotd/v1/gpus",
    .exit_status = "0 ended by a signal, 1 failure, 2 usage error",
    .run = run,
};
int main(int argc, char **argv) { return cli_run_program(argc, argv); }
