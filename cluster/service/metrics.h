/* metrics.h — counters for GET /metrics, in the text format of Prometheus (version 0.0.4). Any thread may count. */
#ifndef SV_METRICS_H
#define SV_METRICS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { SV_ENDPOINTS = 10, SV_STATUS_CLASSES = 6, SV_TIME_BUCKETS = 16, SV_DIFFERENCE_BUCKETS = 8 };

/* Counters without labels: name, help. */
#define SV_COUNTER_MAP(X)                                                                                              \
    X(configurations, "predicted configurations")                                                                      \
    X(refused_configurations, "configurations that could not be predicted")                                            \
    X(plans, "finished searches for layouts")                                                                          \
    X(jobs_read, "jobs read by a child")                                                                               \
    X(jobs_refused, "jobs that a child refused, or whose limits of time or memory it met")                             \
    X(observations, "measured steps and outcomes written to the store")                                                \
    X(reloads, "successful reloads of predictor, calibration and GPU table")                                           \
    X(failed_reloads, "reloads that left everything as it was")                                                        \
    X(connections, "accepted connections")                                                                             \
    X(evicted_connections, "connections closed to make room, oldest without a request first")                          \
    X(slow_connections, "connections closed because a client was too slow")                                            \
    X(limited_requests, "requests beyond a client's rate")                                                             \
    X(refused_tokens, "requests without the right bearer token")                                                       \
    X(shadow_answers, "configurations that the shadow predictor answered")                                             \
    X(shadow_failures, "configurations that only the shadow predictor refused")                                        \
    X(shadow_dropped, "requests that the shadow predictor had no time for")

typedef struct sv_metrics {
#define SV_COUNTER(name, help) atomic_ullong name;
    SV_COUNTER_MAP(SV_COUNTER)
#undef SV_COUNTER
    atomic_ullong requests[SV_ENDPOINTS][SV_STATUS_CLASSES];
    atomic_ullong times[SV_ENDPOINTS][SV_TIME_BUCKETS + 1]; /* the last bucket has no bound */
    atomic_ullong time_ns[SV_ENDPOINTS];
    /* by the absolute logarithm of the shadow predictor's step time over the predictor's */
    atomic_ullong differences[SV_DIFFERENCE_BUCKETS + 1];
    atomic_long open_connections;
} sv_metrics;

/* Counts a request: route is an index of sv_routes, or SV_ENDPOINTS - 1 for an unknown one. */
void sv_metrics_request(sv_metrics *metrics, size_t route, int status, uint64_t inside_ns);
void sv_metrics_difference(sv_metrics *metrics, double ratio);
/* Prints the counters. names[i] is the name of route i; the last one is "other". */
void sv_metrics_print(sv_metrics *metrics, const char *const *names, FILE *stream);
void sv_metrics_print_one(FILE *stream, const char *name, const char *type, const char *help, double value);

#endif
