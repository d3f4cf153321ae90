#include "slurm/partition.h"

#include <string.h>

const sl_partition *sl_partition_find(const sl_cluster *cluster, const char *name, size_t length)
{
    for (uint32_t i = 0; cluster != NULL && i < cluster->partition_count; i++) {
        const sl_partition *p = &cluster->partitions[i];
        if (strncmp(p->name, name, length) == 0 && p->name[length] == '\0') return p;
    }
    return NULL;
}

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
