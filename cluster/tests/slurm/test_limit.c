/* test_limit.c — limits that Slurm accepts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "slurm/decision.h"

#define PARTITION(name_text, most, usual)                                                                              \
    {                                                                                                                  \
        .name = name_text, .most_minutes = most, .default_minutes = usual, .reserved_s = INFINITY                      \
    }
static sl_cluster cluster = {
    .partition_count = 3,
    .partitions = {PARTITION("long", SL_UNLIMITED, 60), PARTITION("short", 30, 7), PARTITION("day", 1440, 1440)}};
static sl_site site = {
    .places = {{"long", "", "T4", 0, INFINITY}, {"short", "", "T4", 0, INFINITY}, {"day", "", "T4", 0, INFINITY}},
    .place_count = 3};

static uint32_t limit(const char *list, uint32_t wanted, sl_submission s)
{
    s.cluster = &cluster;
    return sl_limit_minutes(&site, &s, list, wanted);
}

static void limits_stay_within_every_partition(void **state)
{
    (void)state;
    const sl_submission plain = {0};
    assert_int_equal(limit("long", 5000, plain), 5000);
    assert_int_equal(limit("short", 20, plain), 20);
    assert_int_equal(limit("short", 5000, plain), 30);
    assert_int_equal(limit("long,short", 5000, plain), 30);
    assert_int_equal(limit("day", 5000, plain), 0); /* Slurm's default is as long */
    assert_int_equal(limit("long,unknown", 5, plain), 0);
    assert_int_equal(limit("lon", 5, plain), 0);
    assert_int_equal(limit("", 5, plain), 0);
    assert_int_equal(limit(NULL, 5, plain), 0);
    cluster.partition_count = 0;
    assert_int_equal(limit("long", 5, plain), 0);
    cluster.partition_count = 3;
}

static void limits_up_to_the_longest_are_set(void **state)
{
    (void)state;
    const sl_submission plain = {0};
    assert_int_equal(limit("short", 30, plain), 30);
    assert_int_equal(limit("day", 1440, plain), 1440); /* the default, which is as long, stays the job's limit */
    assert_int_equal(limit("day", 1441, plain), 0);
    assert_int_equal(limit("long", 60, (sl_submission){.has_reservation = true}), 60);
    assert_int_equal(limit("short", 31, (sl_submission){.least_minutes = 7}), 30);
    site.places[1].most_s = 600; /* of "short" only */
    assert_int_equal(limit("short", 30, plain), 10);
    assert_int_equal(limit("long", 30, plain), 30);
    assert_int_equal(limit("long,short", 30, plain), 10);
    site.places[1].most_s = INFINITY;
}

static void time_min_is_a_lower_bound(void **state)
{
    (void)state;
    assert_int_equal(limit("long", 5, (sl_submission){.least_minutes = 50}), 50);
    assert_int_equal(limit("short", 5, (sl_submission){.least_minutes = 7}), 7);
    assert_int_equal(limit("short", 5, (sl_submission){.least_minutes = 8}), 0); /* above the default limit */
}

static void a_deadline_leaves_the_limit_to_slurm(void **state)
{
    (void)state;
    sl_submission s = {.cluster = &cluster, .now_s = 1e9, .deadline_s = 1e9 + 6000};
    assert_int_equal(limit("long", 5, s), 0);
    /* a deadline that came later shortens the limit, so that Slurm does not cancel the job */
    assert_int_equal(sl_limit_kept(&site, &s, "long", 50), 50);
    assert_int_equal(sl_limit_kept(&site, &s, "long", 61), 60);
    s.now_s += 3000;
    assert_int_equal(sl_limit_kept(&site, &s, "long", 50), 49);
    s.now_s += 3000;
    assert_int_equal(sl_limit_kept(&site, &s, "long", 50), 1);
}

static void a_reservation_within_the_limit_leaves_the_default(void **state)
{
    (void)state;
    sl_submission s = {.cluster = &cluster, .now_s = 1e9};
    assert_int_equal(limit("long", 61, (sl_submission){.has_reservation = true}), 0);
    sl_partition_add_reservation(&cluster.partitions[0], 1e9 - 100, false, 1e9); /* its nodes are taken already */
    assert_int_equal(limit("long", 500, s), 500);
    sl_partition_add_reservation(&cluster.partitions[0], 1e9 + 60 * 100 + 120, false, 1e9);
    assert_int_equal(limit("long", 100, s), 100);
    assert_int_equal(limit("long", 101, s), 0);
    assert_int_equal(limit("long", 60, s), 60);
    assert_int_equal(limit("short", 29, s), 29);
    assert_int_equal(limit("long,short", 29, s), 29);
    s.now_s += 6000;
    assert_int_equal(sl_limit_kept(&site, &s, "long", 100), 60);
    s.least_minutes = 70; /* the caller lowers --time-min with the limit */
    assert_int_equal(sl_limit_kept(&site, &s, "long", 100), 60);
    cluster.partitions[0].reserved_s = INFINITY;
    sl_partition_add_reservation(&cluster.partitions[0], 1e9 - 100, true, 1e9); /* it comes again */
    assert_int_equal(limit("long", 61, (sl_submission){.now_s = 1e9}), 0);
    cluster.partitions[0].reserved_s = INFINITY;
}

static sl_qos qos[] = {
    {"normal", 1, {SL_UNLIMITED, false}}, {"brief", 2, {45, false}}, {"counted", 3, {SL_UNLIMITED, true}}};
static sl_association associations[] = {{"physics", 7, 1, {300, false}},
                                        {"biology", 7, 2, {SL_UNLIMITED, false}},
                                        {"physics", 8, 0, {SL_UNLIMITED, false}}};

static void limits_of_accounting_are_kept(void **state)
{
    (void)state;
    sl_submission s = {.user = 7, .account = "Physics"};
    assert_int_equal(limit("long", 5000, (sl_submission){.user = 9}), 5000);
    cluster.enforces_limits = true;
    assert_int_equal(limit("long", 5, s), 0); /* unknown */
    cluster.qos = qos;
    cluster.associations = associations;
    cluster.qos_count = cluster.association_count = 3;
    assert_int_equal(limit("long", 200, s), 200);
    assert_int_equal(limit("long", 5000, s), 300);
    s.account = "biology";
    assert_int_equal(limit("long", 45, s), 45);
    assert_int_equal(limit("long", 46, s), 0); /* the default limit would be refused, too */
    assert_int_equal(limit("short", 46, s), 30);
    s.account = NULL; /* all accounts of the user count */
    assert_int_equal(limit("long", 46, s), 0);
    s = (sl_submission){.user = 7, .account = "physics", .qos = "counted"};
    assert_int_equal(limit("long", 60, s), 60);
    assert_int_equal(limit("long", 61, s), 0);
    s.qos = "another";
    assert_int_equal(limit("long", 5, s), 0);
    s = (sl_submission){.user = 8}; /* the default QOS is unknown */
    assert_int_equal(limit("long", 45, s), 45);
    assert_int_equal(limit("long", 46, s), 0);
    assert_int_equal(limit("long", 5, (sl_submission){.user = 9}), 0);
    s = (sl_submission){.user = 7, .account = "physics"};
    strcpy(cluster.partitions[0].qos, "brief");
    assert_int_equal(limit("long", 45, s), 45);
    assert_int_equal(limit("long", 46, s), 0);
    strcpy(cluster.partitions[0].qos, "gone");
    assert_int_equal(limit("long", 5, s), 0);
    cluster.partitions[0].qos[0] = '\0';
    site.places[0].most_s = 6000; /* mdot.conf's MaxTime lowers the limit only */
    assert_int_equal(limit("long", 5000, s), 100);
    s.qos = "counted";
    assert_int_equal(limit("long", 61, s), 0);
    site.places[0].most_s = INFINITY;
    cluster.enforces_limits = false;
}

/* ---- Slurm's treatment of random requests ------------------------------------------------------------------------ */

typedef struct reservation {
    double start_s, length_s, period_s; /* period 0: once */
    bool is_in[3];                      /* by partition */
} reservation;

/* A cluster and a request, as Slurm sees them. Times are seconds from the submission. */
typedef struct scene {
    sl_partition partitions[3];
    bool has_default[3];
    reservation reservations[4];
    int reservation_count;
    sl_time_rule rule;          /* of the request's association and QOS */
    uint32_t remaining_minutes; /* if the rule counts minutes */
    enum { ALL, ANY, NO } enforced;
    double resources_s; /* when GPUs become free */
    double deadline_s;  /* 0: none */
    uint32_t least_minutes;
    const char *list;
} scene;

static bool is_listed(const scene *s, int p) { return strstr(s->list, s->partitions[p].name) != NULL; }

/* May the job be in the partition with this limit? 0: without --time. */
static bool is_permitted(const scene *s, int p, uint32_t minutes)
{
    uint32_t checked = s->least_minutes != 0 ? s->least_minutes : minutes;
    return checked == 0 || (checked <= s->partitions[p].most_minutes && checked <= s->rule.most_minutes);
}

static bool is_accepted(const scene *s, uint32_t minutes)
{
    int listed = 0, permitted = 0;
    for (int p = 0; p < 3; p++) {
        if (!is_listed(s, p)) continue;
        listed++;
        permitted += is_permitted(s, p, minutes);
    }
    uint32_t checked = s->least_minutes != 0 ? s->least_minutes : minutes;
    if (s->deadline_s > 0 && checked * 60.0 > s->deadline_s) return false;
    return s->enforced == NO || (s->enforced == ANY ? permitted > 0 : permitted == listed);
}

/* The end of the job if it starts now. Slurm shortens a job without --time to the deadline and to MaxWall. */
static double end_of(const scene *s, int p, uint32_t minutes, double start_s)
{
    double length_s = 60.0 * (minutes != 0 ? minutes : s->partitions[p].default_minutes);
    if (minutes != 0 || s->least_minutes != 0) return start_s + length_s;
    length_s = fmin(length_s, 60.0 * s->rule.most_minutes);
    return s->deadline_s > 0 ? fmin(start_s + length_s, s->deadline_s) : start_s + length_s;
}

static bool can_start(const scene *s, int p, uint32_t minutes, double start_s)
{
    if (!is_listed(s, p) || !is_permitted(s, p, minutes)) return false;
    double end_s = end_of(s, p, minutes, start_s);
    uint32_t checked = s->least_minutes != 0 ? s->least_minutes : minutes;
    if (s->deadline_s > 0 && start_s + 60.0 * checked > s->deadline_s) return false;
    if (s->rule.counts_minutes && end_s - start_s > 60.0 * s->remaining_minutes) return false;
    for (int i = 0; i < s->reservation_count; i++) {
        const reservation *r = &s->reservations[i];
        if (!r->is_in[p]) continue;
        double first_s = r->start_s;
        if (r->period_s > 0)
            first_s += r->period_s * fmax(floor((start_s - r->start_s - r->length_s) / r->period_s) + 1, 0);
        if (first_s + r->length_s > start_s && first_s < end_s) return false;
    }
    return true;
}

/* The plugin's snapshot at this time. */
static sl_cluster look(const scene *s, double now_s, sl_qos *out_qos, sl_association *out_association)
{
    sl_cluster c = {.partition_count = 3,
                    .enforces_limits = true,
                    .qos = out_qos,
                    .qos_count = 1,
                    .associations = out_association,
                    .association_count = 1};
    *out_qos = (sl_qos){"normal", 1, {SL_UNLIMITED, false}};
    *out_association = (sl_association){"physics", 7, 1, s->rule};
    for (int p = 0; p < 3; p++) {
        c.partitions[p] = s->partitions[p];
        c.partitions[p].reserved_s = INFINITY;
        for (int i = 0; i < s->reservation_count; i++) {
            const reservation *r = &s->reservations[i];
            double start_s = r->start_s;
            while (r->period_s > 0 && start_s + r->length_s <= now_s) start_s += r->period_s;
            if (r->is_in[p] && start_s + r->length_s > now_s)
                sl_partition_add_reservation(&c.partitions[p], start_s, r->period_s > 0, now_s);
        }
    }
    return c;
}

static int draw(int count) { return rand() % count; }

static scene draw_scene(void)
{
    static const char *const lists[] = {"long", "short", "day", "long,short", "day,long", "short,day,long"};
    static const uint32_t most[] = {5, 30, 600, SL_UNLIMITED}, usual[] = {2, 7, 40, 3000, SL_UNLIMITED};
    scene s = {.list = lists[draw(6)], .enforced = draw(3), .resources_s = draw(3) == 0 ? 0 : draw(40000)};
    for (int p = 0; p < 3; p++) {
        s.partitions[p] = cluster.partitions[p];
        s.partitions[p].most_minutes = most[draw(4)];
        s.partitions[p].default_minutes = draw(3) == 0 ? s.partitions[p].most_minutes : usual[draw(5)];
        s.partitions[p].over_minutes = draw(4) == 0 ? 10 : draw(6) == 0 ? SL_UNLIMITED : 0;
    }
    s.reservation_count = draw(4);
    for (int i = 0; i < s.reservation_count; i++) {
        s.reservations[i] = (reservation){
            draw(60000) - 10000, 60 + draw(20000), draw(3) == 0 ? 21000 + draw(66000) : 0, {draw(2), draw(2), draw(2)}};
    }
    s.rule = (sl_time_rule){draw(3) == 0 ? 1 + (uint32_t)draw(700) : SL_UNLIMITED, draw(5) == 0};
    s.remaining_minutes = (uint32_t)draw(3000);
    if (draw(4) == 0) s.deadline_s = 60 + draw(60000);
    if (draw(4) == 0) s.least_minutes = 1 + (uint32_t)draw(60);
    return s;
}

static sl_submission submission_at(const scene *s, const sl_cluster *c, double now_s)
{
    return (sl_submission){
        .cluster = c, .now_s = now_s, .deadline_s = s->deadline_s, .user = 7, .least_minutes = s->least_minutes};
}

/* The law: wherever and whenever a job without --mdot is accepted and can start, so is the same job with it. The thread
 * looks at waiting jobs every ten seconds. */
static void random_requests_are_never_worse_off(void **state)
{
    (void)state;
    enum { LOOK_S = 10 };
    sl_qos one_qos;
    sl_association one;
    int set_count = 0, corrected = 0, longer = 0;
    srand(1);
    for (int i = 0; i < 150000; i++) {
        scene s = draw_scene();
        sl_cluster c = look(&s, 0, &one_qos, &one);
        sl_submission at_first = submission_at(&s, &c, 0);
        uint32_t wanted = 1 + (uint32_t)draw(draw(2) == 0 ? 60 : 5000);
        uint32_t set = sl_limit_minutes(&site, &at_first, s.list, wanted);
        uint32_t binding = sl_binding_minutes(&at_first, s.list, set);
        for (int p = 0; p < 3; p++) { /* no priority without a limit that ends the job */
            if (!is_listed(&s, p)) continue;
            uint32_t usual = set != 0 ? set : s.partitions[p].default_minutes, over = s.partitions[p].over_minutes;
            if (over == SL_UNLIMITED || usual == SL_UNLIMITED)
                assert_int_equal(binding, SL_UNLIMITED);
            else
                assert_true(binding >= usual + over);
        }
        if (set == 0) continue;
        set_count++;
        assert_true(set >= s.least_minutes);
        if (!is_accepted(&s, 0)) continue;
        if (!is_accepted(&s, set)) fail_msg("request %d: a limit of %u is refused", i, set);
        if (draw(3) == 0) s.list = "long"; /* as by scontrol update, in a cluster that has changed */
        if (draw(3) == 0)
            s.reservations[s.reservation_count++ % 3] = (reservation){draw(9000), 9000, 0, {true, true, false}};
        if (s.reservation_count > 3) s.reservation_count = 3;
        if (draw(9) == 0) s.deadline_s = s.resources_s + draw(9000);
        const uint32_t least_minutes = s.least_minutes;
        for (int p = 0; p < 3; p++)
            for (double start_s = s.resources_s; start_s < s.resources_s + 40000; start_s += 3600) {
                s.least_minutes = least_minutes;
                if (!can_start(&s, p, 0, start_s)) continue;
                c = look(&s, start_s - LOOK_S, &one_qos, &one);
                sl_submission later = submission_at(&s, &c, start_s - LOOK_S);
                uint32_t kept = sl_limit_kept(&site, &later, s.list, set);
                assert_true(kept <= set);
                if (kept < s.least_minutes) s.least_minutes = kept; /* as the thread does */
                /* Slurm itself cancels a job in the last minutes before the deadline */
                if (s.deadline_s > 0 && s.deadline_s - start_s < 180) continue;
                if (!can_start(&s, p, kept, start_s))
                    fail_msg("request %d in %s: cannot start at %.0f with a limit of %u (%u at first), default %u", i,
                             s.partitions[p].name, start_s, kept, set, s.partitions[p].default_minutes);
                corrected += kept < set;
                longer += kept > s.partitions[p].default_minutes;
                break;
            }
    }
    if (set_count < 20000 || corrected < 1000 || longer < 1000)
        fail_msg("only %d limits, %d corrections, %d limits above the default", set_count, corrected, longer);
}

static void the_binding_limit_is_the_one_that_ends_the_job(void **state)
{
    (void)state;
    sl_submission s = {.cluster = &cluster};
    assert_int_equal(sl_binding_minutes(&s, "long", 12), 12);
    assert_int_equal(sl_binding_minutes(&s, "long,short", 0), 60);
    assert_int_equal(sl_binding_minutes(&s, "short,long", 0), 60);
    assert_int_equal(sl_binding_minutes(&s, "", 0), SL_UNLIMITED);
    assert_int_equal(sl_binding_minutes(&s, "long,unknown", 0), SL_UNLIMITED);
    assert_int_equal(sl_binding_minutes(&s, "unknown", 0), SL_UNLIMITED);
    assert_int_equal(sl_binding_minutes(&s, NULL, 0), SL_UNLIMITED);
    cluster.partitions[1].over_minutes = 10; /* OverTimeLimit */
    assert_int_equal(sl_binding_minutes(&s, "short", 12), 22);
    assert_int_equal(sl_binding_minutes(&s, "long,short", 0), 70);
    cluster.partitions[1].over_minutes = SL_UNLIMITED;
    assert_int_equal(sl_binding_minutes(&s, "short", 12), SL_UNLIMITED);
    cluster.partitions[1].over_minutes = 0;
    s.own_minutes = 4000;
    assert_int_equal(sl_binding_minutes(&s, "long", 12), 4000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_stay_within_every_partition),
        cmocka_unit_test(limits_up_to_the_longest_are_set),
        cmocka_unit_test(time_min_is_a_lower_bound),
        cmocka_unit_test(a_deadline_leaves_the_limit_to_slurm),
        cmocka_unit_test(a_reservation_within_the_limit_leaves_the_default),
        cmocka_unit_test(limits_of_accounting_are_kept),
        cmocka_unit_test(random_requests_are_never_worse_off),
        cmocka_unit_test(the_binding_limit_is_the_one_that_ends_the_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
