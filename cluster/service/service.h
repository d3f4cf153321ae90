/* service.h — the waist of mdotd: a request as bytes, an answer as bytes, and one function between them.
 *
 *     sockets (server.c) ── sv_request ──► sv_handle ── sv_answer ──► sockets
 *                                             │
 *                       sv_state: model (model.h), jobs (job_cache.h), store, history, metrics
 *
 * Handlers never see a socket, so tests and fuzz targets call them directly. No text of a request is ever used as a
 * path.
 */
#ifndef SV_SERVICE_H
#define SV_SERVICE_H

#include "base/command/command.h"
#include "base/text.h"
#include "history/mdot_history.h"
#include "mdot/mdot_store.h"
#include "service/json.h"
#include "service/metrics.h"
#include "service/model.h"
#include "service/workers.h"

#include <pthread.h>

enum {
    SV_CONFIGURATIONS = 20000, /* of one request, combinations of lists included */
    SV_JOB_BYTES = 256 << 20,  /* largest value of --job-body */
    SV_DETAIL_BYTES = 512,     /* of a message in an answer */
    SV_OBSERVATIONS = 1000,    /* steps and outcomes of one request */
    SV_QUERY_TEXTS = 16        /* dimensions and module patterns of POST /v1/jobs */
};

typedef struct sv_jobs sv_jobs; /* job_cache.h */

/* The limits of the child that reads a job. */
typedef struct sv_reader_limits {
    const char *program; /* the program that reads: mdotd itself */
    const char *folder;  /* for temporary files */
    int64_t seconds, memory_mib;
} sv_reader_limits;

/* All that answers depend on. Fields up to `store_path` are constant after sv_state_open. */
typedef struct sv_state {
    sv_sources sources;
    sv_reader_limits reader;
    size_t threads;         /* contexts of the model, thus calls at once */
    size_t plan_threads;    /* of a search for layouts, or of many configurations; at least 1 */
    int64_t plan_seconds;   /* after which a search ends with what it has */
    const char *store_path; /* NULL: no store */
    pthread_mutex_t model_mutex;
    sv_model *model; /* read it with sv_state_model */
    sv_jobs *jobs;
    sv_metrics metrics;
    pthread_mutex_t store_mutex; /* a store object belongs to one thread at a time */
    mdot_store *store;           /* NULL: it could not be opened; each use tries again */
    pthread_rwlock_t history_lock;
    mdot_history *history;
    atomic_bool is_draining;
    sv_workers *shadows; /* for shadow mode: one thread; questions that it has no time for are dropped. NULL: none */
} sv_state;

/* Opens model, store and history. The state must be zero apart from the constant fields. The caller closes it in either
 * case. A store that cannot be opened is no error: requests that need it fail until it can. */
mdot_status sv_state_open(sv_state *state, size_t job_bytes, mdot_error *err);
void sv_state_close(sv_state *state);
/* Replaces predictor, calibration and GPU table by what the files hold now, and learns durations again. On failure all
 * stay as they were. Requests in progress keep the model they began with. */
mdot_status sv_state_reload(sv_state *state, mdot_error *err);
/* Returns the current model; release it with sv_model_release. */
sv_model *sv_state_model(sv_state *state);
/* Returns the open store, locked, or NULL with a reason; unlock it with sv_state_unlock_store. */
mdot_store *sv_state_lock_store(sv_state *state, mdot_error *err);
void sv_state_unlock_store(sv_state *state);

typedef struct sv_request {
    const char *method, *path;
    const char *query; /* behind the question mark; "" without one */
    const void *body;
    size_t body_bytes;
    int64_t now_s; /* of the wall clock, which may jump: for records only */
} sv_request;

typedef struct sv_answer {
    int status; /* of HTTP */
    const char *type;
    char *body; /* malloc'ed; sv_answer_free */
    size_t body_bytes;
} sv_answer;

/* Answers a request. Any bytes give an answer. */
void sv_handle(sv_state *state, const sv_request *request, sv_answer *out_answer);
void sv_answer_free(sv_answer *answer);

/* Prints the answer of an endpoint; after a failure, the text is dropped. `question` is the JSON body of a POST. */
typedef mdot_status sv_handler(sv_state *state, const sv_request *request, struct json_object *question, FILE *out,
                               mdot_error *err);

/* What the socket side must know before it has the body: the largest one, and whether the answer takes long enough that
 * a thread of the sockets must not wait for it. */
typedef struct sv_route {
    const char *method, *path, *name, *type;
    sv_handler *handle;
    bool takes_job; /* the body is a job instead of JSON */
    bool is_slow;   /* regardless of the body's size */
    bool is_open;   /* needs no token */
} sv_route;
enum { SV_ROUTE_COUNT = 9 };
extern const sv_route sv_routes[SV_ROUTE_COUNT];
/* Returns the route, or NULL with the status of HTTP: 404, or 405. */
const sv_route *sv_find_route(const char *method, const char *path, int *out_status);

/* Fills in a problem (RFC 9457). `detail` may be NULL for the status' own. */
void sv_answer_problem(sv_answer *out, int status, const char *detail);

/* Time of a clock that nobody sets. */
static inline int64_t sv_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- Handlers, a file for each ----------------------------------------------------------------------------------- */

sv_handler sv_handle_predict, sv_handle_plan, sv_handle_jobs, sv_handle_observations, sv_handle_durations;

/* ---- Durations (durations.c) ------------------------------------------------------------------------------------- */

mdot_status sv_create_history(mdot_history **out_history, mdot_error *err);
/* Learns one more outcome; unfinished ones are ignored. */
void sv_learn_outcome(mdot_history *history, const mdot_store_outcome *outcome);

#endif
