/* store_lists.c — `mdot-store list`, `jobs`, `outcomes` and `outliers`. */
#include "store/command/store_actions.h"

#include <string.h>

enum { MOST_SLOW_HOSTS = 64 };

typedef struct listing {
    bool json;
    size_t count;
    bool explains; /* why a row is an outlier */
    char slow_host[MOST_SLOW_HOSTS][64];
    size_t slow_count, slow_rows; /* hosts that are named instead of their rows, and these rows */
} listing;

/* Begins the next object of a JSON array, or the next line. */
static void begin_item(listing *l)
{
    if (l->json) fputs(l->count > 0 ? ",\n  {" : "  {", stdout);
    l->count++;
}

/* Members of a JSON object; the first has no comma before it. */
static void json_text(bool is_first, const char *name, const char *value)
{
    printf("%s\"%s\": ", is_first ? "" : ", ", name);
    cli_json_string(stdout, value);
}

static void json_whole(const char *name, long long value) { printf(", \"%s\": %lld", name, value); }

static void json_real(const char *name, double value) { printf(", \"%s\": %.9g", name, value); }

/* Opens the store, and begins a JSON array if the command line asks for one. NULL after a reported failure. */
static mdot_store *begin_list(const store_request *request, const char *path, listing *out)
{
    *out = (listing){.json = request->json};
    mdot_store *store = store_open_to_read(path);
    if (store != NULL && out->json) fputs("[\n", stdout);
    return store;
}

/* Closes the store and the array. An empty list prints "no `items`" as text; NULL: the caller prints a last line. */
static int end_list(const store_request *request, mdot_store *store, const listing *l, mdot_status status,
                    const char *items, const mdot_error *err)
{
    mdot_store_close(store);
    if (request->json)
        fputs("\n]\n", stdout);
    else if (status == MDOT_OK && l->count == 0 && items != NULL)
        printf("  no %s\n", items);
    return cli_finish(PROGRAM, status == MDOT_OK ? CLI_OK : cli_report(PROGRAM, err));
}

/* Prints "precision=amp, torch=2.4" from lines. */
static void print_settings(const char *settings)
{
    cli_text buffer;
    char line[sizeof buffer.text];
    for (const char *cursor = settings; *cursor != '\0';) {
        size_t length = strcspn(cursor, "\n");
        snprintf(line, sizeof line, "%.*s", (int)(length < sizeof line ? length : sizeof line - 1), cursor);
        printf("%s%s", cursor > settings ? ", " : "  ", cli_printable(&buffer, line));
        cursor += length + (cursor[length] == '\n');
    }
}

static bool print_row(void *user, const mdot_store_row *r)
{
    listing *l = user;
    store_time time;
    cli_text name, gpu, software, host;
    for (size_t i = 0; i < l->slow_count; i++)
        if (strcmp(l->slow_host[i], r->host) == 0) return l->slow_rows++, true;
    begin_item(l);
    if (l->json) {
        printf("\"id\": %lld", (long long)r->id);
        json_text(false, "name", r->name);
        json_text(false, "digest", r->digest);
        json_text(false, "gpu", r->gpu_name);
        json_whole("batch", r->batch);
        json_text(false, "settings", r->settings);
        json_real("ms", r->ms);
        json_real("memory_gib", r->memory_gib);
        json_text(false, "software", r->software);
        json_text(false, "host", r->host);
        json_text(false, "predictor", r->predictor);
        json_text(false, "note", r->note);
        json_whole("measured_at", r->measured_at);
        json_real("weight", r->weight);
        fputc('}', stdout);
        return true;
    }
    if (l->count == 1)
        printf("  %6s  %-20s %-24s %-24s %7s %10s %6s  %s\n", "row", "measured at", "job", "GPU", "batch", "ms",
               "weight", "options, software, host");
    printf("  %6lld  %-20s %-24s %-24s %7lld %10.4g ", (long long)r->id, store_print_time(&time, r->measured_at),
           cli_printable(&name, r->name), cli_printable(&gpu, r->gpu_name), (long long)r->batch, r->ms);
    if (r->weight > 0)
        printf("%6.2f", r->weight);
    else
        printf("%6s", "");
    print_settings(r->settings);
    if (*r->software != '\0') printf("  %s", cli_printable(&software, r->software));
    if (*r->host != '\0') printf("  %s", cli_printable(&host, r->host));
    bool is_absurd = r->ms < MDOT_STORE_SHORTEST_MS || r->ms > MDOT_STORE_LONGEST_MS;
    if (l->explains && is_absurd) printf("  absurd: no step takes so %s", r->ms < 1 ? "little time" : "long");
    if (l->explains && r->memory_gib > MDOT_STORE_MOST_GIB) printf("  absurd: no GPU has so much memory");
    fputc('\n', stdout);
    return true;
}

int store_list(const store_request *request, char **operands, int count)
{
    mdot_error err = {0};
    mdot_store_filter filter;
    listing l = {0};
    if (!store_filter(request, &filter)) return CLI_USAGE;
    mdot_store *store = begin_list(request, operands[0], &l);
    if (store == NULL) return CLI_FAILED;
    return end_list(request, store, &l, mdot_store_visit_rows(store, &filter, print_row, &l, &err), "rows", &err);
}

static bool print_host(void *user, const mdot_store_host *h)
{
    listing *l = user;
    cli_text host, gpu;
    if (!store_is_slow(h)) return true;
    printf("  host %s, %s: steps take %.3f of the time on other hosts (%s, %s, p %.2g)\n",
           cli_printable(&host, h->host), cli_printable(&gpu, h->gpu_name), h->ratio,
           store_count_of(h->row_count, "row").text, store_count_of(h->group_count, "group").text, h->p);
    if (l->slow_count < MOST_SLOW_HOSTS && strlen(h->host) < sizeof l->slow_host[0])
        strcpy(l->slow_host[l->slow_count++], h->host);
    return true;
}

int store_outliers(const store_request *request, char **operands, int count)
{
    mdot_error err = {0};
    mdot_store_filter filter;
    listing l = {0};
    if (!store_filter(request, &filter)) return CLI_USAGE;
    filter.below_weight = MDOT_STORE_OUTLIER_WEIGHT;
    mdot_store *store = begin_list(request, operands[0], &l);
    if (store == NULL) return CLI_FAILED;
    l.explains = true;
    mdot_status status = mdot_store_refresh(store, NULL, &err);
    if (status == MDOT_OK && !l.json) status = mdot_store_find_hosts(store, print_host, &l, &err);
    if (status == MDOT_OK) status = mdot_store_visit_rows(store, &filter, print_row, &l, &err);
    if (status == MDOT_OK && l.slow_rows > 0)
        printf("  outliers of these hosts: %s\n", store_count_of(l.slow_rows, "row").text);
    if (status == MDOT_OK && !l.json)
        printf("  weight below %.2f in their group, hardly counted in calibrations: %s\n", MDOT_STORE_OUTLIER_WEIGHT,
               store_count_of(l.count + l.slow_rows, "row").text);
    return end_list(request, store, &l, status, NULL, &err);
}

static bool print_job(void *user, const mdot_store_job *j)
{
    listing *l = user;
    store_time time;
    cli_text name;
    begin_item(l);
    if (l->json) {
        json_text(true, "digest", j->digest);
        json_text(false, "name", j->name);
        json_whole("operators", j->operator_count);
        json_real("parameters", j->parameters);
        json_whole("added_at", j->added_at);
        json_whole("size_bytes", (long long)j->size_bytes);
        json_whole("rows", (long long)j->row_count);
        fputc('}', stdout);
        return true;
    }
    if (l->count == 1)
        printf("  %-32s  %6s %9s %10s  %-20s  %s\n", "digest", "rows", "operators", "parameters", "added at", "name");
    char parameters[16];
    printf("  %-32s  %6llu %9lld %10s  %-20s  %s\n", j->digest, (unsigned long long)j->row_count,
           (long long)j->operator_count, cli_short_number(j->parameters, parameters),
           store_print_time(&time, j->added_at), cli_printable(&name, j->name));
    return true;
}

int store_jobs(const store_request *request, char **operands, int count)
{
    mdot_error err = {0};
    listing l = {0};
    mdot_store *store = begin_list(request, operands[0], &l);
    if (store == NULL) return CLI_FAILED;
    return end_list(request, store, &l, mdot_store_visit_jobs(store, print_job, &l, &err), "jobs", &err);
}

static bool print_outcome(void *user, const mdot_store_outcome *o)
{
    listing *l = user;
    cli_text id, name, person, partition, state;
    begin_item(l);
    if (l->json) {
        json_text(true, "job_id", o->job_id);
        json_text(false, "cluster", o->cluster);
        json_text(false, "name", o->name);
        json_text(false, "user", o->user);
        json_text(false, "account", o->account);
        json_text(false, "partition", o->partition);
        json_text(false, "outcome", mdot_outcome_name(o->outcome));
        json_text(false, "state", o->state);
        json_text(false, "digest", o->digest);
        json_text(false, "gpu", o->gpu);
        json_whole("gpu_count", o->gpu_count);
        json_whole("node_count", o->node_count);
        json_whole("submitted_at", o->submitted_at);
        json_whole("started_at", o->started_at);
        json_whole("ended_at", o->ended_at);
        json_whole("elapsed_s", o->elapsed_s);
        json_whole("limit_s", o->limit_s);
        json_whole("exit_code", o->exit_code);
        fputc('}', stdout);
        return true;
    }
    if (l->count == 1)
        printf("  %-12s %-11s %-16s %10s %10s %5s  %-12s %-12s %s\n", "job", "outcome", "state", "elapsed s", "limit s",
               "GPUs", "user", "partition", "name");
    printf("  %-12s %-11s %-16s %10lld ", cli_printable(&id, o->job_id), mdot_outcome_name(o->outcome),
           cli_printable(&state, o->state), (long long)o->elapsed_s);
    if (o->limit_s > 0)
        printf("%10lld", (long long)o->limit_s);
    else
        printf("%10s", o->limit_s < 0 ? "unlimited" : "");
    printf(" %5lld  %-12s %-12s %s\n", (long long)o->gpu_count, cli_printable(&person, o->user),
           cli_printable(&partition, o->partition), cli_printable(&name, o->name));
    return true;
}

int store_outcomes(const store_request *request, char **operands, int count)
{
    mdot_error err = {0};
    listing l = {0};
    mdot_store *store = begin_list(request, operands[0], &l);
    if (store == NULL) return CLI_FAILED;
    return end_list(request, store, &l, mdot_store_visit_outcomes(store, print_outcome, &l, &err), "outcomes", &err);
}
