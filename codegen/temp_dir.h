/* temp_dir.h — the private folder beside an output that the linker works in. */
#ifndef CG_TEMP_DIR_H
#define CG_TEMP_DIR_H

#include "ir/arena.h"
#include "mdot/mdot_base.h"

typedef enum cg_work_file {
    CG_DATA_OBJECT,
    CG_CODE_OBJECT,
    CG_EXPORT_MAP,
    CG_LINKER_WORDS,
    CG_LINKED,
    CG_WORK_FILE_COUNT
} cg_work_file;

typedef struct cg_temp_dir {
    char *directory;
    char *file[CG_WORK_FILE_COUNT];
    int lock; /* the directory, and a lock on it as long as its process lives */
} cg_temp_dir;

/* Makes one beside `path`, and removes those there that killed compilations have left behind, as well as temporary
 * files that killed processes have (base/stale_temp.h). Strings are the arena's. */
mdot_status cg_temp_dir_open(const char *path, ir_arena *arena, cg_temp_dir *out, mdot_error *err);
/* Removes it with all files in it, a linker's own, too. */
void cg_temp_dir_close(const cg_temp_dir *w);

#endif
