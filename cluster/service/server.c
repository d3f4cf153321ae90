/* server.c — see server.h. A thread accepts connections and divides them among the threads of libmicrohttpd, which read
 * requests and answer small ones. (Left to itself, the thread that wakes first takes a whole burst of connections.) A
 * request that takes long is suspended, a worker answers it, and the connection goes on. */
#include "service/server.h"
#include "service/json.h"

#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    CONNECTION_BYTES = 16384, /* of headers, for each connection */
    LIGHT_BODY = 4096,        /* a body up to here, with one list at most, is answered at once */
    MOST_WAITING = 256,       /* long requests in the queue */
    FIRST_BYTES = 4096,
    TOKEN_BYTES = 512
};

struct sv_server {
    sv_state *state;
    sv_server_options options;
    sv_peers *peers;
    sv_workers *workers;
    struct MHD_Daemon *daemon;
    int sockets[SV_MOST_SOCKETS], stop; /* listening; an eventfd that ends the acceptor */
    size_t socket_count;
    pthread_t acceptor;
    bool accepts;
    pthread_mutex_t token_mutex;
    char token[TOKEN_BYTES];
    atomic_size_t body_bytes, active;
};

/* A request on the way. */
typedef struct call {
    sv_server *server;
    struct MHD_Connection *connection;
    sv_peer *peer;
    char *path, *query; /* one allocation, at `path` */
    const char *method;
    const sv_route *route;
    char *body;
    size_t body_bytes, capacity, most_bytes;
    size_t skipped_bytes; /* of a refused request, which are read so that the client reads the answer */
    int refusal;          /* status of a request that is not read; 0: none */
    bool has_begun, is_running, is_answered;
    sv_answer answer;
} call;

/* ---- Connections ------------------------------------------------------------------------------------------------- */

static sv_peer *peer_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info != NULL ? info->socket_context : NULL;
}

static void on_connection(void *user, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    sv_server *server = user;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        sv_peers_remove(server->peers, *context);
        *context = NULL;
        return;
    }
    int descriptor = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    *context = sv_peers_find(server->peers, descriptor);
}

/* The first line of a request has come; its result is the request's context. */
static void *on_first_line(void *user, const char *uri, struct MHD_Connection *connection)
{
    sv_server *server = user;
    call *c = calloc(1, sizeof *c);
    if (c == NULL) return NULL;
    c->server = server;
    c->connection = connection;
    c->peer = peer_of(connection);
    c->path = strdup(uri);
    if (c->path == NULL) {
        free(c);
        return NULL;
    }
    char *mark = strchr(c->path, '?');
    c->query = mark != NULL ? mark + 1 : c->path + strlen(c->path);
    if (mark != NULL) *mark = '\0';
    atomic_fetch_add(&server->active, 1);
    sv_peers_set(server->peers, c->peer, SV_RECEIVES);
    return c;
}

static void drop_body(call *c)
{
    atomic_fetch_sub(&c->server->body_bytes, c->capacity);
    free(c->body);
    c->body = NULL;
    c->body_bytes = c->capacity = 0;
}

static void on_completed(void *user, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode code)
{
    call *c = *context;
    if (c == NULL) return;
    sv_peers_set(c->server->peers, c->peer, SV_WAITS);
    atomic_fetch_sub(&c->server->active, 1);
    drop_body(c);
    sv_answer_free(&c->answer);
    free(c->path);
    free(c);
    *context = NULL;
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

/* Compares in a time that depends on the lengths only. */
static bool is_token(sv_server *server, const char *header)
{
    static const char scheme[] = "Bearer ";
    if (header == NULL || strncmp(header, scheme, sizeof scheme - 1) != 0) return false;
    header += sizeof scheme - 1;
    pthread_mutex_lock(&server->token_mutex);
    size_t length = strlen(server->token);
    bool has_length = strlen(header) == length && length > 0;
    unsigned char difference = 0;
    for (size_t i = 0; has_length && i < length; i++) difference |= (unsigned char)(header[i] ^ server->token[i]);
    pthread_mutex_unlock(&server->token_mutex);
    return has_length && difference == 0;
}

static void begin(call *c, const char *method)
{
    int status = 0;
    c->has_begun = true;
    c->method = strcmp(method, "HEAD") == 0 ? "GET" : method; /* the library leaves out the body */
    c->route = sv_find_route(c->method, c->path, &status);
    c->most_bytes = c->route != NULL && c->route->takes_job ? c->server->options.job_bytes : SV_BODY_BYTES;
    const char *length = MHD_lookup_connection_value(c->connection, MHD_HEADER_KIND, "Content-Length");
    bool is_open = c->route != NULL && c->route->is_open;
    if (sv_peer_is_remote(c->peer) && !is_open &&
        !is_token(c->server, MHD_lookup_connection_value(c->connection, MHD_HEADER_KIND, "Authorization"))) {
        atomic_fetch_add(&c->server->state->metrics.refused_tokens, 1);
        c->refusal = 401;
    } else if (!is_open && !sv_peers_take(c->server->peers, c->peer)) {
        c->refusal = 429;
    } else if (c->route == NULL) {
        c->refusal = status;
    } else if (length != NULL && strtoull(length, NULL, 10) > c->most_bytes) {
        c->refusal = 413;
    }
}

static void receive(call *c, const char *data, size_t size)
{
    sv_server *server = c->server;
    if (c->refusal != 0) {
        c->skipped_bytes += size;
        return;
    }
    if (size > c->most_bytes - c->body_bytes) {
        c->refusal = 413;
    } else if (c->body_bytes + size > c->capacity) {
        size_t capacity = c->capacity > 0 ? c->capacity : FIRST_BYTES;
        while (capacity < c->body_bytes + size) capacity *= 2;
        size_t more = capacity - c->capacity;
        char *body = NULL;
        if (atomic_fetch_add(&server->body_bytes, more) + more <= server->options.body_bytes)
            body = realloc(c->body, capacity);
        if (body == NULL) {
            atomic_fetch_sub(&server->body_bytes, more);
            c->refusal = 503;
        } else {
            c->body = body;
            c->capacity = capacity;
        }
    }
    if (c->refusal != 0) {
        drop_body(c);
        return;
    }
    memcpy(c->body + c->body_bytes, data, size);
    c->body_bytes += size;
}

/* ---- Answering --------------------------------------------------------------------------------------------------- */

static void refuse(call *c)
{
    sv_answer_problem(&c->answer, c->refusal, NULL);
    sv_metrics_request(&c->server->state->metrics, c->route != NULL ? (size_t)(c->route - sv_routes) : SV_ENDPOINTS - 1,
                       c->refusal, 0);
}

static enum MHD_Result send_answer(call *c)
{
    sv_answer *a = &c->answer;
    struct MHD_Response *response = MHD_create_response_from_buffer(
        a->body_bytes, a->body, a->body != NULL ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
    if (response == NULL) return MHD_NO;
    a->body = NULL; /* the response owns it */
    MHD_add_response_header(response, "Content-Type", a->type);
    if (a->status == 401) MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    for (size_t i = 0; a->status == 405 && i < SV_ROUTE_COUNT; i++)
        if (strcmp(c->path, sv_routes[i].path) == 0) MHD_add_response_header(response, "Allow", sv_routes[i].method);
    if (a->status == 429 || a->status == 503) MHD_add_response_header(response, "Retry-After", "1");
    if (atomic_load(&c->server->state->is_draining) || c->refusal == 413)
        MHD_add_response_header(response, "Connection", "close");
    sv_peers_set(c->server->peers, c->peer, SV_SENDS);
    enum MHD_Result result = MHD_queue_response(c->connection, (unsigned)a->status, response);
    MHD_destroy_response(response);
    return result;
}

static void answer(call *c)
{
    const sv_request request = {.method = c->method,
                                .path = c->path,
                                .query = c->query,
                                .body = c->body,
                                .body_bytes = c->body_bytes,
                                .now_s = time(NULL)};
    sv_handle(c->server->state, &request, &c->answer);
    c->is_answered = true;
}

static void answer_later(void *user)
{
    call *c = user;
    answer(c);
    MHD_resume_connection(c->connection);
}

/* One list at most: several make combinations. */
static bool is_light(const call *c)
{
    if (c->route->is_slow || c->body_bytes > LIGHT_BODY) return false;
    const char *list = c->body_bytes > 0 ? memchr(c->body, '[', c->body_bytes) : NULL;
    return list == NULL || memchr(list + 1, '[', c->body_bytes - (size_t)(list + 1 - c->body)) == NULL;
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *data, size_t *size, void **context)
{
    call *c = *context;
    if (c == NULL) return MHD_NO; /* memory ran out */
    if (c->is_running) {
        if (!c->is_answered) return MHD_YES;
        return send_answer(c);
    }
    if (!c->has_begun) {
        begin(c, method);
        if (c->refusal != 413) return MHD_YES;
        refuse(c);
        return send_answer(c);
    }
    if (*size > 0) {
        receive(c, data, *size);
        *size = 0;
        return c->skipped_bytes <= SV_BODY_BYTES ? MHD_YES : MHD_NO;
    }
    if (c->refusal != 0) {
        refuse(c);
        return send_answer(c);
    }
    sv_peers_set(c->server->peers, c->peer, SV_ANSWERS);
    if (is_light(c)) {
        answer(c);
        return send_answer(c);
    }
    c->is_running = true;
    MHD_suspend_connection(connection);
    if (sv_workers_add(c->server->workers, answer_later, c)) return MHD_YES;
    c->refusal = 503;
    refuse(c);
    c->is_answered = true;
    MHD_resume_connection(connection);
    return MHD_YES;
}

/* ---- The server -------------------------------------------------------------------------------------------------- */

void sv_server_set_token(sv_server *server, const char *token)
{
    pthread_mutex_lock(&server->token_mutex);
    snprintf(server->token, sizeof server->token, "%s", token != NULL ? token : "");
    pthread_mutex_unlock(&server->token_mutex);
}

/* Accepts connections until `stop` can be read. */
static void *accept_connections(void *user)
{
    enum { WAIT_MS = 10 };
    sv_server *server = user;
    struct pollfd ready[SV_MOST_SOCKETS + 1] = {{.fd = server->stop, .events = POLLIN}};
    for (size_t i = 0; i < server->socket_count; i++)
        ready[i + 1] = (struct pollfd){.fd = server->sockets[i], .events = POLLIN};
    for (;;) {
        if (poll(ready, server->socket_count + 1, -1) < 0 && errno != EINTR) continue;
        if (ready[0].revents != 0) return NULL;
        for (size_t i = 1; i <= server->socket_count; i++) {
            struct sockaddr_storage address = {0};
            socklen_t length = sizeof address;
            if (ready[i].revents == 0) continue;
            int one = 1,
                descriptor = accept4(ready[i].fd, (struct sockaddr *)&address, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (descriptor < 0) { /* for example no descriptor is left, until a connection ends */
                if (errno != EAGAIN && errno != ECONNABORTED)
                    nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
                continue;
            }
            /* in the order of arrival, so that only later connections take a connection's place */
            sv_peer *peer = sv_peers_add(server->peers, descriptor);
            if (peer == NULL) {
                close(descriptor);
                continue;
            }
            if (address.ss_family == AF_INET) setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            if (MHD_add_connection(server->daemon, descriptor, (struct sockaddr *)&address, length) != MHD_YES)
                sv_peers_remove(server->peers, peer); /* the library has closed it */
        }
    }
}

static struct MHD_Daemon *start_daemon(sv_server *server)
{
    const sv_server_options *o = &server->options;
    /* Each thread could hold all connections, so that the library never refuses one: sv_peers_add waits before. */
    unsigned most = (unsigned)((2 * o->limits.connections + 1) * (int64_t)o->threads);
    /* Not epoll: libmicrohttpd 0.9.75 sleeps after a batch of exactly 128 events, before it has looked at them. */
    return MHD_start_daemon(MHD_USE_POLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET |
                                MHD_USE_ITC | MHD_USE_TURBO,
                            0, NULL, NULL, on_request, server, MHD_OPTION_THREAD_POOL_SIZE, (unsigned)o->threads,
                            MHD_OPTION_CONNECTION_LIMIT, most, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                            (size_t)CONNECTION_BYTES, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server,
                            MHD_OPTION_URI_LOG_CALLBACK, on_first_line, server, MHD_OPTION_NOTIFY_COMPLETED,
                            on_completed, server, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
}

mdot_status sv_server_start(sv_state *state, const sv_server_options *options, const int *sockets, size_t count,
                            sv_server **out, mdot_error *err)
{
    sv_server *server = calloc(1, sizeof *server);
    if (server == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    pthread_mutex_init(&server->token_mutex, NULL);
    server->state = state;
    server->options = *options;
    server->peers = sv_peers_create(&options->limits, &state->metrics);
    server->workers = sv_workers_create(options->workers, MOST_WAITING);
    server->stop = eventfd(0, EFD_CLOEXEC);
    for (; server->socket_count < count && server->socket_count < SV_MOST_SOCKETS; server->socket_count++)
        server->sockets[server->socket_count] = sockets[server->socket_count];
    bool is_started = server->peers != NULL && server->workers != NULL && server->stop >= 0;
    if (is_started) server->daemon = start_daemon(server);
    is_started = server->daemon != NULL && pthread_create(&server->acceptor, NULL, accept_connections, server) == 0;
    server->accepts = is_started;
    if (is_started) {
        *out = server;
        return MDOT_OK;
    }
    mdot_status status = mdot_fail(err, MDOT_IO, "the server cannot be started: %s", strerror(errno));
    sv_server_stop(server, 0);
    return status;
}

void sv_server_stop(sv_server *server, int64_t seconds)
{
    enum { QUIET_ROUNDS = 15, ROUND_MS = 20 };
    if (server == NULL) return;
    atomic_store(&server->state->is_draining, true);
    if (server->accepts) {
        eventfd_write(server->stop, 1);
        pthread_join(server->acceptor, NULL);
    }
    for (size_t i = 0; i < server->socket_count; i++) close(server->sockets[i]);
    /* quiet for some rounds: a request that is in a socket already gets its answer */
    int quiet = 0;
    for (int64_t round = 0; round < seconds * 1000 / ROUND_MS && quiet < QUIET_ROUNDS; round++) {
        nanosleep(&(struct timespec){.tv_nsec = ROUND_MS * 1000000L}, NULL);
        quiet = atomic_load(&server->active) == 0 ? quiet + 1 : 0;
    }
    sv_workers_destroy(server->workers); /* finishes what is queued, so that no connection stays suspended */
    if (server->daemon != NULL) MHD_stop_daemon(server->daemon);
    if (server->stop >= 0) close(server->stop);
    sv_peers_destroy(server->peers);
    pthread_mutex_destroy(&server->token_mutex);
    free(server);
}
