/* history.c — durations learned from the outcomes of jobs (service.h). */
#include "service/service.h"

#include <stdlib.h>
#include <sys/random.h>

enum { MOST_KEYS = 1 << 17, DIGITS_OF_A_DIGEST = 16 };

uint64_t sv_network_number(const char *network)
{
    char head[DIGITS_OF_A_DIGEST + 1] = "";
    if (network != NULL) snprintf(head, sizeof head, "%s", network);
    return strtoull(head, NULL, 16);
}

void sv_learn_outcome(mdot_history *history, const mdot_store_outcome *o)
{
    static const mdot_ended ends[] = {[MDOT_OUTCOME_COMPLETED] = MDOT_ENDED_COMPLETED,
                                      [MDOT_OUTCOME_FAILED] = MDOT_ENDED_FAILED,
                                      [MDOT_OUTCOME_CANCELLED] = MDOT_ENDED_CANCELLED,
                                      [MDOT_OUTCOME_TIMED_OUT] = MDOT_ENDED_TIMED_OUT};
    if (o->outcome == MDOT_OUTCOME_UNFINISHED || o->elapsed_s < 0 || o->ended_at <= 0) return;
    const mdot_history_job job = {.struct_size = sizeof job,
                                  .user = o->user,
                                  .group = o->account,
                                  .name = o->name,
                                  .gpu_type = o->gpu,
                                  .digest = sv_network_number(o->digest),
                                  .gpus = o->gpu_count >= 0 && o->gpu_count <= 1 << 20 ? (int)o->gpu_count : 0,
                                  .submit_s = (double)o->submitted_at};
    mdot_history_add(history, &job, ends[o->outcome], (double)o->elapsed_s, (double)o->ended_at, NULL);
}

mdot_status sv_create_history(mdot_history **out, mdot_error *err)
{
    mdot_history_options options = {.struct_size = sizeof options, .most_keys = MOST_KEYS};
    /* users choose names: random seeds keep them from disturbing the keys of others */
    if (getrandom(options.hash_seed, sizeof options.hash_seed, 0) < 0) options.hash_seed[0] = (uint64_t)(uintptr_t)out;
    return mdot_history_create(&options, out, err);
}
