/* table_check.h — checks an artefact's table, so that all later code can read it in place (table_reader.h). */
#ifndef RT_TABLE_CHECK_H
#define RT_TABLE_CHECK_H

#include "runtime/core/elf_sections.h"

/* Checks magic, versions, sizes and checksum, then every offset and count of the table and every code address. */
mdot_status rt_table_check(const rt_elf *elf, mdot_error *err);

#endif
