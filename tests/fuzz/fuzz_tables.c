/* fuzz_tables.c — libFuzzer on the tables that accompany a trace. The first byte selects clusters, factors, idle
 * windows or throughputs in either format. Any bytes are refused with a message, or become valid table content.
 *
 *     scripts/fuzz.sh 600 tables */
#include "simulator/idle/idle.h"
#include "simulator/input/input.h"
#include "tests/fuzz/memory_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whether the table was accepted. A refusal must have a message. */
static bool is_read(mdot_status status, const mdot_error *err)
{
    if (status != MDOT_OK && err->message[0] == '\0') abort();
    return status == MDOT_OK;
}

static void read_cluster(const uint8_t *data, size_t size)
{
    sc_cluster cluster = {0};
    mdot_error err = {0};
    if (!is_read(sc_read_cluster(memory_file(data, size, "cluster.csv"), &cluster, &err), &err)) return;
    int of_nodes = 0, of_types = 0;
    for (size_t i = 0; i < cluster.node_count; i++) {
        if (cluster.nodes[i].gpus < 1 || cluster.nodes[i].type >= cluster.type_count) abort();
        of_nodes += cluster.nodes[i].gpus;
    }
    for (unsigned type = 0; type < cluster.type_count; type++) {
        of_types += cluster.types[type].gpus;
        if (cluster.types[type].widest_node < 1 || !(cluster.types[type].watts >= 0)) abort();
    }
    if (of_nodes != cluster.gpus || of_types != cluster.gpus || cluster.gpus < 1) abort();
    sc_cluster_free(&cluster);
}

static void read_idle(const uint8_t *data, size_t size)
{
    sc_idle_windows windows = {0};
    mdot_error err = {0};
    if (!is_read(sc_read_idle_windows(memory_file(data, size, "idle.csv"), &windows, &err), &err)) return;
    for (size_t i = 0; i < windows.count; i++)
        if (!(windows.items[i].from_s <= windows.items[i].to_s) ||
            (i > 0 && windows.items[i - 1].from_s > windows.items[i].from_s))
            abort();
    sc_idle_windows_free(&windows);
}

/* Two jobs, "a" and "b", of two kinds. The caller frees the workload. */
static sc_workload make_workload(void)
{
    sc_workload workload = {0};
    uint32_t kind;
    for (char name[] = "a"; name[0] < 'c'; name[0]++) {
        if (sc_workload_add_kind(&workload, name[0] == 'a' ? "LM (batch size 5)" : "b", &kind, NULL) != MDOT_OK)
            abort();
        sc_job job = {.id = strdup(name), .gpus = 1, .work = 10, .weight = 1, .kind = kind};
        if (sc_workload_add(&workload, job, NULL) != MDOT_OK) abort();
    }
    return workload;
}

static void read_factors(const uint8_t *data, size_t size)
{
    double *factors = NULL;
    mdot_error err = {0};
    sc_workload workload = make_workload();
    if (is_read(sc_read_factors(memory_file(data, size, "factors.csv"), &workload, &factors, &err), &err))
        for (size_t i = 0; i < workload.job_count; i++)
            if (!(factors[i] > 0) || !isfinite(factors[i])) abort();
    free(factors);
    sc_workload_free(&workload);
}

static void read_throughputs(const uint8_t *data, size_t size, const char *name)
{
    mdot_error err = {0};
    sc_cluster cluster = {0};
    sc_workload workload = make_workload();
    if (sc_cluster_add_node(&cluster, "n", "v100", 4, NULL) != MDOT_OK) abort();
    (void)is_read(sc_read_throughputs(memory_file(data, size, name), &cluster, &workload, &err), &err);
    for (size_t i = 0; i < workload.kind_count; i++) {
        for (unsigned width = 0; width < SC_WIDTHS; width++) {
            double speed = workload.kinds[i].speed[0][width], spread = workload.kinds[i].spread[0][width];
            if (!(speed >= 0) || !isfinite(speed) || !(spread == 0 || spread >= 1) || !isfinite(spread)) abort();
        }
    }
    sc_cluster_free(&cluster);
    sc_workload_free(&workload);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    switch (data[0]) {
    case '0': read_cluster(data + 1, size - 1); break;
    case '1': read_factors(data + 1, size - 1); break;
    case '2': read_idle(data + 1, size - 1); break;
    case '3': read_throughputs(data + 1, size - 1, "throughputs.csv"); break;
    case '4': read_throughputs(data + 1, size - 1, "throughputs.json"); break;
    default: return -1; /* keeps the input out of the corpus */
    }
    return 0;
}
