/* test_mdotd.c — the program with its sockets: limits, slow clients, half-open connections, tokens, reload, shadow
 * mode, a graceful end, and kill -9. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/command/command.h"
#include "base/file.h"
#include "tests/support/json.h"
#include "tests/support/process.h"

enum { ANSWER_BYTES = 1 << 16, MOST_ARGUMENTS = 32, PATIENCE_S = 60 };

typedef struct fixture {
    char *folder, *socket, *model, *store;
    pid_t process;
    char job[80], answer[ANSWER_BYTES];
} fixture;

static void rest_ms(int ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL); }

static int connect_unix(const fixture *f)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", f->socket);
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(descriptor, (const struct sockaddr *)&address, sizeof address) == 0) return descriptor;
    close(descriptor);
    return -1;
}

static bool send_all(int descriptor, const void *bytes, size_t size)
{
    for (size_t sent = 0; sent < size;) {
        ssize_t count = send(descriptor, (const char *)bytes + sent, size - sent, MSG_NOSIGNAL);
        if (count <= 0) return false;
        sent += (size_t)count;
    }
    return true;
}

/* Reads an answer to its end: the length in its head, or the end of the stream. Returns the status; 0 without one. */
static int read_answer(int descriptor, char *out)
{
    size_t used = 0, whole = ANSWER_BYTES - 1;
    *out = '\0';
    while (used < whole) {
        struct pollfd ready = {.fd = descriptor, .events = POLLIN};
        if (poll(&ready, 1, PATIENCE_S * 1000) <= 0) break;
        ssize_t count = recv(descriptor, out + used, whole - used, 0);
        if (count <= 0) break;
        used += (size_t)count;
        out[used] = '\0';
        const char *end = strstr(out, "\r\n\r\n"), *length = strstr(out, "Content-Length: ");
        if (end != NULL && length != NULL && length < end) {
            whole = (size_t)(end + 4 - out) + strtoul(length + 16, NULL, 10);
            if (whole > ANSWER_BYTES - 1) whole = ANSWER_BYTES - 1;
        }
    }
    return strncmp(out, "HTTP/1.1 ", 9) == 0 ? atoi(out + 9) : 0;
}

static int ask_on(int descriptor, const char *method, const char *target, const char *more, const void *body,
                  size_t size, char *out)
{
    char head[512];
    int length = snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: x\r\n%sContent-Length: %zu\r\n\r\n", method,
                          target, more, size);
    if (!send_all(descriptor, head, (size_t)length)) return 0;
    if (!send_all(descriptor, body, size) && size < 65536) return 0;
    return read_answer(descriptor, out);
}

static int ask(fixture *f, const char *method, const char *target, const void *body, size_t size)
{
    int descriptor = connect_unix(f);
    assert_true(descriptor >= 0);
    int status = ask_on(descriptor, method, target, "", body, size, f->answer);
    close(descriptor);
    return status;
}

static int predict(fixture *f)
{
    char body[256];
    int length = snprintf(body, sizeof body, "{\"job\": \"%s\", \"configuration\": {\"gpu\": \"A100\"}}", f->job);
    return ask(f, "POST", "/v1/predict", body, (size_t)length);
}

static double metric(fixture *f, const char *name)
{
    assert_int_equal(ask(f, "GET", "/metrics", "", 0), 200);
    char line[128];
    snprintf(line, sizeof line, "\nmdotd_%s ", name);
    const char *found = strstr(f->answer, line);
    if (found == NULL) fail_msg("%s is not in %s", name, f->answer);
    return strtod(found + strlen(line), NULL);
}

/* Starts mdotd with further options, waits until it answers, and sends a job. */
static void start(fixture *f, const char *const *options)
{
    const char *argv[MOST_ARGUMENTS] = {MDOTD,    "--socket", f->socket, "--model",
                                        f->model, "--folder", f->folder, "--threads=2"};
    size_t count = 8, size = 0;
    for (; *options != NULL; options++) argv[count++] = *options;
    f->process = fork();
    assert_true(f->process >= 0);
    if (f->process == 0) {
        execv(MDOTD, (char *const *)argv);
        _exit(127);
    }
    for (int i = 0; i < 100 * PATIENCE_S; i++) {
        int descriptor = connect_unix(f);
        if (descriptor >= 0) {
            close(descriptor);
            break;
        }
        if (waitpid(f->process, NULL, WNOHANG) != 0) fail_msg("mdotd ended");
        rest_ms(10);
    }
    unsigned char *bytes = NULL;
    assert_int_equal(bs_read_file(MDOT_JOBS "/resnet50.onnx", &bytes, &size, NULL), MDOT_OK);
    assert_int_equal(ask(f, "POST", "/v1/jobs", bytes, size), 200);
    free(bytes);
    const char *found = strstr(f->answer, "\"job\": \"");
    assert_non_null(found);
    snprintf(f->job, 65, "%s", found + 8);
}

#define START(f, ...) start(f, (const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

/* Ends it, and returns its exit status; -1 if a signal ended it. */
static int stop(fixture *f, int signal)
{
    int status;
    kill(f->process, signal);
    assert_int_equal(waitpid(f->process, &status, 0), f->process);
    f->process = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    unsigned char *bytes = NULL;
    size_t size = 0;
    if (f == NULL) return -1;
    f->folder = process_make_folder();
    f->socket = process_in_folder(f->folder, "s");
    f->model = process_in_folder(f->folder, "predictor.mdot");
    f->store = process_in_folder(f->folder, "steps.store");
    if (bs_read_file(MDOT_SHIPPED_PREDICTOR, &bytes, &size, NULL) != MDOT_OK) return -1;
    if (bs_write_file(f->model, bytes, size, NULL) != MDOT_OK) return -1;
    free(bytes);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    if (f->process > 0) stop(f, SIGKILL);
    process_remove_folder(f->folder);
    free(f->socket);
    free(f->model);
    free(f->store);
    free(f);
    return 0;
}

static void a_connection_serves_many_requests(void **state)
{
    fixture *f = *state;
    START(f, "--store", f->store);
    char body[256];
    int length = snprintf(body, sizeof body, "{\"job\": \"%s\", \"configuration\": {\"gpu\": \"T4\"}}", f->job);
    int descriptor = connect_unix(f);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(ask_on(descriptor, "POST", "/v1/predict", "", body, (size_t)length, f->answer), 200);
        assert_int_equal(ask_on(descriptor, "GET", "/v1/gpus", "", "", 0, f->answer), 200);
        assert_int_equal(ask_on(descriptor, "POST", "/v1/durations", "", "{\"jobs\": [{}]}", 14, f->answer), 200);
    }
    close(descriptor);
    assert_int_equal(ask(f, "GET", "/nothing", "", 0), 404);
    assert_int_equal(ask(f, "DELETE", "/v1/predict", "", 0), 405);
    expect_contains(f->answer, "Allow: POST");
    assert_int_equal(stop(f, SIGTERM), 0);
}

/* A body beyond its limit is refused before it is read, whether its length is stated or not. */
static void bodies_have_limits(void **state)
{
    fixture *f = *state;
    START(f, "--job-body=1");
    int descriptor = connect_unix(f);
    static const char stated[] = "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000000\r\n\r\nx";
    assert_true(send_all(descriptor, stated, sizeof stated - 1));
    assert_int_equal(read_answer(descriptor, f->answer), 413);
    close(descriptor);
    static const char chunked[] = "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    static char piece[10 + 65536 + 2];
    descriptor = connect_unix(f);
    assert_true(send_all(descriptor, chunked, sizeof chunked - 1));
    snprintf(piece, sizeof piece, "10000\r\n");
    memset(piece + 7, 'x', 65536);
    memcpy(piece + 7 + 65536, "\r\n", 2);
    for (int i = 0; i < 20; i++) send_all(descriptor, piece, 7 + 65536 + 2);
    send_all(descriptor, "0\r\n\r\n", 5);
    assert_int_equal(read_answer(descriptor, f->answer), 413);
    close(descriptor);
    assert_int_equal(predict(f), 200);
    stop(f, SIGTERM);
}

/* Clients that drip bytes, or never read, lose their connections; others do not notice. */
static void slow_clients_are_cut_off(void **state)
{
    fixture *f = *state;
    START(f, "--request-seconds=5", "--idle-seconds=5");
    static const char head[] = "POST /v1/predict HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n";
    int slow[8];
    for (int i = 0; i < 8; i++) {
        slow[i] = connect_unix(f);
        size_t length = i < 4 ? 10 + (size_t)i : sizeof head - 1;
        assert_true(send_all(slow[i], head, length));
    }
    int open = 8;
    for (int round = 0; open > 0 && round < 10 * PATIENCE_S; round++) {
        rest_ms(100);
        assert_int_equal(predict(f), 200);
        open = 0;
        for (int i = 0; i < 8; i++) open += send(slow[i], "x", 1, MSG_NOSIGNAL) == 1;
    }
    assert_int_equal(open, 0);
    for (int i = 0; i < 8; i++) close(slow[i]);
    assert_true(metric(f, "slow_connections_total") >= 4);
    stop(f, SIGTERM);
}

/* Thousands of connections without a request make room, oldest first, and answers keep coming. */
static void half_open_connections_make_room(void **state)
{
    enum { HALF_OPEN = 10000, KEPT = 500 };
    fixture *f = *state;
    START(f, "--connections=256", "--client-connections=200", "--client-rate=0");
    static int open[KEPT];
    for (int i = 0; i < HALF_OPEN; i++) {
        if (i >= KEPT) close(open[i % KEPT]);
        open[i % KEPT] = connect_unix(f);
        if (open[i % KEPT] >= 0 && i % 2 == 0) send_all(open[i % KEPT], "POST /v1/pre", 12);
        if (i % 500 == 0) assert_int_equal(predict(f), 200);
    }
    assert_int_equal(predict(f), 200);
    assert_true(metric(f, "evicted_connections_total") > 0);
    for (int i = 0; i < KEPT; i++) close(open[i]);
    stop(f, SIGTERM);
}

/* The service is stopped while many requests arrive, and then goes on. It answers all of them, whatever their number:
 * an event loop takes events in batches, and must not sleep after a full one. */
static void a_burst_is_answered(void **state)
{
    enum { MOST = 260 };
    static const int counts[] = {1, 63, 64, 65, 126, 127, 128, 129, 254, 255, 256, 257, 258, MOST};
    static const char request[] = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    fixture *f = *state;
    START(f, "--client-connections=300", "--client-rate=0");
    int open[MOST];
    for (int i = 0; i < MOST; i++) {
        open[i] = connect_unix(f);
        assert_int_equal(ask_on(open[i], "GET", "/healthz", "", "", 0, f->answer), 200);
    }
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        kill(f->process, SIGSTOP);
        for (int i = 0; i < counts[k]; i++) assert_true(send_all(open[i], request, sizeof request - 1));
        kill(f->process, SIGCONT);
        for (int i = 0; i < counts[k]; i++) assert_int_equal(read_answer(open[i], f->answer), 200);
    }
    for (int i = 0; i < MOST; i++) close(open[i]);
    stop(f, SIGTERM);
}

static void a_client_has_a_rate(void **state)
{
    fixture *f = *state;
    START(f, "--client-rate=1");
    int answered = 0, limited = 0;
    for (int i = 0; i < 1000000 && (answered == 0 || limited == 0); i++) {
        int status = predict(f);
        assert_true(status == 200 || status == 429);
        *(status == 200 ? &answered : &limited) += 1;
    }
    assert_true(answered > 0 && limited > 0);
    assert_int_equal(ask(f, "GET", "/healthz", "", 0), 200); /* free of it */
    stop(f, SIGTERM);
}

static void tcp_needs_the_token(void **state)
{
    fixture *f = *state;
    process_result result;
    char *path = process_in_folder(f->folder, "token"), port[32];
    process_run((const char *const[]){MDOTD, "--tcp=12345", NULL}, &result);
    assert_int_equal(result.status, 2);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int probe = socket(AF_INET, SOCK_STREAM, 0); /* finds a free port */
    assert_int_equal(bind(probe, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(probe, (struct sockaddr *)&address, &length), 0);
    close(probe);
    snprintf(port, sizeof port, "--tcp=%d", ntohs(address.sin_port));
    assert_int_equal(bs_write_file(path, "0123456789abcdef0123\n", 21, NULL), MDOT_OK);
    START(f, port, "--token-file", path);
    static const struct {
        const char *header, *target;
        int status;
    } cases[] = {{"", "/v1/gpus", 401},
                 {"Authorization: Bearer 0123456789abcdef0124\r\n", "/v1/gpus", 401},
                 {"Authorization: Bearer 0123456789abcdef01234\r\n", "/v1/gpus", 401},
                 {"Authorization: Bearer \r\n", "/metrics", 401},
                 {"Authorization: Basic 0123456789abcdef0123\r\n", "/metrics", 401},
                 {"", "/nothing", 401},
                 {"", "/healthz", 200},
                 {"", "/readyz", 200},
                 {"Authorization: Bearer 0123456789abcdef0123\r\n", "/v1/gpus", 200}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int descriptor = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(descriptor, (const struct sockaddr *)&address, sizeof address), 0);
        assert_int_equal(ask_on(descriptor, "GET", cases[i].target, cases[i].header, "", 0, f->answer),
                         cases[i].status);
        close(descriptor);
    }
    assert_int_equal(predict(f), 200); /* the Unix socket has its permissions instead */
    stop(f, SIGTERM);
    free(path);
}

typedef struct asker {
    fixture f;
    atomic_bool ends;
    int failed, answered;
} asker;

static void *ask_always(void *user)
{
    asker *a = user;
    while (!atomic_load(&a->ends)) {
        *(predict(&a->f) == 200 ? &a->answered : &a->failed) += 1;
    }
    return NULL;
}

/* No request fails during reloads, of good files and of rubbish; the shadow's differences are counted. */
static void reloads_fail_no_request(void **state)
{
    fixture *f = *state;
    START(f, "--shadow", f->model, "--client-rate=0");
    asker *askers[2];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        askers[i] = calloc(1, sizeof **askers);
        assert_non_null(askers[i]);
        askers[i]->f = *f;
        assert_int_equal(pthread_create(&threads[i], NULL, ask_always, askers[i]), 0);
    }
    unsigned char *good = NULL;
    size_t size = 0;
    assert_int_equal(bs_read_file(f->model, &good, &size, NULL), MDOT_OK);
    for (int i = 0; i < 6; i++) {
        double before = metric(f, "reloads_total") + metric(f, "failed_reloads_total");
        if (i % 2 == 0) {
            FILE *file = fopen(f->model, "wb"); /* in place, as a careless copy does */
            assert_non_null(file);
            fputs("rubbish", file);
            fclose(file);
        } else {
            assert_int_equal(bs_write_file(f->model, good, size, NULL), MDOT_OK);
        }
        kill(f->process, SIGHUP);
        for (int k = 0;
             k < 100 * PATIENCE_S && metric(f, "reloads_total") + metric(f, "failed_reloads_total") == before; k++)
            rest_ms(10);
    }
    assert_true(metric(f, "reloads_total") == 3);
    assert_true(metric(f, "failed_reloads_total") == 3);
    for (int k = 0; k < 100 * PATIENCE_S && metric(f, "shadow_answers_total") == 0; k++) rest_ms(10);
    assert_int_equal(ask(f, "GET", "/metrics", "", 0), 200);
    expect_contains(f->answer, "mdotd_shadow_difference_bucket{le=\"0\"} ");
    for (int i = 0; i < 2; i++) {
        atomic_store(&askers[i]->ends, true);
        pthread_join(threads[i], NULL);
        assert_int_equal(askers[i]->failed, 0);
        assert_true(askers[i]->answered > 0);
        free(askers[i]);
    }
    free(good);
    assert_int_equal(stop(f, SIGTERM), 0);
}

/* A request in progress at SIGTERM gets its answer: here one whose body comes after the signal. */
static void the_end_waits_for_answers(void **state)
{
    fixture *f = *state;
    char body[512], head[256], proceed[26] = "";
    START(f, "--drain-seconds=60");
    int length = snprintf(
        body, sizeof body,
        "{\"job\": \"%s\", \"gpus\": [\"A100\", \"H100\", \"T4\"], \"sizes\": [8, 16, 32, 64, 128, 256]}", f->job);
    int used =
        snprintf(head, sizeof head,
                 "POST /v1/plan HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", length);
    int descriptor = connect_unix(f);
    assert_true(send_all(descriptor, head, (size_t)used));
    assert_int_equal(recv(descriptor, proceed, sizeof proceed - 1, MSG_WAITALL), sizeof proceed - 1);
    assert_string_equal(proceed, "HTTP/1.1 100 Continue\r\n\r\n");
    kill(f->process, SIGTERM);
    assert_true(send_all(descriptor, body, (size_t)length));
    assert_int_equal(read_answer(descriptor, f->answer), 200);
    close(descriptor);
    assert_int_equal(stop(f, SIGTERM), 0);
}

/* What was acknowledged before kill -9 is in the store afterwards, once. */
static void acknowledged_steps_survive_a_kill(void **state)
{
    enum { ROUNDS = 4 };
    fixture *f = *state;
    static process_result result;
    int acknowledged[64] = {0}, count = 0, id = 0;
    for (int round = 0; round < ROUNDS; round++) {
        START(f, "--store", f->store);
        for (int i = 0; i < 8; i++, id++) {
            char body[512];
            int length =
                snprintf(body, sizeof body,
                         "{\"steps\": [{\"job\": \"%s\", \"gpu\": \"T4\", \"batch\": %d, \"step_ms\": 10, \"uid\": "
                         "\"%016x\"}]}",
                         f->job, 1000 + id, 1 + id);
            if (i == 7) { /* killed in the middle */
                int descriptor = connect_unix(f);
                char head[128];
                int used = snprintf(head, sizeof head,
                                    "POST /v1/observations HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", length);
                send_all(descriptor, head, (size_t)used);
                send_all(descriptor, body, (size_t)length);
                rest_ms(round);
                stop(f, SIGKILL);
                if (read_answer(descriptor, f->answer) == 200) acknowledged[count++] = 1000 + id;
                close(descriptor);
            } else if (ask(f, "POST", "/v1/observations", body, (size_t)length) == 200) {
                acknowledged[count++] = 1000 + id;
            }
        }
        unlink(f->socket);
    }
    assert_true(count >= 7 * ROUNDS);
    process_run((const char *const[]){MDOT_STORE, "check", f->store, NULL}, &result);
    assert_int_equal(result.status, 0);
    process_run((const char *const[]){MDOT_STORE, "list", f->store, "--json", NULL}, &result);
    assert_int_equal(result.status, 0);
    for (int i = 0; i < count; i++) {
        char batch[32];
        snprintf(batch, sizeof batch, "\"batch\": %d,", acknowledged[i]);
        const char *found = strstr(result.out, batch);
        if (found == NULL) fail_msg("%s is lost", batch);
        assert_null(strstr(found + 1, batch));
    }
}

/* A disk that is full, by the limit of file sizes: 503, nothing is half written, and predictions go on. */
static void a_full_disk_costs_only_observations(void **state)
{
    fixture *f = *state;
    struct rlimit former, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &former), 0);
    START(f, "--store", f->store);
    char body[512];
    int length = snprintf(body, sizeof body,
                          "{\"steps\": [{\"job\": \"%s\", \"gpu\": \"T4\", \"batch\": 1, \"step_ms\": 10}]}", f->job);
    assert_int_equal(ask(f, "POST", "/v1/observations", body, (size_t)length), 200);
    small = (struct rlimit){.rlim_cur = 4096, .rlim_max = former.rlim_max};
    assert_int_equal(prlimit(f->process, RLIMIT_FSIZE, &small, NULL), 0);
    for (int i = 0; i < 3; i++) assert_int_equal(ask(f, "POST", "/v1/observations", body, (size_t)length), 503);
    assert_int_equal(predict(f), 200);
    assert_int_equal(prlimit(f->process, RLIMIT_FSIZE, &former, NULL), 0);
    assert_int_equal(ask(f, "POST", "/v1/observations", body, (size_t)length), 200);
    assert_int_equal(stop(f, SIGTERM), 0);
    static process_result result;
    process_run((const char *const[]){MDOT_STORE, "check", f->store, NULL}, &result);
    assert_int_equal(result.status, 0);
}

/* While another process holds the store, an observation waits and is refused, and predictions pass it. */
static void a_locked_store_holds_no_prediction_back(void **state)
{
    fixture *f = *state;
    sqlite3 *other = NULL;
    START(f, "--store", f->store);
    char body[512], answer[ANSWER_BYTES], head[128];
    int length = snprintf(body, sizeof body,
                          "{\"steps\": [{\"job\": \"%s\", \"gpu\": \"T4\", \"batch\": 1, \"step_ms\": 10}]}", f->job);
    int used =
        snprintf(head, sizeof head, "POST /v1/observations HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", length);
    assert_int_equal(ask(f, "POST", "/v1/observations", body, (size_t)length), 200);
    assert_int_equal(sqlite3_open(f->store, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    for (int round = 0; round < 2; round++) {
        int waiting = connect_unix(f);
        assert_true(send_all(waiting, head, (size_t)used) && send_all(waiting, body, (size_t)length));
        for (int i = 0; i < 20; i++) assert_int_equal(predict(f), 200);
        assert_int_equal(read_answer(waiting, answer), 503);
        assert_non_null(strstr(answer, "another process holds the store"));
        close(waiting);
    }
    assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    assert_int_equal(ask(f, "POST", "/v1/observations", body, (size_t)length), 200);
    assert_int_equal(stop(f, SIGTERM), 0);
}

const cli_command cli_program = {.name = "test"};

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_connection_serves_many_requests),
        TEST(bodies_have_limits),
        TEST(slow_clients_are_cut_off),
        TEST(half_open_connections_make_room),
        TEST(a_burst_is_answered),
        TEST(a_client_has_a_rate),
        TEST(tcp_needs_the_token),
        TEST(reloads_fail_no_request),
        TEST(the_end_waits_for_answers),
        TEST(acknowledged_steps_survive_a_kill),
        TEST(a_full_disk_costs_only_observations),
        TEST(a_locked_store_holds_no_prediction_back),
    };
    return cmocka_run_group_tests_name("mdotd", tests, NULL, NULL);
}
