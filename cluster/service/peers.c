/* peers.c — see peers.h. */
#include "service/peers.h"
#include "service/service.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

enum { MOST_CLIENTS = 256, SWEEP_MS = 100, ROOM_MS = 1, UNIX_KEYS = 1, ADDRESS_KEYS = 2 };

typedef struct client {
    uint64_t key;
    int64_t connections, filled_ms;
    double allowance;
} client;

struct sv_peer {
    int descriptor;
    sv_phase phase;
    bool is_remote;
    bool is_closed; /* by shutdown(2); the other side of the library closes the descriptor */
    int64_t since_ms, deadline_ms;
    client *owner;
    struct sv_peer *previous, *next; /* oldest first */
};

struct sv_peers {
    pthread_mutex_t mutex;
    pthread_cond_t wakes;
    sv_peer_limits limits;
    sv_metrics *metrics;
    sv_peer *first, *last;
    int64_t count;
    client clients[MOST_CLIENTS]; /* the last one is shared by all further clients */
    size_t client_count;
    pthread_t sweeper;
    bool is_ending;
};

static int64_t now_ms(void) { return sv_now_ns() / 1000000; }

static void close_peer(sv_peer *p)
{
    p->is_closed = true;
    shutdown(p->descriptor, SHUT_RDWR);
}

static void *sweep(void *user)
{
    sv_peers *peers = user;
    pthread_mutex_lock(&peers->mutex);
    while (!peers->is_ending) {
        int64_t now = now_ms();
        for (sv_peer *p = peers->first; p != NULL; p = p->next) {
            if (p->is_closed || p->phase == SV_ANSWERS || p->deadline_ms > now) continue;
            if (p->phase != SV_WAITS) atomic_fetch_add(&peers->metrics->slow_connections, 1);
            close_peer(p);
        }
        struct timespec end;
        clock_gettime(CLOCK_MONOTONIC, &end);
        end.tv_nsec += SWEEP_MS * 1000000L;
        end.tv_sec += end.tv_nsec / 1000000000;
        end.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&peers->wakes, &peers->mutex, &end);
    }
    pthread_mutex_unlock(&peers->mutex);
    return NULL;
}

sv_peers *sv_peers_create(const sv_peer_limits *limits, sv_metrics *metrics)
{
    sv_peers *peers = calloc(1, sizeof *peers);
    if (peers == NULL) return NULL;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&peers->mutex, NULL);
    pthread_cond_init(&peers->wakes, &attributes);
    pthread_condattr_destroy(&attributes);
    peers->limits = *limits;
    peers->metrics = metrics;
    if (pthread_create(&peers->sweeper, NULL, sweep, peers) == 0) return peers;
    free(peers);
    return NULL;
}

void sv_peers_destroy(sv_peers *peers)
{
    if (peers == NULL) return;
    pthread_mutex_lock(&peers->mutex);
    peers->is_ending = true;
    pthread_cond_signal(&peers->wakes);
    pthread_mutex_unlock(&peers->mutex);
    pthread_join(peers->sweeper, NULL);
    pthread_cond_destroy(&peers->wakes);
    pthread_mutex_destroy(&peers->mutex);
    free(peers);
}

bool sv_peer_is_remote(const sv_peer *p) { return p == NULL || p->is_remote; }

/* The user at the other end of a Unix socket, or the address. */
static uint64_t key_of(int descriptor)
{
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof address;
    struct ucred user = {0};
    socklen_t user_length = sizeof user;
    if (getsockname(descriptor, (struct sockaddr *)&address, &length) != 0) return 0;
    if (address.ss_family == AF_UNIX)
        return getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &user, &user_length) == 0
                   ? (uint64_t)UNIX_KEYS << 32 | user.uid
                   : 0;
    length = sizeof address;
    if (address.ss_family != AF_INET || getpeername(descriptor, (struct sockaddr *)&address, &length) != 0) return 0;
    return (uint64_t)ADDRESS_KEYS << 32 | ((const struct sockaddr_in *)&address)->sin_addr.s_addr;
}

static client *find_client(sv_peers *peers, uint64_t key)
{
    client *unused = NULL;
    for (size_t i = 0; i < peers->client_count; i++) {
        if (peers->clients[i].key == key) return &peers->clients[i];
        if (peers->clients[i].connections == 0) unused = &peers->clients[i];
    }
    if (peers->client_count < MOST_CLIENTS) unused = &peers->clients[peers->client_count++];
    if (unused == NULL) return &peers->clients[MOST_CLIENTS - 1];
    *unused = (client){.key = key, .filled_ms = now_ms(), .allowance = peers->limits.client_rate};
    return unused;
}

/* Closes the connection that has waited longest for a request, of one client or of any; or else the oldest one that is
 * not at work. */
static void make_room(sv_peers *peers, const client *owner)
{
    sv_peer *found = NULL;
    for (sv_peer *p = peers->first; p != NULL; p = p->next) {
        if (p->is_closed || p->phase == SV_ANSWERS || (owner != NULL && p->owner != owner)) continue;
        bool waits = p->phase == SV_WAITS,
             better = found == NULL || (waits && found->phase != SV_WAITS) || (waits && p->since_ms < found->since_ms);
        if (better) found = p;
    }
    if (found == NULL) return;
    atomic_fetch_add(&peers->metrics->evicted_connections, 1);
    close_peer(found);
}

sv_peer *sv_peers_add(sv_peers *peers, int descriptor)
{
    sv_peer *p = calloc(1, sizeof *p);
    if (p == NULL) return NULL;
    uint64_t key = key_of(descriptor);
    atomic_fetch_add(&peers->metrics->connections, 1);
    atomic_fetch_add(&peers->metrics->open_connections, 1);
    pthread_mutex_lock(&peers->mutex);
    while (peers->count >= 2 * peers->limits.connections) {
        pthread_mutex_unlock(&peers->mutex);
        nanosleep(&(struct timespec){.tv_nsec = ROOM_MS * 1000000L}, NULL);
        pthread_mutex_lock(&peers->mutex);
    }
    p->descriptor = descriptor;
    p->is_remote = key >> 32 != UNIX_KEYS;
    p->owner = find_client(peers, key);
    if (p->owner->connections >= peers->limits.client_connections)
        make_room(peers, p->owner);
    else if (peers->count >= peers->limits.connections)
        make_room(peers, NULL);
    p->owner->connections++;
    peers->count++;
    p->since_ms = now_ms();
    p->deadline_ms = p->since_ms + peers->limits.idle_ms;
    p->previous = peers->last;
    *(peers->last != NULL ? &peers->last->next : &peers->first) = p;
    peers->last = p;
    pthread_mutex_unlock(&peers->mutex);
    return p;
}

sv_peer *sv_peers_find(sv_peers *peers, int descriptor)
{
    pthread_mutex_lock(&peers->mutex);
    sv_peer *p = peers->last;
    while (p != NULL && p->descriptor != descriptor) p = p->previous;
    pthread_mutex_unlock(&peers->mutex);
    return p;
}

void sv_peers_remove(sv_peers *peers, sv_peer *p)
{
    if (p == NULL) return;
    atomic_fetch_sub(&peers->metrics->open_connections, 1);
    pthread_mutex_lock(&peers->mutex);
    *(p->previous != NULL ? &p->previous->next : &peers->first) = p->next;
    *(p->next != NULL ? &p->next->previous : &peers->last) = p->previous;
    p->owner->connections--;
    peers->count--;
    pthread_mutex_unlock(&peers->mutex);
    free(p);
}

void sv_peers_set(sv_peers *peers, sv_peer *p, sv_phase phase)
{
    if (p == NULL) return;
    int64_t now = now_ms();
    pthread_mutex_lock(&peers->mutex);
    p->phase = phase;
    p->since_ms = now;
    p->deadline_ms = now + (phase == SV_WAITS ? peers->limits.idle_ms : peers->limits.request_ms);
    pthread_mutex_unlock(&peers->mutex);
}

bool sv_peers_take(sv_peers *peers, sv_peer *p)
{
    double rate = peers->limits.client_rate;
    if (rate <= 0 || p == NULL) return true;
    int64_t now = now_ms();
    pthread_mutex_lock(&peers->mutex);
    client *c = p->owner;
    c->allowance += rate * (double)(now - c->filled_ms) / 1000;
    if (c->allowance > rate) c->allowance = rate; /* a second's worth at once */
    c->filled_ms = now;
    bool has_allowance = c->allowance >= 1;
    if (has_allowance) c->allowance -= 1;
    pthread_mutex_unlock(&peers->mutex);
    if (!has_allowance) atomic_fetch_add(&peers->metrics->limited_requests, 1);
    return has_allowance;
}
