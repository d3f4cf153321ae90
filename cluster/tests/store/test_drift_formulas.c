/* test_drift_formulas.c — every number of a drift report equals its definition (mdot_store.h), computed anew over all
 * rows of random stores: several GPUs, versions, networks and batches, with and without dates and predictions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/statistics.h"
#include "tests/store/support/store_fixture.h"
#include "tests/support/process.h"

#include <math.h>

enum { MOST_GROUPS = 400, MOST_ROWS = 400, NETWORKS = 5, GPUS = 2, VERSIONS = 3, TESTS = 3 };

static uint64_t state_of_random;

static uint64_t draw(uint64_t below)
{
    state_of_random = state_of_random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state_of_random >> 20) % below;
}

static double uniform(void) { return (double)draw(1 << 30) / (1 << 30); }

typedef struct group {
    mdot_store_group g;
    char gpu[64], version[64], digest[MDOT_STORE_DIGEST_BYTES], settings[64];
    double mean, predicted, sigma;
} group;

typedef struct row {
    size_t group;
    int64_t at, id;
    double value;
} row;

typedef struct model {
    group group[MOST_GROUPS];
    row row[MOST_ROWS];
    size_t groups, rows;
} model;

static model m;

/* Copies the settings except PyTorch's version, which it returns; NULL: there is none. */
static const char *split_settings(const char *settings, char out[64])
{
    const char *torch = NULL;
    size_t size = 0;
    for (const char *line = settings; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n') {
        if (strncmp(line, "torch=", 6) == 0)
            torch = line + 6;
        else
            size += (size_t)sprintf(out + size, "%.*s\n", (int)strcspn(line, "\n"), line);
    }
    out[size] = '\0';
    return torch;
}

/* The version is the rows' software, or else that in the settings. */
static bool take_group(void *user, const mdot_store_group *g)
{
    (void)user;
    if (g->predicted_ms == 0) return true;
    group *taken = &m.group[m.groups++];
    *taken = (group){.g = *g, .mean = log(g->ms), .predicted = log(g->predicted_ms)};
    taken->sigma = fmax(log(g->upper_ms / g->lower_ms) / (2 * 1.6448536269514722), .01);
    snprintf(taken->gpu, sizeof taken->gpu, "%s", g->gpu_name);
    snprintf(taken->digest, sizeof taken->digest, "%s", g->digest);
    const char *torch = split_settings(g->settings, taken->settings);
    if (*g->software != '\0' || torch == NULL)
        snprintf(taken->version, sizeof taken->version, "%s", g->software);
    else
        snprintf(taken->version, sizeof taken->version, "torch %.*s", (int)strcspn(torch, "\n"), torch);
    return true;
}

static bool is_in(const group *g, const mdot_store_row *r)
{
    char settings[64];
    const char *torch = split_settings(r->settings, settings);
    size_t length = torch != NULL ? strcspn(torch, "\n") : 0;
    return strcmp(g->digest, r->digest) == 0 && strcmp(g->gpu, r->gpu_name) == 0 && g->g.batch == r->batch &&
           (*r->software != '\0' ? strcmp(g->version, r->software) == 0
                                 : strncmp(g->version, "torch ", 6) == 0 && strlen(g->version + 6) == length &&
                                       strncmp(torch, g->version + 6, length) == 0) &&
           strcmp(g->settings, settings) == 0;
}

static bool take_row(void *user, const mdot_store_row *r)
{
    (void)user;
    for (size_t i = 0; i < m.groups && r->measured_at > 0; i++)
        if (is_in(&m.group[i], r)) m.row[m.rows++] = (row){i, r->measured_at, r->id, log(r->ms)};
    return true;
}

static int by_place(const void *left, const void *right)
{
    const group *a = left, *b = right;
    int order = strcmp(a->gpu, b->gpu);
    if (order == 0) order = strcmp(a->version, b->version);
    if (order == 0) order = strcmp(a->digest, b->digest);
    return order != 0 ? order : (a->g.id > b->g.id) - (a->g.id < b->g.id);
}

static int by_time(const void *left, const void *right)
{
    const row *a = left, *b = right;
    int order = (a->at > b->at) - (a->at < b->at);
    return order != 0 ? order : (a->id > b->id) - (a->id < b->id);
}

static void add_rows(store_fixture *f, char digests[NETWORKS][MDOT_STORE_DIGEST_BYTES])
{
    static const char *const gpus[GPUS] = {"A100-SXM-40GB", "V100-SXM2-16GB"};
    static mdot_store_row rows[MOST_ROWS];
    static char settings[MOST_ROWS][64], versions[MOST_ROWS][16];
    size_t count = 60 + (size_t)draw(240), networks = 1 + (size_t)draw(NETWORKS), batches = 1 + (size_t)draw(3);
    double drift = uniform() * .2;
    uint64_t days = draw(4) == 0 ? 1 : 90; /* versions that began on the same day are ordered by name */
    for (size_t i = 0; i < count; i++) {
        size_t version = (size_t)draw(VERSIONS), network = (size_t)draw(networks);
        bool in_settings = draw(4) == 0;
        snprintf(versions[i], sizeof *versions, "%s", in_settings ? "" : (const char *[]){"9.1", "10.2", "8"}[version]);
        /* They differ in a name, a first or last letter, or the length, before and behind PyTorch's. */
        static const char *const others[] = {"attention=eager", "attention=flash", "optimizer=adam", "optimizer=adamw",
                                             "optimizer=adamx", "optimizes=adam",  "accumulate=2"};
        static const char *const later[] = {"", "\nworkers=2", "\nworkers=3", "\nworkerz=2"};
        size_t kinds = draw(2) == 0 ? 1 : 7;
        snprintf(settings[i], sizeof *settings, "%s\nprecision=%s%s%s", others[draw(kinds)],
                 network % 2 == 0 ? "amp" : "fp32", in_settings ? (version == 0 ? "\ntorch=2.4" : "\ntorch=2.12") : "",
                 later[draw(kinds > 1 ? 4 : 1)]);
        rows[i] = store_fixture_row(f, 0);
        rows[i].digest = digests[network];
        rows[i].gpu = gpus[draw(GPUS)];
        rows[i].software = versions[i];
        rows[i].settings = settings[i];
        rows[i].batch = (int64_t)8 << draw(batches);
        rows[i].measured_at = draw(6) == 0 ? 0 : 1790000000 + (int64_t)draw(days) * 86400;
        rows[i].ms = exp(.04 * (uniform() + uniform() - 1) + drift * (rows[i].measured_at > 1793500000) +
                         .05 * (double)version * uniform() + (draw(25) == 0)) *
                     (double)rows[i].batch;
    }
    store_expect_ok(mdot_store_add_rows(f->store, rows, count, NULL, &f->err), &f->err);
}

typedef struct predictions {
    mdot_store_prediction item[MOST_GROUPS];
    size_t count;
} predictions;

static bool predict(void *user, const mdot_store_group *g)
{
    predictions *p = user;
    double ms = (double)g->batch * exp(.3 * uniform() - .1), width = draw(5) == 0 ? 1.001 : 1 + uniform();
    if (draw(6) != 0) p->item[p->count++] = (mdot_store_prediction){sizeof *p->item, g->id, ms, ms / width, ms * width};
    return true;
}

typedef struct reports {
    mdot_store_drift item[GPUS * 5];
    char gpu[GPUS * 5][64], version[GPUS * 5][64], previous[GPUS * 5][64];
    size_t count;
} reports;

static bool take_report(void *user, const mdot_store_drift *d)
{
    reports *r = user;
    snprintf(r->gpu[r->count], sizeof *r->gpu, "%s", d->gpu_name);
    snprintf(r->version[r->count], sizeof *r->version, "%s", d->software);
    snprintf(r->previous[r->count], sizeof *r->previous, "%s", d->previous_software);
    r->item[r->count++] = *d;
    return true;
}

static void near(double value, double wanted, const char *name)
{
    if (!(fabs(value - wanted) <= 1e-9 * (1 + fabs(wanted))))
        fail_msg("%s: %.12g instead of %.12g", name, value, wanted);
}

static bool in_cell(const group *g, const reports *r, size_t cell)
{
    return strcmp(g->gpu, r->gpu[cell]) == 0 && strcmp(g->version, r->version[cell]) == 0;
}

/* Level: the mean over jobs of the mean error, and its normal statistic. */
static double level_of(const reports *r, size_t cell)
{
    const mdot_store_drift *d = &r->item[cell];
    double rows = 0, groups = 0, jobs = 0, error = 0, z = 0;
    for (size_t i = 0; i < m.groups; i++) {
        if (!in_cell(&m.group[i], r, cell)) continue;
        double same = 0;
        bool is_first = true;
        for (size_t j = 0; j < m.groups; j++) {
            bool is_same = in_cell(&m.group[j], r, cell) && strcmp(m.group[j].digest, m.group[i].digest) == 0;
            same += is_same;
            is_first = is_first && !(is_same && j < i);
        }
        rows += (double)m.group[i].g.row_count;
        groups++;
        jobs += is_first;
        error += (m.group[i].mean - m.group[i].predicted) / same;
        z += (m.group[i].mean - m.group[i].predicted) / m.group[i].sigma / same;
    }
    assert_int_equal(d->row_count, (int)rows);
    assert_int_equal(d->group_count, (int)groups);
    assert_int_equal(d->job_count, (int)jobs);
    near(d->ratio, exp(error / jobs), "ratio");
    near(d->level_z, z / sqrt(jobs), "level_z");
    return st_normal_p(z / sqrt(jobs));
}

/* Change: deviations of dated rows from the group's mean, in spreads, at most 2.5, less their mean in the group. */
static double change_of(const reports *r, size_t cell)
{
    const mdot_store_drift *d = &r->item[cell];
    static double value[MOST_ROWS];
    static int64_t time[MOST_ROWS];
    static size_t place[MOST_ROWS];
    size_t count = 0, first = 0, groups = 0, split = 0;
    while (!in_cell(&m.group[first], r, cell)) first++;
    while (first + groups < m.groups && in_cell(&m.group[first + groups], r, cell)) groups++;
    for (size_t i = 0; i < m.rows; i++) {
        const group *g = &m.group[m.row[i].group];
        double sum = 0, dated = 0, own = 0;
        for (size_t j = 0; j < m.rows; j++) {
            if (m.row[j].group != m.row[i].group) continue;
            double deviation = fmax(fmin((m.row[j].value - g->mean) / g->g.spread, 2.5), -2.5);
            sum += deviation;
            dated++;
            if (j == i) own = deviation;
        }
        if (!in_cell(g, r, cell) || dated < 2) continue;
        value[count] = own - sum / dated;
        time[count] = m.row[i].at;
        place[count++] = m.row[i].group - first;
    }
    if (count < 8) {
        assert_int_equal(d->dated_row_count, 0);
        near(d->change_ratio, 1, "change_ratio");
        return -1;
    }
    double largest = st_largest_sum(value, time, count, &split), total = 0, weights = 0;
    assert_int_equal(d->dated_row_count, count);
    near(d->change_statistic, largest, "change_statistic");
    if (largest == 0) return 1;
    if (d->changed_at != time[split]) fail_msg("changed at %lld", (long long)d->changed_at);
    for (size_t k = first; k < first + groups; k++) {
        double sum[2] = {0}, side_count[2] = {0};
        for (size_t i = 0; i < m.rows; i++)
            if (m.row[i].group == k) {
                bool is_later = m.row[i].at >= time[split];
                sum[is_later] += m.row[i].value;
                side_count[is_later]++;
            }
        if (side_count[0] == 0 || side_count[1] == 0) continue;
        double weight = 1 / (1 / side_count[0] + 1 / side_count[1]);
        total += weight * (sum[1] / side_count[1] - sum[0] / side_count[0]);
        weights += weight;
    }
    near(d->change_ratio, exp(weights > 0 ? total / weights : 0), "change_ratio");
    return st_change_p(value, time, place, count, groups, largest);
}

static int64_t first_of(const reports *r, size_t cell)
{
    int64_t first = 0;
    for (size_t i = 0; i < m.groups; i++)
        if (in_cell(&m.group[i], r, cell) && m.group[i].g.first_at != 0 &&
            (first == 0 || m.group[i].g.first_at < first))
            first = m.group[i].g.first_at;
    return first;
}

/* Whether version `a` of a GPU was first measured before `b`; names break ties. */
static bool is_before(const reports *r, size_t a, size_t b)
{
    int64_t at_a = first_of(r, a), at_b = first_of(r, b);
    return at_a != at_b ? at_a < at_b : strcmp(r->version[a], r->version[b]) < 0;
}

/* Software: the mean over jobs of the mean difference between equal groups of both versions. */
static double software_of(const reports *r, size_t cell)
{
    const mdot_store_drift *d = &r->item[cell];
    size_t before = SIZE_MAX;
    for (size_t i = 0; i < r->count; i++)
        if (strcmp(r->gpu[i], r->gpu[cell]) == 0 && is_before(r, i, cell) &&
            (before == SIZE_MAX || is_before(r, before, i)))
            before = i;
    double difference[NETWORKS] = {0}, noise[NETWORKS] = {0}, pairs[NETWORKS] = {0}, all = 0;
    const char *digest[NETWORKS];
    size_t jobs = 0;
    for (size_t i = 0; i < m.groups && before != SIZE_MAX; i++)
        for (size_t j = 0; j < m.groups; j++) {
            const group *a = &m.group[i], *b = &m.group[j];
            if (!in_cell(a, r, cell) || !in_cell(b, r, before) || strcmp(a->digest, b->digest) != 0 ||
                a->g.batch != b->g.batch || strcmp(a->settings, b->settings) != 0)
                continue;
            size_t k = 0;
            while (k < jobs && strcmp(digest[k], a->digest) != 0) k++;
            if (k == jobs) digest[jobs++] = a->digest;
            difference[k] += a->mean - b->mean;
            noise[k] +=
                a->g.spread * a->g.spread / (double)a->g.row_count + b->g.spread * b->g.spread / (double)b->g.row_count;
            pairs[k]++;
            all++;
        }
    assert_int_equal(d->pair_count, (int)all);
    assert_string_equal(r->previous[cell], jobs > 0 ? r->version[before] : "");
    double n = (double)jobs, mean = 0, within = 0, between = 0;
    for (size_t k = 0; k < jobs; k++) mean += difference[k] / pairs[k] / n, within += noise[k] / pairs[k] / pairs[k];
    for (size_t k = 0; k < jobs; k++) between += pow(difference[k] / pairs[k] - mean, 2) / (n - 1);
    near(d->software_ratio, exp(mean), "software_ratio");
    if (jobs == 0) return -1;
    double t = mean / sqrt(jobs >= 3 ? fmax(between, within / n) / n : within / n / n);
    near(d->software_t, t, "software_t");
    return jobs >= 3 ? st_student_p(t, n - 1) : st_normal_p(t);
}

static void reports_equal_their_definitions(void **state)
{
    for (uint64_t trial = 0; trial < 24; trial++) {
        if (trial > 0) assert_int_equal(store_fixture_set_up(state), 0);
        store_fixture *f = *state;
        char digests[NETWORKS][MDOT_STORE_DIGEST_BYTES];
        state_of_random = 31 * trial + 7;
        memset(&m, 0, sizeof m);
        for (size_t k = 0; k < NETWORKS; k++) {
            mdot_job *job = store_fixture_job(1 + k % 3, 1 + (int64_t)k);
            store_expect_ok(mdot_store_add_job(f->store, job, "n", digests[k], &f->err), &f->err);
            mdot_job_destroy(job);
        }
        add_rows(f, digests);
        predictions p = {.count = 0};
        reports r = {.count = 0};
        store_expect_ok(mdot_store_refresh(f->store, NULL, &f->err), &f->err);
        store_expect_ok(mdot_store_visit_groups(f->store, NULL, NULL, predict, &p, &f->err), &f->err);
        store_expect_ok(mdot_store_set_predictions(f->store, "p", p.item, p.count, &f->err), &f->err);
        store_expect_ok(mdot_store_visit_groups(f->store, NULL, "p", take_group, NULL, &f->err), &f->err);
        qsort(m.group, m.groups, sizeof *m.group, by_place);
        store_expect_ok(mdot_store_visit_rows(f->store, NULL, take_row, NULL, &f->err), &f->err);
        qsort(m.row, m.rows, sizeof *m.row, by_time);
        store_expect_ok(mdot_store_find_drift(f->store, "p", take_report, &r, &f->err), &f->err);
        double corrected[GPUS * 5 * TESTS];
        for (size_t i = 0; i < r.count; i++) {
            corrected[TESTS * i] = level_of(&r, i);
            corrected[TESTS * i + 1] = change_of(&r, i);
            corrected[TESTS * i + 2] = software_of(&r, i);
        }
        assert_true(st_holm(corrected, TESTS * r.count));
        for (size_t i = 0; i < r.count; i++) {
            near(r.item[i].level_p, corrected[TESTS * i], "level_p");
            near(r.item[i].change_p, corrected[TESTS * i + 1] < 0 ? 1 : corrected[TESTS * i + 1], "change_p");
            near(r.item[i].software_p, corrected[TESTS * i + 2] < 0 ? 1 : corrected[TESTS * i + 2], "software_p");
        }
        assert_true(r.count >= 2);
        if (trial < 23) assert_int_equal(store_fixture_tear_down(state), 0);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, store_fixture_set_up, store_fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {CASE(reports_equal_their_definitions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
