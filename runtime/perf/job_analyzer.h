/* job_analyzer.h — the interface of runtime/perf to runtime/components.c: the maker of the analysis that every job
 * carries (core.h). */
#ifndef RT_JOB_ANALYZER_H
#define RT_JOB_ANALYZER_H

#include "runtime/core/core.h"

extern const rt_job_analyzer rt_perf_analyzer;

#endif
