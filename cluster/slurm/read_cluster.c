#include "slurm/plugin.h"

#include <slurm/slurm_errno.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

static bool is_everybody(const char *list) { return list == NULL || list[0] == '\0' || strcasecmp(list, "ALL") == 0; }

static void describe(const partition_info_t *source, const node_info_msg_t *nodes, sl_partition *target)
{
    const uint16_t closed = PART_FLAG_ROOT_ONLY | PART_FLAG_REQ_RESV | PART_FLAG_NO_ROOT | PART_FLAG_EXCLUSIVE_USER;
    snprintf(target->name, sizeof target->name, "%s", source->name);
    target->most_minutes = source->max_time == INFINITE || source->max_time == NO_VAL ? SL_UNLIMITED : source->max_time;
    bool has_default = source->default_time != NO_VAL && source->default_time != INFINITE;
    target->default_minutes = has_default ? source->default_time : target->most_minutes;
    target->least_nodes = source->min_nodes;
    target->most_nodes = source->max_nodes == NO_VAL ? UINT32_MAX : source->max_nodes;
    uint16_t over = source->over_time_limit != NO_VAL16 ? source->over_time_limit : slurm_conf.over_time_limit;
    target->over_minutes = over == INFINITE16 ? SL_UNLIMITED : over == NO_VAL16 ? 0 : over;
    target->reserved_s = INFINITY;
    target->least_cpus = UINT32_MAX;
    target->least_memory_mib = UINT64_MAX;
    target->is_up = source->state_up == PARTITION_UP;
    if (source->qos_char != NULL) snprintf(target->qos, sizeof target->qos, "%s", source->qos_char);
    target->is_open = is_everybody(source->allow_groups) && is_everybody(source->allow_accounts) &&
                      is_everybody(source->allow_qos) && is_everybody(source->deny_accounts) &&
                      is_everybody(source->deny_qos) && is_everybody(source->allow_alloc_nodes) &&
                      is_everybody(source->qos_char) && (source->flags & closed) == 0;
    for (const int32_t *range = source->node_inx; range != NULL && range[0] >= 0; range += 2)
        for (int32_t i = range[0]; i <= range[1] && (uint32_t)i < nodes->record_count; i++) {
            const node_info_t *node = &nodes->node_array[i];
            uint32_t base = node->node_state & NODE_STATE_BASE;
            bool is_usable = (base == NODE_STATE_IDLE || base == NODE_STATE_ALLOCATED || base == NODE_STATE_MIXED) &&
                             (node->node_state & (NODE_STATE_DRAIN | NODE_STATE_FAIL | NODE_STATE_NO_RESPOND)) == 0;
            if (!is_usable) continue;
            sl_partition_add_node(target, node->gres);
            if (node->cpus_efctv < target->least_cpus) target->least_cpus = node->cpus_efctv;
            uint64_t memory_mib =
                node->real_memory > node->mem_spec_limit ? node->real_memory - node->mem_spec_limit : 0;
            if (memory_mib < target->least_memory_mib) target->least_memory_mib = memory_mib;
        }
}

static bool have_common_nodes(const int32_t *a, const int32_t *b)
{
    for (const int32_t *i = a; i != NULL && i[0] >= 0; i += 2)
        for (const int32_t *j = b; j != NULL && j[0] >= 0; j += 2)
            if (i[0] <= j[1] && j[0] <= i[1]) return true;
    return false;
}

/* A reservation without nodes, for example of licences, counts for all partitions. One that attracts jobs (MAGNETIC)
 * counts while it lasts. */
static void add_reservations(const reserve_info_msg_t *reservations, const partition_info_t *source, double now_s,
                             sl_partition *target)
{
    const uint64_t recurring = RESERVE_REOCCURRING | RESERVE_FLAG_TIME_FLOAT | RESERVE_FLAG_MAGNETIC;
    for (uint32_t i = 0; i < reservations->record_count; i++) {
        const reserve_info_t *r = &reservations->reservation_array[i];
        bool has_nodes = r->node_inx != NULL && r->node_inx[0] >= 0;
        if (has_nodes && !have_common_nodes(r->node_inx, source->node_inx)) continue;
        bool floats = (r->flags & RESERVE_FLAG_TIME_FLOAT) != 0;
        sl_partition_add_reservation(target, floats ? now_s : (double)r->start_time, (r->flags & recurring) != 0,
                                     now_s);
    }
}

/* ---- The watching thread: accounting ----------------------------------------------------------------------------- */

static bool is_set(const char *limits) { return limits != NULL && limits[0] != '\0'; }

static uint32_t minutes_of(uint32_t number) { return number == NO_VAL || number == INFINITE ? SL_UNLIMITED : number; }

static sl_time_rule rule_of_association(const slurmdb_assoc_rec_t *a)
{
    return (sl_time_rule){.most_minutes = minutes_of(a->max_wall_pj),
                          .counts_minutes = minutes_of(a->grp_wall) != SL_UNLIMITED || is_set(a->max_tres_mins_pj) ||
                                            is_set(a->max_tres_run_mins) || is_set(a->grp_tres_mins) ||
                                            is_set(a->grp_tres_run_mins)};
}

static sl_time_rule rule_of_qos(const slurmdb_qos_rec_t *q)
{
    return (sl_time_rule){.most_minutes = minutes_of(q->max_wall_pj),
                          .counts_minutes = minutes_of(q->grp_wall) != SL_UNLIMITED || is_set(q->max_tres_mins_pj) ||
                                            is_set(q->max_tres_run_mins_pa) || is_set(q->max_tres_run_mins_pu) ||
                                            is_set(q->grp_tres_mins) || is_set(q->grp_tres_run_mins)};
}

/* A list's records as an array, which the caller frees; NULL for an empty list, or if memory ran out. */
static void **records_of(struct xlist *list, size_t *out_count)
{
    int count = list == NULL ? 0 : slurm_list_count(list);
    void **records = count == 0 ? NULL : calloc((size_t)count, sizeof *records);
    *out_count = 0;
    if (records == NULL) return NULL;
    struct listIterator *iterator = slurm_list_iterator_create(list);
    for (void *record; *out_count < (size_t)count && (record = slurm_list_next(iterator)) != NULL;)
        records[(*out_count)++] = record;
    slurm_list_iterator_destroy(iterator);
    return records;
}

static int by_id(const void *a, const void *b)
{
    const slurmdb_assoc_rec_t *x = *(void *const *)a, *y = *(void *const *)b;
    return (x->id > y->id) - (x->id < y->id);
}

static const slurmdb_assoc_rec_t *find_association(void *const *records, size_t count, uint32_t id)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const slurmdb_assoc_rec_t *a = records[middle];
        if (a->id == id) return a;
        if (a->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* The users' associations. The limits of the accounts above apply, too. */
static void copy_associations(struct xlist *list, sl_cluster *cluster)
{
    enum { MOST_LEVELS = 64 };
    size_t count;
    void **records = records_of(list, &count);
    cluster->associations = records == NULL ? NULL : calloc(count, sizeof *cluster->associations);
    if (cluster->associations != NULL) qsort(records, count, sizeof *records, by_id);
    for (size_t i = 0; cluster->associations != NULL && i < count; i++) {
        const slurmdb_assoc_rec_t *a = records[i];
        if (a->uid == NO_VAL || a->acct == NULL || strlen(a->acct) >= SL_ACCOUNT_BYTES) continue;
        sl_association *target = &cluster->associations[cluster->association_count++];
        target->user = a->uid;
        strcpy(target->account, a->acct);
        target->default_qos = a->def_qos_id == NO_VAL || a->def_qos_id == INFINITE ? 0 : a->def_qos_id;
        target->rule = rule_of_association(a);
        for (int level = 0; level < MOST_LEVELS; level++) {
            a = find_association(records, count, a->parent_id);
            if (a == NULL) break;
            sl_time_rule above = rule_of_association(a);
            if (above.most_minutes < target->rule.most_minutes) target->rule.most_minutes = above.most_minutes;
            target->rule.counts_minutes |= above.counts_minutes;
        }
    }
    free(records);
}

static void copy_qos(struct xlist *list, sl_cluster *cluster)
{
    size_t count;
    void **records = records_of(list, &count);
    cluster->qos = records == NULL ? NULL : calloc(count, sizeof *cluster->qos);
    for (size_t i = 0; cluster->qos != NULL && i < count; i++) {
        const slurmdb_qos_rec_t *q = records[i];
        if (q->name == NULL || strlen(q->name) >= SL_ACCOUNT_BYTES) continue;
        sl_qos *target = &cluster->qos[cluster->qos_count++];
        strcpy(target->name, q->name);
        target->id = q->id;
        target->rule = rule_of_qos(q);
    }
    free(records);
}

/* Without an answer, no association is known, and jobs get no limit. */
static void watch_accounting(sl_cluster *cluster)
{
    assoc_mgr_info_request_msg_t request = {.flags = ASSOC_MGR_INFO_FLAG_ASSOC | ASSOC_MGR_INFO_FLAG_QOS};
    assoc_mgr_info_msg_t *message = NULL;
    if (slurm_load_assoc_mgr_info(&request, &message) != SLURM_SUCCESS || message == NULL) return;
    copy_qos(message->qos_list, cluster);
    copy_associations(message->assoc_list, cluster);
    slurm_free_assoc_mgr_info_msg(message);
}

/* Partitions that do not fit the snapshot are left out; requests for them stay unchanged. */
sl_cluster *sl_plugin_read_cluster(double read_s)
{
    enum { ENFORCES = 0x0002 | 0x0008 | 0x0010 }; /* limits, QOS, safe: missing from the public headers */
    partition_info_msg_t *partitions = NULL;
    node_info_msg_t *nodes = NULL;
    reserve_info_msg_t *reservations = NULL;
    if (slurm_load_partitions(0, &partitions, SHOW_ALL) != SLURM_SUCCESS) return NULL;
    sl_cluster *cluster = NULL;
    if (slurm_load_node(0, &nodes, SHOW_ALL) == SLURM_SUCCESS &&
        slurm_load_reservations(0, &reservations) == SLURM_SUCCESS)
        cluster = calloc(1, sizeof *cluster);
    if (cluster != NULL) {
        cluster->read_s = read_s;
        cluster->enforces_limits = (slurm_conf.accounting_storage_enforce & ENFORCES) != 0;
        for (uint32_t i = 0; i < partitions->record_count; i++) {
            const partition_info_t *p = &partitions->partition_array[i];
            if (cluster->partition_count == SL_MAX_PARTITIONS || strlen(p->name) >= SL_PARTITION_BYTES) continue;
            describe(p, nodes, &cluster->partitions[cluster->partition_count]);
            add_reservations(reservations, p, (double)time(NULL), &cluster->partitions[cluster->partition_count++]);
        }
        if (cluster->enforces_limits) watch_accounting(cluster);
    }
    if (nodes != NULL) slurm_free_node_info_msg(nodes);
    if (reservations != NULL) slurm_free_reservation_info_msg(reservations);
    slurm_free_partition_info_msg(partitions);
    return cluster;
}
