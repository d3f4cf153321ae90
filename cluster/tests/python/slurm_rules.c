/* slurm_rules.c — answers questions about Slurm's rules, so that test_rules.py can compare those in Python.
 *
 * Lines on standard input, each with one line as the answer:
 *     priority ORDER WEIGHT SHORTEST LONGEST PREDICTED_S MINUTES GPUS UNDERSTATEMENT
 *     quantile LOWER_MS STEP_MS UPPER_MS QUANTILE
 *     add USER PREDICTED_S ACTUAL_S GPUS IS_COMPLETE NOW_S      records an ended job; the answer is the understatement
 *     accepts TEXT                                              whether --mdot accepts the text: yes or no
 *     doubtful                                                  names of the warnings that make a prediction
 *     doubtful */
#include "slurm/decision.h"
#include "slurm/user_records.h"

#include <stdio.h>
#include <string.h>

static void print_priority(const char *line)
{
    sl_site site = {.priority_weight = 0};
    char order[16];
    double predicted_s, understatement;
    unsigned minutes;
    long long gpus;
    if (sscanf(line, "%15s %lf %lf %lf %lf %u %lld %lf", order, &site.priority_weight, &site.shortest_s,
               &site.longest_s, &predicted_s, &minutes, &gpus, &understatement) != 8)
        return;
    site.order = strcmp(order, "time") == 0 ? SL_ORDER_TIME : SL_ORDER_SERVICE;
    printf("%u\n", sl_priority(&site, predicted_s, minutes, gpus, understatement));
}

static void print_quantile(const char *line)
{
    mdot_prediction p = MDOT_INIT(mdot_prediction);
    double quantile;
    if (sscanf(line, "%lf %lf %lf %lf", &p.lower_ms, &p.step_ms, &p.upper_ms, &quantile) == 4)
        printf("%.17g\n", sl_step_quantile_ms(&p, quantile));
}

static void print_understatement(const char *line, sl_outcomes *outcomes)
{
    unsigned user;
    int is_complete;
    double predicted_s, actual_s, gpus, now_s;
    if (sscanf(line, "%u %lf %lf %lf %d %lf", &user, &predicted_s, &actual_s, &gpus, &is_complete, &now_s) != 6) return;
    sl_outcomes_add(outcomes, user, predicted_s, actual_s, gpus, is_complete != 0, now_s);
    printf("%.17g\n", sl_outcomes_understatement(outcomes, user, now_s));
}

static void print_doubtful(void)
{
    for (uint32_t bit = 1; bit != 0; bit <<= 1)
        if (sl_is_doubtful(bit)) printf("%s ", mdot_warning_name(bit));
    puts("");
}

int main(void)
{
    char line[4096];
    sl_outcomes *outcomes = sl_outcomes_create();
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        const char *gap = strchr(line, ' '), *rest = gap != NULL ? gap + 1 : "";
        sl_request request;
        if (strncmp(line, "priority ", 9) == 0) print_priority(rest);
        if (strncmp(line, "quantile ", 9) == 0) print_quantile(rest);
        if (strncmp(line, "add ", 4) == 0) print_understatement(rest, outcomes);
        if (strncmp(line, "accepts ", 8) == 0) puts(sl_request_parse(rest, &request, NULL) == MDOT_OK ? "yes" : "no");
        if (strcmp(line, "doubtful") == 0) print_doubtful();
    }
    sl_outcomes_destroy(outcomes);
    return 0;
}
