#include "slurm/partition.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void sl_cluster_destroy(sl_cluster *cluster)
{
    if (cluster == NULL) return;
    free(cluster->qos);
    free(cluster->associations);
    free(cluster);
}

bool sl_next_name(const char *list, const char **name, size_t *length)
{
    const char *next = *name == NULL ? list : *name + *length;
    if (next == NULL || (*name != NULL && *next == '\0')) return false;
    *name = next + (*name != NULL);
    *length = strcspn(*name, ",");
    return true;
}

const sl_partition *sl_partition_find(const sl_cluster *cluster, const char *name, size_t length)
{
    for (uint32_t i = 0; cluster != NULL && i < cluster->partition_count; i++) {
        const sl_partition *p = &cluster->partitions[i];
        if (strncmp(p->name, name, length) == 0 && p->name[length] == '\0') return p;
    }
    return NULL;
}

void sl_partition_add_reservation(sl_partition *partition, double start_s, bool recurs, double now_s)
{
    if (start_s <= now_s && !recurs) return; /* its nodes are gone already, whatever a job's limit */
    partition->reserved_s = fmin(partition->reserved_s, recurs && start_s <= now_s ? now_s : start_s);
}

/* ---- Accounting -------------------------------------------------------------------------------------------------- */

static void tighten(sl_time_rule *rule, const sl_time_rule *other)
{
    if (other->most_minutes < rule->most_minutes) rule->most_minutes = other->most_minutes;
    rule->counts_minutes |= other->counts_minutes;
}

/* Tightens the rule by the QOS with this name, or else with this id; by all if both are unset. */
static bool tighten_by_qos(const sl_cluster *cluster, const char *name, uint32_t id, sl_time_rule *rule)
{
    bool is_known = false;
    for (size_t i = 0; i < cluster->qos_count; i++) {
        const sl_qos *q = &cluster->qos[i];
        bool is_meant = name != NULL && name[0] != '\0' ? strcasecmp(q->name, name) == 0 : id == 0 || q->id == id;
        if (is_meant) tighten(rule, &q->rule);
        is_known |= is_meant;
    }
    return is_known;
}

bool sl_accounting_rule(const sl_submission *s, const char *list, sl_time_rule *out_rule)
{
    sl_time_rule rule = {.most_minutes = SL_UNLIMITED};
    const sl_cluster *cluster = s->cluster;
    bool is_known = !cluster->enforces_limits;
    for (size_t i = 0; cluster->enforces_limits && i < cluster->association_count; i++) {
        const sl_association *a = &cluster->associations[i];
        bool is_named = s->account != NULL && s->account[0] != '\0';
        if (a->user != s->user || (is_named && strcasecmp(a->account, s->account) != 0)) continue;
        tighten(&rule, &a->rule);
        if (!tighten_by_qos(cluster, s->qos, a->default_qos, &rule)) return false;
        is_known = true;
    }
    size_t length;
    for (const char *name = NULL; cluster->enforces_limits && sl_next_name(list, &name, &length);) {
        const sl_partition *p = sl_partition_find(cluster, name, length);
        if (p == NULL || (p->qos[0] != '\0' && !tighten_by_qos(cluster, p->qos, 0, &rule))) return false;
    }
    *out_rule = rule;
    return is_known;
}

/* ---- Nodes ------------------------------------------------------------------------------------------------------- */

/* Adds a node resource: GPUs of one type. */
static void add_gpus(sl_partition *partition, const sl_gres *gres)
{
    uint32_t i = 0;
    while (i < partition->type_count && strcmp(partition->gpus[i].type, gres->type) != 0) i++;
    if (i == SL_MAX_NODE_TYPES) return;
    sl_node_gpus *row = &partition->gpus[i];
    if (i == partition->type_count) {
        partition->type_count++;
        *row = (sl_node_gpus){.nodes = 0};
        memcpy(row->type, gres->type, sizeof row->type);
    }
    row->nodes++;
    row->all += gres->count;
    if (gres->count > row->per_node) row->per_node = gres->count;
}

void sl_partition_add_node(sl_partition *partition, const char *gres)
{
    partition->usable_nodes++;
    for (const char *cursor = gres; cursor != NULL && *cursor != '\0';) {
        size_t length = 0;
        int depth = 0; /* "(S:0,2)" contains a comma */
        for (; cursor[length] != '\0' && (depth > 0 || cursor[length] != ','); length++)
            depth += cursor[length] == '(' ? 1 : cursor[length] == ')' ? -1 : 0;
        char part[256] = "";
        size_t kept = strcspn(cursor, "(");
        if (kept > length) kept = length;
        if (kept < sizeof part) memcpy(part, cursor, kept);
        sl_gres one = sl_gres_read(part);
        if (one.count > 0) add_gpus(partition, &one);
        cursor += length + (cursor[length] == ',');
    }
}

sl_node_gpus sl_partition_gpus(const sl_partition *partition, const char *type)
{
    sl_node_gpus entries = {.nodes = 0};
    for (uint32_t i = 0; i < partition->type_count; i++) {
        const sl_node_gpus *row = &partition->gpus[i];
        if (type[0] != '\0' && strcmp(row->type, type) != 0) continue;
        entries.nodes = row->nodes > entries.nodes ? row->nodes : entries.nodes;
        entries.per_node = row->per_node > entries.per_node ? row->per_node : entries.per_node;
        entries.all += row->all;
    }
    return entries;
}
