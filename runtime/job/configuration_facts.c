/* configuration_facts.c — functions made of the column `facts` of configuration.def. The table becomes comparisons and
 * assignments without a loop, because each prediction runs them. */
#include "runtime/job/configuration.h"
#include "runtime/job/configuration_table.h"

#define HAS(facts, ...) ((RT_FACTS(__VA_ARGS__) & (facts)) != 0)

void rt_set_unread_defaults(mdot_configuration *c)
{
#define DEFAULT_WHOLE(fallback) (fallback)
#define DEFAULT_COUNT(fallback) 1
#define DEFAULT_REAL(fallback) (fallback)
#define DEFAULT_CHOICE(fallback) (fallback)
#define DEFAULT_FLAG(fallback) (fallback)
#define DEFAULT_VERSION(fallback) (fallback)
#define DEFAULT_GPU(fallback) NULL
#define OPTION(field, kind, least, most, fallback, ...)                                                                \
    if (HAS(RT_UNREAD, __VA_ARGS__)) c->field = DEFAULT_##kind(fallback);
#include "runtime/job/configuration.def"
}

bool rt_is_corrected(const mdot_configuration *requested, const mdot_configuration *queried)
{
    bool equal = true;
#define OPTION(field, kind, least, most, fallback, ...)                                                                \
    if (HAS(RT_UNREAD | RT_CORRECTED, __VA_ARGS__)) equal = equal && requested->field == queried->field;
#include "runtime/job/configuration.def"
    return !equal;
}

bool rt_equal_micro_steps(const rt_configuration *a, const rt_configuration *b)
{
    bool equal = a->micro_batch == b->micro_batch;
#define OPTION(field, kind, least, most, fallback, ...)                                                                \
    if (HAS(RT_MICRO_STEP, __VA_ARGS__)) equal = equal && a->c.field == b->c.field;
#include "runtime/job/configuration.def"
    return equal;
}

void rt_copy_kernels(mdot_configuration *target, const mdot_configuration *source)
{
#define OPTION(field, kind, least, most, fallback, ...)                                                                \
    if (HAS(RT_KERNELS, __VA_ARGS__)) target->field = source->field;
#include "runtime/job/configuration.def"
}
