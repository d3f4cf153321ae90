/* validate_options.c — validates the arguments of mdotc.h's functions before any work is done. The same faults are
 * refused here as on the command line, because they would otherwise lead to an artefact that fails to open. The
 * frontend validates dimensions (fe_options) and targets.c the names of targets. */
#include "compiler/compiler.h"

#include <string.h>

static bool is_missing(const char *name) { return name == NULL || *name == '\0'; }

mdot_status co_check_entries(const mdotc_entry *entries, size_t count, mdot_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (is_missing(entries[i].name)) return BS_INVALID(err, "entry point %zu has no name", i);
        if (is_missing(entries[i].model_path))
            return BS_INVALID(err, "entry point \"%s\" has no model", entries[i].name);
        for (size_t j = 0; j < i; j++)
            if (strcmp(entries[i].name, entries[j].name) == 0)
                return BS_INVALID(err, "two entry points have the name \"%s\"", entries[i].name);
    }
    return MDOT_OK;
}

/* The runtime requires ascending buckets in a table (runtime/core/table_check.c), because it uses the first one that
 * holds a length. */
static mdot_status check_buckets(const int64_t *buckets, size_t count, mdot_error *err)
{
    if (count > 0 && buckets == NULL) return BS_INVALID(err, "bucket_count is %zu, but buckets is NULL", count);
    for (size_t i = 0; i < count; i++) {
        if (buckets[i] < 1 || buckets[i] > MDOTC_MAX_LENGTH)
            return BS_INVALID(err, "the length of a bucket must be between 1 and %d, not %lld", MDOTC_MAX_LENGTH,
                              (long long)buckets[i]);
        if (i > 0 && buckets[i] <= buckets[i - 1])
            return BS_INVALID(err, "buckets must ascend, but %lld follows %lld", (long long)buckets[i],
                              (long long)buckets[i - 1]);
    }
    return MDOT_OK;
}

mdot_status co_check_options(const mdotc_options *options, mdot_error *err)
{
    BS_TRY(check_buckets(options->buckets, options->bucket_count, err));
    if (options->min_length < 0 || options->min_length > MDOTC_MAX_LENGTH ||
        (options->bucket_count > 0 && options->min_length > options->buckets[0]))
        return BS_INVALID(err, "the minimum length must be between 1 and the first bucket, not %lld",
                          (long long)options->min_length);
    if (options->bucket_count == 0 && options->min_length > 1024)
        return BS_INVALID(err, "a minimum length of %lld requires larger buckets", (long long)options->min_length);
    if (options->target_count > 0 && options->targets == NULL)
        return BS_INVALID(err, "target_count is %zu, but targets is NULL", options->target_count);
    for (size_t i = 0; i < options->target_count; i++)
        if (is_missing(options->targets[i])) return BS_INVALID(err, "target %zu has no name", i);
    if (options->name != NULL && is_missing(options->name))
        return BS_INVALID(err, "the name of the predictor is empty");
    return MDOT_OK;
}

mdot_status co_check_tolerance(const char *what, double tolerance, mdot_error *err)
{
    if (tolerance >= 0 && tolerance <= 1) return MDOT_OK;
    return BS_INVALID(err, "the %s must be from 0 to 1, not %g", what, tolerance);
}
