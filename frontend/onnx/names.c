/* names.c — see names.h. */
#include "frontend/onnx/names.h"

#include "ir/hash_map.h"

struct fe_names {
    ir_hash_map map;
};

fe_names *fe_names_create(ir_arena *arena)
{
    fe_names *names = IR_NEW(arena, fe_names);
    if (names != NULL) names->map = (ir_hash_map){.arena = arena};
    return names;
}

int fe_names_find(const fe_names *names, const char *key)
{
    const ir_hash_entry *entry = ir_hash_map_find_text(&names->map, key);
    return entry != NULL ? entry->number : -1;
}

bool fe_names_add(fe_names *names, const char *key, int number)
{
    return ir_hash_map_add_text(&names->map, key, number);
}
