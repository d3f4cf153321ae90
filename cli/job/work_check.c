/* work_check.c — the comparison of a job's work with that of the program from which it was made. */
#include "cli/cli.h"
#include "mdot/mdot.h"

#include <inttypes.h>

void cli_print_check(const mdot_job *job, const char *indent)
{
    mdot_job_program program = MDOT_INIT(mdot_job_program);
    if (mdot_job_get_program(job, &program) != MDOT_OK) return;
    const mdot_job_check *c = &program.check;
    static const char *const passes[] = {"forward", "backward"};
    for (int i = 0; i < 2; i++) {
        char found[16], wanted[16];
        if (c->dispatched_flops[i] == 0) continue;
        printf("%swork check, %s: %s of %s FLOP\n", indent, passes[i], cli_short_number(c->job_flops[i], found),
               cli_short_number(c->dispatched_flops[i], wanted));
    }
    char predicted[16], recorded[16];
    if (c->recorded_peak > 0)
        printf("%swork check, peak memory: %s of %s bytes\n", indent, cli_short_number(c->predicted_peak, predicted),
               cli_short_number(c->recorded_peak, recorded));
    if (c->unpriced_operators > 0)
        printf("%swork check: %" PRIu32 " operators without a formula\n", indent, c->unpriced_operators);
    if (c->modules != NULL) printf("%slargest differences: %s\n", indent, c->modules);
}
