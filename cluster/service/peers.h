/* peers.h — the connections and their clients: deadlines, shares and rates.
 *
 * A connection that waits for a whole request, or for its client to read an answer, has a deadline, whatever bytes
 * drip in. If there are too many connections, the one that has waited longest for a request makes room. A client is a
 * user of the Unix socket, or an address.
 */
#ifndef SV_PEERS_H
#define SV_PEERS_H

#include "service/metrics.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sv_peers sv_peers;
typedef struct sv_peer sv_peer;

typedef struct sv_peer_limits {
    int64_t connections, client_connections; /* at once */
    double client_rate;                      /* requests per second; 0: unlimited */
    int64_t idle_ms, request_ms;             /* between requests; of a request's or an answer's way */
} sv_peer_limits;

/* NULL if memory or threads ran out. */
sv_peers *sv_peers_create(const sv_peer_limits *limits, sv_metrics *metrics);
void sv_peers_destroy(sv_peers *peers);

/* A connection begins and ends. NULL if memory ran out. Waits while twice as many connections as allowed are open,
 * because those that made room take a moment to close. */
sv_peer *sv_peers_add(sv_peers *peers, int descriptor);
sv_peer *sv_peers_find(sv_peers *peers, int descriptor);
/* Whether the connection came by TCP, so that it needs a token. */
bool sv_peer_is_remote(const sv_peer *peer);
void sv_peers_remove(sv_peers *peers, sv_peer *peer);

typedef enum sv_phase {
    SV_WAITS,    /* for the first line of a request */
    SV_RECEIVES, /* the rest of it */
    SV_ANSWERS,  /* no deadline: the service is at work */
    SV_SENDS     /* the answer */
} sv_phase;
void sv_peers_set(sv_peers *peers, sv_peer *peer, sv_phase phase);
/* Takes a request from the client's allowance; false if it is used up. */
bool sv_peers_take(sv_peers *peers, sv_peer *peer);

#endif
