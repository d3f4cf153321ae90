/* program_section.h — the section of a `.job` file that holds the program. Private to runtime/job. */
#ifndef RT_PROGRAM_SECTION_H
#define RT_PROGRAM_SECTION_H

#include "runtime/job/job_bytes.h"
#include "runtime/job/job_program.h"

void rt_put_program(rt_writer *w, const rt_program *program);
/* A malformed section makes the reader fail. */
void rt_get_program(rt_reader *r, rt_program *out_program);

#endif
