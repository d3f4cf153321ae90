/* server.h — the sockets of mdotd: HTTP by libmicrohttpd around sv_handle. */
#ifndef SV_SERVER_H
#define SV_SERVER_H

#include "service/peers.h"
#include "service/service.h"
#include "service/workers.h"

enum { SV_MOST_SOCKETS = 4 };

typedef struct sv_server_options {
    size_t threads, workers; /* for sockets and small questions; for long requests */
    size_t job_bytes;        /* largest body of POST /v1/jobs */
    size_t body_bytes;       /* of all requests in progress together */
    sv_peer_limits limits;
} sv_server_options;

typedef struct sv_server sv_server;

/* Serves the state on listening sockets. A socket of TCP needs the bearer token in each request but /healthz and
 * /readyz. */
mdot_status sv_server_start(sv_state *state, const sv_server_options *options, const int *sockets, size_t count,
                            sv_server **out_server, mdot_error *err);
/* Replaces the bearer token; NULL refuses every request that needs one. */
void sv_server_set_token(sv_server *server, const char *token);
/* Stops accepting, waits up to `seconds` for the requests in progress, and ends. */
void sv_server_stop(sv_server *server, int64_t seconds);

#endif
