/* metrics.c — see metrics.h. */
#include "service/metrics.h"

#include <math.h>

static const double time_bounds_s[SV_TIME_BUCKETS] = {1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3,
                                                      5e-3, 1e-2, 2e-2, 5e-2, 1e-1, 2e-1, 1,    5};
static const double difference_bounds[SV_DIFFERENCE_BUCKETS] = {0, 1e-6, 1e-3, .01, .02, .05, .1, .5};

void sv_metrics_request(sv_metrics *m, size_t route, int status, uint64_t inside_ns)
{
    size_t bucket = 0;
    while (bucket < SV_TIME_BUCKETS && (double)inside_ns > 1e9 * time_bounds_s[bucket]) bucket++;
    atomic_fetch_add_explicit(&m->requests[route][status / 100 % SV_STATUS_CLASSES], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&m->times[route][bucket], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&m->time_ns[route], inside_ns, memory_order_relaxed);
}

void sv_metrics_difference(sv_metrics *m, double ratio)
{
    double difference = fabs(log(ratio));
    size_t bucket = 0;
    while (bucket < SV_DIFFERENCE_BUCKETS && !(difference <= difference_bounds[bucket])) bucket++;
    atomic_fetch_add_explicit(&m->differences[bucket], 1, memory_order_relaxed);
}

static unsigned long long get(atomic_ullong *counter) { return atomic_load_explicit(counter, memory_order_relaxed); }

static void print_head(FILE *stream, const char *name, const char *type, const char *help)
{
    fprintf(stream, "# HELP mdotd_%s %s\n# TYPE mdotd_%s %s\n", name, help, name, type);
}

void sv_metrics_print_one(FILE *stream, const char *name, const char *type, const char *help, double value)
{
    print_head(stream, name, type, help);
    fprintf(stream, "mdotd_%s %.17g\n", name, value);
}

void sv_metrics_print(sv_metrics *m, const char *const *names, FILE *stream)
{
    print_head(stream, "requests_total", "counter", "answered requests");
    for (size_t i = 0; i < SV_ENDPOINTS; i++)
        for (int class = 2; class < SV_STATUS_CLASSES; class ++)
            if (get(&m->requests[i][class]) > 0)
                fprintf(stream, "mdotd_requests_total{endpoint=\"%s\",status=\"%dxx\"} %llu\n", names[i], class,
                        get(&m->requests[i][class]));
    print_head(stream, "inside_seconds", "histogram", "time from the whole request to the whole answer");
    for (size_t i = 0; i < SV_ENDPOINTS; i++) {
        unsigned long long sum = 0;
        for (size_t k = 0; k <= SV_TIME_BUCKETS; k++) {
            sum += get(&m->times[i][k]);
            if (k < SV_TIME_BUCKETS)
                fprintf(stream, "mdotd_inside_seconds_bucket{endpoint=\"%s\",le=\"%g\"} %llu\n", names[i],
                        time_bounds_s[k], sum);
        }
        fprintf(stream,
                "mdotd_inside_seconds_bucket{endpoint=\"%s\",le=\"+Inf\"} %llu\n"
                "mdotd_inside_seconds_sum{endpoint=\"%s\"} %.9g\nmdotd_inside_seconds_count{endpoint=\"%s\"} %llu\n",
                names[i], sum, names[i], 1e-9 * (double)get(&m->time_ns[i]), names[i], sum);
    }
    print_head(stream, "shadow_difference", "histogram",
               "absolute logarithm of the shadow's step time over the answer's");
    unsigned long long sum = 0;
    for (size_t k = 0; k <= SV_DIFFERENCE_BUCKETS; k++) {
        sum += get(&m->differences[k]);
        if (k < SV_DIFFERENCE_BUCKETS)
            fprintf(stream, "mdotd_shadow_difference_bucket{le=\"%g\"} %llu\n", difference_bounds[k], sum);
    }
    fprintf(stream, "mdotd_shadow_difference_bucket{le=\"+Inf\"} %llu\nmdotd_shadow_difference_count %llu\n", sum, sum);
#define PRINT(name, help) sv_metrics_print_one(stream, #name "_total", "counter", help, (double)get(&m->name));
    SV_COUNTER_MAP(PRINT)
#undef PRINT
    sv_metrics_print_one(stream, "open_connections", "gauge", "connections now",
                         (double)atomic_load(&m->open_connections));
}
